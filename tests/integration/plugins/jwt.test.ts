// jwt on a real data plane: accepted tokens, identity headers, rejections.
import { beforeAll, describe, expect, test } from "bun:test";
import { decode } from "../../../src/model/decode.ts";
import plugin from "../../../src/plugins/jwt.ts";
import { createKey, signToken, type TokenParts } from "./issuer.ts";
import { bearer, SECRET, seconds, useJwt } from "./jwt-scene.ts";

const ISSUER = "https://issuer.test";
const hs = (id: string, secret = SECRET) => ({
  id,
  algorithm: "HS256",
  privateKey: new TextEncoder().encode(secret),
});

const jwt = useJwt();

describe("a token", () => {
  test.each([
    ["RS256", () => jwt.rsa],
    ["ES256", () => jwt.ec],
    ["EdDSA", () => jwt.ed],
  ])("signed with %s is accepted, and does not go upstream", async (_, key) => {
    await jwt.use();
    const { status, seen } = await jwt.get({}, key());
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({ "x-credential-identifier": "user-1" });
    expect(seen?.headers).not.toHaveProperty("x-consumer-id");
    expect(seen?.headers).not.toHaveProperty("authorization");
  });

  test("without a key id is verified with all keys that fit", async () => {
    const other = await createKey("RS256", "r0");
    await jwt.use({ jwks: { keys: [other.jwk, jwt.ec.jwk, jwt.rsa.jwk] } });
    expect((await jwt.get({ header: { kid: undefined } })).status).toBe(200);
    expect((await jwt.get({ header: { kid: "r0" } })).status).toBe(401);
  });

  test("may be in other fields, cookies and parameters, from which it is removed", async () => {
    await jwt.use({ header_names: ["X-Token"], cookie_names: ["t"], query_names: ["t"] });
    const token = await signToken(jwt.rsa);
    const inField = await jwt.scene.get("/", { "X-Token": token });
    expect(inField.status).toBe(200);
    expect(inField.seen?.headers).not.toHaveProperty("x-token");
    expect((await jwt.scene.get("/", { "X-Token": `Bearer ${token}` })).status).toBe(200);
    const inCookie = await jwt.scene.get("/", { Cookie: `a=1; t=${token}` });
    expect(inCookie.status).toBe(200);
    expect(inCookie.seen?.headers["cookie"]).toBe("a=1");
    const inQuery = await jwt.scene.get(`/?a=1&t=${token}`);
    expect(inQuery.status).toBe(200);
    expect(inQuery.seen?.target).toBe("/?a=1");
    expect((await jwt.scene.get("/", bearer(token))).status).toBe(401);
    const twice = await jwt.scene.get(`/?t=${token}`, { "X-Token": token });
    expect(twice.status).toBe(401);
    await jwt.use({ hide_credentials: false });
    expect((await jwt.get()).seen?.headers["authorization"]).toStartWith("Bearer ");
  });

  test("in a cookie leaves an Authorization of another scheme alone", async () => {
    await jwt.use({ cookie_names: ["t"] });
    const headers = { Cookie: `t=${await signToken(jwt.rsa)}`, Authorization: "Basic eDp5" };
    const { status, seen } = await jwt.scene.get("/", headers);
    expect(status).toBe(200);
    expect(seen?.headers["authorization"]).toBe("Basic eDp5");
    expect(seen?.headers).not.toHaveProperty("cookie");
  });

  test("names a consumer by a claim of its own", async () => {
    await jwt.use({ consumer_claim: "sub" });
    expect((await jwt.get()).seen?.headers["x-consumer-username"]).toBe("alice");
    const byName = await jwt.get({ claims: { sub: "bob" } });
    expect(byName.seen?.headers["x-consumer-username"]).toBe("bob");
    for (const sub of ["nobody", undefined, 7, ["bob"]])
      expect((await jwt.get({ claims: { sub } })).status).toBe(401);
    await jwt.use({ consumer_claim: "act.name" });
    const nested = await jwt.get({ claims: { act: { name: "bob" } } });
    expect(nested.seen?.headers["x-consumer-username"]).toBe("bob");
  });
});

describe("a token of a consumer", () => {
  beforeAll(() => jwt.use({ algorithms: ["RS256", "HS256"], consumer_claim: "sub" }));
  const signed = (iss: string, parts: TokenParts = {}, secret = SECRET) =>
    signToken(hs("any", secret), { ...parts, claims: { iss, ...parts.claims } });

  test("authenticates it, whatever it claims", async () => {
    const { status, seen } = await jwt.scene.get(
      "/",
      bearer(await signed("alice-hs", { claims: { sub: "bob" } })),
    );
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({
      "x-consumer-username": "alice",
      "x-credential-identifier": "alice-hs",
    });
  });

  test("may be signed with a key pair", async () => {
    const { seen } = await jwt.get({ claims: { iss: "alice-rs" } });
    expect(seen?.headers["x-credential-identifier"]).toBe("alice-rs");
    expect((await jwt.get({ claims: { iss: "alice-rs" } }, jwt.foreign)).status).toBe(401);
  });

  test("is refused with a wrong, foreign or expired key, and accepted with a rotated one", async () => {
    const status = async (token: string) => (await jwt.scene.get("/", bearer(token))).status;
    expect(await status(await signed("alice-hs", {}, "x".repeat(40)))).toBe(401);
    expect(await status(await signed("expired"))).toBe(401);
    expect(await status(await signed("nobody"))).toBe(401);
    expect(await status(await signed("rotated"))).toBe(200);
  });

  test("may name its key in another claim or in the header", async () => {
    await jwt.use({ algorithms: ["HS256"], key_claim: "kid" });
    const token = await signToken(hs("alice-hs"));
    expect((await jwt.scene.get("/", bearer(token))).status).toBe(200);
    expect((await jwt.scene.get("/", bearer(await signed("alice-hs")))).status).toBe(401);
  });

  test("is refused unless its algorithm is accepted", async () => {
    await jwt.use();
    expect((await jwt.scene.get("/", bearer(await signed("alice-hs")))).status).toBe(401);
  });
});

describe("a claim", () => {
  const refusals: [string, Record<string, unknown>, () => TokenParts, string][] = [
    ["expired", {}, () => ({ claims: { exp: seconds() - 40 } }), "the token has expired"],
    [
      "not valid yet",
      {},
      () => ({ claims: { nbf: seconds() + 60 } }),
      "the token is not valid yet",
    ],
    ["without a number", {}, () => ({ claims: { exp: "soon" } }), "the token is malformed"],
    [
      "of another issuer",
      { issuer: ["https://a.test"] },
      () => ({}),
      "the issuer of the token is not accepted",
    ],
    [
      "of no issuer",
      { issuer: [ISSUER] },
      () => ({ claims: { iss: undefined } }),
      "the issuer of the token is not accepted",
    ],
    [
      "for another audience",
      { audience: ["a", "b"] },
      () => ({ claims: { aud: ["c"] } }),
      "the audience of the token is not accepted",
    ],
    [
      "for no audience",
      { audience: ["a"] },
      () => ({}),
      "the audience of the token is not accepted",
    ],
    [
      "valid for too long",
      { maximum_expiration: 60 },
      () => ({}),
      "the token is valid for too long",
    ],
    [
      "valid for ever",
      { maximum_expiration: 60 },
      () => ({ claims: { exp: undefined } }),
      "the token does not expire",
    ],
    [
      "without a needed claim",
      { claims_required: { exp: null } },
      () => ({ claims: { exp: undefined } }),
      "a claim of the token does not have the required value",
    ],
    [
      "with another value",
      { claims_required: { tenant: "a" } },
      () => ({ claims: { tenant: "A" } }),
      "a claim of the token does not have the required value",
    ],
    [
      "with a value of another type",
      { claims_required: { n: 1 } },
      () => ({ claims: { n: "1" } }),
      "a claim of the token does not have the required value",
    ],
    [
      "with what only objects have",
      { claims_required: { constructor: null } },
      () => ({}),
      "a claim of the token does not have the required value",
    ],
  ];
  test.each(refusals)("refuses a token %s", async (_, own, parts, description) => {
    await jwt.use(own);
    const answer = await jwt.get(parts());
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe(
      `Bearer realm="sluice", error="invalid_token", error_description="${description}"`,
    );
  });

  const passes: [string, Record<string, unknown>, () => TokenParts][] = [
    ["expired a moment ago", {}, () => ({ claims: { exp: seconds() - 10 } })],
    ["valid in a moment", {}, () => ({ claims: { nbf: seconds() + 10 } })],
    ["that never expires", {}, () => ({ claims: { exp: undefined } })],
    ["of one of several issuers", { issuer: ["https://a.test", ISSUER] }, () => ({})],
    ["for several audiences", { audience: ["a", "b"] }, () => ({ claims: { aud: ["b", "c"] } })],
    ["valid for as long as allowed", { maximum_expiration: 300 }, () => ({})],
    [
      "with values that are needed",
      { claims_required: { a: [1, 2], "b.c": "x", d: true, "https://e.test/f": null } },
      () => ({ claims: { a: 2, b: { c: ["y", "x"] }, d: true, "https://e.test/f": 0 } }),
    ],
  ];
  test.each(passes)("accepts a token %s", async (_, own, parts) => {
    await jwt.use(own);
    expect((await jwt.get(parts())).status).toBe(200);
  });

  test("that expired is refused to the second without tolerance", async () => {
    await jwt.use({ clock_skew: 0 });
    expect((await jwt.get({ claims: { exp: seconds() } })).status).toBe(401);
    expect((await jwt.get({ claims: { exp: seconds() + 60 } })).status).toBe(200);
  });
});

test("missing scopes get 403", async () => {
  await jwt.use({ scopes_required: ["read", "write"] });
  const refused = await jwt.get({ claims: { scope: "read  other" } });
  expect(refused.status).toBe(403);
  expect(refused.headers.get("www-authenticate")).toBe(
    'Bearer realm="sluice", error="insufficient_scope", error_description="the token lacks a required scope", scope="read write"',
  );
  expect(refused.seen).toBeNull();
  for (const claims of [{ scope: "write read" }, { scp: ["read", "write"] }, { scp: "read write" }])
    expect((await jwt.get({ claims })).status).toBe(200);
  for (const claims of [{}, { scope: "readwrite" }, { scope: 1 }, { scope: [["read"], "write"] }])
    expect((await jwt.get({ claims })).status).toBe(403);
});

describe("header fields for the target", () => {
  const map = { sub: "X-User", "realm.roles": "X-Roles", admin: "X-Admin", deep: "X-Deep" };

  test("contain claims", async () => {
    await jwt.use({ claims_to_headers: map });
    const { seen } = await jwt.get({
      claims: { realm: { roles: ["a", "b"] }, admin: true, deep: { a: 1 } },
    });
    expect(seen?.headers).toMatchObject({
      "x-user": "user-1",
      "x-roles": "a,b",
      "x-admin": "true",
      "x-deep": '{"a":1}',
    });
  });

  const lie = { "X-User": "root", X_User: "root", "X-Roles": "admin", X_Admin: "true" };
  const of = (headers: Readonly<Record<string, string>> | undefined) =>
    Object.keys(headers ?? {}).filter((name) => /^x[-_](?:user|roles|admin|deep)$/.test(name));

  test("cannot be sent by clients, nor hold invalid field values", async () => {
    await jwt.use({ claims_to_headers: map });
    const token = await signToken(jwt.rsa, { claims: { sub: "a\r\nX-Admin: true", admin: "ü" } });
    const { status, seen } = await jwt.scene.get("/", { ...bearer(token), ...lie });
    expect(status).toBe(200);
    expect(of(seen?.headers)).toEqual([]);
  });

  test("cannot be sent by anonymous clients and in preflights either", async () => {
    await jwt.use({ claims_to_headers: map, anonymous_consumer: "guest" });
    const anonymous = await jwt.scene.get("/", lie);
    expect(anonymous.seen?.headers["x-anonymous-consumer"]).toBe("true");
    expect(of(anonymous.seen?.headers)).toEqual([]);
    await jwt.use({ claims_to_headers: map });
    const headers = { ...lie, Origin: "https://a.test", "Access-Control-Request-Method": "PUT" };
    const preflight = await jwt.scene.send("OPTIONS", "/", { headers });
    expect(preflight.status).toBe(200);
    expect(of(preflight.seen?.headers)).toEqual([]);
  });
});

test("without a token the challenge has no error, or the anonymous consumer is used", async () => {
  await jwt.use({ realm: "shop" });
  for (const headers of [{}, { Authorization: "Basic eDp5" }]) {
    const answer = await jwt.scene.get("/", headers as Record<string, string>);
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="shop"');
  }
  await jwt.use({ anonymous_consumer: "guest", scopes_required: ["a"] });
  for (const headers of [{}, bearer("x"), bearer(await signToken(jwt.rsa))]) {
    const { seen } = await jwt.scene.get("/", headers as Record<string, string>);
    expect(seen?.headers).toMatchObject({ "x-consumer-username": "guest" });
    expect(seen?.headers).not.toHaveProperty("x-credential-identifier");
  }
});

describe("a configuration", () => {
  const problems = (own: Record<string, unknown>) =>
    (plugin.check as unknown as (config: object) => readonly { path: string }[])(
      decode(plugin.config, own) as object,
    ).map(({ path }) => path);

  test.each([
    [
      "an address and keys",
      () => ({ jwks_url: "https://a.test", jwks: { keys: [jwt.rsa.jwk] } }),
      ["jwks"],
    ],
    ["a private key", () => ({ jwks: { keys: [{ ...jwt.rsa.jwk, d: "x" }] } }), ["jwks.keys[0]"]],
    ["a shared secret", () => ({ jwks: { keys: [{ kty: "oct", k: "AAAA" }] } }), ["jwks.keys[0]"]],
    ["no key", () => ({ jwks: { keys: [jwt.ec.jwk, { kty: "RSA" }] } }), ["jwks.keys[1]"]],
    [
      "a field that says who the client is",
      () => ({ claims_to_headers: { sub: "X-Consumer-ID" } }),
      ["claims_to_headers.sub"],
    ],
    [
      "a field of the gateway",
      () => ({ claims_to_headers: { sub: "Host" } }),
      ["claims_to_headers.sub"],
    ],
    [
      "one field twice",
      () => ({ claims_to_headers: { a: "X-A", b: "x-a" } }),
      ["claims_to_headers.b"],
    ],
    ["nothing", () => ({}), []],
    ["keys", () => ({ jwks: { keys: [jwt.rsa.jwk, jwt.ec.jwk, jwt.ed.jwk] } }), []],
  ])("with %s", (_, own, paths) => {
    expect(problems(own())).toEqual(paths);
  });

  test("cannot accept tokens without a signature", () => {
    expect(() => decode(plugin.config, { algorithms: ["none"] })).toThrow();
    expect(() => decode(plugin.config, { algorithms: [] })).toThrow();
  });
});
