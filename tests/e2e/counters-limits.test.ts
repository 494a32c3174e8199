// rate-limit over several nodes with a real Redis server: nothing above the limit, few questions, and what happens without the server.
import { describe, expect } from "bun:test";
import { needs } from "../support/needs.ts";
import { type PluginScene, pluginScene } from "../support/plugin-scene.ts";
import { Redis } from "../support/redis.ts";

const { afterEach, test } = needs("redis-server");

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** So long that no test sees the border of two of them, unless it runs at the turn of the year. */
const YEAR = 31_536_000;

async function startRedis(): Promise<Redis> {
  const redis = await Redis.create();
  cleanups.push(() => redis.stop());
  return redis;
}

/** Data planes of several nodes with one limit. */
async function nodesWith(
  redis: Redis,
  config: Record<string, unknown>,
  { count = 3, scope = "fleet" } = {},
): Promise<PluginScene[]> {
  const address = { url: redis.url, ca: null, cert: null, key: null };
  const scenes = await Promise.all(
    Array.from({ length: count }, () =>
      pluginScene({
        sharedCounters: { ...address, scope },
        nodes: count,
        plugins: [{ name: "rate-limit", config }],
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
  clients = 12,
): Promise<Map<number, number>> {
  const seen = new Map<number, number>();
  let next = 0;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (next < requests) {
        const scene = scenes[next++ % scenes.length]!;
        const response = await fetch(scene.plane.url);
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
});
