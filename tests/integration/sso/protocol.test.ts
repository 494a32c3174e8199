// The two ends of a sign-in and what lies between: state, browser, discovery, code exchange, limits.
import { afterEach, describe, expect, test } from "bun:test";
import { ApiError } from "../../../src/model/error.ts";
import { clientId, clientSecret } from "./lying-provider.ts";
import { createWorld, type Scene, user, type World } from "./world.ts";

const worlds: World[] = [];
const scene = async (options: Scene = {}) => {
  const world = await createWorld({ users: [user("ann@example.com")], ...options });
  worlds.push(world);
  return world;
};
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.stop();
});

const codeOf = (finished: object) => ("error" in finished ? finished.error : "ok");

describe("the start", () => {
  test("redirects to the provider with state, nonce and the hash of a secret, all new each time", async () => {
    const world = await scene({ sso: { scopes: ["email"] } });
    const [first, second] = [await world.begin(), await world.begin()];
    const { searchParams, origin, pathname } = new URL(first.url);
    expect(origin + pathname).toBe(`${world.provider.issuer}/authorize`);
    expect(Object.fromEntries(searchParams)).toEqual({
      response_type: "code",
      client_id: clientId,
      redirect_uri: "http://127.0.0.1:9080/api/v1/auth/sso/callback",
      scope: "openid email",
      code_challenge_method: "S256",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    for (const name of ["state", "nonce", "code_challenge"])
      expect(new URL(second.url).searchParams.get(name)).not.toBe(searchParams.get(name));
    expect(second.cookies).not.toBe(first.cookies);
  });

  test("sets the cookie for ten minutes, hidden from scripts and requests of other sites", async () => {
    const plain = await (await scene()).start();
    const secure = await (await scene({ publicUrl: "https://gateway.example/" })).start();
    if ("error" in plain || "error" in secure) throw new Error("the start was refused");
    expect(plain.cookie).toMatch(
      /^sluice_session_0badcafe_sso=[\w-]{43}; HttpOnly; Max-Age=600; Path=\/api\/v1\/auth\/sso; SameSite=Lax$/,
    );
    expect(secure.cookie).toMatch(
      /^__Host-sluice_session_0badcafe_sso=[\w-]{43}; HttpOnly; Max-Age=600; Path=\/; SameSite=Lax; Secure$/,
    );
  });

  test("uses public_url when it is set", async () => {
    const world = await scene({ publicUrl: "https://gateway.example/" });
    const { url, cookies } = await world.begin();
    const callback = "https://gateway.example/api/v1/auth/sso/callback";
    expect(new URL(url).searchParams.get("redirect_uri")).toBe(callback);
    expect(codeOf(await world.comeBack(world.provider.agree(url), cookies))).toBe("ok");
    expect(world.provider.tokenRequests[0]?.form.get("redirect_uri")).toBe(callback);
  });

  test("is refused with 400 while single sign-on is off", async () => {
    const world = await scene({ sso: { enabled: false } });
    const error = await world.start().catch((reason) => reason);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ status: 400, message: "single sign-on is off" });
  });

  const elsewhere = [
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/.//evil.example",
    "/x/..//evil.example",
    "routes",
    "",
    "javascript:alert(1)",
    `/${"a".repeat(3000)}`,
  ];
  test.each(elsewhere)("is refused with 400 for the destination %j", async (redirect) => {
    const world = await scene();
    const error = await world.start(redirect).catch((reason) => reason);
    expect(error).toMatchObject({
      status: 400,
      message: expect.stringMatching(/^redirect: must be a path/),
    });
  });

  const here = [
    ["/", "/"],
    ["/routes?x=1#y", "/routes?x=1#y"],
    ["/#/services", "/#/services"],
    ["/ü", "/%C3%BC"],
    ["/a//b", "/a//b"],
  ] as const;
  test.each(here)("accepts the destination %j", async (redirect, expected) => {
    const world = await scene();
    const { url, cookies } = await world.begin(redirect);
    const finished = await world.comeBack(world.provider.agree(url), cookies);
    expect(finished).toMatchObject({ redirect: expected });
  });
});

describe("the callback", () => {
  test("works once", async () => {
    const world = await scene();
    const { url, cookies } = await world.begin();
    const parameters = world.provider.agree(url);
    expect(codeOf(await world.comeBack(parameters, cookies))).toBe("ok");
    expect(codeOf(await world.comeBack(parameters, cookies))).toBe("invalid_state");
    const again = world.provider.agree(url);
    expect(codeOf(await world.comeBack(again, cookies))).toBe("invalid_state");
    expect(world.provider.tokenRequests).toHaveLength(1);
  });

  test("in another browser is refused, and the sign-in is consumed", async () => {
    const world = await scene();
    const { url, cookies } = await world.begin();
    const other = await world.begin();
    for (const wrong of [other.cookies, null, "sluice_session_0badcafe_sso=", "sluice_session=x"]) {
      const mine = await world.begin();
      const parameters = world.provider.agree(mine.url);
      expect(codeOf(await world.comeBack(parameters, wrong))).toBe("invalid_state");
      expect(codeOf(await world.comeBack(parameters, mine.cookies))).toBe("invalid_state");
    }
    expect(codeOf(await world.comeBack(world.provider.agree(url), cookies))).toBe("ok");
  });

  test("with an unknown state is refused", async () => {
    const world = await scene();
    const { url, cookies } = await world.begin();
    for (const state of ["", "other", "__proto__"]) {
      const parameters = world.provider.agree(url);
      parameters.set("state", state);
      expect(codeOf(await world.comeBack(parameters, cookies))).toBe("invalid_state");
    }
    expect(codeOf(await world.comeBack(new URLSearchParams(), cookies))).toBe("invalid_state");
  });

  test("after ten minutes is refused", async () => {
    const world = await scene();
    const [late, intime] = [await world.begin(), await world.begin()];
    world.now += 599_000;
    expect(codeOf(await world.comeBack(world.provider.agree(intime.url), intime.cookies))).toBe(
      "ok",
    );
    world.now += 1000;
    expect(codeOf(await world.comeBack(world.provider.agree(late.url), late.cookies))).toBe(
      "invalid_state",
    );
  });

  test("after the settings were changed is refused", async () => {
    const world = await scene();
    const options = { by: root, dryRun: false, conditions: { match: null, onlyIfAbsent: false } };
    const first = await world.begin();
    await world.sso.settings.patch({ client_id: "other" }, options);
    expect(codeOf(await world.comeBack(world.provider.agree(first.url), first.cookies))).toBe(
      "invalid_state",
    );
    const second = await world.begin();
    await world.sso.settings.patch({ enabled: false }, options);
    expect(codeOf(await world.comeBack(world.provider.agree(second.url), second.cookies))).toBe(
      "sso_disabled",
    );
  });

  const answers = [
    { why: "the person cancels", set: { error: "access_denied" }, code: "access_denied" },
    { why: "the provider fails", set: { error: "server_error" }, code: "provider_error" },
    { why: "there is no code", set: {}, code: "provider_error" },
    { why: "the code is not known", set: { code: "made-up" }, code: "provider_error" },
    {
      why: "another issuer answers",
      set: { code: "x", iss: "https://other.example" },
      code: "provider_error",
    },
  ];
  test.each(answers)("is refused when $why", async ({ set, code }) => {
    const world = await scene();
    const { url, cookies } = await world.begin();
    const state = new URL(url).searchParams.get("state") ?? "";
    const finished = await world.comeBack(new URLSearchParams({ state, ...set }), cookies);
    expect(codeOf(finished)).toBe(code);
    expect(world.sessions.list()).toEqual([]);
  });

  test("must name the issuer when the provider announces it", async () => {
    const world = await scene();
    world.provider.document = { authorization_response_iss_parameter_supported: true };
    const [without, named] = [await world.begin(), await world.begin()];
    const finished = await world.comeBack(world.provider.agree(without.url), without.cookies);
    expect(codeOf(finished)).toBe("provider_error");
    const parameters = world.provider.agree(named.url);
    parameters.set("iss", world.provider.issuer);
    expect(codeOf(await world.comeBack(parameters, named.cookies))).toBe("ok");
  });
});

const root = {
  actor: "root@example.com",
  method: "token",
  address: "127.0.0.1",
  sessionId: null,
} as const;

describe("the gateway authenticates to the provider", () => {
  const cases = [
    { token_auth: "basic", client_secret: clientSecret },
    { token_auth: "post", client_secret: clientSecret },
    { token_auth: "basic", client_secret: null },
  ];
  test.each(cases)("with $token_auth and the secret $client_secret", async (sso) => {
    const world = await scene({ sso });
    expect(await world.outcome()).toBe("ok");
    const [request] = world.provider.tokenRequests;
    const isBasic = sso.token_auth === "basic" && sso.client_secret !== null;
    expect(request?.authorization === null).toBe(!isBasic);
    expect(request?.form.get("client_id")).toBe(isBasic ? null : clientId);
    expect(request?.form.get("client_secret")).toBe(
      sso.token_auth === "post" ? clientSecret : null,
    );
  });

  test("is refused with a wrong secret, which the log does not contain", async () => {
    const world = await scene({ sso: { client_secret: "canary-wrong-secret" } });
    expect(await world.outcome()).toBe("provider_error");
    expect(world.audit.at(-1)?.detail).toMatchObject({
      message: "the token endpoint responded with 401, invalid_client: invalid_client of ***",
    });
    expect(world.log.join("") + JSON.stringify(world.audit)).not.toContain("canary");
  });
});

describe("a provider is refused", () => {
  const cases: { why: string; document?: Record<string, unknown>; says: string }[] = [
    {
      why: "that calls itself otherwise",
      document: { issuer: "https://other.example" },
      says: "names another issuer",
    },
    {
      why: "that sends people to an unsafe address",
      document: { authorization_endpoint: "http://192.0.2.1/authorize" },
      says: "authorization_endpoint",
    },
    {
      why: "that wants the secret unencrypted",
      document: { token_endpoint: "http://192.0.2.1/token" },
      says: "token_endpoint",
    },
    { why: "without keys", document: { jwks_uri: undefined }, says: "jwks_uri" },
  ];
  test.each(cases)("$why", async ({ document, says }) => {
    const world = await scene();
    world.provider.document = document ?? {};
    expect(await world.start()).toEqual({ error: "provider_error" });
    expect(world.audit.at(-1)?.detail).toMatchObject({ message: expect.stringContaining(says) });
  });

  const answers: { why: string; answer: () => Response | Promise<Response>; code: string }[] = [
    { why: "fails", answer: () => new Response("no", { status: 500 }), code: "provider_error" },
    { why: "sends no JSON", answer: () => new Response("<html>"), code: "provider_error" },
    { why: "sends a list", answer: () => Response.json([]), code: "provider_error" },
    {
      why: "redirects",
      answer: () => new Response(null, { status: 302, headers: { location: "/elsewhere" } }),
      code: "provider_error",
    },
    {
      why: "sends more than allowed",
      answer: () => new Response(" ".repeat(1_048_577)),
      code: "provider_error",
    },
    { why: "is silent", answer: () => new Promise(() => {}), code: "provider_unreachable" },
    {
      why: "never ends",
      answer: () => new Response(new ReadableStream({ start: (part) => part.enqueue("{") })),
      code: "provider_unreachable",
    },
  ];
  const paths = ["/.well-known/openid-configuration", "/token", "/keys"];
  const matrix = answers.flatMap((one) => paths.map((path) => ({ ...one, path })));
  test.each(matrix)("that $why at $path", async ({ answer, path, code }) => {
    const world = await scene({ timeoutMs: code === "provider_unreachable" ? 600 : 10_000 });
    world.provider.intercept = (asked) => (asked === path ? answer() : null);
    const started = await world.start();
    if (path.startsWith("/.well-known")) return expect(started).toEqual({ error: code } as never);
    if (!("url" in started)) throw new Error(started.error);
    const finished = await world.comeBack(world.provider.agree(started.url), started.cookie);
    expect(codeOf(finished)).toBe(code);
    expect(world.provider.asked).not.toContain("/elsewhere");
    expect(world.sessions.list()).toEqual([]);
  });

  test("that is unreachable", async () => {
    const world = await scene();
    await world.provider.stop();
    expect(await world.start()).toEqual({ error: "provider_unreachable" });
  });

  test("and is contacted again after it recovers", async () => {
    const world = await scene();
    world.provider.document = { issuer: "https://other.example" };
    expect(await world.start()).toEqual({ error: "provider_error" });
    world.provider.document = {};
    expect(await world.outcome()).toBe("ok");
  });
});

test("neither secrets nor codes nor tokens reach the log or the audit log", async () => {
  const world = await scene();
  const seen: string[] = [];
  for (let round = 0; round < 2; round++) {
    const { url, cookies } = await world.begin();
    seen.push(cookies.split("=")[1] ?? "", ...["state", "nonce"].map((name) => paramOf(url, name)));
    const parameters = world.provider.agree(url);
    seen.push(parameters.get("code") ?? "");
    if (round === 1) world.provider.intercept = (path) => (path === "/token" ? echo(seen) : null);
    world.provider.lie = { claims: { email_verified: round === 1 } };
    const finished = await world.comeBack(parameters, cookies);
    if ("sessionSecret" in finished) seen.push(finished.sessionSecret);
  }
  seen.push(...world.provider.tokenRequests.map(({ form }) => form.get("code_verifier") ?? ""));
  const written = world.log.join("") + JSON.stringify(world.audit);
  expect(world.log.length).toBeGreaterThan(0);
  expect(written).not.toContain("canary");
  expect(seen.length).toBeGreaterThan(8);
  for (const secret of seen) expect(written).not.toContain(secret);
});

const paramOf = (url: string, name: string) => new URL(url).searchParams.get(name) ?? "-";

/** A token endpoint that repeats what it was sent. */
const echo = (secrets: readonly string[]) => {
  const words = `${secrets.at(-1)} and ${clientSecret}`;
  return Response.json({ error: "invalid_grant", error_description: words }, { status: 400 });
};
