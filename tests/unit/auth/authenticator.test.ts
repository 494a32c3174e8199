// Which credentials authenticate which principal, and when they stop being valid; on a control plane without sockets.
import { describe, expect, test } from "bun:test";
import type { Credentials } from "../../../src/auth/authenticator.ts";
import { local, type Principal } from "../../../src/control/principal.ts";
import { ApiError } from "../../../src/model/error.ts";
import { recorded } from "../control/fixture.ts";
import { options, signedIn, userOf, withToken, withUsers } from "./fixture.ts";

const root = userOf("root", "admin");
const eve = userOf("eve", "editor");
const nothing: Credentials = {
  authorization: null,
  adminToken: null,
  cookie: null,
  accessToken: null,
};
const PEER = "192.0.2.1";

function scene(now?: () => number) {
  const { control } = withUsers([root, eve], now);
  const { authenticator } = control.auth;
  const ask = (credentials: Partial<Credentials>, peer = PEER) =>
    authenticator.authenticate({ ...nothing, ...credentials }, peer);
  const makeToken = async (fields: object) => {
    const { view } = await control.auth.tokens.create({ name: "ci", ...fields }, options);
    return view as typeof view & { token: string };
  };
  const makeSession = (userId = eve.id) => {
    const visit = { method: "password", address: PEER, userAgent: "", isSecure: false } as const;
    const { cookie, session } = recorded(control.changes, () =>
      control.sessions.create(userId, visit),
    );
    return { header: `sluice_session_test=${cookie}`, session };
  };
  return { control, authenticator, ask, makeToken, makeSession };
}

const refusal = (run: () => unknown): string => {
  try {
    return `let in: ${JSON.stringify(run())}`;
  } catch (error) {
    return error instanceof ApiError ? `${error.status} ${error.message}` : String(error);
  }
};

describe("a caller", () => {
  test("without credentials has no principal", () => {
    expect(scene().ask({})).toBeNull();
    expect(scene().ask({ cookie: "theme=dark" })).toBeNull();
  });

  test("with a session is its user, in the role that the user has now", async () => {
    const { control, ask, makeSession } = scene();
    const { header, session } = makeSession();
    expect(ask({ cookie: `theme=dark; ${header}` })).toEqual({
      role: "editor",
      method: "session",
      actor: "eve@a.example",
      address: PEER,
      userId: eve.id,
      sessionId: session.id,
      tokenId: null,
      expiresAt: session.expires_at,
    });
    await control.users.patch(eve.id, { role: "admin" }, options);
    expect(ask({ cookie: header })?.role).toBe("admin");
  });

  test("with a named token is that token, in any header, and its use is recorded", async () => {
    const { control, ask, makeToken } = scene();
    const { id, token } = await makeToken({
      role: "editor",
      expires_at: "2030-01-01T01:00:00+01:00",
    });
    const expected = {
      role: "editor",
      method: "token",
      actor: "ci",
      address: PEER,
      userId: null,
      sessionId: null,
      tokenId: id,
      expiresAt: "2030-01-01T00:00:00.000Z",
    };
    expect(control.auth.tokens.get(id).view.last_used_at).toBeNull();
    for (const credentials of [
      { authorization: `Bearer ${token}` },
      { authorization: `bearer  ${token} ` },
      { adminToken: token },
      { accessToken: token },
      { authorization: `Bearer ${token}`, adminToken: token },
    ])
      expect(ask(credentials)).toEqual(expected as Principal);
    expect(control.auth.tokens.get(id).view.last_used_at).toBe("2026-01-01T00:00:00.000Z");
  });

  test("with the admin token is an admin", async () => {
    const { control, ask } = scene();
    const { token } = await control.auth.rotateAdminToken(local);
    expect(ask({ adminToken: token })).toMatchObject({
      role: "admin",
      method: "token",
      actor: "admin token",
      userId: null,
      tokenId: "admin",
      expiresAt: null,
    });
    expect(control.auth.adminTokenStatus()).toMatchObject({
      exists: true,
      last_used_at: "2026-01-01T00:00:00.000Z",
    });
  });

  test("with a header is the principal of the header, whatever the cookie and the query contain", async () => {
    const { control, ask, makeToken, makeSession } = scene();
    const { token } = await makeToken({ role: "viewer" });
    const { header } = makeSession(root.id);
    const { token: adminToken } = await control.auth.rotateAdminToken(local);
    const all = { cookie: header, accessToken: adminToken };
    expect(ask({ ...all, adminToken: token })?.role).toBe("viewer");
    expect(ask({ cookie: header, accessToken: token })?.role).toBe("viewer");
    for (const wrong of [
      { adminToken: "wrong" },
      { adminToken: "" },
      { authorization: "" },
      { authorization: "Bearer" },
      { authorization: "Bearer wrong" },
      { authorization: `Basic ${btoa("root:x")}` },
      { authorization: `Bearer ${adminToken}, Bearer ${adminToken}` },
      { authorization: `Bearer ${adminToken}`, adminToken: token },
    ])
      expect(refusal(() => ask({ ...all, ...wrong }))).toStartWith("401 ");
  });

  test("with sessions of two users is rejected, and both end; several of one user are accepted", () => {
    const { ask, makeSession } = scene();
    const [one, two, three] = [root.id, root.id, eve.id].map((id) => makeSession(id).header);
    expect(ask({ cookie: `${one}; ${one}; ${two}` })?.actor).toBe(root.email);
    expect(refusal(() => ask({ cookie: `${one}; ${three}` }))).toStartWith(
      "401 the request brought sessions of several users",
    );
    for (const ended of [one, three])
      expect(refusal(() => ask({ cookie: ended ?? "" }))).toBe("401 the session has ended");
    expect(ask({ cookie: two ?? "" })?.actor).toBe(root.email);
  });

  test("is authenticated by a session beside invalid cookies", () => {
    const { ask, makeSession } = scene();
    const dead = ["sluice_session_test=x", "sluice_session=x", "__Host-sluice_session_test=x"];
    const { header } = makeSession();
    expect(ask({ cookie: [...dead, header].join("; ") })?.actor).toBe(eve.email);
    expect(refusal(() => ask({ cookie: dead.join("; ") }))).toBe("401 the session has ended");
    expect(ask({ cookie: header.replace("_test", "") })?.actor).toBe(eve.email);
    expect(ask({ cookie: header.replace("_test", "_other") })).toBeNull();
    expect(refusal(() => ask({ cookie: `__Host-${header}` }))).toBe("401 the session has ended");
  });

  test("gets no reason why a token is rejected", async () => {
    const { ask, makeToken } = scene();
    const off = await makeToken({ name: "off", enabled: false });
    const old = await makeToken({ name: "old", expires_at: "2026-01-01T00:00:00Z" });
    const far = await makeToken({ name: "far", allowed_cidrs: ["10.0.0.0/8", "2001:db8::/32"] });
    for (const { token } of [off, old, far, { token: "slt_wrong" }])
      expect(refusal(() => ask({ adminToken: token }))).toBe("401 the token is not valid");
    expect(ask({ adminToken: far.token }, "10.1.2.3")?.actor).toBe("far");
    expect(ask({ adminToken: far.token }, "::ffff:10.1.2.3")?.actor).toBe("far");
    expect(ask({ adminToken: far.token }, "2001:db8::9")?.actor).toBe("far");
  });
});

describe("an authenticated principal", () => {
  const now = () => clock.time;
  const clock = { time: 0 };
  const start = () => {
    clock.time = Date.parse("2026-01-01T00:00:00Z");
    const { control } = withUsers([root, eve], now);
    return { control, isValid: (one: Principal) => control.auth.authenticator.isStillValid(one) };
  };
  type Control = ReturnType<typeof start>["control"];
  const endings: {
    why: string;
    caller: (control: Control) => Promise<Principal>;
    end: (control: Control, principal: Principal) => unknown;
    told: boolean;
  }[] = [
    {
      why: "a session that ends",
      caller: signedIn(eve),
      end: ({ sessions }, { sessionId }) => sessions.end(sessionId ?? ""),
      told: true,
    },
    {
      why: "a session that runs out",
      caller: signedIn(eve),
      end: () => (clock.time += 7 * 86_400_000),
      told: false,
    },
    {
      why: "a user who is deleted",
      caller: signedIn(eve),
      end: ({ users }) => users.remove(eve.id, { ...options, cascade: false }),
      told: true,
    },
    {
      why: "a user who is disabled",
      caller: signedIn(eve),
      end: ({ users }) => users.patch(eve.id, { enabled: false }, options),
      told: true,
    },
    {
      why: "a user who is demoted",
      caller: signedIn(eve),
      end: ({ users }) => users.patch(eve.id, { role: "viewer" }, options),
      told: true,
    },
    {
      why: "a token that is deleted",
      caller: withToken("editor"),
      end: ({ auth }) => auth.tokens.remove("a editor", { ...options, cascade: false }),
      told: true,
    },
    {
      why: "a token that is disabled",
      caller: withToken("editor"),
      end: ({ auth }) => auth.tokens.patch("a editor", { enabled: false }, options),
      told: true,
    },
    {
      why: "a token that gets a lower role",
      caller: withToken("editor"),
      end: ({ auth }) => auth.tokens.patch("a editor", { role: "viewer" }, options),
      told: true,
    },
    {
      why: "a token that may come from elsewhere only",
      caller: withToken("editor"),
      end: ({ auth }) => auth.tokens.patch("a editor", { allowed_cidrs: ["10.0.0.1"] }, options),
      told: true,
    },
  ];
  test.each(endings)("by $why is not valid any more", async ({ caller, end, told }) => {
    const { control, isValid } = start();
    const principal = await caller(control);
    expect(isValid(principal)).toBe(true);
    const seen: boolean[] = [];
    control.auth.authenticator.onRevoked(() => seen.push(isValid(principal)));
    await end(control, principal);
    expect(isValid(principal)).toBe(false);
    expect(seen.includes(false)).toBe(told);
  });

  test("by the admin token is not valid once it is rotated or deleted", async () => {
    const { control, isValid } = start();
    const recognise = async () => {
      const { token } = await control.auth.rotateAdminToken(local);
      return control.auth.authenticator.authenticate({ ...nothing, adminToken: token }, PEER)!;
    };
    const first = await recognise();
    const second = await recognise();
    expect([isValid(first), isValid(second)]).toEqual([false, true]);
    await control.auth.removeAdminToken(local);
    expect(isValid(second)).toBe(false);
  });

  test("remains valid when other things change or the role grows", async () => {
    const { control, isValid } = start();
    const principal = await signedIn(eve)(control);
    await control.users.patch(eve.id, { role: "admin", name: "Eve" }, options);
    await control.resources.services.create({ name: "web" }, options);
    expect(isValid(principal)).toBe(true);
  });

  test("is not the copy of a principal, but may be the program itself", async () => {
    const { control, isValid } = start();
    const principal = await signedIn(eve)(control);
    expect(isValid({ ...principal })).toBe(false);
    expect(control.auth.authenticator.isStillValid(local)).toBe(true);
  });
});

describe("while there are no users", () => {
  const start = () => withUsers([]).control;

  test("every client is an admin, and credentials are ignored", async () => {
    const { auth } = start();
    const { token } = await auth.rotateAdminToken(local);
    for (const credentials of [
      nothing,
      { ...nothing, authorization: "Basic x", adminToken: token },
    ]) {
      const principal = auth.authenticator.authenticate(credentials, PEER);
      expect(principal).toMatchObject({ role: "admin", method: "disabled", address: PEER });
      expect(auth.authenticator.isStillValid(principal!)).toBe(true);
    }
    expect(auth.adminTokenStatus().last_used_at).toBeNull();
  });

  test("a request that began without a user is rejected once the first user exists", async () => {
    const { auth, users, changes, resources } = start();
    const nobody = auth.authenticator.authenticate(nothing, PEER)!;
    const by = { ...options, by: nobody };
    const seen: boolean[] = [];
    auth.authenticator.onRevoked(() => seen.push(auth.authenticator.isStillValid(nobody)));
    const first = {
      email: "first@a.example",
      name: "F",
      role: "admin",
      password: "correct horse 1",
    };
    const results = await Promise.allSettled([
      users.create(first, by),
      users.create({ ...first, email: "second@a.example" }, by),
      resources.services.create({ name: "web" }, by),
    ]);
    const done = results.filter(({ status }) => status === "fulfilled");
    expect(changes.config.users.size).toBe(1);
    // Hashing a password takes time, so the service may have been created before the first user, but nothing after.
    expect(done.length).toBe(1 + changes.config.services.size);
    expect(seen).toContain(false);
    expect(resources.services.create({ name: "late" }, by)).rejects.toThrow("no longer valid");
  });
});
