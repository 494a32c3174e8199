// forward-auth on a real data plane with a real server that decides: what it learns, what passes, what the client gets.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import forwardAuth from "../../../src/plugins/forward-auth.ts";
import { freePort } from "../../support/data-plane.ts";
import { decode } from "../../../src/model/decode.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { pluginScene, type PluginScene, type Seen } from "../../support/plugin-scene.ts";

let scene: PluginScene;
let decider: Bun.Server<undefined>;
let asked: Seen[] = [];
let answer: (request: Request) => Response | Promise<Response> = () => new Response();

const url = (path = "/") => `http://127.0.0.1:${decider.port}${path}`;
const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "forward-auth", config: { url: url(), ...config } }] });

beforeAll(async () => {
  decider = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      asked.push({
        method: request.method,
        target: pathname + search,
        headers: Object.fromEntries(request.headers),
        body: await request.clone().text(),
      });
      return answer(request);
    },
  });
  scene = await pluginScene({
    plugins: [{ name: "forward-auth", config: { url: url() } }],
    consumers: [{ username: "guest" }],
    answer: () => new Response("ok", { headers: { "Set-Cookie": "app=1", "X-App": "1" } }),
  });
});
afterAll(async () => {
  await scene.stop();
  await decider.stop(true);
});
beforeEach(() => {
  asked = [];
  answer = () => new Response();
});

describe("the authorization server", () => {
  test("gets the client's credentials and request, nothing else", async () => {
    await configure({});
    const { status } = await scene.send("POST", "/a%20b?c=d&e", {
      headers: { Authorization: "Bearer x", Cookie: "s=1", "X-Own": "1", Accept: "text/html" },
      body: "secret",
    });
    expect(status).toBe(200);
    const [seen] = asked;
    expect(seen).toMatchObject({ method: "GET", target: "/", body: "" });
    expect(seen?.headers).toMatchObject({
      authorization: "Bearer x",
      cookie: "s=1",
      "x-forwarded-method": "POST",
      "x-forwarded-proto": "http",
      "x-forwarded-host": new URL(scene.plane.url).host,
      "x-forwarded-uri": "/a%20b?c=d&e",
      "x-forwarded-for": "127.0.0.1",
    });
    expect(seen?.headers).not.toHaveProperty("x-own");
    expect(seen?.headers["accept"]).not.toBe("text/html");
  });

  test("receives no forged origin or request line", async () => {
    await configure({});
    await scene.get("/real", {
      "X-Forwarded-For": "10.0.0.1",
      "X-Forwarded-Uri": "/public",
      "X-Forwarded-Host": "evil.example",
      "X-Forwarded-Proto": "https",
      "X-Forwarded-Method": "OPTIONS",
    });
    expect(asked[0]?.headers).toMatchObject({
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-uri": "/real",
      "x-forwarded-host": new URL(scene.plane.url).host,
      "x-forwarded-proto": "http",
      "x-forwarded-method": "GET",
    });
  });

  test("receives the client address of a trusted proxy", async () => {
    await scene.apply({ listener: { trusted_proxies: ["127.0.0.1"] } });
    await configure({});
    await scene.get("/", {
      "X-Forwarded-For": "203.0.113.9",
      "X-Forwarded-Host": "app.example",
      "X-Forwarded-Proto": "https",
    });
    expect(asked[0]?.headers).toMatchObject({
      "x-forwarded-for": "203.0.113.9",
      "x-forwarded-host": "app.example",
      "x-forwarded-proto": "https",
    });
    await scene.apply({ listener: { trusted_proxies: [] } });
  });

  test("gets no X-Forwarded-* if so set, and other fields, method and path", async () => {
    await configure({
      url: url("/check?x=1"),
      method: "POST",
      send_x_forwarded: false,
      request_headers: ["X-Own"],
    });
    await scene.get("/", { "X-Own": "1", Authorization: "Bearer x" });
    const [seen] = asked;
    expect(seen).toMatchObject({ method: "POST", target: "/check?x=1" });
    expect(seen?.headers["x-own"]).toBe("1");
    expect(seen?.headers).not.toHaveProperty("authorization");
    expect(Object.keys(seen?.headers ?? {}).filter((name) => name.startsWith("x-forw"))).toEqual(
      [],
    );
  });

  test("does not receive fields that the client names in Connection", async () => {
    await configure({});
    const { port } = scene.plane;
    await exchange(
      "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nCookie: s=1\r\nConnection: close, Authorization\r\n\r\n",
      { port },
    );
    expect(asked[0]?.headers).toHaveProperty("cookie", "s=1");
    expect(asked[0]?.headers).not.toHaveProperty("authorization");
  });

  test("gets the body only when configured, and the target gets it too", async () => {
    await configure({ method: "POST", forward_body: true, max_body: 5 });
    const headers = { "Content-Type": "text/x-own" };
    const fits = await scene.send("PUT", "/", { headers, body: "12345" });
    expect(asked[0]).toMatchObject({ method: "POST", body: "12345" });
    expect(asked[0]?.headers["content-type"]).toBe("text/x-own");
    expect(fits.seen).toMatchObject({ method: "PUT", body: "12345" });
    const tooLong = await scene.send("PUT", "/", { headers, body: "123456" });
    expect(tooLong).toMatchObject({ status: 413, seen: null });
    expect(asked).toHaveLength(1);
    expect((await scene.get("/")).status).toBe(200);
  });
});

describe("an allowed request", () => {
  test.each([200, 202, 204, 299])("passes with %d", async (status) => {
    await configure({});
    answer = () => new Response(null, { status });
    expect((await scene.get("/")).status).toBe(200);
  });

  test("carries the listed fields, and never the client's own under these names", async () => {
    await configure({ response_headers_to_upstream: ["X-User", "X-Groups", "X-None"] });
    answer = () =>
      new Response(null, { headers: { "X-User": "ann", "X-Groups": "a,b", "X-Z": "1" } });
    const { seen } = await scene.get("/", {
      "X-User": "root",
      X_User: "root",
      "X-None": "root",
      x_none: "root",
      "X-Groups": "admins",
    });
    expect(seen?.headers).toMatchObject({
      "x-user": "ann",
      "x-groups": "a,b",
      "x-credential-identifier": "ann",
    });
    for (const name of ["x-none", "x_none", "x_user", "x-z"])
      expect(seen?.headers).not.toHaveProperty(name);
  });

  test("keeps the fields even when the client names them in Connection", async () => {
    await configure({ response_headers_to_upstream: ["X-User"] });
    answer = () => new Response(null, { headers: { "X-User": "ann" } });
    const before = scene.requests.length;
    await exchange(
      "GET / HTTP/1.1\r\nHost: a\r\nX-User: root\r\nConnection: close, X-User\r\n\r\n",
      { port: scene.plane.port },
    );
    expect(scene.requests[before]?.headers["x-user"]).toBe("ann");
  });

  test("returns the cookies of both responses to the client", async () => {
    await configure({});
    answer = () => {
      const headers = new Headers({ Location: "/elsewhere" });
      headers.append("Set-Cookie", "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT");
      headers.append("Set-Cookie", "b=2");
      return new Response(null, { headers });
    };
    const { headers } = await scene.get("/");
    expect(headers.getSetCookie().sort()).toEqual([
      "a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
      "app=1",
      "b=2",
    ]);
    expect(headers.has("location")).toBe(false);
  });

  test("keeps its Authorization unless that is hidden", async () => {
    await configure({});
    const headers = { Authorization: "Bearer x", Cookie: "a=1" };
    expect((await scene.get("/", headers)).seen?.headers).toMatchObject({
      authorization: "Bearer x",
      cookie: "a=1",
    });
    await configure({ hide_credentials: true });
    const { seen } = await scene.get("/", headers);
    expect(seen?.headers).not.toHaveProperty("authorization");
    expect(seen?.headers["cookie"]).toBe("a=1");
  });
});

describe("a rejected request", () => {
  test("gets the other server's response", async () => {
    await configure({});
    answer = () => {
      const headers = new Headers({ Location: "https://login.example/?rd=x", "X-Own": "1" });
      headers.append("Set-Cookie", "a=1");
      headers.append("Set-Cookie", "b=2");
      headers.set("Content-Type", "text/html; charset=utf-8");
      return new Response("<p>Sign in", { status: 302, headers });
    };
    const { status, headers, body, seen } = await scene.get("/");
    expect({ status, body, seen }).toEqual({ status: 302, body: "<p>Sign in", seen: null });
    expect(headers.get("location")).toBe("https://login.example/?rd=x");
    expect(headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.has("x-own")).toBe(false);
  });

  test.each([300, 304, 400, 401, 403, 404, 429, 500, 503])("with %d", async (status) => {
    await configure({});
    answer = () =>
      new Response(status === 304 ? null : "no", {
        status,
        headers: { "WWW-Authenticate": "Basic" },
      });
    const given = await scene.get("/");
    expect(given).toMatchObject({ status, seen: null });
    expect(given.headers.get("www-authenticate")).toBe("Basic");
  });

  test("gets the listed fields, and never hop-by-hop ones of the other server", async () => {
    await configure({ response_headers_to_client: ["X-A", "X-B"] });
    answer = () =>
      new Response("no", {
        status: 403,
        headers: { "X-A": "1", "X-B": "1", Connection: "X-B", "Set-Cookie": "a=1" },
      });
    const { headers } = await scene.get("/");
    expect(headers.get("x-a")).toBe("1");
    expect(headers.has("x-b")).toBe(false);
    expect(headers.has("set-cookie")).toBe(false);
  });

  test("gets a compressed response decompressed", async () => {
    await configure({ response_headers_to_client: ["Content-Type"] });
    answer = () =>
      new Response(Bun.gzipSync("not you"), {
        status: 403,
        headers: { "Content-Encoding": "gzip" },
      });
    const { body, headers } = await scene.get("/");
    expect(body).toBe("not you");
    expect(headers.has("content-encoding")).toBe(false);
  });

  test("uses the anonymous consumer when configured", async () => {
    await configure({ anonymous_consumer: "guest" });
    answer = () => new Response("no", { status: 401 });
    const { status, seen } = await scene.get("/", { "X-Consumer-Username": "root" });
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({
      "x-consumer-username": "guest",
      "x-anonymous-consumer": "true",
    });
  });
});

describe("without a response", () => {
  const gone = () => `http://127.0.0.1:${freePort()}/`;

  test("requests get 503, or the configured status", async () => {
    await configure({ url: gone() });
    const { status, headers, body, seen } = await scene.get("/");
    expect({ status, seen }).toEqual({ status: 503, seen: null });
    expect(headers.get("proxy-status")).toStartWith("sluice; error=proxy_internal_response");
    expect(body).not.toContain("refused the connection");
    await configure({ url: gone(), status_on_error: 500 });
    expect((await scene.get("/")).status).toBe(500);
  });

  test("or pass with fail_open, without identity headers of the client", async () => {
    await configure({ url: gone(), fail_open: true, response_headers_to_upstream: ["X-User"] });
    const { status, seen } = await scene.get("/", { "X-User": "root" });
    expect(status).toBe(200);
    expect(seen?.headers).not.toHaveProperty("x-user");
  });

  test("that is complete in time, too", async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    answer = () => promise;
    await configure({ timeout: 50 });
    expect((await scene.get("/")).status).toBe(503);
    resolve(new Response());
  });

  test("rejections of the other server are responses: fail_open does not override them", async () => {
    await configure({ fail_open: true });
    for (const status of [401, 403, 500, 503]) {
      answer = () => new Response("no", { status });
      expect((await scene.get("/")).status).toBe(status);
    }
  });
});

describe("cached responses", () => {
  const caching = { cache_ttl: 60, cache_key: ["header:Authorization", "cookie:s"] };

  test("avoid calls, for the same client and the same request only", async () => {
    await configure({ ...caching, response_headers_to_upstream: ["X-User"] });
    let count = 0;
    answer = () => new Response(null, { headers: { "X-User": `u${++count}` } });
    const user = async (path: string, headers: Record<string, string>) =>
      (await scene.get(path, headers)).seen?.headers["x-user"];
    expect(await user("/a", { Authorization: "1" })).toBe("u1");
    expect(await user("/a", { Authorization: "1" })).toBe("u1");
    expect(await user("/a", { Authorization: "2" })).toBe("u2");
    expect(await user("/b", { Authorization: "1" })).toBe("u3");
    expect(await user("/a?x", { Authorization: "1" })).toBe("u4");
    expect(await user("/a", { Authorization: "1", Cookie: "s=1" })).toBe("u5");
    expect(await user("/a", { Authorization: "1", Cookie: "s=1; other=2" })).toBe("u5");
    expect(await user("/a", { Authorization: "1" })).toBe("u1");
  });

  test("never belong to clients without credentials", async () => {
    await configure(caching);
    await scene.get("/");
    await scene.get("/");
    expect(asked).toHaveLength(2);
  });

  test.each([
    ["a refusal", () => new Response("no", { status: 403 })],
    ["a cookie", () => new Response(null, { headers: { "Set-Cookie": "a=1" } })],
  ])("are not stored with %s", async (_, given) => {
    await configure(caching);
    answer = given;
    await scene.get("/", { Authorization: "1" });
    await scene.get("/", { Authorization: "1" });
    expect(asked).toHaveLength(2);
  });
});

describe("a preset", () => {
  test.each([
    ["authelia", "/api/authz/forward-auth", "Remote-User"],
    ["authentik", "/outpost.goauthentik.io/auth/traefik", "X-authentik-username"],
    ["oauth2-proxy", "/oauth2/auth", "X-Auth-Request-Email"],
  ])("%s sets the path and the fields", async (preset, path, field) => {
    await configure({ preset });
    answer = () => new Response(null, { headers: { [field]: "ann" } });
    const { seen } = await scene.get("/", {
      Accept: "text/html",
      [field]: "root",
      [field.replaceAll("-", "_")]: "root",
    });
    expect(asked[0]?.target).toBe(path);
    expect(asked[0]?.headers["accept"]).toBe("text/html");
    expect(seen?.headers[field.toLowerCase()]).toBe("ann");
    expect(seen?.headers).not.toHaveProperty(field.toLowerCase().replaceAll("-", "_"));
  });

  test("yields to explicit settings", async () => {
    await configure({
      preset: "authelia",
      url: url("/own"),
      response_headers_to_upstream: ["X-User"],
    });
    answer = () => new Response(null, { headers: { "X-User": "ann", "Remote-User": "ann" } });
    const { seen } = await scene.get("/");
    expect(asked[0]?.target).toBe("/own");
    expect(seen?.headers["x-user"]).toBe("ann");
    expect(seen?.headers).not.toHaveProperty("remote-user");
  });
});

test("preflight requests pass without a call, and without identity headers of the client", async () => {
  const headers = {
    Origin: "https://a.example",
    "Access-Control-Request-Method": "PUT",
    "X-User": "root",
  };
  await configure({ response_headers_to_upstream: ["X-User"] });
  answer = () => new Response("no", { status: 401 });
  const { status, seen } = await scene.send("OPTIONS", "/", { headers });
  expect(status).toBe(200);
  expect(seen?.headers).not.toHaveProperty("x-user");
  await configure({ run_on_preflight: true });
  expect((await scene.send("OPTIONS", "/", { headers })).status).toBe(401);
});

test("a client allowed by a policy cannot send identity headers either", async () => {
  await configure({ response_headers_to_upstream: ["X-User"] });
  const rules = [{ name: "all", when: {}, action: "allow" }];
  await scene.apply({ plugins: [{ name: "access-policy", config: { rules } }] });
  const { status, seen } = await scene.get("/", { "X-User": "root", X_User: "root" });
  expect({ status, asked }).toEqual({ status: 200, asked: [] });
  for (const name of ["x-user", "x_user"]) expect(seen?.headers).not.toHaveProperty(name);
  await scene.apply({ removedPlugins: ["access-policy"] });
});

test("bytes above 127 in response headers arrive unchanged", async () => {
  await configure({ response_headers_to_upstream: ["X-User"] });
  answer = () => new Response(null, { headers: { "X-User": "J\u00c3\u00b6rg \u0080" } });
  expect((await scene.get("/")).seen?.headers["x-user"]).toBe("J\u00c3\u00b6rg \u0080");
});

describe("invalid settings", () => {
  test.each([
    ["a body with GET", { forward_body: true }, "forward_body"],
    ["a memory without a key", { cache_ttl: 1 }, "cache_key"],
    ["a key that leaves a field out", { cache_ttl: 1, cache_key: ["cookie:s"] }, "cache_key"],
    [
      "a memory with bodies",
      {
        cache_ttl: 1,
        method: "POST",
        forward_body: true,
        cache_key: ["header:Authorization", "header:Cookie"],
      },
      "cache_ttl",
    ],
    ["a field of the gateway", { request_headers: ["X-Forwarded-For"] }, "request_headers[0]"],
    ["the same in disguise", { request_headers: ["X_Forwarded_Uri"] }, "request_headers[0]"],
    [
      "Host upstream",
      { response_headers_to_upstream: ["Host"] },
      "response_headers_to_upstream[0]",
    ],
    [
      "framing",
      { response_headers_to_client: ["X", "Transfer-Encoding"] },
      "response_headers_to_client[1]",
    ],
  ])("%s", (_, config, path) => {
    const own = decode(forwardAuth.config, { url: "http://127.0.0.1:1", ...config });
    const found = forwardAuth.check?.(own as never) ?? [];
    expect(found.map((problem) => problem.path)).toContain(path);
  });

  test("those of the examples are valid", () => {
    const ok = { cache_ttl: 60, cache_key: ["header:authorization", "cookie:s"] };
    for (const config of [forwardAuth.example, { url: "http://a", ...ok }])
      expect(forwardAuth.check?.(decode(forwardAuth.config, config) as never)).toEqual([]);
  });
});
