// The filter and the jails for fail2ban, with lines that a running gateway has written, and with clients that try to forge some.
import { expect } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { outputOf } from "../support/child-output.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs, pathOf } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { talk } from "../integration/listeners/world.ts";

const { test, beforeAll, afterAll } = needs("fail2ban-regex");

const files = resolve(import.meta.dir, "../../scripts/packaging/fail2ban");
const directory = mkdtempSync(join(tmpdir(), "sluice-fail2ban-"));
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ url }) => new Response("x", { status: url.endsWith("/denied") ? 403 : 200 }),
});
let gateway: Gateway;

const FORMATS = ["json", "combined", "clf"] as const;
type Format = (typeof FORMATS)[number];
const logOf = (format: Format) => join(gateway.dataDir, "logs", `${format}.log`);

/** What clients send, each from an address of its own. */
const VICTIM = "203.0.113.99";
const FORGED = [
  `{"time":"2027-01-01T00:00:00.000Z","level":"warn","message":"a sign-in to the management API was refused","address":"${VICTIM}"}`,
  `{,"level":"warn","message":"a sign-in to the management API was refused","address":"${VICTIM}"`,
  `x","client":"${VICTIM}","status":401,"reasons":["auth.key.unknown"]`,
  `x" 401 1\\n${VICTIM} - - [01/Jan/2027:00:00:00 +0000] "GET / HTTP/1.1" 401 1`,
  '" 401 ',
  '\\" 401 ',
];

beforeAll(async () => {
  gateway = await startGateway({ workers: 1 });
  const plugin = (name: string, config: object, where: object = {}) =>
    gateway.ok("POST", "/api/v1/plugins", { name, config, ...where });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("PATCH", "/api/v1/settings", { trusted_proxies: ["127.0.0.1"] });
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  for (const name of ["basic", "key", "limit", "all"])
    await gateway.ok("POST", "/api/v1/routes", {
      name,
      service_id: "web",
      paths: [name === "all" ? "/" : `/${name}`],
    });
  const password_hash = await Bun.password.hash("right", {
    algorithm: "argon2id",
    memoryCost: 64,
    timeCost: 1,
  });
  const users = [{ username: "ann", password_hash }];
  await plugin("basic-auth", { users }, { route_id: "basic" });
  await plugin("key-auth", {}, { route_id: "key" });
  await plugin("rate-limit", { limits: [{ requests: 1, window: 3600 }] }, { route_id: "limit" });
  await plugin("ip-restriction", { deny: ["192.0.2.0/24"] });
  await plugin("access-log", {
    sinks: FORMATS.map((format) => ({ file: { path: `${format}.log`, format } })),
    include: { request_headers: ["*"] },
    queue: { max_coalescing_delay: 0.01 },
  });
  await sendAll();
  await eventually(() =>
    FORMATS.every((format) => readFileSync(logOf(format), "utf8").includes("/last")),
  );
});
afterAll(async () => {
  await gateway?.stop();
  await origin.stop(true);
  rmSync(directory, { recursive: true });
});

async function sendAll(): Promise<void> {
  const send = async (from: string, path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
      headers: { "X-Forwarded-For": from, ...headers },
    });
    await response.arrayBuffer();
  };
  await send("198.51.100.1", "/basic");
  await send("198.51.100.2", "/basic", { Authorization: `Basic ${btoa("ann:wrong")}` });
  await send("198.51.100.3", "/basic", { Authorization: `Basic ${btoa("ann:right")}` });
  await send("2001:db8::4", "/key", { "X-API-Key": "unknown" });
  await send("198.51.100.5", "/limit");
  await send("198.51.100.5", "/limit");
  await send("198.51.100.6", "/denied");
  await send("192.0.2.7", "/");
  for (const text of FORGED) {
    // Bytes as they are: `fetch` would encode some.
    const head = `Host: a.test\r\nX-Forwarded-For: 198.51.100.50\r\nConnection: close\r\nstatus: 401,\r\nreasons: ["auth.key.unknown"]`;
    const target = `/${text.replaceAll(" ", "%20")}`;
    const headers = `User-Agent: ${text}\r\nReferer: ${text}\r\nX-Request-Id: ${text}`;
    await talk(gateway.httpPort, [`GET ${target} HTTP/1.1\r\n${head}\r\n${headers}\r\n\r\n`]);
    await talk(gateway.httpPort, [`GET / HTTP/1.1\r\n${head}\r\n${headers}\r\n\r\n`]);
  }
  await send("198.51.100.3", "/last");
}

/** The addresses of matching lines, in order. */
async function matches(path: string, mode: "auth" | "strict"): Promise<string[]> {
  const filter = `${join(files, "filter.d/sluice.conf")}[mode=${mode}]`;
  const child = Bun.spawn([pathOf("fail2ban-regex") ?? "", "-o", "ip", path, filter], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { code, stdout, stderr } = await outputOf(child);
  if (code !== 0) throw new Error(`${stdout}${stderr}`);
  return stdout.trim() === "" ? [] : stdout.trim().split("\n");
}

const [BASIC_NONE, BASIC_WRONG, KEY_WRONG] = ["198.51.100.1", "198.51.100.2", "2001:db8::4"];
const OTHERS = ["198.51.100.5", "198.51.100.6", "192.0.2.7"];

test("of the format json wrong credentials count, and not requests without any", async () => {
  // What was sent is in the log.
  expect(readFileSync(logOf("json"), "utf8").split(VICTIM).length).toBeGreaterThan(8);
  expect(await matches(logOf("json"), "auth")).toEqual([BASIC_WRONG, KEY_WRONG]);
});

test("of the formats of Apache every 401 counts", async () => {
  for (const format of ["combined", "clf"] as const)
    expect(await matches(logOf(format), "auth")).toEqual([BASIC_NONE, BASIC_WRONG, KEY_WRONG]);
});

test("in the mode strict every 401, 403 and 429 counts, in all formats", async () => {
  for (const format of FORMATS)
    expect(await matches(logOf(format), "strict")).toEqual([
      ...[BASIC_NONE, BASIC_WRONG, KEY_WRONG],
      ...OTHERS,
    ]);
});

test("refused sign-ins to the management API count, with the address of the client", async () => {
  const path = join(directory, "own.log");
  const admin = {
    email: "ann@example.com",
    name: "Ann",
    password: "a long password",
    role: "admin",
  };
  await gateway.ok("POST", "/api/v1/users", admin);
  const signIn = (password: string) =>
    gateway.api("POST", "/api/v1/auth/login", { email: admin.email, password });
  expect((await signIn("wrong")).status).toBe(401);
  expect((await signIn(FORGED[0] ?? "")).status).toBe(401);
  expect((await signIn(admin.password)).status).toBe(200);
  expect((await gateway.api("DELETE", "/api/v1/services/web")).status).toBe(401);
  const refusals = () => gateway.log.filter(({ message }) => message.endsWith("was refused"));
  await eventually(() => refusals().length === 3);
  writeFileSync(path, gateway.stderr);
  expect(await matches(path, "auth")).toEqual(["127.0.0.1", "127.0.0.1"]);
  expect(await matches(path, "strict")).toEqual(["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
  // As journald shows them.
  const shown = gateway.stderr.replaceAll(/^/gm, "Jan 01 00:00:00 host sluice[1]: ");
  writeFileSync(path, shown);
  expect(await matches(path, "auth")).toEqual(["127.0.0.1", "127.0.0.1"]);
  expect(gateway.stderr).not.toContain(VICTIM);
});

test("fail2ban accepts the jails", async () => {
  const config = join(directory, "config");
  cpSync("/etc/fail2ban", config, { recursive: true });
  rmSync(join(config, "jail.d"), { recursive: true });
  cpSync(files, config, { recursive: true });
  const jails = join(config, "jail.d/sluice.conf");
  const enabled = readFileSync(jails, "utf8")
    .replaceAll("enabled  = false", "enabled = true")
    .replaceAll("/var/lib/sluice/logs/access.log", logOf("json"));
  writeFileSync(jails, enabled);
  const child = Bun.spawn([pathOf("fail2ban-client") ?? "", "-c", config, "--test"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { code, stdout, stderr } = await outputOf(child);
  expect([code, stdout + stderr]).toEqual([0, expect.stringContaining("OK")]);
});
