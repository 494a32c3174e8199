// Who may change which password and second factor, what the request must contain, and what the audit log records.
import { describe, expect, test } from "bun:test";
import { base32 } from "oslo/encoding";
import { hotp, stepAt } from "../../support/one-time-password.ts";
import { verifyPassword } from "../../../src/crypto/password.ts";
import { ApiError } from "../../../src/model/error.ts";
import {
  type Caller,
  options,
  PASSWORD,
  signedIn,
  userOf,
  withToken,
  withUsers,
} from "./fixture.ts";

const root = userOf("root", "admin");
const editor = userOf("editor", "editor");
const anna = userOf("anna", "viewer");
const guest = userOf("guest", "viewer", {
  password_hash: null,
  sso: { issuer: "https://idp.example", subject: "1" },
});
const users = [root, editor, anna, guest];
const NEW = "a better password of mine";

async function refusal(action: () => unknown): Promise<string> {
  try {
    await action();
    return "none";
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return `${error.status} ${error.message}`;
  }
}

describe("PUT /users/:id/password", () => {
  const cases: {
    why: string;
    by: Caller;
    key: string;
    body: unknown;
    refused: string;
  }[] = [
    {
      why: "oneself with the old password",
      by: signedIn(anna),
      key: anna.id,
      body: { current_password: PASSWORD, password: NEW },
      refused: "none",
    },
    {
      why: "oneself by e-mail address, in capitals",
      by: signedIn(anna),
      key: "ANNA@A.EXAMPLE",
      body: { current_password: PASSWORD, password: NEW },
      refused: "none",
    },
    {
      why: "oneself without the old password",
      by: signedIn(anna),
      key: anna.id,
      body: { password: NEW },
      refused: "400 current_password: is required",
    },
    {
      why: "oneself with a wrong old password",
      by: signedIn(anna),
      key: anna.id,
      body: { current_password: `${PASSWORD}!`, password: NEW },
      refused: "403 current_password: is wrong",
    },
    {
      why: "an admin oneself: no exception",
      by: signedIn(root),
      key: root.id,
      body: { password: NEW },
      refused: "400 current_password: is required",
    },
    {
      why: "an admin somebody else",
      by: signedIn(root),
      key: anna.id,
      body: { password: NEW },
      refused: "none",
    },
    {
      why: "an admin somebody who has none",
      by: signedIn(root),
      key: guest.id,
      body: { password: NEW },
      refused: "none",
    },
    {
      why: "a token of an admin",
      by: withToken("admin"),
      key: anna.email,
      body: { password: NEW },
      refused: "none",
    },
    {
      why: "a token of an editor",
      by: withToken("editor"),
      key: anna.email,
      body: { current_password: PASSWORD, password: NEW },
      refused: "403 only the user or an admin can do this",
    },
    {
      why: "an editor somebody else, even knowing the password",
      by: signedIn(editor),
      key: anna.id,
      body: { current_password: PASSWORD, password: NEW },
      refused: "403 only the user or an admin can do this",
    },
    {
      why: "a viewer somebody who does not exist: as if there were one",
      by: signedIn(anna),
      key: "nobody@a.example",
      body: { password: NEW },
      refused: "403 only the user or an admin can do this",
    },
    {
      why: "an admin somebody who does not exist",
      by: signedIn(root),
      key: "nobody@a.example",
      body: { password: NEW },
      refused: '404 user "nobody@a.example" does not exist',
    },
    {
      why: "who signs in elsewhere cannot give themselves a password that outlives that",
      by: signedIn(guest),
      key: guest.id,
      body: { password: NEW },
      refused: "403 you have no password yet; an admin can give you one",
    },
    {
      why: "a display name is no key",
      by: signedIn(root),
      key: "anna",
      body: { password: NEW },
      refused: '404 user "anna" does not exist',
    },
    {
      why: "a password that is too short",
      by: signedIn(root),
      key: anna.id,
      body: { password: "short" },
      refused: "400 password: must have at least 10 characters",
    },
    {
      why: "the e-mail address as the password",
      by: signedIn(root),
      key: anna.id,
      body: { password: anna.email },
      refused: "400 password: must not be the e-mail address or the name of the user",
    },
    {
      why: "null as the password",
      by: signedIn(root),
      key: anna.id,
      body: { password: null },
      refused: "400 password: must be a string",
    },
    {
      why: "an unknown field",
      by: signedIn(root),
      key: anna.id,
      body: { password: NEW, role: "admin" },
      refused: "400 role: is not a known field",
    },
  ];
  test.each(cases)("$why", async ({ by, key, body, refused }) => {
    const { control } = withUsers(users);
    const principal = await by(control);
    const before = control.changes.config;
    const call = { principal, key, body };
    const change = () => control.account.changePassword(call, { ...options, by: principal });
    expect(await refusal(change)).toBe(refused);
    if (refused !== "none") expect(control.changes.config).toBe(before);
    else {
      const changed = [...control.changes.config.users.values()].filter(
        (user) => before.users.get(user.id) !== user,
      );
      expect(changed).toHaveLength(1);
      expect(await verifyPassword(NEW, changed[0]!.password_hash)).toBe(true);
      expect(await verifyPassword(PASSWORD, changed[0]!.password_hash)).toBe(false);
    }
  });

  test("responds with the user, logs who did it in which session, and writes no hash into the history", async () => {
    const { control, events, steps } = withUsers(users);
    const by = await signedIn(anna)(control);
    const body = { current_password: PASSWORD, password: NEW };
    const call = { principal: by, key: anna.id, body };
    const { view, revision } = await control.account.changePassword(call, { ...options, by });
    expect(view).toMatchObject({ id: anna.id, has_password: true });
    expect(JSON.stringify(view)).not.toContain("argon2");
    expect(revision).toBe(2);
    expect(events[0]).toMatchObject({
      summary: 'change the password of user "anna@a.example"',
      by: { sessionId: by.sessionId },
    });
    expect(JSON.stringify(steps.commits)).toContain("argon2"); // the row
    expect(JSON.stringify(events[0]?.audit)).not.toContain("argon2");
  });

  test("fails when an admin sets another password while the old one is checked", async () => {
    const { control } = withUsers(users);
    const by = await signedIn(anna)(control);
    const body = { current_password: PASSWORD, password: NEW };
    const call = { principal: by, key: anna.id, body };
    const late = control.account.changePassword(call, { ...options, by });
    const hash = "$argon2id$reset";
    await control.users.replaceHash(anna.id, { hash }, options);
    expect(await refusal(() => late)).toBe("401 the credentials are no longer valid");
    expect(control.changes.config.users.get(anna.id)?.password_hash).toBe(hash);
  });

  test("accepts an old password for one change, not for two at the same time", async () => {
    const { control } = withUsers(users);
    const by = await signedIn(anna)(control);
    const body = { current_password: PASSWORD, password: NEW };
    const call = { principal: by, key: anna.id, body };
    const change = () => control.account.changePassword(call, { ...options, by });
    const results = await Promise.all([refusal(change), refusal(change)]);
    expect(results.sort()).toEqual([
      "409 the password was changed by another request meanwhile",
      "none",
    ]);
  });

  test("is rejected after ten wrong old passwords, even with the right one", async () => {
    const { control } = withUsers(users);
    const by = await signedIn(anna)(control);
    const attempt = (current_password: string) =>
      refusal(() =>
        control.account.changePassword(
          { principal: by, key: anna.id, body: { current_password, password: NEW } },
          { ...options, by },
        ),
      );
    for (let count = 0; count < 10; count++)
      expect(await attempt("wrong")).toBe("403 current_password: is wrong");
    expect(await attempt(PASSWORD)).toStartWith("429 ");
    expect(
      await refusal(() =>
        control.account.beginTotp({
          principal: by,
          key: anna.id,
          body: { current_password: PASSWORD },
        }),
      ),
    ).toStartWith("429 ");
  });
});

describe("/users/:id/totp", () => {
  const now = Date.parse("2026-03-01T12:00:15Z");
  const proof = { current_password: PASSWORD };
  const world = () => {
    const { control, steps } = withUsers(users, () => now);
    return { control, account: control.account, factors: control.secondFactors, steps };
  };
  const codeOf = (secret: string) => hotp(base32.decode(secret), stepAt(now));

  test("starts with the password, is confirmed with a code, and is removed with the password", async () => {
    const { control, account, factors, steps } = world();
    const principal = await signedIn(anna)(control);
    const key = anna.id;
    const { secret, uri } = await account.beginTotp({ principal, key, body: proof });
    expect(uri).toBe(`otpauth://totp/Sluice:anna%40a.example?secret=${secret}&issuer=Sluice`);
    const wrong = account.confirmTotp.bind(account, { principal, key, body: { code: "000000" } });
    expect(await refusal(wrong)).toBe("400 code: is not the current code of the authenticator app");
    const { recovery_codes } = await account.confirmTotp({
      principal,
      key,
      body: { code: codeOf(secret) },
    });
    expect(recovery_codes).toHaveLength(10);
    expect(factors.needsSecondFactor(anna.id)).toBe(true);
    const without = () => account.removeTotp({ principal, key, body: undefined });
    expect(await refusal(without)).toBe("400 current_password: is required");
    await account.removeTotp({ principal, key, body: proof });
    expect(factors.needsSecondFactor(anna.id)).toBe(false);
    expect(await refusal(() => account.removeTotp({ principal, key, body: proof }))).toBe(
      "404 the user has no second factor",
    );
    const taken = steps.recorded.map(({ actor, action, kind, object_name }) =>
      [actor, action, kind, object_name].join(" "),
    );
    expect(taken).toEqual(
      ["create", "enable", "delete"].map((word) => `${anna.email} ${word} totp ${anna.email}`),
    );
    const kept = JSON.stringify(steps.recorded);
    for (const text of [secret, ...recovery_codes]) expect(kept).not.toContain(text);
  });

  test.each([
    { why: "an admin for somebody else", by: signedIn(root), refused: "403 only the user" },
    { why: "a token", by: withToken("admin"), refused: "403 only the user can do this" },
    { why: "an editor", by: signedIn(editor), refused: "403 only the user or an admin" },
  ])("is not started or confirmed by $why", async ({ by, refused }) => {
    const { control, account } = world();
    const call = { principal: await by(control), key: anna.id, body: proof };
    expect(await refusal(() => account.beginTotp(call))).toStartWith(refused);
    const confirmation = { ...call, body: { code: "123456" } };
    expect(await refusal(() => account.confirmTotp(confirmation))).toStartWith(refused);
  });

  test.each([
    { why: "without the password", body: {}, refused: "400 current_password: is required" },
    {
      why: "with a wrong one",
      body: { current_password: "wrong" },
      refused: "403 current_password: is wrong",
    },
    { why: "with null", body: { current_password: null }, refused: "400 current_password: must" },
    { why: "with a list", body: [], refused: "400 " },
  ])("is not started $why", async ({ body, refused }) => {
    const { control, account, factors } = world();
    const call = { principal: await signedIn(anna)(control), key: anna.id, body };
    expect(await refusal(() => account.beginTotp(call))).toStartWith(refused);
    expect(factors.remove(anna.id)).toEqual({ value: false, facts: [] });
  });

  test("needs no password when the user has none", async () => {
    const { control, account } = world();
    const call = { principal: await signedIn(guest)(control), key: guest.id, body: {} };
    expect((await account.beginTotp(call)).secret).toMatch(/^[A-Z2-7]{32}$/);
  });

  test("is removed without a password by admins only", async () => {
    const { control, account, factors } = world();
    const principal = await signedIn(anna)(control);
    const { secret } = await account.beginTotp({ principal, key: anna.id, body: proof });
    await account.confirmTotp({ principal, key: anna.id, body: { code: codeOf(secret) } });
    const by = (who: Caller) => async () =>
      account.removeTotp({ principal: await who(control), key: anna.id, body: undefined });
    expect(await refusal(by(signedIn(editor)))).toStartWith("403 ");
    expect(await refusal(by(withToken("editor")))).toStartWith("403 ");
    expect(factors.needsSecondFactor(anna.id)).toBe(true);
    expect(await refusal(by(signedIn(root)))).toBe("none");
    expect(factors.needsSecondFactor(anna.id)).toBe(false);
  });
});
