// The secret key of a gateway that serves is replaced: no request fails, and every secret works before and after a restart.
import { expect } from "bun:test";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:tls";
import { join } from "node:path";
import { base32 } from "oslo/encoding";
import { hashPassword } from "../../src/crypto/password.ts";
import { hotp, stepAt } from "../support/one-time-password.ts";
import { selfSigned } from "../support/certificate.ts";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { SteadyLoad } from "../support/steady-load.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, describe, test } = needs("executable");

const ANSWER = "hello from the origin";
const PASSWORD = "a long password of ours";
const EMAIL = "root@a.example";

const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(ANSWER) });

let gateway: Gateway;
let fingerprint = "";
/** Of the second factor. */
let totpKey = "";
let totpStep = 0;
let token = "";
/** Names of secrets; the value of each is "value of" and its name. */
const names: string[] = [];

/** Fails unless the response is 200. */
async function ok(method: string, path: string, body?: unknown) {
  const headers: Record<string, string> = token === "" ? {} : { authorization: `Bearer ${token}` };
  const response = await gateway.api(method, `/api/v1${path}`, body, headers);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return { response, body: JSON.parse(text) };
}

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, { headers });

const rotate = (env: Record<string, string> = {}) =>
  runCommand(["rotate-key", "--data-dir", gateway.dataDir], { binary: executable, env });

const keyFile = () => readFileSync(join(gateway.dataDir, "secret.key")).toString("hex");

const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`user:${password}`).toString("base64")}`,
});

/** The fingerprint of the certificate that a listener presents, which needs its private key. */
function presented(): Promise<string> {
  return new Promise((resolve, reject) => {
    const to = { host: "127.0.0.1", port: gateway.httpsPort, servername: "key.test" };
    const socket = connect({ ...to, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? "");
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

/** Writing the value that is there changes nothing, so the revision shows whether it can still be read. */
async function expectReadable(): Promise<void> {
  const { revision } = (await ok("GET", "/admin/status")).body;
  for (const name of names) {
    const { response } = await ok("PATCH", `/secrets/${name}`, { value: `value of ${name}` });
    expect(response.headers.get("x-config-revision")).toBe(String(revision));
  }
}

/** The next code of the second factor: each is valid once. */
async function signsIn(): Promise<boolean> {
  totpStep = Math.max(totpStep + 1, stepAt(Date.now()) - 1);
  // One step ahead of the clock at most.
  await eventually(() => stepAt(Date.now()) >= totpStep - 1);
  const totp = hotp(base32.decode(totpKey), totpStep);
  const body = { email: EMAIL, password: PASSWORD, totp };
  return (await gateway.api("POST", "/api/v1/auth/login", body)).status === 200;
}

async function expectServing(): Promise<void> {
  expect(await presented()).toBe(fingerprint);
  expect(await (await get("/private", basic("first password"))).text()).toBe(ANSWER);
  expect((await get("/private", basic("another"))).status).toBe(401);
  await expectReadable();
}

beforeAll(async () => {
  gateway = await startGateway({ binary: executable, workers: 2 });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await ok("POST", "/services", { name: "app", targets });
  await ok("POST", "/services", { name: "sticky", targets, sticky: { enabled: true } });
  await ok("POST", "/routes", { name: "app", service_id: "app", paths: ["/"] });
  await ok("POST", "/routes", { name: "private", service_id: "app", paths: ["/private"] });
  await ok("POST", "/routes", { name: "form", service_id: "app", paths: ["/form"] });
  await ok("POST", "/routes", { name: "sticky", service_id: "sticky", paths: ["/sticky"] });
  const users = [{ username: "user", password_hash: await hashPassword("first password") }];
  await ok("POST", "/plugins", { name: "basic-auth", route_id: "private", config: { users } });
  const config = { mode: "double_submit" };
  await ok("POST", "/plugins", { name: "csrf", route_id: "form", config });
  const { cert, key } = await selfSigned("key.test");
  await ok("POST", "/certificates", { name: "key", certificate: cert, private_key: key });
  fingerprint = await presented();
  for (const name of ["a", "b", "c"]) {
    names.push(name);
    await ok("POST", "/secrets", { name, value: `value of ${name}` });
  }
  await ok("POST", "/users", { email: EMAIL, name: "Root", role: "admin", password: PASSWORD });
  const login = await gateway.api("POST", "/api/v1/auth/login", {
    email: EMAIL,
    password: PASSWORD,
  });
  const [cookie = ""] = (login.headers.get("set-cookie") ?? "").split(";");
  const call = async (path: string, body: unknown) =>
    (await gateway.api("POST", `/api/v1${path}`, body, { cookie })).json();
  ({ token } = (await call("/admin/token", {})) as { token: string });
  const proof = { current_password: PASSWORD };
  const { secret } = (await call(`/users/${EMAIL}/totp`, proof)) as { secret: string };
  totpKey = secret;
  totpStep = stepAt(Date.now());
  const code = hotp(base32.decode(totpKey), totpStep);
  await call(`/users/${EMAIL}/totp/confirm`, { code });
});
afterAll(async () => {
  await gateway?.stop();
  await origin.stop(true);
});

describe("the secret key of a running gateway", () => {
  test("is replaced under load and between changes", async () => {
    await expectServing();
    const load = new SteadyLoad({
      port: gateway.httpPort,
      path: "/load",
      expected: ANSWER,
      fresh: 2,
      kept: 2,
    });
    const state = { isOver: false };
    const writing = (async () => {
      while (!state.isOver) {
        const name = `made-${names.length}`;
        await ok("POST", "/secrets", { name, value: `value of ${name}` });
        names.push(name);
      }
    })();
    const keys = new Set([keyFile()]);
    for (let round = 0; round < 3; round++) {
      const before = { answered: load.answered, names: names.length };
      const { code, stdout, stderr } = await rotate();
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout).toMatch(/with the key [0-9a-f]{8} now, not with [0-9a-f]{8} any more/);
      keys.add(keyFile());
      await eventually(() => load.answered > before.answered && names.length > before.names);
    }
    state.isOver = true;
    await writing;
    const { failures } = await load.stop();
    expect(failures).toEqual([]);
    expect(keys.size).toBe(4);
    expect(existsSync(join(gateway.dataDir, "secret.key.new"))).toBe(false);
    await expectServing();
    expect(await signsIn()).toBe(true);
    const entries = (await ok("GET", "/audit?kind=secret_key")).body;
    expect(entries).toHaveLength(3);
    expect(entries[0]).toMatchObject({ actor: "local", action: "rotate", result: "ok" });
  });

  test("is the one of the next start, also after a crash", async () => {
    await rotate();
    await gateway.kill9();
    await gateway.start();
    await expectServing();
    await rotate();
    await gateway.restart();
    await expectServing();
    expect(await signsIn()).toBe(true);
  });

  test("is replaced in what the workers derive from it", async () => {
    const sticky = (await get("/sticky")).headers.get("set-cookie")?.split(";")[0] ?? "";
    expect(sticky).not.toBe("");
    const isKnown = async () =>
      (await get("/sticky", { cookie: sticky })).headers.get("set-cookie") === null;
    const form = (await get("/form")).headers.get("set-cookie")?.split(";")[0] ?? "";
    const [, value = ""] = form.split("=");
    const submit = async () => {
      const headers = { cookie: form, "x-csrf-token": value };
      const url = `http://127.0.0.1:${gateway.httpPort}/form`;
      return (await fetch(url, { method: "POST", headers })).status;
    };
    expect([await isKnown(), await submit()]).toEqual([true, 200]);
    await rotate();
    expect([await isKnown(), await submit()]).toEqual([false, 403]);
    // Workers that start later have the same keys.
    const fresh = (await get("/sticky")).headers.get("set-cookie")?.split(";")[0] ?? "";
    await gateway.restart();
    expect((await get("/sticky", { cookie: fresh })).headers.get("set-cookie")).toBe(null);
  });

  test("cannot be replaced over HTTP", async () => {
    for (const path of ["/secret-key/rotate", "/rotateKey"])
      await expect(ok("POST", path, {})).rejects.toThrow("404");
    const socket = join(gateway.dataDir, "control.sock");
    const body = JSON.stringify({ new_key: null, force: false });
    const response = await fetch("http://localhost/rotateKey", {
      unix: socket,
      method: "POST",
      body,
    });
    expect(response.status).toBe(403);
  });
});

test("a key from a variable is replaced by one that the operator gives", async () => {
  const [first = "", second = ""] = [1, 2].map((fill) => Buffer.alloc(32, fill).toString("base64"));
  const env: Record<string, string> = { SLUICE_SECRET_KEY: first };
  const own = await startGateway({ binary: executable, workers: 1, env });
  try {
    await own.ok("POST", "/api/v1/secrets", { name: "s", value: "value" });
    const { revision } = await own.ok("GET", "/api/v1/admin/status");
    const run = (given: Record<string, string>) =>
      runCommand(["rotate-key", "--data-dir", own.dataDir], { binary: executable, env: given });
    const refused = await run({});
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("SLUICE_NEW_SECRET_KEY: must contain the new key"),
    ]);
    const same = await run({ SLUICE_NEW_SECRET_KEY: first });
    expect(same.stderr).toContain("must differ from the present key");
    const wrong = await run({ SLUICE_NEW_SECRET_KEY: "short" });
    expect(wrong.stderr).toContain("SLUICE_NEW_SECRET_KEY: must be 32 bytes");
    const done = await run({ SLUICE_NEW_SECRET_KEY: second });
    expect([done.code, done.stderr]).toEqual([0, ""]);
    expect(done.stdout).toContain("Move it from SLUICE_NEW_SECRET_KEY to SLUICE_SECRET_KEY");
    const readable = async () => {
      const response = await own.api("PATCH", "/api/v1/secrets/s", { value: "value" });
      expect(response.headers.get("x-config-revision")).toBe(String(revision));
    };
    await readable();
    // The process that takes over inherits the environment of this one.
    const upgraded = await runCommand(["upgrade", "--data-dir", own.dataDir, "--drain", "1"], {
      binary: executable,
    });
    expect([upgraded.code, upgraded.stderr]).toEqual([0, ""]);
    const pid = Number(readFileSync(join(own.dataDir, "sluice.pid"), "utf8"));
    expect(pid).not.toBe(own.pid);
    process.kill(pid, "SIGKILL");
    await own.exited();
    await expect(own.start()).rejects.toThrow("which was expected in SLUICE_SECRET_KEY");
    env["SLUICE_NEW_SECRET_KEY"] = second;
    await own.start();
    await readable();
    await own.kill9();
    delete env["SLUICE_NEW_SECRET_KEY"];
    env["SLUICE_SECRET_KEY"] = second;
    await own.start();
    await readable();
  } finally {
    await own.kill9();
    rmSync(own.dataDir, { recursive: true, force: true });
  }
});
