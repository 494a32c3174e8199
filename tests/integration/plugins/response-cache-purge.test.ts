// The purge endpoint on a real gateway with two workers: after its response, no worker serves purged entries.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
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

/** All paths as they are stored, and then the origin has something else. */
beforeEach(async () => {
  await gateway.call("POST /cache/purge");
  made.version++;
  for (const path of PATHS) expect(await ask(path)).toEqual([String(made.version)]);
  expect(await ask("/news/1", "other.test")).toEqual([String(made.version)]);
  made.version++;
});

const purge = (body?: unknown) =>
  gateway.call("POST /cache/purge", body === undefined ? {} : { body });

test.each([
  [{ key: "shop.test/news/1" }, ["/news/1"]],
  [{ key: "https://SHOP.test:8443/news/2?page=2" }, ["/news/2?page=2"]],
  [{ key: "/news/1" }, ["/news/1"]],
  [{ key: "shop.test/news/2" }, []],
  [{ key: "shop.test" }, ["/"]],
  [{ prefix: "shop.test/news/" }, ["/news/1", "/news/2?page=2"]],
  [{ prefix: "/sho" }, ["/shop"]],
  [{ prefix: "shop.test" }, [...PATHS]],
  [{ tag: "news" }, ["/news/1", "/news/2?page=2"]],
  [{ tag: "unknown" }, []],
  [{ plugin_id: "main" }, [...PATHS]],
  [{}, [...PATHS]],
] as const)("%j", async (body, gone) => {
  const answer = await purge(body);
  expect(answer.status).toBe(200);
  // Each worker has its own, if it was asked.
  expect(answer.body.purged).toBeGreaterThanOrEqual(gone.length);
  for (const path of PATHS) {
    const isGone = (gone as readonly string[]).includes(path);
    expect([path, await ask(path)]).toEqual([path, [String(made.version - (isGone ? 0 : 1))]]);
  }
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
