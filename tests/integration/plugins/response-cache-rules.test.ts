// response-cache and RFC 9111 as clients and the service see it: what is validated at each use, client directives, headers, invalidation.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { type CacheScene, cacheScene, Clock, fresh, wordOf } from "./cache-scene.ts";

let cache: CacheScene;
const clock = new Clock();

beforeAll(async () => {
  cache = await cacheScene();
  await cache.serveFrom(cache.scene.originPort);
});
afterAll(() => cache.scene.stop());
beforeEach(() => cache.reset());

/** The origin's response with these headers, or 304 to a request with the tag. */
const tagged =
  (control: string, body = "one") =>
  ({ headers }: Request) =>
    headers.get("if-none-match") === '"v1"'
      ? new Response(null, { status: 304, headers: { ETag: '"v1"' } })
      : new Response(body, { headers: { "Cache-Control": control, ETag: '"v1"' } });

const countOf = (path: string) =>
  cache.scene.requests.filter(({ target }) => target === path).length;

describe("a response that is never fresh", () => {
  test.each([
    ["no-cache", "/no-cache"],
    ["max-age=60, no-cache", "/both"],
    ['no-cache="x-a"', "/names"],
    ["max-age=0", "/zero"],
    ["max-age=60, s-maxage=0", "/shared"],
  ])("is validated at each use: %s", async (control, path) => {
    cache.answer = tagged(control);
    expect(await cache.words(path, {}, 3)).toEqual(["MISS", "REVALIDATED", "REVALIDATED"]);
    expect((await cache.get(path)).body).toBe("one");
    const copy = await cache.get(path, { "If-None-Match": '"v1"' });
    expect([copy.status, wordOf(copy)]).toEqual([304, "REVALIDATED"]);
    cache.answer = () => fresh("two");
    expect((await cache.get(path)).body).toBe("two");
    expect(await cache.words(path, {}, 1)).toEqual(["HIT"]);
  });

  test("is not served when the service fails, and not stored without a validator", async () => {
    await cache.use({ stale_if_error: 60, stale_while_revalidate: 60 });
    cache.answer = tagged("no-cache");
    await cache.get("/err");
    cache.answer = () => new Response("broken", { status: 503 });
    expect((await cache.get("/err")).status).toBe(503);
    cache.answer = () => new Response("x", { headers: { "Cache-Control": "no-cache" } });
    const { headers } = await cache.get("/plain");
    expect(headers.get("cache-status")).toBe("sluice; fwd=uri-miss; detail=no_validator");
  });

  test("is not stored for a client with cookies, who leaves what is stored for others", async () => {
    cache.answer = tagged("no-cache");
    const Cookie = "session=alice";
    expect(await cache.words("/mine", { Cookie })).toEqual(["MISS", "MISS"]);
    expect(await cache.words("/mine")).toEqual(["MISS", "REVALIDATED"]);
    expect(await cache.words("/mine", { Cookie }, 1)).toEqual(["REVALIDATED"]);
    cache.answer = () =>
      new Response("for alice", { headers: { "Cache-Control": "no-cache", ETag: '"v1"' } });
    expect((await cache.get("/mine", { Cookie })).body).toBe("for alice");
    cache.answer = tagged("no-cache");
    const others = await cache.get("/mine");
    expect([wordOf(others), others.body]).toEqual(["REVALIDATED", "one"]);
  });

  test("makes no request wait for another's validation", async () => {
    cache.answer = tagged("no-cache");
    await cache.get("/crowd");
    let arrived = 0;
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    cache.answer = async (request) => {
      arrived++;
      await gate;
      return tagged("no-cache")(request);
    };
    const crowd = Promise.all(Array.from({ length: 5 }, () => cache.get("/crowd")));
    await eventually(() => arrived === 5);
    open();
    expect((await crowd).map(wordOf)).toEqual(Array(5).fill("REVALIDATED"));
  });
});

describe("a client's Cache-Control", () => {
  const ask = async (path: string, control: string) =>
    wordOf(await cache.get(path, { "Cache-Control": control }));

  test("does not matter by default", async () => {
    await cache.get("/default");
    for (const control of ["no-cache", "max-age=0", "min-fresh=100", "max-stale"])
      expect(await ask("/default", control)).toBe("HIT");
  });

  test("counts where ignore_client_no_cache is off", async () => {
    await cache.use({ ignore_client_no_cache: false });
    const store = async (path: string, headers: Record<string, string> = {}) => {
      cache.answer = () => fresh("ok", headers);
      await cache.get(path);
    };
    await store("/c1", { Age: "20" });
    for (const control of ["max-age=30", "min-fresh=30", "foo"])
      expect(await ask("/c1", control)).toBe("HIT");
    expect(await ask("/c1", "max-age=10")).toBe("MISS");
    expect(await ask("/c1", "min-fresh=50")).toBe("MISS");
    expect(await ask("/c1", "no-cache")).toBe("MISS");
    expect(wordOf(await cache.get("/c1", { Pragma: "no-cache" }))).toBe("MISS");
  });

  test("does not keep a stale response from being served while it is refreshed", async () => {
    await cache.use({ ignore_client_no_cache: false, stale_while_revalidate: 60 });
    cache.answer = () => fresh("ok", { Age: "50" });
    await cache.get("/c2");
    clock.forward(15);
    expect(await ask("/c2", "max-age=3600")).toBe("STALE");
    await eventually(() => countOf("/c2") === 2);
  });

  test("max-stale accepts a stale response, unless that must be revalidated", async () => {
    await cache.use({ ignore_client_no_cache: false });
    const store = async (path: string, more: string) => {
      cache.answer = () =>
        fresh("ok", {
          Age: "50",
          ...(more === "" ? {} : { "Cache-Control": `max-age=60${more}` }),
        });
      await cache.get(path);
    };
    await store("/s1", "");
    await store("/s2", "");
    await store("/s3", "");
    await store("/s4", ", must-revalidate");
    await store("/s5", ", s-maxage=60");
    clock.forward(15);
    expect(await ask("/s1", "max-stale=60")).toBe("STALE");
    expect(await ask("/s2", "max-stale")).toBe("STALE");
    expect(await ask("/s3", "max-stale=2")).toBe("EXPIRED");
    expect(await ask("/s4", "max-stale")).toBe("EXPIRED");
    expect(await ask("/s5", "max-stale")).toBe("EXPIRED");
  });

  test("a reload does not concern a fresh immutable response", async () => {
    await cache.use({ ignore_client_no_cache: false });
    cache.answer = () => fresh("ok", { "Cache-Control": "max-age=60, immutable" });
    await cache.get("/i1");
    clock.forward(2);
    expect(await ask("/i1", "max-age=0")).toBe("HIT");
    expect(await ask("/i1", "no-cache")).toBe("MISS");
    clock.forward(61);
    expect(await ask("/i1", "max-age=0")).toBe("EXPIRED");
  });
});

test("a targeted field decides instead of Cache-Control, and clients get both", async () => {
  cache.answer = () =>
    new Response("x", {
      headers: { "Cache-Control": "no-store", "CDN-Cache-Control": "max-age=60" },
    });
  expect(await cache.words("/cdn")).toEqual(["MISS", "HIT"]);
  const { headers } = await cache.get("/cdn");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("cdn-cache-control")).toBe("max-age=60");
  await cache.use({ target_fields: [] });
  expect(await cache.words("/cdn")).toEqual(["MISS", "MISS"]);
});

test("heuristic freshness is a setting", async () => {
  const hours = 2;
  cache.answer = () =>
    new Response("x", {
      headers: { "Last-Modified": new Date(Date.now() - hours * 3_600_000).toUTCString() },
    });
  expect(await cache.words("/h")).toEqual(["MISS", "MISS"]);
  await cache.use({ heuristic: 0.1 });
  expect(await cache.words("/h")).toEqual(["MISS", "HIT"]);
  expect(await cache.words("/h?a=1")).toEqual(["MISS", "MISS"]);
  clock.forward(hours * 360 + 1);
  expect(await cache.words("/h", {}, 1)).toEqual(["EXPIRED"]);
});

test("headers that Connection names are neither stored nor sent, and those of proxies are not stored", async () => {
  const named = ["Connection: x-a, x-b", "X-A: 1", "X-B: 2", "X-C: 3", "Keep-Alive: timeout=5"];
  const proxies = ["Proxy-Authenticate: a", "Proxy-Authentication-Info: b", "Proxy-Connection: c"];
  const origin = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket) {
        const lines = ["HTTP/1.1 200 OK", "Cache-Control: max-age=60", ...named, ...proxies];
        socket.write(`${[...lines, "Content-Length: 2"].join("\r\n")}\r\n\r\nok`);
      },
    },
  });
  const { originPort, plane } = cache.scene;
  await cache.serveFrom(origin.port);
  const names: string[][] = [];
  for (let at = 0; at < 2; at++) {
    const request = "GET /hop HTTP/1.1\r\nHost: h.test\r\nConnection: close\r\n\r\n";
    const [head = ""] = (await sendRaw(request, { port: plane.port })).split("\r\n\r\n");
    names.push(head.split("\r\n").map((line) => line.split(":")[0]?.toLowerCase() ?? ""));
  }
  for (const gone of ["x-a", "x-b", "keep-alive", "proxy-authenticate", "proxy-connection"])
    expect(names.flat()).not.toContain(gone);
  expect(names[1]).toContain("x-c");
  expect(names[1]).toContain("age");
  expect(names[1]).not.toContain("proxy-authentication-info");
  await cache.serveFrom(originPort);
  origin.stop(true);
});

describe("304", () => {
  test("updates every header but those on which the stored bytes depend", async () => {
    cache.answer = ({ headers }) =>
      headers.has("if-none-match")
        ? new Response(null, {
            status: 304,
            headers: {
              ...{ ETag: '"v1"', "Cache-Control": "max-age=90", "Content-Type": "text/b" },
              ...{ "Content-Encoding": "x-b", "Content-Range": "b", "X-A": "2" },
            },
          })
        : fresh("one", {
            ...{ ETag: '"v1"', Age: "59", "Content-Type": "text/a", "X-B": "1" },
            ...{ "Content-Encoding": "x-a", "X-A": "1" },
          });
    await cache.get("/304");
    clock.forward(2);
    expect(wordOf(await cache.get("/304"))).toBe("REVALIDATED");
    const { headers, body } = await cache.get("/304");
    const of = (name: string) => headers.get(name);
    expect([body, of("cache-control"), of("content-type")]).toEqual([
      ...["one", "max-age=90", "text/b"],
    ]);
    expect([of("content-encoding"), of("content-range"), of("x-a"), of("x-b")]).toEqual([
      ...["x-a", null, "2", "1"],
    ]);
  });
});

test("the response to HEAD is compared by what it has, and its Cache-Status is not stored", async () => {
  cache.answer = () => fresh("0123456789", { ETag: '"v1"', Age: "59" });
  await cache.get("/head");
  clock.forward(2);
  cache.answer = () => new Response("0123456789", { headers: { "Cache-Control": "max-age=60" } });
  await cache.send("HEAD", "/head");
  const hit = await cache.get("/head");
  expect([wordOf(hit), hit.headers.get("etag")]).toEqual(["HIT", '"v1"']);
  expect(hit.headers.get("cache-status")).toMatch(/^sluice; hit; ttl=\d+$/);
});

describe("unsafe requests", () => {
  test("of an unknown method invalidate", async () => {
    await cache.get("/u1");
    await cache.send("M-SEARCH", "/u1");
    expect(await cache.words("/u1", {}, 1)).toEqual(["MISS"]);
  });

  test("name other resources by host and port", async () => {
    const own = `127.0.0.1:${cache.scene.plane.port}`;
    for (const [at, location, word] of [
      [1, `https://${own}/l1`, "MISS"],
      [2, "http://127.0.0.1:1/l2", "HIT"],
      [3, "//o.test/l3", "HIT"],
      [4, "http://[", "HIT"],
      [5, "l5", "MISS"],
    ] as const) {
      cache.answer = () => fresh("ok");
      await cache.get(`/l${at}`);
      cache.answer = () => new Response(null, { status: 201, headers: { Location: location } });
      await cache.send("POST", "/list");
      cache.answer = () => fresh("ok");
      expect(await cache.words(`/l${at}`, {}, 1)).toEqual([word]);
    }
  });

  test("have no response that is stored for GET", async () => {
    cache.answer = () => fresh("made", { "Content-Location": "/p1" });
    await cache.send("POST", "/p1", { body: "a" });
    expect(await cache.words("/p1", {}, 1)).toEqual(["MISS"]);
  });
});

test("a part is not stored", async () => {
  cache.answer = () =>
    new Response("0123", {
      status: 206,
      headers: { "Cache-Control": "max-age=60", "Content-Range": "bytes 0-3/4" },
    });
  expect(await cache.words("/part")).toEqual(["MISS", "MISS"]);
  expect(await cache.words("/part", { Range: "bytes=0-3" })).toEqual(["BYPASS", "BYPASS"]);
});
