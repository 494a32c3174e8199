// The purge endpoint on a real gateway with two workers: after its response, no worker serves purged entries.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { useGateway } from "../api/client.ts";

const gateway = useGateway();
const made = { version: 0, plugin: "", other: "" };
let origin: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) =>
      new Response(String(made.version), {
        headers: {
          "Cache-Control": "max-age=600",
          "Surrogate-Key": new URL(url).pathname.startsWith("/news") ? "news all" : "all",
          "Cache-Tag": new URL(url).pathname === "/shop" ? "goods, all goods" : "",
        },
      }),
  });
  const target = { host: "127.0.0.1", port: origin.port };
  await gateway.create("/services", { name: "origin", targets: [target] });
  const route = { service_id: "origin" };
  await gateway.create("/routes", { ...route, name: "all" });
  await gateway.create("/routes", { ...route, name: "other", hosts: ["other.test"] });
  const cache = { name: "response-cache", config: { key: { query_exclude: ["utm_source"] } } };
  made.plugin = (await gateway.create("/plugins", { ...cache, label: "main" })).id;
  await gateway.create("/routes", { ...route, name: "soft", hosts: ["soft.test"] });
  await gateway.create("/plugins", {
    ...{ name: "response-cache", label: "soft", route_id: "soft" },
    config: { stale_while_revalidate: 60 },
  });
  made.other = (await gateway.create("/plugins", { ...cache, route_id: "other" })).id;
});
afterAll(() => origin.stop(true));

/** Many, each on a connection of its own, so that both workers answer: what they say. */
async function ask(path: string, host = "shop.test"): Promise<string[]> {
  const answers = await Promise.all(
    Array.from({ length: 24 }, async () => {
      const response = await fetch(`http://127.0.0.1:${gateway.gateway.httpPort}${path}`, {
        headers: { Host: host, Connection: "close" },
      });
      return await response.text();
    }),
  );
  return [...new Set(answers)];
}

const PATHS = ["/", "/news/1", "/news/2?page=2", "/shop"] as const;

/**
 * Resolves when a response is in the cache. A worker passes on, and does not store, what another thread has the cache locked for
 * longer than 2 ms for, as when the processor is taken from that thread.
 */
const isStored = (path: string, host: string) =>
  eventually(async () => {
    const response = await fetch(`http://127.0.0.1:${gateway.gateway.httpPort}${path}`, {
      headers: { Host: host, Connection: "close" },
    });
    expect(await response.text()).toBe(String(made.version));
    return response.headers.get("x-cache-status") === "HIT";
  });

/** All paths as they are stored, and then the origin has something else. */
beforeEach(async () => {
  await gateway.call("POST /cache/purge");
  made.version++;
  const stored = [...PATHS.map((path) => [path, "shop.test"]), ["/news/1", "other.test"]] as const;
  for (const [path = "", host = ""] of stored) {
    expect(await ask(path, host)).toEqual([String(made.version)]);
    await isStored(path, host);
  }
  made.version++;
});

const purge = (body?: unknown) =>
  gateway.call("POST /cache/purge", body === undefined ? {} : { body });

// With those of the other instance, the number of all that are purged.
test.each([
  [{ key: "shop.test/news/1" }, ["/news/1"], 1],
  [{ key: "https://SHOP.test:8443/news/2?page=2" }, ["/news/2?page=2"], 1],
  [{ key: "/news/1" }, ["/news/1"], 2],
  [{ key: "shop.test/news/2" }, [], 0],
  [{ key: "shop.test" }, ["/"], 1],
  [{ prefix: "shop.test/news/" }, ["/news/1", "/news/2?page=2"], 2],
  [{ prefix: "/sho" }, ["/shop"], 1],
  [{ prefix: "shop.test" }, [...PATHS], 4],
  [{ tag: "news" }, ["/news/1", "/news/2?page=2"], 3],
  [{ tag: "all goods" }, ["/shop"], 1],
  [{ tag: "unknown" }, [], 0],
  [{ plugin_id: "main" }, [...PATHS], 4],
  [{}, [...PATHS], 5],
] as const)("%j", async (body, gone, count) => {
  expect((await purge(body)).body).toEqual({ purged: count });
  for (const path of PATHS) {
    const isGone = (gone as readonly string[]).includes(path);
    expect([path, await ask(path)]).toEqual([path, [String(made.version - (isGone ? 0 : 1))]]);
  }
});

test.each([
  { key: "soft.test/news/1" },
  { prefix: "soft.test/news" },
  { tag: "all" },
  { plugin_id: "soft" },
])("softly %j: clients get the stale response while the service is asked", async (body) => {
  const get = async () => {
    const response = await fetch(`http://127.0.0.1:${gateway.gateway.httpPort}/news/1`, {
      headers: { Host: "soft.test", Connection: "close" },
    });
    return [response.headers.get("x-cache-status"), await response.text()];
  };
  await purge({ plugin_id: "soft" });
  expect(await get()).toEqual(["MISS", String(made.version)]);
  made.version++;
  expect((await purge({ ...body, soft: true })).status).toBe(200);
  expect(await get()).toEqual(["STALE", String(made.version - 1)]);
  await eventually(async () => Bun.deepEquals(await get(), ["HIT", String(made.version)]));
  // Without soft the same purge removes it.
  await purge(body);
  expect(await get()).toEqual(["MISS", String(made.version)]);
});

test("an instance can be named by its id too, and the others keep their entries", async () => {
  await purge({ plugin_id: made.other, tag: "all" });
  expect(await ask("/news/1", "other.test")).toEqual([String(made.version)]);
  expect(await ask("/news/1")).toEqual([String(made.version - 1)]);
  await purge();
  expect(await ask("/news/1")).toEqual([String(made.version)]);
});

test.each([
  [{ plugin_id: "nobody" }, 'plugin_id: plugin "nobody" does not exist'],
  [{ key: "a/b", tag: "c" }, "tag: cannot be combined with key"],
  [{ key: "bad host/x" }, "key: must be host/path, or /path for any host"],
  [{ key: "" }, "key: must"],
  [{ what: 1 }, "what: is not a known field"],
  [null, "must be an object"],
])("%j is refused", async (body, message) => {
  const { status, body: answer } = await purge(body);
  expect(status).toBe(400);
  expect(answer.error).toContain(message);
});

test("the audit log records who purged what", async () => {
  await purge({ tag: "news" });
  const { body } = await gateway.call("GET /audit?actor=anonymous");
  const entries = body as Record<string, unknown>[];
  expect(entries.findLast(({ kind }) => kind === "cache")).toMatchObject({
    action: "purge",
    result: "ok",
    detail: { tag: "news" },
  });
});

describe("an address is accepted in its usual forms", () => {
  test.each([
    ["/%C3%A4/b%20c", { key: "shop.test/ä/b c" }],
    ["/%C3%A4/b%20c", { key: "https://shop.test/%c3%a4/b%20c#part" }],
    ["/%C3%A4/b%20c", { prefix: "shop.test/ä/" }],
    ["/q?a=%C3%A4", { key: "shop.test/q?a=ä" }],
    ["/a/b", { key: "shop.test/a/x/../b" }],
    ["/e?", { key: "shop.test/e?" }],
    ["/u?a=1&utm_source=x", { key: "shop.test/u?utm_source=x&a=1" }],
    ["/u?utm_source=x", { key: "shop.test/u?utm_source=y" }],
    ["/docs/.well", { prefix: "shop.test/docs/." }],
  ])("%s by %j", async (path, body) => {
    await ask(path);
    await ask("/docs/other");
    made.version++;
    expect((await purge(body)).status).toBe(200);
    expect(await ask(path)).toEqual([String(made.version)]);
    expect(await ask("/docs/other")).toEqual([String(made.version - 1)]);
  });
});
