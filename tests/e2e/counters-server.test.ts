// The connection to a server of shared counters: users, passwords, TLS, what goes wrong, and what a fleet without one is told.
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Authority } from "../support/authority.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { send, TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { patient, Redis, type RedisOptions } from "../support/redis.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "redis-server");

const cleanups = cleanupsOf(afterEach);

const PASSWORD = "p@ss:w/ord%";
const YEAR = 31_536_000;

async function startRedis(options: RedisOptions = {}): Promise<Redis> {
  const redis = await Redis.create(options);
  cleanups.push(() => redis.stop());
  return redis;
}

/** A gateway alone, with a site that allows 3 requests, counted exactly. */
async function start(
  url: string,
  { args = [], env = {} }: { args?: string[]; env?: Record<string, string> } = {},
): Promise<Gateway> {
  const gateway = await startGateway({
    ...{ binary: executable, workers: 2, env },
    args: [...(url === "" ? [] : ["--counters", patient(url)]), ...args],
  });
  cleanups.push(() => gateway.stop());
  const origin: Origin = startOrigin();
  cleanups.push(() => origin.stop());
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "site", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
  const limits = [{ requests: 3, window: YEAR, algorithm: "fixed" }];
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "rate-limit",
    config: { limits, shared: "exact", on_shared_error: "closed" },
  });
  return gateway;
}

async function status(gateway: Gateway): Promise<number> {
  return (await fetch(`http://127.0.0.1:${gateway.httpPort}/`)).status;
}

async function statuses(gateway: Gateway): Promise<number[]> {
  const seen: number[] = [];
  for (let round = 0; round < 4; round++) seen.push(await status(gateway));
  return seen;
}

/** A start waits half a second for the server; until both workers have reached it, requests are refused and not counted. */
async function counted(gateway: Gateway): Promise<number[]> {
  const seen: number[] = [];
  await eventually(async () => {
    const one = await status(gateway);
    if (one !== 503) seen.push(one);
    return seen.length === 4;
  });
  return seen;
}

const COUNTED = [200, 200, 200, 429];

function fileWith(text: string): string {
  const file = join(tmpdir(), `sluice-${Bun.randomUUIDv7()}`);
  writeFileSync(file, text);
  cleanups.push(() => Bun.file(file).delete());
  return file;
}

const urlWith = ({ url }: Redis, user: string) => url.replace("://", `://${user}@`);

test("a user with the documented rights counts, with a password that no process list and no log shows", async () => {
  const redis = await startRedis({ password: PASSWORD });
  const args = ["--counters-password-file", fileWith(`${PASSWORD}\n`)];
  const gateway = await start(urlWith(redis, "sluice"), { args });
  expect(await counted(gateway)).toEqual(COUNTED);
  expect(readFileSync(`/proc/${gateway.pid}/cmdline`, "latin1")).not.toContain("p@ss");
  expect(gateway.stderr).not.toContain("list of processes");
  for (const secret of [PASSWORD, encodeURIComponent(PASSWORD)])
    expect(gateway.stderr).not.toContain(secret);
});

test("a password on the command line counts as well, and gets a warning; one in the environment does not", async () => {
  const redis = await startRedis({ password: PASSWORD });
  const url = urlWith(redis, `sluice:${encodeURIComponent(PASSWORD)}`);
  const seen = await start(url);
  expect(seen.stderr).toContain("every user of this machine can see the password of --counters");
  expect(await counted(seen)).toEqual(COUNTED);
  const hidden = await start("", { env: { SLUICE_COUNTERS: patient(url) } });
  expect(hidden.stderr).not.toContain("can see the password");
  expect(await counted(hidden)).toEqual(COUNTED);
  expect(seen.stderr + hidden.stderr).not.toContain(encodeURIComponent(PASSWORD));
});

test("TLS is verified with the CA that the URL names", async () => {
  const redis = await startRedis({ tls: true });
  const gateway = await start(`${redis.url}?ca=${redis.authority}`);
  expect(await counted(gateway)).toEqual(COUNTED);
});

const away = async (gateway: Gateway) => {
  const line = await eventually(() =>
    gateway.log.find(({ message }) => message === "the server of the shared counters is away"),
  );
  expect(await statuses(gateway)).toEqual([503, 503, 503, 503]);
  expect((await gateway.api("GET", "/readyz")).status).toBe(200);
  return String(line["why"]);
};

test("what is wrong with user, password or TLS stands in the log", async () => {
  const [plain, closed, encrypted, narrow] = await Promise.all([
    startRedis(),
    startRedis({ password: PASSWORD }),
    startRedis({ tls: true }),
    startRedis({ password: PASSWORD }),
  ]);
  await narrow.ask("ACL", "SETUSER", "sluice", "-set");
  const other = fileWith((await Authority.create("another")).cert);
  const cases: readonly (readonly [string, RegExp])[] = [
    [urlWith(closed, "sluice:wrong"), /^wrong user or password$/],
    [closed.url, /^a password is required/],
    [urlWith(narrow, `sluice:${encodeURIComponent(PASSWORD)}`), /NOPERM .*'set'/],
    [`${plain.url}/99`, /^there is no such database/],
    [encrypted.url, /^its certificate is not trusted .* \?ca=FILE/],
    [`${encrypted.url}?ca=${other}`, /^its certificate is not trusted/],
    [encrypted.url.replace("rediss", "redis"), /needs rediss:\/\//],
    [plain.url.replace("redis", "rediss"), /does the server use TLS/],
    [`redis://127.0.0.1:${quietPort()}`, /^the connection was refused$/],
  ];
  for (const [url, expected] of cases) {
    const gateway = await start(url);
    expect(await away(gateway)).toMatch(expected);
    expect(gateway.stderr).not.toContain(":wrong");
    await gateway.stop();
  }
});

test("the limits come back when the server is there, without a restart", async () => {
  const redis = await startRedis();
  await redis.kill();
  const gateway = await start(redis.url);
  await away(gateway);
  await redis.start();
  await eventually(async () => (await statuses(gateway)).includes(200));
  await eventually(() => gateway.log.some(({ message }) => message.endsWith("counters is back")));
});

test.each([
  ["http://127.0.0.1:6379", "must be the URL of a Valkey or Redis server"],
  ["redis://", "must be the URL of a Valkey or Redis server"],
  ["redis://:hidden@127.0.0.1/x", "the path must be the number of a database"],
  ["redis://127.0.0.1?max=1", 'knows the parameters ca, cert, key, timeout, not "max"'],
  ["redis://127.0.0.1?timeout=4", "from 5 to 1000"],
  ["redis://127.0.0.1?timeout=1001", "from 5 to 1000"],
  ["redis://127.0.0.1?ca=/nothing", "/nothing cannot be read"],
  ["rediss://127.0.0.1?cert=/etc/hostname", "needs both cert and key"],
  ["redis://127.0.0.1?ca=/etc/hostname", "only for TLS"],
  ["rediss://127.0.0.1?ca=/etc/hostname", "ca: not usable"],
])("%s is refused with the reason", async (url, reason) => {
  const { code, stderr } = await runCommand(["serve", "--counters", url], { binary: executable });
  expect(code).toBe(2);
  expect(stderr).toContain("--counters: ");
  expect(stderr).toContain(reason);
  expect(stderr).not.toContain("hidden");
});

needs("executable", "postgres", "redis-server").test(
  "a fleet without a server of counters warns about plugins that need one, and one with it does not",
  async () => {
    const redis = await startRedis();
    const limits = [{ requests: 3 }];
    const plugins = [
      ["hmac-auth", { nonce_cache: true }, "replays are refused on each node only"],
      ["hmac-auth", {}, null],
      ["oidc", { issuer: "https://id.example", client_id: "x" }, "known to one node only"],
      ["rate-limit", { limits }, "each node counts for itself"],
      ["rate-limit", { limits, shared: "node" }, null],
    ] as const;
    for (const counters of [null, async () => redis.url]) {
      const fleet = await TestFleet.start(1, counters === null ? {} : { counters });
      cleanups.push(() => fleet.stop());
      const [node] = fleet.nodes as [Gateway];
      for (const [name, config, warning] of plugins) {
        const reply = await node.api("POST", "/api/v1/plugins?dry_run=true", { name, config });
        expect(reply.status).toBe(200);
        const said = reply.headers.get("x-warning");
        if (counters !== null || warning === null) expect(said).toBeNull();
        else expect(said).toContain(`${warning}; start all nodes with --counters`);
      }
      // However the change comes.
      await node.ok("POST", "/api/v1/plugins", { name: "rate-limit", config: { limits } });
      const exported = await node.ok("GET", "/api/v1/export");
      await node.ok("DELETE", `/api/v1/plugins/${exported.plugins[0].id}`);
      const imported = await node.api("POST", "/api/v1/import?dry_run=1", exported);
      const text = `${imported.headers.get("x-warning")} ${await imported.text()}`;
      expect([imported.status, text.includes("each node counts for itself")]).toEqual([
        200,
        counters === null,
      ]);
      expect((await send(node, "GET", ["/metrics"])).text.includes("sluice_counters_")).toBe(
        counters !== null,
      );
    }
  },
);
