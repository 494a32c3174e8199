// A configuration of a real nginx, imported by the command: requests go where they went before, and none goes further. Needs nginx.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { type Nginx, startNginx } from "../support/nginx.ts";
import { seedOfRun } from "../support/random.ts";
import { exchange, judge } from "./import/judge.ts";
import { RANDOM_PATHS, randomServers } from "./import/random-nginx.ts";
import { ATTACKS, type Case, cases, oldUsers, servers, UNKNOWN } from "./import/nginx-sites.ts";

const { afterAll, beforeAll, describe, test } = needs("nginx");

const SEED = seedOfRun(11);
const random = randomServers(SEED, Number(process.env["SLUICE_TEST_ROUNDS"] ?? 40));

const SHOWN = ["x-fixed", "x-path", "x-own", "x-client", "remote-user", "authorization"];

/** An origin that tells what reached it, with the path as it was sent. */
function startOrigin(name: string): Promise<Server> {
  const server = createServer((request, response) => {
    const headers = Object.fromEntries(SHOWN.map((each) => [each, request.headers[each] ?? null]));
    const seen = { name, path: request.url, host: request.headers.host, headers };
    response.writeHead(200, {
      "content-type": "application/json",
      "x-upstream": name,
      "x-open": name,
    });
    response.end(JSON.stringify(seen));
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** Allows requests with the right token, as the user bob. */
const startAuthority = (): Promise<Server> => {
  const server = createServer((request, response) => {
    const isRight = request.headers.authorization === "Bearer right";
    response.writeHead(isRight ? 200 : 401, { "remote-user": "bob" });
    response.end();
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
};

const addressOf = (server: Server) => `127.0.0.1:${(server.address() as AddressInfo).port}`;

const directory = mkdtempSync(join(tmpdir(), "sluice-import-nginx-"));
let all: Server[] = [];
let nginx: Nginx;
let gateway: Gateway;
let report = "";

beforeAll(async () => {
  all = [
    await startOrigin("one"),
    await startOrigin("two"),
    await startAuthority(),
    await startOrigin("one"),
  ];
  const [one = "", two = "", authority = "", spare = ""] = all.map(addressOf);
  const text = `${servers} ${random.map((server) => server.text).join("\n")}`
    .replaceAll("ONE2", spare)
    .replaceAll("ONE", one)
    .replaceAll("TWO", two)
    .replaceAll("AUTH", authority);
  const hash = await Bun.password.hash("secret", { algorithm: "bcrypt", cost: 4 });
  const users = `# users\nbob:${hash}\n${oldUsers}\n`;
  nginx = await startNginx({
    files: { "index.html": "", users },
    servers: (port) => text.replaceAll("LISTEN", `127.0.0.1:${port}`).replaceAll(UNKNOWN, ""),
  });
  gateway = await startGateway({ workers: 1 });
  await Bun.write(join(directory, "root/users"), users);
  writeFileSync(
    join(directory, "nginx.conf"),
    `http { default_type application/octet-stream; ${text.replaceAll("LISTEN", "80")} }`,
  );
  const file = join(directory, "nginx.conf");
  const result = await runCommand(["import", "--from", "nginx", file, "--details"], {
    env: { SLUICE_URL: gateway.admin },
  });
  expect([result.code, result.stderr]).toEqual([0, ""]);
  report = result.stdout;
});
afterAll(async () => {
  await gateway?.stop();
  await nginx?.stop();
  for (const server of all) server.close();
  rmSync(directory, { recursive: true, force: true });
});

interface Outcome {
  readonly status: number;
  /** What reached an origin; null: the request reached none. */
  readonly seen: unknown;
  readonly location: string | null;
  readonly headers: Readonly<Record<string, string | null>>;
  readonly body: string | null;
}

async function outcomeOf(asked: Case, port: number): Promise<Outcome> {
  const received = await exchange(asked, port);
  const [, status = 0] = /^HTTP\/1\.1 (\d{3})/.exec(received) ?? [];
  const fieldOf = (name: string) =>
    new RegExp(`^${name}: *(.*?)\\r$`, "im").exec(received)?.[1] ?? null;
  const [, text = ""] = received.split(/\r\n\r\n(.*)/s);
  const seen = /\{"name".*\}/s.exec(text)?.[0];
  const names = ["x-level", "x-more", "x-server", "x-own", "x-upstream", "x-kind", "content-type"];
  const isOk = Number(status) === 200;
  return {
    status: Number(status),
    seen: seen === undefined ? null : JSON.parse(seen),
    // nginx adds the host to a path.
    location: fieldOf("location")?.replace(/^http:\/\/[^/]+(?=\/)/, "") ?? null,
    headers: isOk ? Object.fromEntries(names.map((name) => [name, fieldOf(name)])) : {},
    body: isOk && seen === undefined ? text : null,
  };
}

const withoutCharset = (outcome: Outcome): Outcome => ({
  ...outcome,
  headers: {
    ...outcome.headers,
    "content-type": outcome.headers["content-type"]?.split(";")[0] ?? null,
  },
  body:
    outcome.body === null ? null : outcome.body.replace(/^[\da-f]+\r\n(.*)\r\n0\r\n\r\n$/s, "$1"),
});

/** The paths of nginx may be in another spelling, where it forwards the request as sent. */
const comparable = (outcome: Outcome): Outcome => {
  const seen = outcome.seen as { path: string } | null;
  if (seen === null) return withoutCharset(outcome);
  const path = URL.parse(`http://h${seen.path}`)?.href.replace(/^http:\/\/h/, "") ?? seen.path;
  return withoutCharset({ ...outcome, seen: { ...seen, path } });
};

describe("servers of nginx", () => {
  test("the table is long enough", () => {
    expect(cases.length).toBeGreaterThan(120);
  });

  const titled = cases.map((one): [string, Case] => {
    const { method = "GET", host, path, fields = "", from = "" } = one;
    return [`${method} http://${host}${path} ${fields.trim()} ${from}`.trim(), one];
  });

  test.each(titled.filter(([, { differs }]) => differs === undefined))(
    "%s as before",
    async (_, asked) => {
      const [source, here] = [
        await outcomeOf(asked, nginx.port),
        await outcomeOf(asked, gateway.httpPort),
      ];
      expect(comparable(here)).toEqual(comparable(source));
    },
  );

  test.each(titled.filter(([, { differs }]) => differs !== undefined))(
    "%s is not more open",
    async (_, asked) => {
      const source = await outcomeOf(asked, nginx.port);
      const here = await outcomeOf(asked, gateway.httpPort);
      const isOpen = here.seen !== null;
      expect(isOpen && source.seen === null).toBe(false);
    },
  );

  test("no spelling of a path is more open", async () => {
    // Of servers without protections, and one whose unknown directive nginx has not seen.
    const others = ["matchers.test", "lua.test", "a.named.test", "b.named.test"];
    const hosts = [...new Set(cases.map(({ host }) => host))].filter(
      (host) => !others.includes(host),
    );
    const found: string[] = [];
    let open = 0;
    const at = { source: nginx.port, gateway: gateway.httpPort };
    for (const host of hosts)
      for (const path of ATTACKS) {
        const { isMoreOpen, source, here } = await judge({ host, path }, at);
        if (here.open !== null) open += 1;
        if (isMoreOpen) found.push(JSON.stringify({ host, path, nginx: source, sluice: here }));
      }
    expect(found).toEqual([]);
    expect(open).toBeGreaterThan(500);
  });

  test(`no request is more open for random servers of the seed ${SEED}`, async () => {
    const at = { source: nginx.port, gateway: gateway.httpPort };
    const login = `Authorization: Basic ${btoa("bob:secret")}\r\n`;
    const found: string[] = [];
    let open = 0;
    for (const { host, text } of random)
      for (const path of RANDOM_PATHS)
        for (const more of [{}, { from: "127.0.0.2" }, { fields: login }, { method: "POST" }]) {
          const { isMoreOpen, source, here } = await judge({ host, path, ...more }, at);
          if (here.open !== null) open += 1;
          // Which of two open origins serves it is no matter of access.
          if (!isMoreOpen || source.open !== null) continue;
          // nginx redirects to the path with a slash, or looks for a file where it has no location.
          const [front = ""] = path.split("?");
          const slashed = await judge({ host, path: `${front}/`, ...more }, at);
          const isRedirected = source.status === 301 && slashed.source.open !== null;
          const isAlike = path.includes(";") || !/internal|return 404/.test(text);
          const isFile = source.status === 404 && isAlike && !text.includes('location "/"');
          if (!isRedirected && !isFile)
            found.push(JSON.stringify({ host, path, ...more, nginx: source, sluice: here, text }));
        }
    expect(found).toEqual([]);
    expect(open).toBeGreaterThan(random.length * 10);
  });

  test("the report names places in the file", () => {
    expect(report).toMatch(/if at nginx\.conf:\d+/);
    expect(report).toMatch(/more_unknown at nginx\.conf:\d+/);
  });
});
