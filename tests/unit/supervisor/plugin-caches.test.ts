// Stores of earlier versions, which requests that are under way still use.
import { expect, test } from "bun:test";
import { createLog } from "../../../src/log.ts";
import { CacheMaintenance } from "../../../src/shared-memory/cache/cache-maintenance.ts";
import { Locks } from "../../../src/shared-memory/locks.ts";
import { createCacheMemory, Views, words } from "../../../src/shared-memory/cache/memory.ts";
import type { PluginPlan } from "../../../src/snapshot/snapshot.ts";
import { PluginCaches } from "../../../src/supervisor/plugin-caches.ts";
import { eventually } from "../../support/poll.ts";
import { plugins } from "../../support/plugins.ts";
import { has, openCache, recordOf } from "../shared-memory/cache-support.ts";

const plan = {
  id: "p1",
  name: "response-cache",
  config: { max_total: 1_048_576, storage: "memory" },
} as unknown as PluginPlan;

function retirable() {
  const caches = new PluginCaches({
    workers: 2,
    definitionOf: (name) => plugins.find((plugin) => plugin.name === name),
    log: createLog({ level: "error", format: "json", sink: () => {} }),
  });
  const { cache: memory } = caches.withCache(plan);
  if (memory === undefined) throw new Error("the plan has no store");
  return { caches, memory, retire: () => caches.retain(new Map()) };
}

test("requests of an earlier version store nothing once its memory is returned", async () => {
  const { memory, retire } = retirable();
  const cache = openCache(memory);
  const before = recordOf(cache, "page");
  cache.put(recordOf(cache, "other"));
  retire();
  await eventually(() => !has(cache, "other"));
  // The memory knows no longer that the response is older than this.
  cache.invalidate("h/page");
  expect(cache.put(before)).toBe(false);
  expect(has(cache, "page")).toBe(false);
  expect(cache.put(recordOf(cache, "page"))).toBe(false);
});

test("memory whose lock a thread has is returned when that thread is gone", async () => {
  const { caches, memory, retire } = retirable();
  const cache = openCache(memory);
  cache.put(recordOf(cache, "page"));
  new Locks(new Views(memory).words, 3).acquire(words.lock, 0);
  retire();
  await new Promise(setImmediate);
  expect(has(cache, "page")).toBe(true);
  caches.forgetThread(3);
  await eventually(() => !has(cache, "page"));
  expect(cache.put(recordOf(cache, "page"))).toBe(false);
});

test("purges of a store that is closed meanwhile end", async () => {
  const memory = createCacheMemory({ maxBytes: 16_777_216, workers: 2 });
  const maintenance = new CacheMaintenance(memory);
  const cache = openCache(memory);
  for (let at = 0; at < 5000; at++) cache.put(recordOf(cache, `${at}`, { tags: ["news"] }));
  const purges = [
    maintenance.purge({ by: "all" }, { soft: false }),
    maintenance.purge({ by: "all" }, { soft: true }),
    maintenance.purge({ by: "tag", value: "news" }, { soft: false }),
    maintenance.purge({ by: "key", value: "h/1" }, { soft: true }),
  ];
  await maintenance.close();
  await Promise.all(purges);
  await maintenance.purge({ by: "tag", value: "news" }, { soft: false });
});
