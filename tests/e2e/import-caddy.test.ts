// A configuration of a real Caddy, imported: whatever Caddy denies, the gateway denies too. Needs caddy.
import { expect } from "bun:test";
import { type Caddy, startCaddy } from "../support/caddy.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { seedOfRun } from "../support/random.ts";
import { caddyfile, requests, sites } from "./import/caddy-sites.ts";
import { ask, type Asked, judge, startOpenOrigin } from "./import/judge.ts";
import { randomRequests, randomServer } from "./import/random-caddy.ts";

const { afterAll, beforeAll, describe, test } = needs("caddy");

const ROUNDS = Number(process.env["SLUICE_TEST_ROUNDS"] ?? 25);
const SEED = seedOfRun(20);

const origins = [startOpenOrigin("one"), startOpenOrigin("two"), startOpenOrigin("three")];
const ports = origins.map(({ port }) => port ?? 0);
/** Allows requests with the right token, as the user bob. */
const authority = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ headers }) =>
    new Response("", {
      status: headers.get("authorization") === null ? 401 : 200,
      headers: { "X-User": "bob" },
    }),
});

let caddy: Caddy;
let gateway: Gateway;
let hash = "";

beforeAll(async () => {
  caddy = await startCaddy();
  gateway = await startGateway({ workers: 1 });
  hash = await Bun.password.hash("secret", { algorithm: "bcrypt", cost: 4 });
});
afterAll(async () => {
  await gateway?.stop();
  await caddy?.stop();
  for (const server of [...origins, authority]) await server.stop(true);
});

interface Server {
  listen: string[];
}

/** Configures both with the same sites: Caddy on its port, the gateway on its listener for plain requests. */
async function serve(apps: { http: { servers: Record<string, Server> } }) {
  await caddy.load(apps);
  const copy = structuredClone(apps);
  for (const server of Object.values(copy.http.servers)) server.listen = [":80"];
  for (const { id } of await gateway.ok("GET", "/api/v1/routes"))
    await gateway.ok("DELETE", `/api/v1/routes/${id}`);
  const answer = await gateway.api("POST", "/api/v1/import?from=caddy&mode=replace", {
    apps: copy,
  });
  expect(answer.status).toBe(200);
  return answer.json();
}

const at = () => ({ source: caddy.port, gateway: gateway.httpPort });

async function moreOpen(asked: readonly Asked[]): Promise<string[]> {
  const found: string[] = [];
  let answers = 0;
  for (const each of asked) {
    const { isMoreOpen, source, here } = await judge(each, at());
    if (source.status > 0) answers += 1;
    if (isMoreOpen) found.push(JSON.stringify({ ...each, caddy: source, sluice: here }));
  }
  // Caddy aborts some connections and keeps running.
  expect(answers).toBeGreaterThan(asked.length / 2);
  return found;
}

describe("sites of a Caddyfile", () => {
  beforeAll(async () => {
    const [one = 0, two = 0] = ports;
    const places = { port: caddy.port, one, two, auth: authority.port ?? 0, hash };
    const { apps } = await caddy.adapt(caddyfile(places));
    await serve(apps as never);
  });

  test("the gateway allows no request that Caddy denies", async () => {
    expect(await moreOpen(requests())).toEqual([]);
  });

  test.each([
    ["s0.test", "/", "one"],
    ["s0.test", "/admin", "one"],
    ["s1.test", "/x", "two"],
    ["s2.test", "/public/a", "one"],
    ["s2.test", "/PUBLIC/A", "one"],
    ["s3.test", "/public/a", "one"],
    ["s3.test", "/s%C3%9C%C3%9F", "one"],
    ["s4.test", "/app/x", "one"],
    ["s4.test", "/APP/x", "one"],
    ["s7.test", "/x", "one"],
    ["s8.test", "/adminx", "one"],
    ["s10.test", "/x", "two"],
    ["s12.test", "/", "one"],
    ["s13.test", "/", "one"],
    ["s19.test", "/public/a", "one"],
    ["s22.test", "/x", "one"],
    ["s26.test", "/admin/open/x", "one"],
    ["s26.test", "/x", "two"],
    ["y.w.test", "/", "two"],
    ["a.v.test", "/", "one"],
    ["A.V.test", "/ADMIN/x", "one"],
    ["b.v.test", "/", "one"],
    ["b.v.test", "/APP/x", "two"],
    ["a.u.test", "/", "one"],
    ["s31.test", "/public/a", "two"],
    ["s33.test", "/x", "one"],
    ["s34.test", "/PUBLIC/a", "one"],
  ])("http://%s%s is as open as before", async (host, path, open) => {
    const { source, here } = await judge({ host, path }, at());
    expect([source.open, here.open]).toEqual([open, open]);
  });

  test.each([
    ["s0.test", "/ADMIN/x", 401],
    ["s0.test", "/adm%C4%B0n/x", 401],
    ["s1.test", "/admin.", 401],
    ["s2.test", "/public;x/a", 401],
    ["s3.test", "/public%5Ca", 403],
    ["s4.test", "/app/ADMIN/x", 401],
    ["s8.test", "/Admin/x", 403],
    ["s20.test", "/", 401],
    ["s21.test", "/", 503],
    ["s25.test", "/", 401],
    ["s26.test", "/admin/x", 404],
    ["s27.test", "/ADMIN/x", 503],
    ["x.y.w.test", "/", 403],
    ["b.v.test", "/ADMIN/x", 401],
    ["c.v.test", "/", 403],
    ["d.v.test", "/", 403],
    ["a.u.test", "/admin/x", 403],
    ["b.u.test", "/", 404],
    ["s31.test", "/", 401],
    ["s32.test", "/", 503],
    ["s33.test", "/ADMIN", 302],
    ["s35.test", "/admin/x", 302],
    ["s35.test", "/admin/in", 403],
    ["s34.test", "/x", 503],
    ["s34.test", "/admin/x", 404],
    ["x.y.w.tes", "/", 401],
  ])("http://%s%s gets %d", async (host, path, status) => {
    expect(await ask({ host, path }, gateway.httpPort)).toMatchObject({ status, open: null });
  });

  test("with the password every page is accessible", async () => {
    const fields = `Authorization: Basic ${btoa("bob:secret")}\r\n`;
    for (const [host, path] of [
      ["s0.test", "/ADMIN/x"],
      ["s5.test", "/app/admin/x"],
      ["s22.test", "/admin/x"],
      ["s25.test", "/"],
      ["other.test", "/"],
    ] as const) {
      const { source, here } = await judge({ host, path, fields }, at());
      expect([host, here.open]).toEqual([host, source.open]);
      expect(here.open).not.toBeNull();
    }
  });

  test("each site has its own subject", () => {
    expect(new Set(sites.map(({ why }) => why)).size).toBe(sites.length);
  });
});

describe("random configurations", () => {
  test(`with the seed ${SEED}: no request gets anywhere where Caddy does not let it`, async () => {
    const found: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const seed = SEED * 100_003 + round;
      const server = randomServer(seed, { port: caddy.port, origins: ports, hash });
      await serve({ http: { servers: { srv0: server } } });
      const all = await moreOpen(randomRequests(seed));
      found.push(...all.map((each) => `${seed} ${each}`));
    }
    expect(found).toEqual([]);
  });
});
