// Hosts of Nginx Proxy Manager, imported: whatever an nginx with its configuration denies, the gateway denies too. Needs nginx.
import { expect } from "bun:test";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { seedOfRun } from "../support/random.ts";
import { needs } from "../support/needs.ts";
import { type Nginx, startNginx } from "../support/nginx.ts";
import { npmDatabase } from "../unit/import/samples.ts";
import { type Asked, ask, judge, startOpenOrigin, type Verdict } from "./import/judge.ts";
import { files, type NpmSite, PATHS, rowsOf, serversOf, sites } from "./import/npm-sites.ts";
import { randomSites } from "./import/random-npm.ts";

const { afterAll, beforeAll, describe, test } = needs("nginx");

const origins = [startOpenOrigin("one"), startOpenOrigin("two")];
const [one = 0, two = 0] = origins.map(({ port }) => port ?? 0);

let nginx: Nginx;
let gateway: Gateway;

async function startBoth(of: readonly NpmSite[]) {
  const source = await startNginx({ files, servers: serversOf({ one, two }, of) });
  const here = await startGateway({ workers: 1 });
  const bytes = npmDatabase(
    ...["proxy_host", "access_list", "access_list_auth", "access_list_client"].map(
      (table) => `DELETE FROM ${table}`,
    ),
    "DELETE FROM setting",
    "DELETE FROM stream",
    ...rowsOf({ one, two }, of),
  );
  const answer = await fetch(`${here.admin}/api/v1/import?from=npm`, {
    method: "POST",
    body: new Blob([new Uint8Array(bytes)]),
  });
  expect(answer.status).toBe(200);
  return { source, here };
}

beforeAll(async () => {
  ({ source: nginx, here: gateway } = await startBoth(sites));
});
afterAll(async () => {
  await gateway?.stop();
  await nginx?.stop();
  for (const server of origins) await server.stop(true);
});

const at = () => ({ source: nginx.port, gateway: gateway.httpPort });
/** nginx redirects `/api` to its location `/api/`, where the gateway forwards it: what counts is the response there. */
async function judgeBehindSlash(asked: Asked, ports = at()) {
  const first = await judge(asked, ports);
  const { status, location } = first.source;
  const url = URL.parse(location ?? "");
  if (!first.isMoreOpen || status !== 301 || url?.pathname.endsWith("/") !== true) return first;
  const { source } = await judge({ ...asked, path: `${url.pathname}${url.search}` }, ports);
  return { ...first, source, isMoreOpen: first.here.open !== source.open };
}

const login = `Authorization: Basic ${btoa("bob:secret")}\r\n`;

function* requests(): Generator<Asked> {
  for (const [index, { domain = `n${index}.test` }] of sites.entries()) {
    const host = domain.replace("*", "x");
    for (const path of PATHS) yield { host, path };
    for (const path of ["/", "/admin", "/api"]) {
      for (const from of ["127.0.0.1", "127.0.0.2"]) {
        yield { host, path, from };
        yield { host, path, from, fields: login };
        yield { host, path, from, fields: "X-Real-IP: 127.0.0.2\r\n" };
      }
      yield { host: `${host}.`, path };
      yield { host: host.toUpperCase(), path };
      yield { host: `${host}:81`, path };
      yield { host, path, fields: `Authorization: Basic ${btoa("bob:wrong")}\r\n` };
      yield { host, path, method: "POST" };
      yield { host, path, method: "HEAD" };
      const asks = "Origin: https://a.test\r\nAccess-Control-Request-Method: GET\r\n";
      yield { host, path, method: "OPTIONS", fields: asks };
    }
  }
}

describe("hosts of Nginx Proxy Manager", () => {
  test("the gateway allows no request that nginx denies", async () => {
    const found: string[] = [];
    let open = 0;
    for (const asked of requests()) {
      const { isMoreOpen, source, here } = await judgeBehindSlash(asked);
      if (here.open !== null) open += 1;
      if (isMoreOpen) found.push(JSON.stringify({ ...asked, nginx: source, sluice: here }));
    }
    expect(found).toEqual([]);
    expect(open).toBeGreaterThan(300);
  });

  test.each([
    ["n0.test", "/", "one"],
    ["n5.test", "/", null],
    ["n8.test", "/", "one"],
    ["n8.test", "/exactx", "one"],
    ["n11.test", "/", "one"],
    ["n12.test", "/", "one"],
    ["n13.test", "/", "one"],
    ["n19.test", "/x", "one"],
  ])("http://%s%s is as open as before", async (host, path, open) => {
    const { source, here } = await judge({ host, path }, at());
    expect([source.open, here.open]).toEqual([open, open]);
  });

  test.each([
    ["n2.test", "/", "127.0.0.1", "one"],
    ["n5.test", "/", "127.0.0.1", "one"],
    ["n6.test", "/", "127.0.0.2", "one"],
    ["n6.test", "/", "127.0.0.1", null],
    ["n3.test", "/", "127.0.0.1", null],
    ["n17.test", "/api", "127.0.0.1", "two"],
  ])("http://%s%s with the password from %s", async (host, path, from, open) => {
    const { source, here } = await judge({ host, path, from, fields: login }, at());
    expect([source.open, here.open]).toEqual([open, open]);
  });

  test.each([
    ["n22.test", "/.well-known/carddav", "a redirect beside a password"],
    ["n22.test", "/.well-known/carddavx", "not the path of the redirect"],
    ["n23.test", "/old/x", "a location that redirects"],
    ["n24.test", "/a?b=c", "a host that redirects"],
    ["n25.test", "/?a=1+union+select(2)", "an exploit"],
    ["n25.test", "/api/?x=concat(1)", "an exploit in a location"],
    ["n25.test", "/?next=http://a.test/", "an address"],
    ["n25.test", "/?next=http%3A%2F%2Fa.test%2F", "an escaped address"],
    ["n25.test", "/?next=https://a.test/", "another address"],
    ["n25.test", "/?path=/a/b", "a path"],
    ["n25.test", "/?path=/etc/passwd", "a longer path"],
    ["n25.test", "/.git/config", "a path that other rules would reject"],
    ["n25.test", "/.env?q=sleep(5)", "a query that other rules would reject"],
    ["n26.test", "/api/x", "a location in the lines of the host"],
    ["n27.test", "/api/x?y=1", "another path at the target"],
    ["n28.test", "/", "beside a closed location"],
    ["n29.test", "/exact", "a status"],
    ["n29.test", "/exactx", "a status for what begins alike"],
    ["n30.test", "/adminx", "a redirect for what begins alike"],
    ["n30.test", "/admin/open/x", "a forwarded path below it"],
  ])("http://%s%s gets the same response: %s", async (host, path) => {
    const { source, here } = await judge({ host, path }, at());
    const comparable = ({ location, ...verdict }: Verdict, port: number) => {
      const url = location === null ? null : new URL(location, `http://${host}`).href;
      return { ...verdict, location: url?.replace(`:${port}`, "") ?? null };
    };
    expect(comparable(here, gateway.httpPort)).toEqual(comparable(source, nginx.port));
  });

  test("programs are rejected by their names as before", async () => {
    const asked = { host: "n25.test", path: "/", fields: "User-Agent: libwww-perl/6\r\n" };
    const { source, here } = await judge(asked, at());
    expect([source.status, here.status]).toEqual([403, 403]);
  });

  test("passwords of consumers are not valid for an access list", async () => {
    const { id } = await gateway.ok("POST", "/api/v1/consumers", { username: "eve" });
    await gateway.ok("POST", "/api/v1/credentials", {
      consumer_id: id,
      type: "basic",
      identifier: "eve",
      secret: "eves secret",
    });
    const fields = `Authorization: Basic ${btoa("eve:eves secret")}\r\n`;
    const verdict = await ask({ host: "n2.test", path: "/", fields }, gateway.httpPort);
    expect(verdict).toMatchObject({ status: 401, open: null });
  });
});

describe("random hosts", () => {
  const seed = seedOfRun();

  test.each([seed, seed + 1])("of seed %d allow no request that nginx denies", async (each) => {
    const random = randomSites(each, 20);
    const { source, here } = await startBoth(random);
    const ports = { source: source.port, gateway: here.httpPort };
    const found: string[] = [];
    try {
      for (const [index, site] of random.entries())
        for (const path of PATHS)
          for (const more of [{}, { from: "127.0.0.2" }, { fields: login }]) {
            const asked = { host: `n${index}.test`, path, ...more };
            const verdict = await judgeBehindSlash(asked, ports);
            // A prefix matches whole segments here, and another target is no secret of its host.
            if (verdict.isMoreOpen && verdict.source.open === null)
              found.push(JSON.stringify({ ...asked, ...verdict, site }));
          }
    } finally {
      await here.stop();
      await source.stop();
    }
    expect(found).toEqual([]);
  });
});
