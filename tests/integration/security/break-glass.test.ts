// The commands for locked-out admins, on a data directory that a gateway serves and on one without a gateway.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import { fromBase32 } from "../../support/base32.ts";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";

const ADMIN = { email: "admin@example.org", name: "Admin", role: "admin" };
// biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
type Json = any;

const PASSWORD = "correct horse battery staple";

/** Longer than the 107 bytes that an address of a socket may have. */
const LONG = "directory-with-a-very-long-name-".repeat(4);

async function signIn(gateway: Gateway, email: string, password: string) {
  const response = await gateway.api("POST", "/api/v1/auth/login", { email, password });
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  return { status: response.status, headers: { cookie } };
}

/** Calls with a session and throws unless it succeeds. */
async function done(
  gateway: Gateway,
  line: string,
  headers: Record<string, string>,
  body?: unknown,
) {
  const [method = "", path = ""] = line.split(" ");
  const response = await gateway.api(method, `/api/v1${path}`, body, headers);
  if (response.status !== 200)
    throw new Error(`${line}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Json;
}

describe.each([
  ["that a gateway serves", { serves: true }],
  ["that nobody serves", { serves: false }],
])("in a data directory %s", (_, { serves }) => {
  let gateway: Gateway;
  let root: string;
  let dataDir: string;
  let session: Record<string, string>;

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), "sluice-locked-out-"));
    dataDir = join(root, LONG);
    mkdirSync(dataDir, { mode: 0o700 });
    gateway = await startGateway({ dataDir, workers: 1 });
    await gateway.ok("POST", "/api/v1/users", { ...ADMIN, password: PASSWORD });
    session = (await signIn(gateway, ADMIN.email, PASSWORD)).headers;
    const secret = (
      await done(gateway, `POST /users/${ADMIN.email}/totp`, session, {
        current_password: PASSWORD,
      })
    ).secret;
    const code = hotp(fromBase32(secret), stepAt(Date.now()));
    await done(gateway, `POST /users/${ADMIN.email}/totp/confirm`, session, { code });
    expect((await signIn(gateway, ADMIN.email, PASSWORD)).status).toBe(401);
  });
  afterAll(async () => {
    await gateway.stop();
    rmSync(root, { recursive: true, force: true });
  });

  /** Runs a command in the state that the title names, and has the gateway serve afterwards. */
  async function run(args: string[], input?: string) {
    if (!serves) await gateway.stop();
    const words = [...args, "--data-dir", dataDir];
    const result = await runCommand(words, input === undefined ? {} : { input });
    if (!serves) await gateway.start();
    return result;
  }

  test("a user gets a new password and needs nothing else", async () => {
    const { code, stdout, stderr } = await run(["reset-password", "ADMIN@example.org"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^[a-z2-9]{5}(-[a-z2-9]{5}){3}\n$/);
    expect(stderr).toContain("admin@example.org can sign in as admin, without the second factor,");
    expect((await signIn(gateway, ADMIN.email, PASSWORD)).status).toBe(401);
    const signedIn = await signIn(gateway, ADMIN.email, stdout.trim());
    expect(signedIn.status).toBe(200);
    const old = await gateway.api("GET", "/api/v1/users", undefined, session);
    expect(old.status).toBe(401);
    session = signedIn.headers;
  });

  test("a user who was disabled and demoted becomes an admin with a password from standard input", async () => {
    const other = { email: "other@example.org", name: "Other", role: "viewer", enabled: false };
    await done(gateway, "POST /users", session, { ...other, password: PASSWORD });
    const chosen = "an entirely new passphrase";
    const { code, stdout } = await run(
      ["reset-password", "--role", "admin", other.email, "--stdin"],
      `${chosen}\r\nthis is not read\n`,
    );
    expect([code, stdout]).toEqual([0, ""]);
    const { headers } = await signIn(gateway, other.email, chosen);
    const me = await done(gateway, "GET /auth/me", headers);
    expect([me.user.email, me.role]).toEqual([other.email, "admin"]);
  });

  test.each([
    ["a password that is too short", [ADMIN.email, "--stdin"], "short\n", "at least 10 characters"],
    ["no password at all", [ADMIN.email, "--stdin"], "", "at least 10 characters"],
    [
      "a user who does not exist",
      ["nobody@example.org"],
      undefined,
      'user "nobody@example.org" does not exist',
    ],
  ])("%s is refused with a message", async (__, args, input, message) => {
    const { code, stdout, stderr } = await run(["reset-password", ...args], input);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(message);
  });

  test("the admin token is created once, and again only on demand", async () => {
    const first = await run(["token"]);
    expect(first.code).toBe(0);
    expect(first.stdout).toMatch(/^slt_[\w-]{43}\n$/);
    const using = (token: string) =>
      gateway.api("GET", "/api/v1/users", undefined, { authorization: `Bearer ${token.trim()}` });
    expect((await using(first.stdout)).status).toBe(200);

    const second = await run(["token"]);
    expect([second.code, second.stdout]).toEqual([1, ""]);
    expect(second.stderr).toContain("--rotate replaces it");
    expect((await using(first.stdout)).status).toBe(200);

    const third = await run(["token", "--rotate"]);
    expect([third.code, third.stderr.includes("is invalid now")]).toEqual([0, true]);
    expect((await using(first.stdout)).status).toBe(401);
    expect((await using(third.stdout)).status).toBe(200);
  });

  test("a blocked address is allowed again, alone or with all others", async () => {
    const shutOut = () =>
      done(gateway, "PATCH /settings?force=1", session, { admin_allowed_cidrs: ["192.0.2.0/24"] });
    const status = async () =>
      (await gateway.api("GET", "/api/v1/settings", undefined, session)).status;
    await shutOut();
    expect(await status()).toBe(403);
    const added = await run(["reset-admin-networks", "--allow", "127.0.0.0/8", "--allow", "::1"]);
    expect([added.code, added.stdout]).toEqual([0, "192.0.2.0/24\n127.0.0.0/8\n::1\n"]);
    expect(await status()).toBe(200);

    const wrong = await run(["reset-admin-networks", "--allow", "not-a-network"]);
    expect([wrong.code, wrong.stdout]).toEqual([1, ""]);
    expect(wrong.stderr).toContain('"not-a-network" must be an IP address or a network');
    expect((await done(gateway, "GET /settings", session)).admin_allowed_cidrs).toHaveLength(3);

    await shutOut();
    expect(await status()).toBe(403);
    const opened = await run(["reset-admin-networks"]);
    expect([opened.code, opened.stdout]).toEqual([0, ""]);
    expect(opened.stderr).toContain("Every address may use the management API now");
    expect((await done(gateway, "GET /settings", session)).admin_allowed_cidrs).toEqual([]);

    // It never blocks an address that was allowed.
    const again = await run(["reset-admin-networks", "--allow", "192.0.2.1"]);
    expect([again.code, again.stderr]).toEqual([0, "Nothing to do: every address is allowed.\n"]);
    expect(await status()).toBe(200);
  });

  test("the audit log records commands on the machine itself", async () => {
    const entries: Json[] = await done(gateway, "GET /audit?actor=local", session);
    const seen = entries.map(({ method, action, kind, object_name }) =>
      [method, action, kind, object_name].join(" "),
    );
    expect(new Set(seen)).toEqual(
      new Set([
        "local update user admin@example.org",
        "local reset_password user admin@example.org",
        "local update user other@example.org",
        "local reset_password user other@example.org",
        "local create admin_token ",
        "local update admin_token ",
        "local update settings ",
      ]),
    );
  });
});

test("while the configuration is in a file, the command refers to that file for networks", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-kept-in-file-"));
  const file = join(directory, "gateway.yaml");
  writeFileSync(file, "format: 1\nsettings: { admin_allowed_cidrs: [127.0.0.1] }\n");
  const gateway = await startGateway({ workers: 1, args: ["--config", file] });
  try {
    const { dataDir } = gateway;
    const { code, stderr } = await runCommand(["reset-admin-networks", "--data-dir", dataDir]);
    expect([code, stderr.includes("comes from a file")]).toEqual([1, true]);
    const { admin_allowed_cidrs: left } = await gateway.ok("GET", "/api/v1/settings");
    expect(left).toEqual(["127.0.0.1"]);
  } finally {
    await gateway.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});

describe("the local socket", () => {
  test("belongs to its owner, replaces a leftover, and is removed with the gateway", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "sluice-socket-"));
    const path = join(dataDir, "control.sock");
    const gateway = await startGateway({ dataDir, workers: 1 });
    try {
      expect(statSync(path).isSocket()).toBe(true);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      await gateway.kill9();
      expect(existsSync(path)).toBe(true);
      const alone = await runCommand(["token", "--data-dir", dataDir]);
      expect(alone.code).toBe(0);
      await gateway.start();
      const served = await runCommand(["token", "--rotate", "--data-dir", dataDir]);
      expect(served.code).toBe(0);
      await gateway.stop();
      expect(readdirSync(dataDir).filter((name) => name.startsWith("control."))).toEqual([]);
    } finally {
      await gateway.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("refuses unknown commands", async () => {
    const gateway = await startGateway({ workers: 1 });
    try {
      const unix = join(gateway.dataDir, "control.sock");
      const file = join(gateway.dataDir, "control.token");
      expect(statSync(file).mode & 0o777).toBe(0o600);
      const headers = { "x-control-token": readFileSync(file, "utf8") };
      const send = async (path: string, body: string) => {
        const response = await fetch(`http://localhost${path}`, {
          unix,
          method: "POST",
          body,
          headers,
        });
        return [response.status, ((await response.json()) as { error: string }).error];
      };
      expect(await send("/resetPassword", '{"email":"a@b"}')).toEqual([
        400,
        "password: is required",
      ]);
      expect(await send("/resetPassword", "no JSON")).toEqual([400, "must be an object"]);
      expect(await send("/issueToken", '{"rotate":true,"x":1}')).toEqual([
        400,
        "x: is not a known field",
      ]);
      expect((await send("/constructor", "{}"))[0]).toBe(404);
      expect((await fetch("http://localhost/issueToken", { unix, headers })).status).toBe(405);
      for (const shown of [{}, { "x-control-token": "" }, { "x-control-token": "x".repeat(43) }]) {
        const order = { unix, method: "POST", body: '{"rotate":true}', headers: shown };
        expect((await fetch("http://localhost/issueToken", order)).status).toBe(403);
      }
      const target = await gateway.api("POST", "/api/v1/services", {
        name: "itself",
        targets: [{ host: `unix:${unix}`, port: null }],
      });
      expect([target.status, (await target.json()).error]).toEqual([
        400,
        "targets[0].host: is the control socket of this gateway, which must not be proxied",
      ]);
    } finally {
      await gateway.stop();
    }
  });

  test("of another user is not used", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "sluice-socket-"));
    try {
      writeFileSync(join(dataDir, "sluice.db"), "");
      writeFileSync(join(dataDir, "control.sock"), "");
      const { code, stderr } = await runCommand(["token", "--data-dir", dataDir]);
      expect(code).toBe(1);
      expect(stderr).toContain("was not created by the gateway");
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

test.each([
  ["no user", ["reset-password"], "EMAIL is missing"],
  ["two users", ["reset-password", "a@b", "c@d"], 'unexpected argument "c@d"'],
  [
    "a password as an argument",
    ["reset-password", "a@b", "--password", "x"],
    "unknown flag --password",
  ],
  [
    "a role that there is not",
    ["reset-password", "a@b", "--role", "king"],
    "--role: must be one of",
  ],
  ["a network without its flag", ["reset-admin-networks", "::1"], 'unexpected argument "::1"'],
  ["an argument", ["token", "x"], 'unexpected argument "x"'],
])("%s on the command line ends with code 2", async (_, args, message) => {
  const { code, stdout, stderr } = await runCommand(args);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(message);
});

test("the help names all of these commands", async () => {
  const { stdout } = await runCommand(["help"]);
  for (const name of ["reset-password", "reset-admin-networks", "token", "rotate-key"]) {
    expect(stdout).toContain(`\n  ${name} `);
    expect((await runCommand(["help", name])).stdout).toContain("--data-dir");
  }
});
