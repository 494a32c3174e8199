// Tokens of oidc on a real data plane: renewed, sent upstream, and shown by programs.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { signProperly } from "../sso/lying-provider.ts";
import { otherForms, signInForm } from "../sso/token-forms.ts";
import { Jar, World } from "./oidc-world.ts";

let world: World;

beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());
beforeEach(() => world.reset());

describe("tokens", () => {
  const renewing = { answer: { expires_in: 1 }, refreshes: true };

  test("go upstream only when configured", async () => {
    await world.configure({ forward_access_token: true });
    const jar = new Jar();
    await world.signIn(jar);
    const { seen } = await world.get("/", jar, { Authorization: "Basic own" });
    expect(seen?.headers["authorization"]).toBe("Bearer canary-access-token");
  });

  test("are renewed once, however many requests arrive, and the claims with them", async () => {
    world.provider.lie = renewing;
    const jar = new Jar();
    await world.signIn(jar);
    world.provider.lie = { ...renewing, answer: { expires_in: 3600 }, claims: { name: "Renamed" } };
    const before = world.provider.tokenRequests.length;
    await eventually(async () => {
      await world.scene.get("/", jar.header);
      return world.provider.tokenRequests.length > before;
    });
    const all = await Promise.all(
      Array.from({ length: 20 }, () => world.scene.get("/", jar.header)),
    );
    for (const { status, seen } of all) {
      expect(status).toBe(200);
      expect(seen?.headers["x-auth-subject"]).toBe("subject-1");
    }
    expect(world.provider.tokenRequests.length).toBe(before + 1);
    expect(world.provider.tokenRequests.at(-1)?.form.get("grant_type")).toBe("refresh_token");
    const fresh = await world.get("/", jar);
    expect(fresh.seen?.headers["x-auth-name"]).toBe("Renamed");
    expect((await world.get("/", jar)).headers.getSetCookie()).toEqual(["app=1"]);
  });

  test("that the provider does not renew end the session", async () => {
    world.provider.lie = renewing;
    const jar = new Jar();
    await world.signIn(jar);
    world.provider.intercept = (path) =>
      path === "/token" ? Response.json({ error: "invalid_grant" }, { status: 400 }) : null;
    await eventually(async () => (await world.scene.get("/", jar.header)).status === 302);
  });

  test("of another user end the session", async () => {
    world.provider.lie = renewing;
    const jar = new Jar();
    await world.signIn(jar);
    world.provider.lie = { ...renewing, claims: { sub: "another" } };
    await eventually(async () => (await world.scene.get("/", jar.header)).status === 302);
  });

  test("that temporarily cannot be renewed keep the session as it is", async () => {
    world.provider.lie = renewing;
    const jar = new Jar();
    await world.signIn(jar);
    const { length } = world.provider.asked;
    world.provider.intercept = (path) =>
      path === "/token" ? new Response("", { status: 502 }) : null;
    await eventually(async () => {
      expect((await world.scene.get("/", jar.header)).status).toBe(200);
      return world.provider.asked.length > length;
    });
    expect((await world.scene.get("/", jar.header)).status).toBe(200);
  });

  test("are not renewed when disabled", async () => {
    await world.configure({ refresh: false });
    world.provider.lie = { ...renewing, answer: { expires_in: 0.1 } };
    const jar = new Jar();
    await world.signIn(jar);
    const { length } = world.provider.tokenRequests;
    expect((await world.get("/", jar)).status).toBe(200);
    expect(world.provider.tokenRequests).toHaveLength(length);
  });
});

describe("a Bearer token", () => {
  const token = (claims: Record<string, unknown> = {}) => {
    const now = Math.floor(Date.now() / 1000);
    const { issuer } = world.provider;
    const all = { iss: issuer, aud: "sluice", sub: "robot", iat: now, exp: now + 60, email: "r@x" };
    return signProperly({ ...all, ...claims }, world.provider);
  };
  const claimsOf = (claims: Record<string, unknown> = {}) => {
    const now = Math.floor(Date.now() / 1000);
    const { issuer } = world.provider;
    return { iss: issuer, aud: "sluice", sub: "robot", iat: now, exp: now + 60, ...claims };
  };
  const withToken = async (claims?: Record<string, unknown>) =>
    world.scene.get("/", { Authorization: `Bearer ${await token(claims)}` });

  test("of the provider is accepted, and does not go upstream", async () => {
    const { status, seen } = await withToken();
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({
      "x-auth-user": "r@x",
      "x-credential-identifier": "robot",
    });
    expect(seen?.headers).not.toHaveProperty("authorization");
    await world.configure({ hide_credentials: false });
    expect((await withToken()).seen?.headers["authorization"]).toStartWith("Bearer ey");
  });

  test.each([
    ["for another audience", { aud: "another" }],
    ["of another issuer", { iss: "https://evil.example" }],
    ["that has expired", { exp: 1 }],
    ["without an end", { exp: undefined }],
    ["that is not valid yet", { nbf: Math.floor(Date.now() / 1000) + 600 }],
    ["without a subject", { sub: "" }],
  ])("%s is refused", async (_, claims) => {
    const { status, headers, seen } = await withToken(claims);
    expect({ status, seen }).toEqual({ status: 401, seen: null });
    expect(headers.get("www-authenticate")).toBe('Bearer realm="sluice", error="invalid_token"');
  });

  test.each(["x", "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", "=".repeat(3)])(
    "such as %s is refused",
    async (text) => {
      const { status } = await world.scene.send("POST", "/", {
        headers: { Authorization: `Bearer ${text}` },
      });
      expect(status).toBe(401);
    },
  );

  const bent = [
    ...otherForms.filter(({ why }) => !/space|break|behind the claims/.test(why)),
    { why: "the type of a logout token", sign: signInForm({ header: { typ: "logout+jwt" } }) },
    { why: "a type that is a number", sign: signInForm({ header: { typ: 5 } }) },
    { why: "a type that is null", sign: signInForm({ header: { typ: null } }) },
  ];
  test.each(bent)("with $why is refused", async ({ sign }) => {
    const text = await sign(claimsOf(), world.provider);
    const { status, seen } = await world.scene.get("/", { Authorization: `Bearer ${text}` });
    expect({ status, seen }).toEqual({ status: 401, seen: null });
  });

  test("of the type of access tokens, or of none, is accepted", async () => {
    for (const header of [{}, { typ: "JWT" }, { typ: "at+jwt" }]) {
      const text = await signInForm({ header })(claimsOf(), world.provider);
      const answer = await world.scene.get("/", { Authorization: `Bearer ${text}` });
      expect(answer.status).toBe(200);
    }
  });

  test("may be for an audience of its own", async () => {
    await world.configure({ bearer_audience: ["api"] });
    expect((await withToken({ aud: ["x", "api"] })).status).toBe(200);
    expect((await withToken()).status).toBe(401);
  });

  test("needs the group as well", async () => {
    await world.configure({ allowed_groups: ["staff"] });
    expect((await withToken({ groups: ["staff"] })).status).toBe(200);
    expect((await withToken({ groups: ["others"] })).status).toBe(403);
  });

  test("is ignored when disabled", async () => {
    await world.configure({ bearer_allowed: false });
    expect((await withToken()).status).toBe(302);
  });

  test("of the application does not affect a session", async () => {
    const jar = new Jar();
    await world.signIn(jar);
    const { status, seen } = await world.get("/", jar, { Authorization: "Bearer own" });
    expect(status).toBe(200);
    expect(seen?.headers["authorization"]).toBe("Bearer own");
  });

  test("is accepted with a new key", async () => {
    expect((await withToken()).status).toBe(200);
    await world.configure({ realm: "other" });
    await world.provider.rotateKeys("second");
    expect((await withToken()).status).toBe(200);
  });
});
