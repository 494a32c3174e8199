// response-cache and those who want others to be given what they have shaped, or to see what others were given.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { hashToken } from "../../../src/crypto/token.ts";
import { testedEngine } from "../../support/engines.ts";
import type { SceneAnswer } from "../../support/plugin-scene.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { type CacheScene, cacheScene, fresh, wordOf } from "./cache-scene.ts";

let cache: CacheScene;

beforeAll(async () => {
  cache = await cacheScene(
    {},
    {
      consumers: [{ username: "alice" }],
      credentials: [{ type: "key", consumerId: "alice", hash: hashToken("a") }],
    },
  );
});
afterAll(() => cache.scene.stop());
beforeEach(async () => {
  await cache.use({});
  // Shows everything that an application could put into a page.
  cache.answer = (request) => fresh(JSON.stringify([request.url, [...request.headers]]));
});

const INJECTED = "evil.example";

describe("a field outside the cache key cannot shape a response for others", () => {
  test.each([
    ...["X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix"],
    ...["X-Forwarded-Server", "X-Forwarded-Scheme", "X-Forwarded-Ssl", "X-Forwarded-For"],
    ...["X-Real-IP", "Forwarded", "X-Host", "X-Original-Host", "X-Original-URL", "X-Rewrite-URL"],
    ...["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Uri"],
    ...["X_Forwarded_Host", "X_HTTP_Method_Override", "X_Original_URL", "Max-Forwards"],
    ...["X-Consumer-Username", "Client-Cert"],
  ])("%s", async (name) => {
    const path = `/probe-${name}`;
    await cache.get(path, { [name]: INJECTED });
    const victim = await cache.get(path);
    expect(victim.body).not.toContain(INJECTED);
    expect((await cache.get(path, { [name]: INJECTED })).status).toBe(200);
  });

  test("X-Forwarded-* of a trusted proxy are part of the key", async () => {
    const scene = await cacheScene({}, { listener: { trusted_proxies: ["127.0.0.0/8"] } });
    scene.answer = (request) => fresh(JSON.stringify([...request.headers]));
    for (const name of ["X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix"]) {
      const value = name.endsWith("Port") ? "4444" : INJECTED;
      await scene.get("/t", { [name]: value });
      expect((await scene.get("/t")).body).not.toContain(value);
    }
    // The usual port of the protocol is another one than the listener's.
    for (const word of ["MISS", "HIT"])
      for (const protocol of ["https", "http"])
        expect(wordOf(await scene.get("/t", { "X-Forwarded-Proto": protocol }))).toBe(word);
    await scene.scene.stop();
  });
});

test.each(["h.test:1234", "H.TEST", "h.test.", "other.test"])(
  "a Host of %s is not the host without",
  async (host) => {
    cache.answer = ({ headers }) => fresh(headers.get("x-forwarded-host") ?? "");
    await cache.get("/host", { Host: host });
    expect((await cache.get("/host", { Host: "h.test" })).body).toBe("h.test");
    await cache.use({});
  },
);

describe("a redirect to the target's own address, which gets the client's,", () => {
  const redirectOf = async (host: string) => {
    const { headers } = await cache.get("/moved", { Host: host });
    return [wordOf({ headers } as SceneAnswer), headers.get("location"), headers.get("refresh")];
  };
  const to = (host: string) => [`http://${host}/new`, `1; url=http://${host}/new`];
  beforeEach(() => {
    const own = `http://127.0.0.1:${cache.scene.originPort}/new`;
    cache.answer = () => fresh("", { Location: own, Refresh: `1; url=${own}` });
  });

  test("is stored for each host and port that clients send", async () => {
    for (const word of ["MISS", "HIT"])
      for (const host of ["h.test", "h.test:666", "H.test", INJECTED])
        expect(await redirectOf(host)).toEqual([word, ...to(host)]);
  });

  test("is not stored where the host is no part of the key", async () => {
    await cache.use({ key: { host: false } });
    for (const host of [INJECTED, "h.test", "H.TEST:666", "h.test"])
      expect(await redirectOf(host)).toEqual(["MISS", ...to(host)]);
  });
});

test("an allowed origin is part of the variant", async () => {
  cache.answer = ({ headers }) =>
    fresh("x", { "Access-Control-Allow-Origin": headers.get("origin") ?? "none" });
  await cache.get("/cors", { Origin: "https://evil.example" });
  const other = await cache.get("/cors", { Origin: "https://good.example" });
  expect(other.headers.get("access-control-allow-origin")).toBe("https://good.example");
});

test("responses with file-like paths are stored no more than others", async () => {
  cache.answer = ({ headers }) =>
    new Response(`account of ${headers.get("cookie")}`, {
      headers: { "Content-Type": "text/html" },
    });
  for (const config of [{}, { ttl_default: 60 }]) {
    await cache.use(config);
    for (const path of [
      "/account/x.css",
      "/account;x.css",
      "/account%0Ax.css",
      "/account%2Fx.css",
    ]) {
      await cache.get(path, { Cookie: "session=alice" });
      expect((await cache.get(path)).body).not.toContain("alice");
    }
  }
});

test("a page with no-cache that the service validates by its time only is not another user's", async () => {
  const changed = { "Cache-Control": "no-cache", "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT" };
  cache.answer = ({ headers }) =>
    headers.has("if-modified-since")
      ? new Response(null, { status: 304 })
      : new Response(`account of ${headers.get("cookie")}`, { headers: changed });
  await cache.use({ stale_if_error: 60, stale_while_revalidate: 60 });
  await cache.get("/profile", { Cookie: "session=alice" });
  expect((await cache.get("/profile", { Cookie: "session=bob" })).body).toContain("bob");
  expect((await cache.get("/profile")).body).not.toContain("alice");
});

test.each([
  ["/a/b", "/a//b"],
  ["/a/b", "/a%2Fb"],
  ["/a/b", "/a/b;x"],
  ["/a/b", "/a/b/"],
  ["/a/b", "/A/b"],
])("%s and %s may differ, and %#", async (one, other) => {
  await cache.get(one);
  const answer = await cache.get(other);
  expect([wordOf(answer), answer.seen?.target]).toEqual(["MISS", other]);
});

test("paths that all servers read alike are one", async () => {
  expect(await cache.words("/canon/abc")).toEqual(["MISS", "HIT"]);
  expect(await cache.words("/canon/%61bc", {}, 1)).toEqual(["HIT"]);
  expect(await cache.words("/canon/x/../abc", {}, 1)).toEqual(["HIT"]);
});

describe("ignored parameters", () => {
  test.each([
    "utm_source=x;callback=evil",
    "utm_source=x&callback=evil",
    "utm_source=x%26callback=evil",
    "utm%5Fsource=evil",
    "utm_source=1&utm_source=evil",
    "utm_source",
    "callback=evil",
  ])("hide nothing: %s", async (query) => {
    await cache.use({ key: { query_exclude: ["utm_source"] } });
    await cache.get(`/js?a=1&${query}`);
    const victim = await cache.get("/js?a=1");
    expect(victim.body).not.toContain("evil");
  });

  test("of two with one name both count", async () => {
    await cache.get("/two?q=1&q=evil");
    expect((await cache.get("/two?q=1")).body).not.toContain("evil");
    await cache.use({ key: { query_include: ["q"] } });
    await cache.get("/two?q=1&q=evil");
    expect((await cache.get("/two?q=1")).body).not.toContain("evil");
  });
});

test("a GET with a body never fills the cache for others", async () => {
  const { plane } = cache.scene;
  const body = "q=evil";
  const fat = `GET /fat HTTP/1.1\r\nHost: h.test\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;
  const answer = await sendRaw(fat, { port: plane.port });
  expect(answer).toMatch(testedEngine === "bun" ? /^HTTP\/1.1 400 / : /X-Cache-Status: BYPASS/);
  const victim = await cache.get("/fat", { Host: "h.test" });
  expect([wordOf(victim), victim.body.includes("evil")]).toEqual(["MISS", false]);
});

test("an error that an unusual request causes is not stored", async () => {
  const codes = [400, 405, 413, 414, 416, 421, 431, 500, 501, 502];
  cache.answer = ({ headers }) => {
    const status = Number(headers.get("x-odd") ?? 200);
    return new Response("x", { status, headers: { "Cache-Control": "max-age=60" } });
  };
  await cache.use({ ttl_default: 60 });
  for (const status of codes) {
    expect((await cache.get("/cpdos", { "X-Odd": String(status) })).status).toBe(status);
    const path = `/cpdos-${status}`;
    await cache.get(path, { "X-Odd": String(status), "X-Big": "a".repeat(8000) });
    expect((await cache.get(path)).status).toBe(200);
  }
});

test("rejections of the gateway are not stored", async () => {
  const huge = await cache.get("/refused", { "X-Big": "a".repeat(20_000) });
  expect(huge.status).toBe(431);
  expect((await cache.get("/refused")).status).toBe(200);
});

test("an authenticated client without a consumer does not share with anonymous ones", async () => {
  cache.answer = ({ headers }) => fresh(headers.get("x-credential-identifier") ?? "nobody");
  const authority = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ headers }) => {
      const name = headers.get("cookie") ?? "";
      return new Response(null, name === "" ? {} : { headers: { "X-User": name } });
    },
  });
  await cache.scene.apply({
    plugins: [
      {
        name: "forward-auth",
        config: {
          url: `http://127.0.0.1:${authority.port}`,
          response_headers_to_upstream: ["X-User"],
        },
      },
      { name: "response-cache" },
    ],
  });
  const as = async (cookie: string) =>
    (await cache.get("/who", cookie === "" ? {} : { Cookie: cookie })).body;
  expect([await as("ann"), await as("ben"), await as(""), await as("ann")]).toEqual([
    "ann",
    "ben",
    "nobody",
    "ann",
  ]);
  await cache.scene.apply({ removedPlugins: ["forward-auth"] });
  await authority.stop(true);
});

test("a hit is only for clients that the plugins before it allow", async () => {
  await cache.scene.apply({
    plugins: [
      { name: "key-auth" },
      { name: "response-cache", config: { key: { consumer: false } } },
    ],
  });
  expect((await cache.get("/in", { "X-API-Key": "a" })).status).toBe(200);
  expect((await cache.get("/in")).status).toBe(401);
  await cache.scene.apply({
    plugins: [
      { name: "ip-restriction", priority: 100, config: { deny: ["127.0.0.1"] } },
      { name: "response-cache", config: { key: { consumer: false } } },
    ],
  });
  expect((await cache.get("/in", { "X-API-Key": "a" })).status).toBe(403);
  await cache.scene.apply({ removedPlugins: ["key-auth", "ip-restriction"] });
});

test("routes that differ by more than host and path share nothing", async () => {
  const { originPort } = cache.scene;
  cache.answer = ({ url, headers }) => fresh(`${headers.get("x-beta") ?? "old"} ${url}`);
  await cache.scene.apply({
    services: [{ name: "beta", targets: [{ port: originPort }] }],
    routes: [
      { name: "beta", service_id: "beta", headers: [{ name: "X-Beta", op: "equals", value: "1" }] },
    ],
  });
  expect((await cache.get("/app", { "X-Beta": "1" })).body).toStartWith("1 ");
  expect((await cache.get("/app")).body).toStartWith("old ");
  await cache.scene.apply({ removedRoutes: ["beta"] });
});

test("a client's choice of a service does not affect others", async () => {
  const beta = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => fresh("beta") });
  cache.answer = () => fresh("stable");
  await cache.scene.apply({
    services: [{ name: "beta", targets: [{ port: beta.port ?? 0 }] }],
    plugins: [
      { name: "response-cache" },
      {
        name: "traffic-split",
        config: {
          rules: [
            { when: { cookie: { beta: "1" } }, targets: [{ service_id: "beta" }] },
            { targets: [{ service_id: "web" }, { service_id: "beta", weight: 0 }] },
          ],
          sticky: {},
        },
      },
    ],
  });
  const seen = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await cache.get(path, headers);
    return [answer.body, wordOf(answer)];
  };
  for (const [path, chooser] of [
    ["/wish", { "X-Sluice-Split": "beta" }],
    ["/cookie", { Cookie: "beta=1" }],
  ] as const) {
    expect(await seen(path, chooser)).toEqual(["beta", "MISS"]);
    expect(await seen(path)).toEqual(["stable", "MISS"]);
    expect(await seen(path, chooser)).toEqual(["beta", "HIT"]);
    expect(await seen(path)).toEqual(["stable", "HIT"]);
  }
  // A client's first stored response sets the sticky cookie, which is not stored.
  const cookies = [await cache.get("/cookie"), await cache.get("/cookie", { Cookie: "a=b" })];
  for (const { headers } of cookies) expect(headers.get("set-cookie")).toContain("sluice_split=");
  await cache.scene.apply({ removedPlugins: ["traffic-split"] });
  await beta.stop(true);
});

test("part of a response that a plugin changes is not sent unchanged", async () => {
  cache.answer = () => fresh("public secret", { "Content-Type": "text/plain", ETag: '"v1"' });
  await cache.scene.apply({
    plugins: [
      { name: "response-cache", config: { stale_if_error: 60 } },
      {
        name: "transform",
        config: { response: { body_replace: [{ regex: "secret", with: "******" }] } },
      },
    ],
  });
  const parts = async () => {
    const answers: SceneAnswer[] = [];
    for (const Range of ["bytes=7-12", "bytes=-6", "bytes=99-"])
      answers.push(await cache.get("/whole", { Range }));
    return answers.map(({ status, body }) => [status, body]);
  };
  const whole = [200, "public ******"];
  expect(await parts()).toEqual([whole, whole, whole]);
  expect(wordOf(await cache.get("/whole"))).toBe("HIT");
  await cache.scene.apply({ removedPlugins: ["transform"] });
});

describe("responses that plugins change for one client are not for others", () => {
  const tenant = { path_rewrite: { regex: "^/t/(.*)$", to: "/${request.header.x-tenant}/$1" } };
  test.each([
    ["transform", { request: tenant }],
    ["transform", { request: { host: "${request.header.x-tenant}.test" } }],
    ["transform", { request: { query: { set: { tenant: "${request.header.x-tenant}" } } } }],
    ["transform", { response: { headers: { set: { "X-For": "${request.header.x-tenant}" } } } }],
    [
      "transform",
      { response: { body_replace: [{ regex: "$", with: "${request.header.x-tenant}" }] } },
    ],
    ["script", { source: "export const onRequest = (r) => r.setPath('/' + r.header('x-tenant'))" }],
    [
      "script",
      {
        source:
          "export const onResponse = (r, answer) => answer.setHeader('X-For', r.header('x-tenant'))",
      },
    ],
  ])("%s with %j", async (name, config) => {
    cache.answer = ({ url }) => fresh(url, { "Content-Type": "text/plain" });
    const plugins = [{ name: "response-cache" }, { name, config: config as never }];
    await cache.scene.apply({ plugins });
    const seen = async (own: string) => {
      const { body, headers } = await cache.get("/t/x", { "X-Tenant": own });
      return body + (headers.get("x-for") ?? "");
    };
    const [a, b] = [await seen("aaaa"), await seen("bbbb")];
    expect([a.includes("aaaa"), b.includes("bbbb"), b.includes("aaaa")]).toEqual([
      true,
      true,
      false,
    ]);
    expect([await seen("aaaa"), await seen("bbbb")]).toEqual([a, b]);
    expect(wordOf(await cache.get("/t/x", { "X-Tenant": "aaaa" }))).toBe("HIT");
    await cache.scene.apply({ removedPlugins: [name] });
  });

  test("a script runs for responses of the cache", async () => {
    const source = `export const onRequest = (request) => {
      if (request.header("x-ticket") === null) return request.reject(402, "no ticket", "no.ticket");
    }`;
    await cache.scene.apply({
      plugins: [{ name: "response-cache" }, { name: "script", config: { source } }],
    });
    expect((await cache.get("/show", { "X-Ticket": "1" })).status).toBe(200);
    expect((await cache.get("/show")).status).toBe(402);
    await cache.scene.apply({ removedPlugins: ["script"] });
  });

  test("an unsafe method never gets a stored response", async () => {
    cache.answer = ({ method }) => fresh(method);
    const config = { request: { method: "POST" } };
    await cache.scene.apply({
      plugins: [{ name: "response-cache" }, { name: "transform", config }],
    });
    const before = cache.scene.requests.length;
    for (let at = 0; at < 2; at++) expect((await cache.get("/method")).body).toBe("POST");
    expect(cache.scene.requests.length).toBe(before + 2);
    await cache.scene.apply({ removedPlugins: ["transform"] });
  });
});
