// Signing in with a password: one response for every mistake, failures counted, pending sign-ins ended by changes.
import { describe, expect, test } from "bun:test";
import type { SignedIn } from "../../../src/auth/sign-in.ts";
import { ApiError } from "../../../src/model/error.ts";
import type { User } from "../../../src/model/user.ts";
import { eventually } from "../../support/poll.ts";
import { options, PASSWORD, userOf, withUsers } from "./fixture.ts";

const root = userOf("root", "admin");
const users = [
  root,
  userOf("viewer", "viewer"),
  userOf("off", "editor", { enabled: false }),
  userOf("sso", "editor", { password_hash: null }),
];
const visitor = { address: "192.0.2.1", userAgent: "test/1", isSecure: false };

function scene(all = users) {
  const clock = { time: Date.parse("2026-01-01T00:00:00Z") };
  const { control, steps } = withUsers(all, () => clock.time);
  const signIn = (body: unknown, address = visitor.address) =>
    control.auth.signIn.signIn(body, { ...visitor, address });
  /** Status and message of a refusal. */
  const refusal = async (body: unknown, address?: string) => {
    const error = (await signIn(body, address).catch((reason: unknown) => reason)) as ApiError;
    expect(error).toBeInstanceOf(ApiError);
    return { status: error.status, message: error.message, headers: error.headers };
  };
  return { control, steps, clock, signIn, refusal };
}

const as = (name: string, password = PASSWORD) => ({ email: `${name}@a.example`, password });

test("the right password opens a session, whatever the case of the address", async () => {
  const { control, signIn } = scene();
  const { cookie, who }: SignedIn = await signIn(as("ROOT"));
  const session = control.sessions.find(cookie)!;
  expect(session).toMatchObject({
    user_id: root.id,
    method: "password",
    address: "192.0.2.1",
  });
  expect(session.user_agent).toBe("test/1");
  expect(who).toEqual({
    authentication: "enabled",
    user: { id: root.id, email: root.email, name: "root", role: "admin" },
    role: "admin",
    method: "session",
    expires_at: session.expires_at,
  });
});

test.each([
  { why: "nobody", body: as("nobody") },
  { why: "a wrong password", body: as("viewer", "wrong") },
  { why: "somebody disabled", body: as("off") },
  { why: "somebody without a password", body: as("sso") },
  { why: "somebody without a password and the one that is checked instead", body: as("sso", "") },
  { why: "a password with the hash as its value", body: as("viewer", root.password_hash!) },
])("$why gets the same response", async ({ body }) => {
  const { control, refusal } = scene();
  const sent = { ...body, password: body.password || "x" };
  expect(await refusal(sent)).toEqual({
    status: 401,
    message: "wrong e-mail address or password",
    headers: {},
  });
  expect(control.sessions.list()).toEqual([]);
});

test.each([
  { body: {}, says: "email: is required" },
  { body: { email: "a@b.example" }, says: "password: is required" },
  { body: { ...as("root"), password: 1 }, says: "password: must be a string" },
  { body: { ...as("root"), remember: true }, says: "remember: is not a known field" },
  { body: { ...as("root"), password: "x".repeat(2000) }, says: "password: must have at most" },
  { body: null, says: "must be an object" },
])("an invalid body is rejected and not counted as a failure: $says", async ({ body, says }) => {
  const { refusal } = scene();
  for (let index = 0; index < 12; index++) {
    const { status, message } = await refusal(body);
    expect([status, message]).toEqual([400, expect.stringContaining(says)]);
  }
});

test("while there are no users, sign-in is rejected", async () => {
  const { refusal } = scene([]);
  expect(await refusal(as("root"))).toMatchObject({ status: 401 });
});

describe("after ten failures", () => {
  test("the account is locked for all clients, until the wait is over", async () => {
    const { clock, refusal, signIn } = scene();
    for (let index = 0; index < 10; index++)
      expect((await refusal(as("root", "wrong"), `10.0.0.${index}`)).status).toBe(401);
    const closed = await refusal(as("root"), "10.0.1.1");
    expect(closed).toMatchObject({ status: 429, headers: { "retry-after": "300" } });
    expect((await signIn(as("viewer"), "10.0.1.1")).who.role).toBe("viewer");
    clock.time += 300_000;
    expect((await signIn(as("root"), "10.0.1.1")).who.role).toBe("admin");
  });

  test("an account that does not exist is locked in the same way", async () => {
    const { refusal } = scene();
    for (let index = 0; index < 10; index++) await refusal(as("nobody"), `10.0.0.${index}`);
    expect((await refusal(as("nobody"), "10.0.1.1")).status).toBe(429);
  });

  test("at the same time, the eleventh is rejected though none has failed yet", async () => {
    const { refusal } = scene();
    const answers = await Promise.all(
      Array.from({ length: 25 }, (_, index) => refusal(as("root", "wrong"), `10.0.0.${index}`)),
    );
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(15);
  });

  test("an address is locked, even if each failure used another account", async () => {
    const { refusal } = scene();
    for (let index = 0; index < 10; index++) await refusal(as(`user${index}`, "wrong"));
    expect((await refusal(as("root"))).status).toBe(429);
  });

  test("successful sign-ins do not count as failures", async () => {
    const { signIn } = scene();
    for (let index = 0; index < 15; index++) await signIn(as("root"));
  });
});

describe("while a password is being checked", () => {
  const changes: { why: string; fields: Partial<User> }[] = [
    { why: "the user is disabled", fields: { enabled: false } },
    { why: "the user gets another password", fields: { password_hash: "$argon2id$other" } },
  ];
  test.each(changes)("$why: no session is opened", async ({ fields }) => {
    const viewer = users[1]!;
    const changed = async () => {
      const { control, signIn } = scene();
      let isAnswered = false;
      const answer = signIn(as("viewer"))
        .catch((reason: unknown) => reason)
        .finally(() => (isAnswered = true));
      await control.changes.run({
        ...options,
        mutate: (draft) => draft.put("users", { ...viewer, ...fields }),
      });
      // On a busy machine the password may be checked before the change is made.
      return isAnswered ? null : { control, answer };
    };
    const { control, answer } = await eventually(changed);
    const error = await answer;
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).message).toBe("wrong e-mail address or password");
    expect(control.sessions.list(viewer.id)).toEqual([]);
  });
});

test("the audit log records sign-ins, failures and sign-outs, and no email that is a password", async () => {
  const { control, steps, signIn, refusal } = scene();
  await refusal({ email: "my secret password", password: "x" });
  await refusal(as("viewer", "wrong"));
  const { cookie } = await signIn(as("root"));
  const credentials = { authorization: null, adminToken: null, accessToken: null };
  const principal = control.auth.authenticator.authenticate(
    { ...credentials, cookie: `sluice_session_test=${cookie}` },
    visitor.address,
  )!;
  control.auth.signIn.signOut(principal);
  control.audit.flush(true);
  const session = "session";
  expect(
    steps.recorded.map(({ actor, action, kind, result, object_name }) => [
      ...[actor, action, kind, result, object_name],
    ]),
  ).toEqual([
    ["anonymous", "login", session, "refused", null],
    ["anonymous", "login", session, "refused", "viewer@a.example"],
    [root.email, "login", session, "ok", root.email],
    [root.email, "logout", session, "ok", root.email],
  ]);
  const written = JSON.stringify(steps.recorded);
  for (const secret of ["my secret password", PASSWORD, cookie])
    expect(written).not.toContain(secret);
});
