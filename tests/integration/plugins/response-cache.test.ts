// response-cache on a real data plane: storing, hits, cache keys, and every setting.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { hashToken } from "../../../src/crypto/token.ts";
import { type CacheScene, cacheScene, fresh, wordOf } from "./cache-scene.ts";

let cache: CacheScene;

beforeAll(async () => {
  cache = await cacheScene(
    {},
    {
      consumers: [{ username: "alice" }, { username: "bob" }],
      credentials: [
        { type: "key", consumerId: "alice", hash: hashToken("a") },
        { type: "key", consumerId: "bob", hash: hashToken("b") },
      ],
    },
  );
});
afterAll(() => cache.scene.stop());
beforeEach(async () => {
  cache.answer = () => fresh("ok");
  await cache.use({});
});

describe("a hit", () => {
  test("is the same response, with its age and its source", async () => {
    const body = "x".repeat(20_000);
    cache.answer = () =>
      fresh(body, { "Content-Type": "text/css", ETag: '"v1"', "X-Own": "1", Age: "3" });
    const first = await cache.get("/a.css");
    expect(first.headers.get("cache-status")).toMatch(/^sluice; fwd=uri-miss; stored; ttl=5\d$/);
    expect(wordOf(first)).toBe("MISS");
    const second = await cache.get("/a.css");
    expect(second).toMatchObject({ status: 200, body, seen: null });
    expect(Object.fromEntries(second.headers)).toMatchObject({
      "content-type": "text/css",
      "content-length": "20000",
      etag: '"v1"',
      "x-own": "1",
      "x-cache-status": "HIT",
    });
    expect(Number(second.headers.get("age"))).toBeGreaterThanOrEqual(3);
    expect(second.headers.get("cache-status")).toMatch(/^sluice; hit; ttl=5\d$/);
    expect(second.headers.get("date")).toBe(first.headers.get("date"));
  });

  test.each([
    ["nothing", 204, null],
    ["an error page", 404, "gone"],
    ["a redirect", 301, ""],
  ])("may be %s", async (_, status, body) => {
    cache.answer = () =>
      new Response(body, {
        status,
        headers: {
          "Cache-Control": "max-age=60",
          Location: "/there",
          "Content-Type": "text/plain",
        },
      });
    expect(await cache.words("/s")).toEqual(["MISS", "HIT"]);
    const hit = await cache.get("/s");
    expect([hit.status, hit.body]).toEqual([status, body ?? ""]);
  });

  test("has no Content-Type when there was none", async () => {
    cache.answer = () => fresh("plain");
    cache.answer = () => {
      const answer = new Response(new Blob(["bytes"]), {
        headers: { "Cache-Control": "max-age=9" },
      });
      answer.headers.delete("content-type");
      return answer;
    };
    const [first, second] = [await cache.get("/t"), await cache.get("/t")];
    expect(wordOf(second)).toBe("HIT");
    expect(second.headers.get("content-type")).toBe(first.headers.get("content-type"));
    expect(second.body).toBe("bytes");
  });

  test("answers HEAD, conditions and ranges", async () => {
    cache.answer = () =>
      fresh("0123456789", { ETag: '"v1"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT" });
    await cache.get("/r");
    const head = await cache.send("HEAD", "/r");
    expect([head.status, head.body, head.headers.get("content-length")]).toEqual([200, "", "10"]);
    const same = await cache.get("/r", { "If-None-Match": 'W/"v1"' });
    expect([same.status, same.body, same.headers.get("etag")]).toEqual([304, "", '"v1"']);
    expect(same.headers.has("content-length")).toBe(false);
    const since = await cache.get("/r", { "If-Modified-Since": "Sat, 21 Nov 2026 10:00:00 GMT" });
    expect(since.status).toBe(304);
    const part = await cache.get("/r", { Range: "bytes=2-4" });
    expect([part.status, part.body]).toEqual([206, "234"]);
    expect(part.headers.get("content-range")).toBe("bytes 2-4/10");
    expect(part.headers.get("content-length")).toBe("3");
    const none = await cache.get("/r", { Range: "bytes=10-" });
    expect([none.status, none.headers.get("content-range")]).toEqual([416, "bytes */10"]);
    // A cache behind this one must not keep it in the place of the whole.
    expect(none.headers.get("cache-control")).toBe("no-store");
    for (const name of ["etag", "last-modified", "content-type"])
      expect(none.headers.has(name)).toBe(false);
    const other = await cache.get("/r", { Range: "bytes=2-4", "If-Range": '"v0"' });
    expect([other.status, other.body]).toEqual([200, "0123456789"]);
    expect(cache.scene.requests.filter(({ target }) => target === "/r").length).toBe(1);
  });

  test.each(["bytes=2-4", "bytes=10-"])("ignores Range of HEAD: %s", async (Range) => {
    await cache.get("/h");
    const { status, headers } = await cache.send("HEAD", "/h", { headers: { Range } });
    expect([status, headers.get("content-range")]).toEqual([200, null]);
    expect(headers.get("content-length")).toBe("2");
  });

  test("keeps Cache-Status of earlier caches", async () => {
    cache.answer = () => fresh("x", { "Cache-Status": "inner; hit" });
    await cache.get("/n");
    const { headers } = await cache.get("/n");
    expect(headers.get("cache-status")).toMatch(/^inner; hit, sluice; hit; ttl=\d+$/);
  });
});

describe("the upstream request on a miss", () => {
  test("has no conditions, so that the response is storable", async () => {
    const { status, seen } = await cache.get("/whole", { "If-None-Match": '"v1"' });
    expect(status).toBe(200);
    expect(seen?.headers).not.toHaveProperty("if-none-match");
    expect(wordOf(await cache.get("/whole"))).toBe("HIT");
  });

  test("is unchanged where responses cannot be stored", async () => {
    cache.answer = () => new Response("x");
    await cache.get("/not");
    const { seen } = await cache.get("/not", { "If-None-Match": '"v1"' });
    expect(seen?.headers["if-none-match"]).toBe('"v1"');
  });
});

describe("not stored is", () => {
  test.each([
    ["what says nothing", {}],
    ["no-store", { "Cache-Control": "no-store" }],
    ["private", { "Cache-Control": "private, max-age=60" }],
    ["what sets a cookie", { "Cache-Control": "public, max-age=60", "Set-Cookie": "a=1" }],
    ["Vary: *", { "Cache-Control": "max-age=60", Vary: "*" }],
    ["what is too old already", { "Cache-Control": "max-age=60", Age: "61" }],
  ])("%s", async (what, headers) => {
    cache.answer = () => new Response("x", { headers });
    expect(await cache.words(`/${encodeURIComponent(what)}`)).toEqual(["MISS", "MISS"]);
  });

  test("a response to a request with Authorization, which gets none either", async () => {
    cache.answer = () => fresh("x", { "Cache-Control": "public, max-age=60" });
    await cache.get("/auth");
    expect(await cache.words("/auth", { Authorization: "Bearer x" })).toEqual(["BYPASS", "BYPASS"]);
  });
});

describe("the cache key contains", () => {
  test("the fields that Vary names, as they go upstream", async () => {
    cache.answer = ({ headers }) =>
      fresh(headers.get("accept-language") ?? "none", { Vary: "Accept-Language, Accept-Encoding" });
    const say = (language: string) => cache.get("/v", { "Accept-Language": language });
    expect((await say("de")).body).toBe("de");
    expect((await say("fr")).body).toBe("fr");
    const again = await say("de");
    expect([again.body, wordOf(again)]).toEqual(["de", "HIT"]);
    expect((await say("fr")).body).toBe("fr");
    expect(wordOf(await say("it"))).toBe("MISS");
  });

  test("the fields of vary_headers and of the key, and cookies of the key", async () => {
    await cache.use({ vary_headers: ["X-Device"], key: { headers: ["X-App"], cookies: ["lang"] } });
    const ask = async (headers: Record<string, string>) => wordOf(await cache.get("/k", headers));
    const base = { "X-Device": "tv", "X-App": "1", Cookie: "lang=de; other=1" };
    expect(await ask(base)).toBe("MISS");
    expect(await ask({ ...base, Cookie: "other=2; lang=de" })).toBe("HIT");
    expect(await ask({ ...base, "X-Device": "phone" })).toBe("MISS");
    expect(await ask({ ...base, "X-App": "2" })).toBe("MISS");
    expect(await ask({ ...base, Cookie: "lang=fr" })).toBe("MISS");
    expect(await ask({ ...base, "X-App": "" })).toBe("MISS");
    expect(await ask(base)).toBe("HIT");
  });

  test("host and query, unless configured otherwise", async () => {
    const ask = async (path: string, host: string) => wordOf(await cache.get(path, { Host: host }));
    expect(await ask("/q?a=1", "one.test")).toBe("MISS");
    expect(await ask("/q?a=1", "two.test")).toBe("MISS");
    expect(await ask("/q?a=2", "one.test")).toBe("MISS");
    await cache.use({ key: { host: false, query_exclude: ["utm_source"] } });
    expect(await ask("/q?a=1&utm_source=x", "one.test")).toBe("MISS");
    expect(await ask("/q?utm_source=y&a=1", "two.test")).toBe("HIT");
    expect(cache.scene.requests.at(-1)?.target).toBe("/q?a=1");
    await cache.use({ key: { query_include: ["page"], path: false } });
    expect(await ask("/one?page=1&x=1", "one.test")).toBe("MISS");
    expect(await ask("/two?y=2&page=1", "one.test")).toBe("HIT");
    expect(await ask("/two?page=2", "one.test")).toBe("MISS");
    expect(cache.scene.requests.at(-1)?.target).toBe("/two?page=2");
  });

  test("consumer, unless configured otherwise", async () => {
    const plugins = (config: object) => [
      { name: "key-auth" },
      { name: "response-cache", config: { ...config } },
    ];
    cache.answer = ({ headers }) => fresh(headers.get("x-consumer-username") ?? "nobody");
    await cache.scene.apply({ plugins: plugins({}) });
    const as = async (key: string) => (await cache.get("/mine", { "X-API-Key": key })).body;
    expect([await as("a"), await as("b"), await as("a"), await as("b")]).toEqual([
      "alice",
      "bob",
      "alice",
      "bob",
    ]);
    expect((await cache.get("/mine", { "X-API-Key": "c" })).status).toBe(401);
    await cache.scene.apply({ plugins: plugins({ key: { consumer: false } }) });
    expect([await as("a"), await as("b")]).toEqual(["alice", "alice"]);
    await cache.scene.apply({ removedPlugins: ["key-auth"] });
  });
});

describe("settings", () => {
  test("ttl_default stores responses without lifetime, unless cookies vary them", async () => {
    cache.answer = () => new Response("x");
    await cache.use({ ttl_default: 60 });
    expect(await cache.words("/d")).toEqual(["MISS", "HIT"]);
    expect(await cache.words("/e", { Cookie: "s=1" })).toEqual(["MISS", "MISS"]);
    await cache.use({ ttl_default: 60, key: { cookies: ["s"] } });
    expect(await cache.words("/e", { Cookie: "s=1" })).toEqual(["MISS", "HIT"]);
  });

  test("statuses, methods, max_body", async () => {
    await cache.use({ ttl_default: 60, statuses: [404], methods: ["GET"], max_body: 10 });
    cache.answer = () => new Response("ok");
    expect(await cache.words("/s")).toEqual(["MISS", "MISS"]);
    const status = { status: 404 };
    cache.answer = () => new Response("0123456789", status);
    expect(await cache.words("/t")).toEqual(["MISS", "HIT"]);
    expect(wordOf(await cache.send("HEAD", "/t"))).toBe("BYPASS");
    cache.answer = () => new Response("0123456789a", status);
    expect(await cache.words("/u")).toEqual(["MISS", "MISS"]);
    cache.answer = () =>
      new Response(
        new ReadableStream({
          start(controller) {
            for (const part of ["01234", "56789", "a"])
              controller.enqueue(new TextEncoder().encode(part));
            controller.close();
          },
        }),
        status,
      );
    expect(await cache.words("/v")).toEqual(["MISS", "MISS"]);
  });

  test("max_total is never exceeded", async () => {
    await cache.use({ max_total: 100_000, max_body: 50_000 });
    cache.answer = () => fresh("x".repeat(40_000));
    for (const path of ["/1", "/2", "/3"]) await cache.get(path);
    const words = await Promise.all(
      ["/1", "/2", "/3"].map(async (path) => wordOf(await cache.get(path))),
    );
    expect(words.filter((word) => word === "MISS").length).toBeGreaterThanOrEqual(1);
  });

  test("respect_cache_control off stores responses with no-store", async () => {
    cache.answer = () => new Response("x", { headers: { "Cache-Control": "no-store" } });
    await cache.use({ respect_cache_control: false, ttl_default: 60 });
    expect(await cache.words("/n")).toEqual(["MISS", "HIT"]);
  });

  test("cache_set_cookie stores the response without the cookie", async () => {
    cache.answer = () => fresh("x", { "Set-Cookie": "a=1" });
    await cache.use({ cache_set_cookie: true });
    const first = await cache.get("/c");
    expect(first.headers.getSetCookie()).toEqual(["a=1"]);
    const second = await cache.get("/c");
    expect([wordOf(second), second.headers.getSetCookie()]).toEqual(["HIT", []]);
  });

  test("cache_authorized stores what the response allows", async () => {
    await cache.use({ cache_authorized: true });
    const headers = { Authorization: "Bearer x" };
    expect(await cache.words("/a", headers)).toEqual(["MISS", "MISS"]);
    cache.answer = () => fresh("x", { "Cache-Control": "public, max-age=60" });
    expect(await cache.words("/b", headers)).toEqual(["MISS", "HIT"]);
  });

  test("bypass_when applies", async () => {
    await cache.use({ bypass_when: { header: { "X-Preview": "*" } } });
    expect(await cache.words("/p", { "X-Preview": "1" })).toEqual(["BYPASS", "BYPASS"]);
    const passed = await cache.get("/p", { "X-Preview": "1" });
    expect(passed.headers.get("cache-status")).toBe("sluice; fwd=bypass; detail=condition");
    expect(await cache.words("/p")).toEqual(["MISS", "HIT"]);
  });

  test("no-store and only-if-cached of clients always apply", async () => {
    const only = { "Cache-Control": "only-if-cached" };
    expect((await cache.get("/o", only)).status).toBe(504);
    expect(await cache.words("/o", { "Cache-Control": "no-store" })).toEqual(["MISS", "MISS"]);
    expect(await cache.words("/o")).toEqual(["MISS", "HIT"]);
    expect((await cache.get("/o", only)).status).toBe(200);
  });
});

test("plugins outside see hits too, those inside have run before", async () => {
  await cache.scene.apply({
    plugins: [
      { name: "security-headers" },
      { name: "request-id", config: { echo: true } },
      { name: "response-cache" },
    ],
  });
  const [first, second] = [await cache.get("/order"), await cache.get("/order")];
  expect(wordOf(second)).toBe("HIT");
  expect(second.headers.get("x-content-type-options")).toBe("nosniff");
  expect(second.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
  await cache.scene.apply({ removedPlugins: ["security-headers", "request-id"] });
});
