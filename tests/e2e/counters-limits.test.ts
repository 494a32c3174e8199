// rate-limit over several nodes with a real Redis server: nothing above the limit, few questions, and what happens without the server.
import { describe, expect } from "bun:test";
import { cleanupsOf } from "../support/cleanups.ts";
import { needs } from "../support/needs.ts";
import { type PluginScene, pluginScene } from "../support/plugin-scene.ts";
import { eventually } from "../support/poll.ts";
import { Redis } from "../support/redis.ts";

const { afterEach, test } = needs("redis-server");

const cleanups = cleanupsOf(afterEach);

/** So long that no test sees the border of two of them, unless it runs at the turn of the year. */
const YEAR = 31_536_000;

async function startRedis(): Promise<Redis> {
  const redis = await Redis.create();
  cleanups.push(() => redis.stop());
  return redis;
}

const PATIENT_MS = 10_000;

interface NodesOptions {
  readonly count?: number;
  readonly scope?: string;
  /** Of the instance. */
  readonly id?: string;
  readonly answer?: (request: Request) => Response;
  /** For a reply of the server. Default: so long that no busy machine is taken for a fault. */
  readonly timeoutMs?: number;
}

/** Data planes of several nodes with one limit. */
async function nodesWith(
  redis: Redis,
  config: Record<string, unknown>,
  {
    count = 3,
    scope = "fleet",
    id = "limit",
    answer = () => new Response("ok"),
    timeoutMs = PATIENT_MS,
  }: NodesOptions = {},
): Promise<PluginScene[]> {
  const address = { url: redis.url, ca: null, cert: null, key: null, timeoutMs };
  const scenes = await Promise.all(
    Array.from({ length: count }, () =>
      pluginScene({
        sharedCounters: { ...address, scope },
        nodes: count,
        answer,
        plugins: [{ name: "rate-limit", id, config }],
      }),
    ),
  );
  cleanups.push(() => Promise.all(scenes.map((scene) => scene.stop())));
  return scenes;
}

const limitOf = (requests: number, more: Record<string, unknown> = {}) => [
  { requests, window: YEAR, algorithm: "fixed", key: "ip", ...more },
];

/** How many of so many requests got each status, over all nodes, from several connections. */
async function send(
  scenes: readonly PluginScene[],
  requests: number,
  { clients = 12, path = "/" } = {},
): Promise<Map<number, number>> {
  const seen = new Map<number, number>();
  let next = 0;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (next < requests) {
        const scene = scenes[next++ % scenes.length]!;
        const response = await fetch(scene.plane.url + path);
        await response.arrayBuffer();
        seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
      }
    }),
  );
  return seen;
}

const operations = (scenes: readonly PluginScene[]) =>
  scenes.reduce((sum, { plane }) => sum + plane.board.sum("counters_operations"), 0);

describe("of 3000 requests over three nodes", () => {
  test.each(["fixed", "sliding"])(
    "a limit of 1000 (%s) by lease allows exactly 1000, with few questions to the server",
    async (algorithm) => {
      const redis = await startRedis();
      const scenes = await nodesWith(redis, { limits: limitOf(1000, { algorithm }) });
      const seen = await send(scenes, 3000);
      expect(seen.get(200)).toBe(1000);
      expect(seen.get(429)).toBe(2000);
      expect(operations(scenes)).toBeLessThanOrEqual(3000 * 0.05);
    },
  );

  test.each(["fixed", "sliding", "token_bucket"])(
    "a limit of 1000 (%s), counted exactly, allows exactly 1000, with a question each",
    async (algorithm) => {
      const redis = await startRedis();
      const limits = limitOf(1000, { algorithm });
      const scenes = await nodesWith(redis, { limits, shared: "exact" });
      const seen = await send(scenes, 3000);
      expect(seen.get(200)).toBe(1000);
      expect(operations(scenes)).toBe(3000);
    },
  );

  test("a bucket of 1000 by lease allows no more than 1000", async () => {
    const redis = await startRedis();
    const scenes = await nodesWith(redis, { limits: limitOf(1000, { algorithm: "token_bucket" }) });
    const seen = await send(scenes, 3000);
    expect(seen.get(200)).toBeLessThanOrEqual(1000);
    // Units that a node did not spend within 100 ms are lost: many on a busy machine, never most.
    expect(seen.get(200)).toBeGreaterThan(500);
    expect(operations(scenes)).toBeLessThan(3000 * 0.2);
  });

  test("each node allows its own 1000 when the limit is that of a node", async () => {
    const redis = await startRedis();
    const scenes = await nodesWith(redis, { limits: limitOf(1000), shared: "node" });
    expect((await send(scenes, 3600)).get(200)).toBe(3000);
    expect(operations(scenes)).toBe(0);
  });
});

describe.each(["lease", "exact"])("limits by %s", (shared) => {
  test("count in all or in none", async () => {
    const redis = await startRedis();
    const limits = [
      ...limitOf(30, { name: "large", requests: 30, key: "service" }),
      ...limitOf(10, { name: "small", requests: 10 }),
    ];
    const scenes = await nodesWith(redis, { limits, shared });
    expect((await send(scenes, 60)).get(200)).toBe(10);
    const [scene] = scenes as [PluginScene];
    // Refused requests have not used up the large limit.
    await scene.apply({
      plugins: [
        { name: "rate-limit", id: "limit", config: { limits: limits.slice(0, 1), shared } },
      ],
    });
    const seen = await send([scene], 60);
    expect(seen.get(200) ?? 0).toBeLessThanOrEqual(20);
    expect(seen.get(200) ?? 0).toBeGreaterThanOrEqual(shared === "exact" ? 20 : 5);
  });

  test("with a cost admit as many requests as fit", async () => {
    const redis = await startRedis();
    const scenes = await nodesWith(redis, { limits: limitOf(100, { cost: 7 }), shared });
    expect((await send(scenes, 60)).get(200)).toBe(14);
  });

  test("count responses with certain statuses exactly", async () => {
    const redis = await startRedis();
    const config = { limits: limitOf(5), shared, count_when: "response_status:[404]" };
    const scenes = await nodesWith(redis, config, {
      answer: (request: Request) =>
        new Response("", { status: request.url.endsWith("/lost") ? 404 : 200 }),
    });
    expect(await send(scenes, 30, { clients: 1 })).toEqual(new Map([[200, 30]]));
    const seen = await send(scenes, 30, { clients: 1, path: "/lost" });
    expect(seen.get(404)).toBe(5);
    expect(seen.get(429)).toBe(25);
  });

  test("tell clients what is left for all nodes, and when there is room again", async () => {
    const redis = await startRedis();
    const [one, other] = (await nodesWith(redis, { limits: limitOf(2), shared })) as [
      PluginScene,
      PluginScene,
    ];
    expect((await one.get("/")).headers.get("ratelimit-remaining")).toBe("1");
    const last = await other.get("/");
    expect([last.status, last.headers.get("ratelimit-remaining")]).toEqual([200, "0"]);
    const refused = await one.get("/");
    expect([refused.status, refused.headers.get("ratelimit-remaining")]).toEqual([429, "0"]);
    const wait = Number(refused.headers.get("retry-after"));
    const left = YEAR - ((Date.now() / 1000) % YEAR);
    expect(Math.abs(wait - left)).toBeLessThan(60);
  });

  test("have room at once when an administrator raises them", async () => {
    const redis = await startRedis();
    const scenes = await nodesWith(redis, { limits: limitOf(5), shared });
    expect((await send(scenes, 20)).get(200)).toBe(5);
    for (const scene of scenes)
      await scene.apply({
        plugins: [{ name: "rate-limit", id: "limit", config: { limits: limitOf(8), shared } }],
      });
    expect((await send(scenes, 20)).get(200)).toBe(3);
  });

  test("survive restarts of all nodes and of the server", async () => {
    const redis = await startRedis();
    const limits = limitOf(20, { window: 604_800 });
    const before = await nodesWith(redis, { limits, shared: "exact" });
    expect((await send(before, 15)).get(200)).toBe(15);
    await Promise.all(before.map((scene) => scene.stop()));
    // Each command is on the disk of the kernel before its reply.
    await redis.kill();
    await redis.start();
    const after = await nodesWith(redis, { limits, shared });
    expect((await send(after, 30)).get(200)).toBe(5);
  });
});

test("two fleets and two instances share a server, which sees no address of a client", async () => {
  const redis = await startRedis();
  const config = { limits: limitOf(10, { key: "header:x-api-key" }), shared: "exact" };
  const fleets = [{ scope: "one" }, { scope: "two" }, { scope: "two", id: "another" }];
  for (const options of fleets) {
    const scenes = await nodesWith(redis, config, { ...options, count: 1 });
    const headers = { "x-api-key": "secret-of-a-client" };
    const statuses: number[] = [];
    for (let round = 0; round < 12; round++)
      statuses.push((await scenes[0]!.get("/", headers)).status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
  }
  const keys = (await redis.ask("KEYS", "*")).split("\n").filter((key) => !key.includes(":probe"));
  expect(keys.map((key) => key.replace(/[\w-]{22}$/, "HASH")).toSorted()).toEqual([
    "sluice:one:limit:HASH",
    "sluice:two:another:HASH",
    "sluice:two:limit:HASH",
  ]);
  for (const key of keys) expect(Number(await redis.ask("PTTL", key))).toBeGreaterThan(0);
});

describe.each(["killed", "stopped"])("while the server is %s", (fault) => {
  const end = async (redis: Redis) =>
    fault === "killed" ? await redis.kill() : redis.signal("SIGSTOP");
  const resume = async (redis: Redis) =>
    fault === "killed" ? await redis.start() : redis.signal("SIGCONT");

  test.each([
    ["lease", "node", { 200: 30, 429: 60 }],
    ["exact", "node", { 200: 30, 429: 60 }],
    ["lease", "open", { 200: 90 }],
    ["exact", "open", { 200: 90 }],
    ["lease", "closed", { 503: 90 }],
    ["exact", "closed", { 503: 90 }],
  ])(
    "limits by %s follow the policy %s, and are back with the server",
    async (shared, onError, expected) => {
      const redis = await startRedis();
      const config = { limits: limitOf(30), shared, on_shared_error: onError };
      const scenes = await nodesWith(redis, config, { timeoutMs: 1000 });
      await end(redis);
      const seen = await send(scenes, 90);
      expect(Object.fromEntries(seen)).toEqual(expected);
      await resume(redis);
      for (const { plane } of scenes) {
        const lines = () =>
          plane.log
            .filter(({ message }) => message.includes("shared counters"))
            .map(({ level, message }) => [level, message]);
        await eventually(() => lines().length >= 2);
        expect(lines().slice(0, 2)).toEqual([
          ["warn", "the server of the shared counters is away"],
          ["info", "the server of the shared counters is back"],
        ]);
        expect(plane.board.sum("counters_lost")).toBe(0);
        expect(plane.board.sum("counters_fallbacks")).toBeGreaterThan(0);
      }
      // What nodes allowed by themselves was not counted.
      const after = await send(scenes, 90);
      expect(after.get(200)).toBeLessThanOrEqual(30);
      expect(after.get(200)).toBeGreaterThan(0);
      expect(after.get(503)).toBeUndefined();
    },
  );
});

test("a node allows no more than its share when the server goes away, with what it took before", async () => {
  const redis = await startRedis();
  const scenes = await nodesWith(redis, { limits: limitOf(30), shared: "exact" });
  const [one, ...others] = scenes as [PluginScene, ...PluginScene[]];
  expect((await send([one], 8)).get(200)).toBe(8);
  await redis.kill();
  expect((await send([one], 20)).get(200)).toBe(2);
  expect((await send(others, 40)).get(200)).toBe(20);
});

test("a rejection while the server is away names no limit, and asks to come again", async () => {
  const redis = await startRedis();
  const config = { limits: limitOf(30), on_shared_error: "closed" };
  const [scene] = (await nodesWith(redis, config, { count: 1 })) as [PluginScene];
  await redis.kill();
  const { status, headers, body } = await scene.get("/");
  expect([status, headers.get("retry-after"), headers.get("ratelimit-limit")]).toEqual([
    503,
    "1",
    null,
  ]);
  expect(body).toContain("cannot be checked");
});
