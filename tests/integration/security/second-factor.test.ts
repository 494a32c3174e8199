// The second factor from its beginning to its end in the running product, and that nothing of it is left lying about.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { base32 } from "oslo/encoding";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import { expectOk, PASSWORD, ROOT, usePeople } from "../api/people.ts";

const people = usePeople();
const { root } = people;
const proof = { current_password: PASSWORD };
/** Everything that must never be found again. */
const canaries = [PASSWORD];

/** The code of a step from now, which no code before it makes worthless. */
const codeOf = (secret: string, step: number) => hotp(base32.decode(secret), step);

/** A user whose second factor is in use. */
async function withSecondFactor(name: string) {
  const user = await people.create(name);
  const call = await people.signIn(user.email);
  const { secret, uri } = await expectOk(call(`POST /users/${user.id}/totp`, proof));
  const step = stepAt(Date.now());
  const code = codeOf(secret, step);
  const confirmed = await expectOk(call(`POST /users/${user.email}/totp/confirm`, { code }));
  const codes = confirmed.recovery_codes as string[];
  canaries.push(secret, ...codes, ...codes.map((text) => text.replaceAll("-", "")));
  return { user, call, uri, codes, used: code, next: codeOf(secret, step + 1) };
}

test("after its confirmation a code is required, and each is valid once", async () => {
  const { user, call, uri, codes, used, next } = await withSecondFactor("careful");
  expect(uri).toStartWith("otpauth://totp/Sluice:careful%40a.example?secret=");
  expect(codes).toHaveLength(10);
  expect((await root(`GET /users/${user.id}`)).body.totp_enabled).toBe(true);
  const status = (totp?: string) => people.signInStatus(user.email, PASSWORD, totp);
  expect(await status()).toBe(401);
  expect(await status(used)).toBe(401);
  expect(await status(next)).toBe(200);
  expect(await status(next)).toBe(401);
  const [recovery = ""] = codes;
  expect(await status(recovery)).toBe(200);
  expect(await status(recovery)).toBe(401);
  expect(await people.signInStatus(user.email, "wrong password", codes[1])).toBe(401);
  expect(await status(codes[1])).toBe(200);

  expect((await call(`POST /users/${user.id}/totp`, proof)).status).toBe(409);
  expect((await call(`DELETE /users/${user.id}/totp`)).status).toBe(400);
  expect((await call(`DELETE /users/${user.id}/totp`, { current_password: "x" })).status).toBe(403);
  expect((await call(`DELETE /users/${user.id}/totp`, proof)).body).toEqual({ deleted: true });
  expect(await status()).toBe(200);
});

test("an admin turns off that of others without a password, but cannot start one for them", async () => {
  const { user } = await withSecondFactor("forgetful");
  expect((await root(`POST /users/${user.id}/totp`, proof)).status).toBe(403);
  expect((await root(`POST /users/${user.id}/totp/confirm`, { code: "123456" })).status).toBe(403);
  expect((await root(`DELETE /users/${user.id}/totp`)).body).toEqual({ deleted: true });
  expect((await root(`DELETE /users/${user.id}/totp`)).status).toBe(404);
  expect(await people.signInStatus(user.email, PASSWORD)).toBe(200);
});

test("users see their own sign-in methods, admins see all, and others do not", async () => {
  const { user, call, codes } = await withSecondFactor("curious");
  const means = async (by: typeof call) => await by(`GET /users/${user.id}/totp`);
  expect((await means(call)).body).toEqual({
    has_password: true,
    sso_linked: false,
    totp_enabled: true,
    recovery_codes_left: 10,
  });
  expect(await people.signInStatus(user.email, PASSWORD, codes[0])).toBe(200);
  expect((await means(root)).body.recovery_codes_left).toBe(9);
  await people.create("stranger");
  expect((await means(await people.signIn("stranger@a.example"))).status).toBe(403);
});

test("one code sent twice at the same time opens one session", async () => {
  const { user, next } = await withSecondFactor("twice");
  const attempts = Array.from({ length: 2 }, () => people.signInStatus(user.email, PASSWORD, next));
  expect((await Promise.all(attempts)).sort()).toEqual([200, 401]);
});

test("it is deleted with its user, and does not return with the id", async () => {
  const { user } = await withSecondFactor("deleted");
  await expectOk(root(`DELETE /users/${user.id}`));
  const { email, name, role } = user;
  await expectOk(root(`PUT /users/${user.id}`, { email, name, role, password: PASSWORD }));
  expect((await root(`GET /users/${user.id}`)).body.totp_enabled).toBe(false);
  expect(await people.signInStatus(email, PASSWORD)).toBe(200);
});

test("it survives a restart, with used codes", async () => {
  const { user, next, codes } = await withSecondFactor("restarted");
  expect(await people.signInStatus(user.email, PASSWORD, next)).toBe(200);
  expect(await people.signInStatus(user.email, PASSWORD, codes[0])).toBe(200);
  await people.gateway.restart();
  expect(await people.signInStatus(user.email, PASSWORD)).toBe(401);
  expect(await people.signInStatus(user.email, PASSWORD, next)).toBe(401);
  expect(await people.signInStatus(user.email, PASSWORD, codes[0])).toBe(401);
  expect(await people.signInStatus(user.email, PASSWORD, codes[1])).toBe(200);
});

test("no password, key or recovery code is in the database, the log, the audit log or the history", async () => {
  const audit = await expectOk(root("GET /audit"));
  const users = await expectOk(root("GET /users"));
  const { dataDir, stderr } = people.gateway;
  const files = readdirSync(dataDir).filter((name) => name.startsWith("sluice.db"));
  expect(files.length).toBeGreaterThan(0);
  const contents = files.map((name) => readFileSync(join(dataDir, name), "latin1"));
  expect(contents.join("")).toContain(ROOT.email);
  expect(canaries.length).toBeGreaterThan(20);
  for (const text of [...contents, stderr, JSON.stringify(audit), JSON.stringify(users)])
    for (const canary of canaries) expect(text.includes(canary)).toBe(false);
  for (const text of [stderr, JSON.stringify(audit), JSON.stringify(users)])
    expect(text).not.toContain("argon2id");
});
