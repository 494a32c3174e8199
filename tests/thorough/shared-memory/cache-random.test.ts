// The shared cache in one thread: bodies of every length, and random operations beside a Map.
import { afterEach, expect, test } from "bun:test";
import { CacheMaintenance } from "../../../src/shared-memory/cache/cache-maintenance.ts";
import { createCacheMemory } from "../../../src/shared-memory/cache/memory.ts";
import { Random } from "../../support/random.ts";
import {
  bodyOf,
  checkCache,
  faultOf,
  openCache,
  recordOf,
} from "../../unit/shared-memory/cache-support.ts";

const open: CacheMaintenance[] = [];
afterEach(() => {
  for (const each of open.splice(0)) void each.close();
});

function cacheOf(maxBytes: number) {
  const memory = createCacheMemory({ maxBytes, workers: 2, maxFileBytes: 0 });
  const maintenance = new CacheMaintenance(memory);
  open.push(maintenance);
  return { memory, maintenance, cache: openCache(memory), other: openCache(memory, { worker: 1 }) };
}

test("what one worker stores, another finds, byte by byte, at every length around the sizes of blocks", () => {
  const { memory, cache, other } = cacheOf(16_777_216);
  for (const size of [0, 1, 511, 512, 513, 4096, 65_535, 65_536, 65_537, 300_000])
    for (let near = -80; near <= 0; near++) {
      const length = Math.max(0, size + near);
      expect(cache.put(recordOf(cache, `page-${length}`, { length }))).toBe(true);
      const found = other.find(`page-${length}`, () => true);
      expect(found?.head).toEqual({ key: `page-${length}`, variant: "", version: 0 });
      expect(Buffer.compare(found!.body()!, bodyOf(`page-${length}`, 0, length))).toBe(0);
    }
  checkCache(memory);
});

test("random operations do what a Map does", async () => {
  const { memory, maintenance, cache, other } = cacheOf(67_108_864);
  const random = new Random(1234);
  const model = new Map<string, number>();
  for (let round = 0; round < 30_000; round++) {
    const key = `key-${random.between(0, 500)}`;
    const by = random.chance(0.5) ? cache : other;
    const action = random.between(0, 100);
    if (action < 40) {
      const length = random.chance(0.02) ? random.between(0, 200_000) : random.between(0, 3000);
      expect(by.put(recordOf(by, key, { version: round, length }))).toBe(true);
      model.set(key, round);
    } else if (action < 45) {
      const found = by.find(key, () => true);
      expect(found !== null && by.remove(found)).toBe(model.delete(key));
    } else if (action < 50) {
      expect(by.invalidate(`h/${key}`)).toBe(model.delete(key) ? 1 : 0);
    } else if (action < 55) {
      const found = by.find(key, () => true);
      if (found === null) continue;
      // The body stays that of the former version, which the head names.
      const { body, ...next } = recordOf(by, key, { version: found.head.version, length: 0 });
      expect(by.update(found, { ...next, tags: [`${body.length} ${round}`] })).toBe(true);
    } else {
      expect(by.find(key, () => true)?.head.version).toBe(model.get(key));
      expect(faultOf(by, key)).toBeNull();
    }
  }
  expect(checkCache(memory).toSorted()).toEqual([...model.keys()].toSorted());
  expect(await maintenance.purge({ by: "all" }, { soft: false })).toBe(model.size);
  expect(maintenance.counts()).toMatchObject({ entries: 0, bytes: 0 });
  checkCache(memory);
});
