// oidc on a real data plane: who is led to the provider, who comes back, and how one signs out.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import oidc from "../../../src/plugins/oidc.ts";
import { decode } from "../../../src/model/decode.ts";
import { CookieBrowser } from "../sso/cookie-browser.ts";
import { signInAt, startProvider } from "../sso/real-provider.ts";
import { pluginScene } from "../../support/plugin-scene.ts";
import { CALLBACK, Jar, LOGOUT, World } from "./oidc-world.ts";

let world: World;

beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());
beforeEach(() => world.reset());

describe("with a certified provider", () => {
  test("a user logs in, is identified to the application, and logs out", async () => {
    const plugin = (issuer: string) => ({
      name: "oidc",
      config: {
        issuer,
        client_id: "app",
        client_secret: "s3cret",
        scopes: ["openid", "profile", "email", "groups"],
        allowed_groups: ["staff"],
      },
    });
    const scene = await pluginScene({});
    const callback = scene.plane.url + CALLBACK;
    const provider = await startProvider(
      { "ann@example.com": { name: "Ann", groups: ["staff", "x,admins"] }, "bob@example.com": {} },
      [
        {
          client_id: "app",
          client_secret: "s3cret",
          token_endpoint_auth_method: "client_secret_basic",
        },
      ],
      [callback],
    );
    try {
      await scene.apply({ plugins: [plugin(provider.issuer)] });
      const browser = new CookieBrowser();
      const email = "ann@example.com";
      const page = `${scene.plane.url}/page?x=1`;
      const back = await signInAt(browser, page, { email, callback });
      const there = await browser.follow(back.location ?? "");
      expect(there).toMatchObject({ status: 200, url: page, text: "ok" });
      expect(scene.requests.at(-1)?.headers).toMatchObject({
        "x-auth-user": "ann@example.com",
        "x-auth-subject": "ann@example.com",
        "x-auth-name": "Ann",
        "x-auth-groups": "staff,x%2Cadmins",
        "x-credential-identifier": "ann@example.com",
      });
      expect(scene.requests.at(-1)?.headers).not.toHaveProperty("cookie");

      const other = new CookieBrowser();
      const bob = await signInAt(other, page, { email: "bob@example.com", callback });
      expect(await other.follow(bob.location ?? "")).toMatchObject({ status: 403 });

      const out = await browser.visit(scene.plane.url + LOGOUT);
      expect(out.location).toStartWith(`${provider.issuer}/session/end?id_token_hint=`);
      expect(browser.cookiesFor(page)).toEqual([]);
    } finally {
      provider.stop();
      await scene.stop();
    }
  });
});

describe("a page without a session", () => {
  test("redirects to the provider with state, nonce and a challenge", async () => {
    const url = new URL(await world.begin("/page", new Jar()));
    expect(url.href).toStartWith(`${world.provider.issuer}/authorize?`);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: "code",
      client_id: "sluice",
      redirect_uri: world.scene.plane.url + CALLBACK,
      scope: "openid profile email",
      code_challenge_method: "S256",
    });
    for (const name of ["state", "nonce", "code_challenge"])
      expect(url.searchParams.get(name)).toHaveLength(43);
  });

  test("never reaches the application, and the response is not cacheable", async () => {
    const { status, headers, seen } = await world.scene.get("/page");
    expect({ status, seen }).toEqual({ status: 302, seen: null });
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.getSetCookie()[0]).toMatch(
      /^sluice_app\.p\d=1\.[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/,
    );
  });

  test("redirects without a challenge when PKCE is off", async () => {
    await world.configure({ pkce: false, scopes: ["openid"] });
    const url = new URL(await world.begin("/page", new Jar()));
    expect(url.searchParams.has("code_challenge")).toBe(false);
    expect(url.searchParams.get("scope")).toBe("openid");
  });

  test.each([
    ["JSON is wanted", "GET", { Accept: "application/json, text/plain, */*" }],
    ["an image is wanted", "GET", { Accept: "image/png" }],
    ["it is an XMLHttpRequest", "GET", { "X-Requested-With": "XMLHttpRequest" }],
    ["a script asks", "GET", { "Sec-Fetch-Mode": "cors", Accept: "*/*" }],
    ["it is a POST", "POST", { Accept: "text/html" }],
    ["it is a PUT", "PUT", {}],
  ])("is a 401 when %s", async (_, method, headers) => {
    const answer = await world.scene.send(method, "/", {
      headers: headers as Record<string, string>,
    });
    expect(answer).toMatchObject({ status: 401, seen: null });
    expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="sluice"');
    expect(answer.headers.has("location")).toBe(false);
  });

  test.each([
    [{ Accept: "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8" }],
    [{ "Sec-Fetch-Mode": "navigate", Accept: "text/html" }],
    [{}],
  ])("gets one with %o", async (headers) => {
    expect((await world.scene.get("/", headers as Record<string, string>)).status).toBe(302);
  });

  test("is refused when configured", async () => {
    await world.configure({ unauth_action: "deny", realm: "r" });
    const { status, headers } = await world.scene.get("/");
    expect(status).toBe(401);
    expect(headers.get("www-authenticate")).toBe('Bearer realm="r"');
  });

  test("passes when configured, without identity headers of the client", async () => {
    await world.configure({ unauth_action: "pass" });
    const { status, seen } = await world.scene.get("/", {
      "X-Auth-User": "root",
      X_Auth_User: "root",
      Cookie: "a=1; sluice_app=1.x; __Host-sluice_app=1.x; sluice_app.1=y; sluice_app.p0=z",
    });
    expect(status).toBe(200);
    for (const name of ["x-auth-user", "x_auth_user"])
      expect(seen?.headers).not.toHaveProperty(name);
    expect(seen?.headers["cookie"]).toBe("a=1");
  });

  test("uses the anonymous consumer when configured", async () => {
    await world.configure({ anonymous_consumer: "guest" });
    const { seen } = await world.scene.get("/");
    expect(seen?.headers["x-consumer-username"]).toBe("guest");
  });

  test("is an error while the provider is down", async () => {
    world.provider.intercept = () => new Response("no", { status: 500 });
    const { status, headers, body } = await world.scene.get("/");
    expect(status).toBe(503);
    expect(headers.has("location")).toBe(false);
    expect(body).not.toContain(world.provider.issuer);
    // Not one question for each request.
    const { length } = world.provider.asked;
    await world.scene.get("/");
    expect(world.provider.asked).toHaveLength(length);
  });

  test.each([
    ["is another issuer's", { issuer: "https://evil.example" }],
    ["leads to plain http", { token_endpoint: "http://id.example/token" }],
    ["lacks the keys", { jwks_uri: null }],
  ])("is an error when the provider's document %s", async (_, document) => {
    world.provider.document = document;
    expect((await world.scene.get("/")).status).toBe(503);
  });
});

test("a client allowed by a policy cannot send identity headers either", async () => {
  const rules = [{ name: "all", when: {}, action: "allow" }];
  await world.scene.apply({ plugins: [{ name: "access-policy", config: { rules } }] });
  const { status, seen } = await world.scene.get("/", {
    "X-Auth-User": "root",
    Cookie: "sluice_app=1.x",
  });
  expect(status).toBe(200);
  for (const name of ["x-auth-user", "cookie"]) expect(seen?.headers).not.toHaveProperty(name);
  await world.scene.apply({ removedPlugins: ["access-policy"] });
});

describe("logout", () => {
  test("ends the session for copies of the cookie, too", async () => {
    const jar = new Jar();
    await world.signIn(jar);
    const copy = { ...jar.header };
    expect((await world.scene.get("/", copy)).status).toBe(200);
    const { status, body } = await world.get(LOGOUT, jar);
    expect(status).toBe(200);
    expect(body).toContain("logged out");
    expect(jar.cookies.size).toBe(0);
    expect((await world.scene.get("/", copy)).status).toBe(302);
  });

  test("continues to the provider, and from there to the configured page", async () => {
    const { issuer } = world.provider;
    const after = "https://www.example.com/bye";
    world.provider.document = { end_session_endpoint: `${issuer}/end?x=1` };
    await world.configure({ post_logout_redirect_uri: after });
    const jar = new Jar();
    await world.signIn(jar);
    const url = new URL((await world.get(LOGOUT, jar)).headers.get("location") ?? "");
    expect(url.pathname).toBe("/end");
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      x: "1",
      client_id: "sluice",
      post_logout_redirect_uri: after,
    });
    expect(url.searchParams.get("id_token_hint")).toStartWith("ey");
    world.provider.document = {};
    await world.configure({ post_logout_redirect_uri: after, realm: "other" });
    expect((await world.scene.get(LOGOUT)).headers.get("location")).toBe(after);
  });
});

describe("invalid settings", () => {
  test.each([
    ["issuer", { issuer: "http://id.example.com" }],
    ["issuer", { issuer: "https://id.example.com/?x" }],
    ["scopes", { scopes: ["profile"] }],
    ["scopes[1]", { scopes: ["openid", "a b"] }],
    ["redirect_path", { redirect_path: "//evil.example" }],
    ["redirect_path", { redirect_path: "/" }],
    ["logout_path", { logout_path: CALLBACK }],
    ["session.idle", { session: { idle: 10, absolute: 5 } }],
    ["headers.Host", { headers: { Host: "email" } }],
    ["headers.a b", { headers: { "a b": "email" } }],
  ])("%s", (path, config) => {
    const own = decode(oidc.config, {
      issuer: "https://id.example.com",
      client_id: "x",
      ...config,
    });
    expect(oidc.check?.(own as never).map((problem) => problem.path)).toContain(path);
  });

  test("that of the example is valid", () => {
    expect(oidc.check?.(decode(oidc.config, oidc.example) as never)).toEqual([]);
  });
});
