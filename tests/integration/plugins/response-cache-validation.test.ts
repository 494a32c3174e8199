// response-cache and time: validation, stale responses, what unsafe requests and HEAD do to what is stored.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { type CacheScene, cacheScene, Clock, fresh, wordOf } from "./cache-scene.ts";

let cache: CacheScene;
const clock = new Clock();

beforeAll(async () => {
  cache = await cacheScene();
  await cache.serveFrom(cache.scene.originPort);
});
afterAll(() => cache.scene.stop());
beforeEach(() => cache.reset());

/** Has a second left when it is put forward the next time. */
const aging = (body: string, headers: Record<string, string> = {}) =>
  fresh(body, { Age: "40", ...headers });

/** Stores a response and lets its time run out. */
async function outlive(path: string): Promise<void> {
  expect(await cache.words(path)).toEqual(["MISS", "HIT"]);
  clock.forward(30);
}

/** Asks until the response says this. */
const until = (path: string, word: string, headers: Record<string, string> = {}) =>
  eventually(async () => {
    const answer = await cache.get(path, headers);
    return wordOf(answer) === word ? answer : null;
  });

const seenOf = (path: string) =>
  cache.scene.requests.filter(({ target }) => target === path).at(-1);

const failing = () => new Response("broken", { status: 503 });

describe("a stale response", () => {
  test("is revalidated, and 304 updates its headers", async () => {
    cache.answer = ({ headers }) =>
      headers.has("if-none-match")
        ? new Response(null, {
            status: 304,
            headers: { "Cache-Control": "max-age=90", ETag: '"v1"', "X-News": "yes" },
          })
        : aging("body", { ETag: '"v1"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT" });
    await outlive("/a");
    const again = await until("/a", "REVALIDATED");
    expect([again.status, again.body, again.headers.get("x-news")]).toEqual([200, "body", "yes"]);
    expect(again.headers.get("cache-status")).toMatch(
      /^sluice; fwd=stale; fwd-status=304; stored; ttl=\d+$/,
    );
    expect(seenOf("/a")?.headers).toMatchObject({
      "if-none-match": '"v1"',
      "if-modified-since": "Sat, 21 Nov 2026 10:00:00 GMT",
    });
    const hit = await cache.get("/a");
    expect([wordOf(hit), hit.body, hit.headers.get("x-news")]).toEqual(["HIT", "body", "yes"]);
    expect(hit.headers.get("cache-control")).toBe("max-age=90");
  });

  test("that 304 freshens is 304 to a client with the same copy, and a part to a range request", async () => {
    cache.answer = ({ headers }) =>
      headers.has("if-none-match")
        ? new Response(null, { status: 304, headers: { "Cache-Control": "max-age=60", Age: "59" } })
        : aging("0123456789", { ETag: '"v1"' });
    await outlive("/b");
    const copy = await until("/b", "REVALIDATED", { "If-None-Match": '"v1"' });
    expect([copy.status, copy.body]).toEqual([304, ""]);
    const part = await until("/b", "REVALIDATED", { Range: "bytes=0-1" });
    expect([part.status, part.body]).toEqual([206, "01"]);
    expect(seenOf("/b")?.headers).not.toHaveProperty("range");
  });

  test("is replaced by a new one", async () => {
    cache.answer = () => aging("one", { ETag: '"v1"' });
    await outlive("/c");
    cache.answer = () => fresh("two", { ETag: '"v2"' });
    const news = await until("/c", "EXPIRED");
    expect([news.body, news.headers.get("cache-status")]).toEqual([
      "two",
      expect.stringMatching(/^sluice; fwd=stale; stored; ttl=5\d$/),
    ]);
    expect((await cache.get("/c")).body).toBe("two");
  });

  test("is dropped when the new one must not be stored", async () => {
    cache.answer = () => aging("one");
    await outlive("/d");
    cache.answer = () => new Response("two", { headers: { "Cache-Control": "no-store" } });
    await until("/d", "EXPIRED");
    expect(await cache.words("/d")).toEqual(["MISS", "MISS"]);
  });

  test("is not served, and a failing service's response is, unless configured otherwise", async () => {
    cache.answer = () => aging("one");
    await outlive("/e");
    cache.answer = failing;
    expect((await until("/e", "EXPIRED")).status).toBe(503);
    cache.answer = () => fresh("two");
    expect((await cache.get("/e")).body).toBe("two");
  });
});

describe("stale_while_revalidate", () => {
  test("serves the stale response at once and revalidates in the background", async () => {
    await cache.use({ stale_while_revalidate: 60 });
    cache.answer = () => aging("one", { ETag: '"v1"' });
    await outlive("/f");
    let asked = 0;
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    cache.answer = async ({ headers }) => {
      asked++;
      await gate;
      return fresh(`two ${headers.get("if-none-match")}`, { ETag: '"v2"' });
    };
    const stale = await until("/f", "STALE");
    expect(stale.body).toBe("one");
    expect(stale.headers.get("cache-status")).toMatch(
      /^sluice; hit; ttl=-\d+; detail=stale_while_revalidate$/,
    );
    expect(await cache.words("/f", {}, 3)).toEqual(["STALE", "STALE", "STALE"]);
    await eventually(() => asked > 0);
    expect(asked).toBe(1);
    open();
    expect((await until("/f", "HIT")).body).toBe('two "v1"');
    expect(asked).toBe(1);
  });

  test("accepts 304 in the background, also for HEAD or a range", async () => {
    await cache.use({ stale_while_revalidate: 60 });
    cache.answer = () => aging("one", { ETag: '"v1"' });
    await outlive("/g");
    cache.answer = () =>
      new Response(null, { status: 304, headers: { "Cache-Control": "max-age=60" } });
    await eventually(async () => wordOf(await cache.send("HEAD", "/g")) === "STALE");
    expect((await until("/g", "HIT")).body).toBe("one");
    expect(seenOf("/g")?.method).toBe("GET");
  });

  test("continues while the service fails, and must-revalidate forbids it", async () => {
    await cache.use({ stale_while_revalidate: 60 });
    cache.answer = () => aging("one");
    await outlive("/h");
    cache.answer = failing;
    await until("/h", "STALE");
    expect((await cache.get("/h")).body).toBe("one");
    cache.answer = () => aging("one", { "Cache-Control": "max-age=60, must-revalidate" });
    await outlive("/i");
    cache.answer = failing;
    expect((await until("/i", "EXPIRED")).status).toBe(503);
  });

  test("runs plugins inside of the cache, and not those outside", async () => {
    cache.answer = () => aging("one");
    await cache.scene.apply({
      plugins: [
        { name: "response-cache", config: { stale_while_revalidate: 60 } },
        { name: "cors", priority: 5000, config: { origins: ["*"] } },
        { name: "security-headers" },
      ],
    });
    await cache.get("/j", { Origin: "https://a.example" });
    clock.forward(30);
    cache.answer = () => fresh("two");
    await until("/j", "STALE", { Origin: "https://a.example" });
    const hit = await until("/j", "HIT", { Origin: "https://a.example" });
    expect(hit.body).toBe("two");
    expect(hit.headers.get("access-control-allow-origin")).toBe("*");
    expect(hit.headers.get("x-content-type-options")).toBe("nosniff");
    await cache.scene.apply({ removedPlugins: ["cors", "security-headers"] });
  });
});

describe("stale_if_error", () => {
  test.each([
    ["503", failing],
    ["500", () => new Response("x", { status: 500 })],
  ])("serves the stale response in the place of %s", async (name, answer) => {
    await cache.use({ stale_if_error: 60 });
    cache.answer = () => aging("one", { ETag: '"v1"' });
    await outlive(`/${name}`);
    cache.answer = answer;
    const stale = await until(`/${name}`, "STALE");
    expect([stale.status, stale.body, stale.headers.get("etag")]).toEqual([200, "one", '"v1"']);
    expect(stale.headers.get("cache-status")).toMatch(
      /^sluice; fwd=stale; fwd-status=50\d; ttl=-\d+; detail=stale_if_error$/,
    );
    cache.answer = () => fresh("two");
    expect((await until(`/${name}`, "EXPIRED")).body).toBe("two");
  });

  test("also when there is no service at all", async () => {
    await cache.use({ stale_if_error: 60 });
    cache.answer = () => aging("one");
    await outlive("/k");
    await cache.serveFrom(1);
    const stale = await until("/k", "STALE");
    expect([stale.status, stale.body]).toEqual([200, "one"]);
    expect(stale.headers.has("proxy-status")).toBe(false);
    expect((await cache.get("/other")).status).toBe(502);
    await cache.serveFrom(cache.scene.originPort);
  });

  test.each([
    ["the gateway's page", {}],
    ["a response of one's own", { response: { body: "open" } }],
  ])("also while a circuit is open (%s), and fresh ones do not need it", async (label, config) => {
    await cache.scene.apply({
      plugins: [
        { name: "response-cache", config: { stale_if_error: 60 } },
        { name: "circuit-breaker", label, config: { ...config, consecutive: 1, open_for: 3600 } },
      ],
    });
    const path = `/circuit-${Object.keys(config).length}`;
    cache.answer = () => aging("one");
    await cache.words(path);
    cache.answer = failing;
    expect((await cache.get(`${path}-other`)).status).toBe(503);
    const asked = cache.scene.requests.length;
    expect(await cache.words(path)).toEqual(["HIT", "HIT"]);
    clock.forward(30);
    const stale = await cache.get(path);
    expect([stale.status, stale.body, wordOf(stale)]).toEqual([200, "one", "STALE"]);
    expect((await cache.get(`${path}-new`)).status).toBe(503);
    expect(cache.scene.requests.length).toBe(asked);
    await cache.scene.apply({ removedPlugins: [label] });
  });

  test("a response can request it itself, and 404 is no failure", async () => {
    cache.answer = () => aging("one", { "Cache-Control": "max-age=60, stale-if-error=60" });
    await outlive("/l");
    cache.answer = failing;
    expect((await until("/l", "STALE")).body).toBe("one");
    cache.answer = () => new Response("gone", { status: 404 });
    expect((await until("/l", "EXPIRED")).status).toBe(404);
  });
});

describe("unsafe requests", () => {
  const stored = async (...paths: string[]) => {
    const words: string[] = [];
    for (const path of paths) words.push(wordOf(await cache.get(path)));
    return words;
  };

  test.each(["POST", "PUT", "DELETE", "PATCH"])(
    "%s invalidates what it changes",
    async (method) => {
      await stored("/x", "/x?a=1", "/y");
      expect(wordOf(await cache.send(method, "/x"))).toBe("BYPASS");
      expect(await stored("/x", "/x?a=1", "/y")).toEqual(["MISS", "HIT", "HIT"]);
    },
  );

  test("invalidate for every client and every variant, and over every scheme", async () => {
    cache.answer = ({ headers }) => fresh(headers.get("accept") ?? "", { Vary: "Accept" });
    await cache.get("/v", { Accept: "text/a" });
    await cache.get("/v", { Accept: "text/b" });
    await cache.send("POST", "/v");
    expect(await cache.words("/v", { Accept: "text/a" }, 1)).toEqual(["MISS"]);
    expect(await cache.words("/v", { Accept: "text/b" }, 1)).toEqual(["MISS"]);
  });

  test("invalidate Location and Content-Location on the same host only", async () => {
    const host = `127.0.0.1:${cache.scene.plane.port}`;
    await stored("/list", "/list/7", "/list/8");
    cache.answer = () =>
      new Response(null, {
        status: 201,
        headers: { Location: "/list/7", "Content-Location": `http://${host}/list/8?` },
      });
    await cache.send("POST", "/list");
    cache.answer = () => fresh("ok");
    expect(await stored("/list", "/list/7", "/list/8")).toEqual(["MISS", "MISS", "MISS"]);
    cache.answer = () =>
      new Response(null, { status: 201, headers: { Location: "http://o.test/list/7" } });
    await cache.send("POST", "/list");
    cache.answer = () => fresh("ok");
    expect(await stored("/list/7")).toEqual(["HIT"]);
  });

  test("that fail invalidate nothing, and neither do safe ones", async () => {
    await stored("/z");
    cache.answer = () => new Response("no", { status: 403 });
    await cache.send("POST", "/z");
    cache.answer = () => new Response("ok");
    await cache.send("OPTIONS", "/z");
    expect(await stored("/z")).toEqual(["HIT"]);
  });

  test("invalidate responses in flight at that moment", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    let arrived = false;
    cache.answer = async ({ method }) => {
      if (method === "POST") return new Response("done");
      arrived = true;
      await gate;
      return fresh("before the change");
    };
    const old = cache.get("/race");
    await eventually(() => arrived);
    await cache.send("POST", "/race");
    cache.answer = () => fresh("after the change");
    open();
    expect((await old).body).toBe("before the change");
    expect((await cache.get("/race")).body).toBe("after the change");
  });
});

test("the response to HEAD freshens or invalidates a stale one", async () => {
  cache.answer = () => aging("0123456789", { ETag: '"v1"' });
  await outlive("/m");
  const headOf = (etag: string, body: string) => () =>
    new Response(body, {
      headers: { "Cache-Control": "max-age=60", ETag: etag, "Content-Type": "text/plain" },
    });
  cache.answer = headOf('"v1"', "0123456789");
  await eventually(async () => wordOf(await cache.send("HEAD", "/m")) === "MISS");
  expect((await cache.get("/m")).body).toBe("0123456789");
  expect(await cache.words("/m", {}, 1)).toEqual(["HIT"]);
  cache.answer = () => aging("old", { ETag: '"v1"' });
  await outlive("/n");
  cache.answer = headOf('"v2"', "old");
  await eventually(async () => wordOf(await cache.send("HEAD", "/n")) === "MISS");
  cache.answer = () => fresh("new");
  expect((await cache.get("/n")).body).toBe("new");
});
