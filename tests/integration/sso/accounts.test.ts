// Which user signs in with which role, through the real path of change.
import { afterEach, describe, expect, test } from "bun:test";
import type { User } from "../../../src/model/user.ts";
import type { Lie } from "./lying-provider.ts";
import { createWorld, root, type Scene, user, type World } from "./world.ts";

const worlds: World[] = [];
const scene = async (options: Scene) => {
  const world = await createWorld(options);
  worlds.push(world);
  return world;
};
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.stop();
});

const lie = (claims: Record<string, unknown>): Lie => ({ claims });
const groups = { role_claim: "groups", role_map: { ops: "editor", boss: "admin", all: "viewer" } };

describe("the linked identity", () => {
  test("is created at the first sign-in with a verified address, in any case", async () => {
    const world = await scene({ users: [root, user("Ann@Example.com", { role: "viewer" })] });
    expect(await world.outcome(lie({ email: "ann@EXAMPLE.com" }))).toBe("ok");
    const { issuer } = world.provider;
    expect(world.find("Ann@Example.com").sso).toEqual({ issuer, subject: "subject-1" });
    expect(world.plane.steps.commits.at(-1)).toMatchObject({
      entry: {
        actor: "single sign-on",
        summary: 'update user "Ann@Example.com" at single sign-on',
      },
    });
  });

  test("counts afterwards, not the address", async () => {
    const world = await scene({ users: [root, user("ann@example.com"), user("bob@example.com")] });
    expect(await world.outcome()).toBe("ok");
    const revision = world.plane.control.changes.revision;
    for (const claims of [
      { email: "bob@example.com" },
      { email: undefined },
      { email_verified: false, email: "bob@example.com" },
    ]) {
      const finished = await world.signIn(lie(claims));
      expect(finished).toMatchObject({ session: { user_id: world.find("ann@example.com").id } });
    }
    expect(world.find("bob@example.com").sso).toBeNull();
    expect(world.plane.control.changes.revision).toBe(revision);
  });

  test("of another subject is not replaced: an address may change its owner", async () => {
    const world = await scene({ users: [root, user("ann@example.com")] });
    expect(await world.outcome()).toBe("ok");
    expect(await world.outcome(lie({ sub: "subject-2" }))).toBe("identity_conflict");
  });

  test("of a former provider is replaced", async () => {
    const sso = { issuer: "https://former.example", subject: "subject-1" };
    const world = await scene({ users: [root, user("ann@example.com", { sso })] });
    expect(await world.outcome()).toBe("ok");
    expect(world.find("ann@example.com").sso?.issuer).toBe(world.provider.issuer);
  });
});

describe("an address", () => {
  const cases = [
    { why: "is not verified", claims: { email_verified: false }, code: "email_unverified" },
    {
      why: "is verified in a word only",
      claims: { email_verified: "true" },
      code: "email_unverified",
    },
    {
      why: "is said to be neither",
      claims: { email_verified: undefined },
      code: "email_unverified",
    },
    { why: "is missing", claims: { email: undefined }, code: "email_missing" },
    { why: "is empty", claims: { email: "" }, code: "email_missing" },
    { why: "is a list", claims: { email: ["ann@example.com"] }, code: "email_missing" },
    { why: "cannot be used", claims: { email: "ann <ann@example.com>" }, code: "email_missing" },
  ];
  test.each(cases)("that $why signs no user in and creates none", async ({ claims, code }) => {
    const auto = { auto_provision: true, default_role: "viewer" };
    const world = await scene({ users: [root, user("ann@example.com")], sso: auto });
    expect(await world.outcome(lie(claims))).toBe(code);
    expect(world.users).toHaveLength(2);
    expect(world.sessions.list()).toEqual([]);
  });

  test("of a domain that is not allowed is refused, also when the user is linked already", async () => {
    const sso = { allowed_domains: ["Example.com"], auto_provision: true, default_role: "viewer" };
    const world = await scene({ sso });
    for (const email of ["ann@evil.com", "ann@sub.example.com", "ann@notexample.com"])
      expect(await world.outcome(lie({ email }))).toBe("domain_not_allowed");
    expect(await world.outcome()).toBe("ok");
    expect(await world.outcome(lie({ email: "ann@evil.com" }))).toBe("domain_not_allowed");
    expect(await world.outcome(lie({ email: undefined, email_verified: undefined }))).toBe("ok");
  });
});

describe("an address that equals that of a user only in Unicode", () => {
  const admin = () => user("kate@korp.example", { role: "admin" });
  const lookalikes = [
    { email: "\u212aate@korp.example", why: "the Kelvin sign is lower-cased to k" },
    { email: "\u212aATE@korp.example", why: "the same among capitals" },
    { email: "\uff4bate@korp.example", why: "NFKC makes k of a full-width k" },
    { email: "k\u0430te@korp.example", why: "a Cyrillic a looks the same" },
    { email: "kate\u200b@korp.example", why: "a space that nobody sees" },
  ];
  test.each(lookalikes)("$email is refused and creates no user: $why", async ({ email }) => {
    for (const auto_provision of [false, true]) {
      const world = await scene({
        users: [root, admin()],
        sso: { auto_provision, default_role: "viewer" },
      });
      expect(await world.outcome(lie({ email }))).toBe("email_missing");
      expect(world.find("kate@korp.example").sso).toBeNull();
      expect(world.users).toHaveLength(2);
      expect(world.sessions.list()).toEqual([]);
      expect(world.log.join("")).toContain("letters outside of ASCII");
    }
  });

  test("links no user either where the user has the very same address", async () => {
    const world = await scene({ users: [root, user("j\u00f6rg@korp.example")] });
    for (const email of ["j\u00f6rg@korp.example", "J\u00d6RG@korp.example"])
      expect(await world.outcome(lie({ email }))).toBe("email_missing");
    expect(world.find("j\u00f6rg@korp.example").sso).toBeNull();
  });

  test("does not affect a linked user", async () => {
    const world = await scene({ users: [root, user("ann@example.com")] });
    expect(await world.outcome()).toBe("ok");
    expect(await world.outcome(lie({ email: "\u00e5nn@example.com" }))).toBe("ok");
  });

  test("has a different domain, with and without allowed domains", async () => {
    const sso = { auto_provision: true, default_role: "viewer" };
    const world = await scene({ users: [root, admin()], sso });
    const email = "kate@\u212aorp.example";
    expect(await world.outcome(lie({ email }))).toBe("ok");
    expect(world.find("kate@korp.example").sso).toBeNull();
    expect(world.find(email).role).toBe("viewer");

    const limited = await scene({
      users: [root, admin()],
      sso: { ...sso, allowed_domains: ["KORP.example"] },
    });
    expect(await limited.outcome(lie({ email }))).toBe("domain_not_allowed");
    expect(await limited.outcome(lie({ email: "KATE@korp.EXAMPLE" }))).toBe("ok");
    const kelvin = await scene({ sso: { ...sso, allowed_domains: ["\u212aorp.example"] } });
    expect(await kelvin.outcome(lie({ email: "kate@korp.example" }))).toBe("domain_not_allowed");
  });
});

describe("an unknown user", () => {
  test("is refused while creation is off", async () => {
    const world = await scene({ sso: { auto_provision: false, default_role: "admin" } });
    expect(await world.outcome()).toBe("no_account");
    expect(world.users).toHaveLength(1);
  });

  test("is created with the default role and without a password", async () => {
    const world = await scene({ sso: { auto_provision: true, default_role: "viewer" } });
    expect(await world.outcome(lie({ name: "  Ann\nof Cleves " }))).toBe("ok");
    expect(world.find("ann@example.com")).toMatchObject({
      name: "Ann of Cleves",
      role: "viewer",
      enabled: true,
      password_hash: null,
      sso: { issuer: world.provider.issuer, subject: "subject-1" },
    });
    expect(world.plane.steps.commits.at(-1)).toMatchObject({
      entry: { summary: 'create user "ann@example.com" at the first single sign-on' },
    });
  });

  test("is created with the mapped role, which overrides the default", async () => {
    const sso = { auto_provision: true, default_role: "viewer", ...groups };
    const world = await scene({ sso });
    expect(await world.outcome(lie({ groups: ["all", "ops", "else"] }))).toBe("ok");
    expect(world.find("ann@example.com").role).toBe("editor");
  });

  test("is refused without a role", async () => {
    const world = await scene({ sso: { auto_provision: true, ...groups } });
    for (const value of [["else"], "", undefined, 7, { ops: true }, ["constructor", "__proto__"]])
      expect(await world.outcome(lie({ groups: value }))).toBe("unknown_role");
    expect(world.users).toHaveLength(1);
  });

  test("is refused while no users exist", async () => {
    const world = await scene({ users: [], sso: { auto_provision: true, default_role: "admin" } });
    expect(await world.start()).toEqual({ error: "setup_required" });
  });
});

describe("the role of a user", () => {
  const named = { role_claim: "https://example.com/role", role_map: { boss: "admin" } };
  const nested = { role_claim: "realm_access.roles", role_map: groups.role_map };
  const cases = [
    { why: "follows a list", sso: groups, claims: { groups: ["ops", "all"] }, role: "editor" },
    { why: "follows a string", sso: groups, claims: { groups: "boss" }, role: "admin" },
    {
      why: "follows a nested claim",
      sso: nested,
      claims: { realm_access: { roles: ["all"] } },
      role: "viewer",
    },
    {
      why: "follows a claim with dots in its own name",
      sso: named,
      claims: { "https://example.com/role": "boss" },
      role: "admin",
    },
    {
      why: "stays when the map has no word",
      sso: groups,
      claims: { groups: ["x"] },
      role: "editor",
    },
    { why: "stays when the claim is missing", sso: groups, claims: {}, role: "editor" },
    { why: "stays without a claim", sso: {}, claims: { groups: ["boss"] }, role: "editor" },
  ];
  test.each(cases)("$why", async ({ sso, claims, role }) => {
    const world = await scene({ users: [root, user("ann@example.com", { role: "editor" })], sso });
    expect(await world.outcome(lie(claims))).toBe("ok");
    expect(world.find("ann@example.com").role).toBe(role as User["role"]);
  });

  test("of the last admin is not lowered: the sign-in continues with the old one, with a warning", async () => {
    const world = await scene({ users: [user("ann@example.com")], sso: groups });
    expect(await world.outcome(lie({ groups: ["all"] }))).toBe("ok");
    expect(world.find("ann@example.com")).toMatchObject({
      role: "admin",
      sso: { subject: "subject-1" },
    });
    const [refusal, login] = world.audit.slice(-2);
    expect(refusal).toMatchObject({
      kind: "user",
      result: "refused",
      object_name: "ann@example.com",
      detail: { kept_role: "admin", reason: expect.stringContaining("last admin") },
    });
    expect(login).toMatchObject({ action: "login", result: "ok" });
    expect(world.log.some((line) => line.includes("role is unchanged"))).toBe(true);
  });

  test("of one of two admins is lowered", async () => {
    const world = await scene({ users: [root, user("ann@example.com")], sso: groups });
    expect(await world.outcome(lie({ groups: ["all"] }))).toBe("ok");
    expect(world.find("ann@example.com").role).toBe("viewer");
  });
});

describe("a disabled user", () => {
  test.each(["by address", "by link"])("is refused, found %s", async (how) => {
    const world = await scene({});
    const sso = how === "by link" ? { issuer: world.provider.issuer, subject: "subject-1" } : null;
    const ann = user("ann@example.com", { enabled: false, sso });
    await world.plane.control.changes.run({
      by: { actor: "test", method: "local", address: "", sessionId: null },
      dryRun: false,
      mutate: (draft) => draft.put("users", ann),
    });
    expect(await world.outcome()).toBe("user_disabled");
    expect(world.sessions.list()).toEqual([]);
  });
});

describe("claims that the id token lacks", () => {
  const ann = () => [root, user("ann@example.com", { role: "viewer" })];
  const without = { email: undefined, email_verified: undefined };

  test("are read from the userinfo endpoint", async () => {
    const world = await scene({ users: ann(), sso: groups });
    const userinfo = {
      sub: "subject-1",
      email: "ann@example.com",
      email_verified: true,
      groups: ["ops"],
    };
    expect(await world.outcome({ claims: without, userinfo })).toBe("ok");
    expect(world.find("ann@example.com").role).toBe("editor");
    expect(world.provider.asked).toContain("/userinfo");
  });

  test("of another subject are not trusted", async () => {
    const world = await scene({ users: ann() });
    const userinfo = { sub: "subject-2", email: "ann@example.com", email_verified: true };
    expect(await world.outcome({ claims: without, userinfo })).toBe("invalid_token");
  });

  test("never complete half of the id token's address", async () => {
    const world = await scene({ users: ann() });
    const half = { sub: "subject-1", email: "ann@example.com" };
    const claims = { email: undefined, email_verified: true };
    expect(await world.outcome({ claims, userinfo: half })).toBe("email_unverified");
  });

  test("are not requested when nothing is missing", async () => {
    const world = await scene({ users: ann() });
    expect(await world.outcome()).toBe("ok");
    expect(world.provider.asked).not.toContain("/userinfo");
  });
});

test("the session belongs to the user, with the client's address", async () => {
  const world = await scene({ users: [user("ann@example.com")] });
  const finished = await world.signIn();
  if ("error" in finished) throw new Error(finished.error);
  expect(world.sessions.find(finished.sessionSecret)).toMatchObject({
    user_id: world.find("ann@example.com").id,
    method: "sso",
    address: "192.0.2.1",
    user_agent: "test",
  });
  expect(world.audit.at(-1)).toMatchObject({
    actor: "ann@example.com",
    action: "login",
    kind: "session",
    object_id: finished.session.id,
    result: "ok",
  });
});
