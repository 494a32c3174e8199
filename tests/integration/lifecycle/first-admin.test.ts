// The first admin, which a start without users creates before the management API listens.
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../../support/cleanups.ts";
import {
  type Gateway,
  type GatewayOptions,
  runCommand,
  startGateway,
} from "../../support/gateway.ts";

const EMAIL = "ann@example.com";
const PASSWORD = "quiet-harbor-lantern";
const REMOTE = ["--admin", "0.0.0.0:0", "--admin-allow", "127.0.0.0/8"];

const cleanups = cleanupsOf(afterEach);

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-first-admin-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function passwordFile(text: string): string {
  const path = join(directory(), "password");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

async function started(options: GatewayOptions): Promise<Gateway> {
  const gateway = await startGateway({ workers: 1, ...options });
  cleanups.push(() => gateway.stop());
  return toLoopback(gateway);
}

/** What listens on all addresses is asked on loopback. */
function toLoopback(gateway: Gateway): Gateway {
  gateway.admin = gateway.admin.replace("0.0.0.0", "127.0.0.1");
  return gateway;
}

async function signIn(gateway: Gateway, email: string, password: string) {
  const { status, headers } = await gateway.api("POST", "/api/v1/auth/login", { email, password });
  const cookie = headers
    .getSetCookie()
    .map((text) => text.split(";")[0])
    .join("; ");
  return { status, cookie };
}

const passwordsIn = ({ stderr }: Gateway) =>
  [...stderr.matchAll(/with the password ([a-z2-9]{5}(?:-[a-z2-9]{5}){3}) /g)].map(
    ([, password = ""]) => password,
  );

test("signs in with the password of the file, and no request is served without it", async () => {
  const file = passwordFile(`${PASSWORD}\n`);
  const args = [...REMOTE, "--admin-email", EMAIL, "--admin-password-file", file];
  const gateway = await started({ args });
  expect((await gateway.api("GET", "/api/v1/services")).status).toBe(401);
  const { status, cookie } = await signIn(gateway, EMAIL, PASSWORD);
  expect(status).toBe(200);
  const users = await (await gateway.api("GET", "/api/v1/users", undefined, { cookie })).json();
  expect(users).toMatchObject([{ email: EMAIL, role: "admin", enabled: true }]);
  expect(gateway.stderr).not.toContain(PASSWORD);
  // The flags change nothing once a user exists, and the file is not needed any more.
  rmSync(file);
  const again = ["--admin-email", "other@example.com", "--admin-password-file", file];
  await gateway.restart([...REMOTE, ...again]);
  toLoopback(gateway);
  expect((await signIn(gateway, EMAIL, PASSWORD)).status).toBe(200);
  expect((await signIn(gateway, "other@example.com", PASSWORD)).status).toBe(401);
});

test("gets a generated password without a file, which the log shows once", async () => {
  const env = { SLUICE_ADMIN_EMAIL: "admin@localhost" };
  const gateway = await started({ env });
  const [password = "", ...others] = passwordsIn(gateway);
  expect(others).toEqual([]);
  expect((await signIn(gateway, "admin@localhost", password)).status).toBe(200);
  await gateway.restart();
  expect(passwordsIn(gateway)).toEqual([password]);
  expect((await signIn(gateway, "admin@localhost", password)).status).toBe(200);
});

test("is created on a data directory that was served without users", async () => {
  const dataDir = directory();
  const gateway = await started({ dataDir });
  await gateway.ok("POST", "/api/v1/services", { name: "kept" });
  const args = ["--admin-email", EMAIL, "--admin-password-file", passwordFile(PASSWORD)];
  await gateway.restart([...REMOTE, ...args]);
  // The start knows that a user will exist, so it listens for other machines at once.
  expect(gateway.admin).toStartWith("http://0.0.0.0:");
  toLoopback(gateway);
  expect((await gateway.api("GET", "/api/v1/services")).status).toBe(401);
  const { cookie } = await signIn(gateway, EMAIL, PASSWORD);
  const services = await gateway.api("GET", "/api/v1/services", undefined, { cookie });
  expect(await services.json()).toMatchObject([{ name: "kept" }]);
});

describe("the start is refused, and leaves nothing behind", () => {
  const missing = join(tmpdir(), `sluice-no-such-file-${process.pid}`);
  test.each([
    [["--admin-email", "ann"], 2, '--admin-email: must be an e-mail address, not "ann"'],
    [["--admin-password-file", missing], 2, "--admin-password-file needs --admin-email"],
    [
      ["--admin-email", EMAIL, "--admin-password-file", missing],
      1,
      "cannot be read: does not exist",
    ],
  ])("with %j", async (words, code, says) => {
    const dataDir = join(directory(), "data");
    const result = await runCommand(["serve", "--data-dir", dataDir, ...words]);
    expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(says)]);
    expect(existsSync(dataDir)).toBe(false);
  });

  test.each([
    ["", "is empty"],
    ["\n", "is empty"],
    ["short", "must have at least 10 characters"],
    ["password2024!", "is too common"],
    [EMAIL, "must not be the e-mail address"],
    ["x".repeat(1025), "must have at most 1024 characters"],
  ])("with the password %j", async (text, says) => {
    const dataDir = join(directory(), "data");
    const words = ["--admin-email", EMAIL, "--admin-password-file", passwordFile(text)];
    const result = await runCommand(["serve", "--data-dir", dataDir, ...words]);
    expect([result.code, result.stderr]).toEqual([1, expect.stringContaining(says)]);
    expect(result.stderr).toContain("--admin-password-file");
    if (text.length > 1) expect(result.stderr).not.toContain(text);
    expect(existsSync(dataDir)).toBe(false);
  });
});
