// Purges and invalidations of the shared cache, and fetches that begin before, during and after them.
import { afterEach, describe, expect, test } from "bun:test";
import type { CacheRecord } from "../../../src/pdk/cache-store.ts";
import {
  CacheMaintenance,
  type CachePurge,
} from "../../../src/shared-memory/cache/cache-maintenance.ts";
import { createCacheMemory } from "../../../src/shared-memory/cache/memory.ts";
import { checkCache, has, openCache, recordOf } from "./cache-support.ts";

const open: CacheMaintenance[] = [];
afterEach(() => {
  for (const each of open.splice(0)) void each.close();
});

function cacheOf(maxBytes = 16_777_216) {
  const memory = createCacheMemory({ maxBytes, workers: 2 });
  const maintenance = new CacheMaintenance(memory);
  open.push(maintenance);
  return { memory, maintenance, cache: openCache(memory), other: openCache(memory, { worker: 1 }) };
}

const hard = { soft: false };
const softly = { soft: true };

test("purges remove what they name, for any host where they name none, and count it", async () => {
  const { memory, maintenance, cache, other } = cacheOf();
  const fill = () => {
    for (let at = 0; at < 20; at++)
      cache.put(recordOf(cache, `${at}`, { tags: [`t${at % 2}`, "all"] }));
  };
  fill();
  expect(await maintenance.purge({ by: "tag", value: "t0" }, hard)).toBe(10);
  expect(await maintenance.purge({ by: "key", value: "h/1" }, hard)).toBe(1);
  expect(await maintenance.purge({ by: "key", value: "/3" }, hard)).toBe(1);
  expect(await maintenance.purge({ by: "prefix", value: "h/1" }, hard)).toBe(5);
  expect(await maintenance.purge({ by: "prefix", value: "/" }, hard)).toBe(3);
  fill();
  expect(await maintenance.purge({ by: "tag", value: "t" }, hard)).toBe(0);
  expect(await maintenance.purge({ by: "tag", value: "all" }, hard)).toBe(20);
  fill();
  expect(other.invalidate("h/7")).toBe(1);
  expect(await maintenance.purge({ by: "all" }, hard)).toBe(19);
  expect(checkCache(memory)).toEqual([]);
});

test("without the host in the key, purges that name a host purge by path", async () => {
  const { maintenance, cache } = cacheOf();
  const fill = () => {
    for (const at of ["a", "ab", "b"]) cache.put(recordOf(cache, at, { resource: `/${at}` }));
  };
  fill();
  expect(await maintenance.purge({ by: "key", value: "h/a" }, hard)).toBe(1);
  expect(await maintenance.purge({ by: "prefix", value: "h/a" }, hard)).toBe(1);
  expect(await maintenance.purge({ by: "key", value: "h/b" }, softly)).toBe(1);
  expect(has(cache, "b")).toBe(true);
});

const purges: readonly CachePurge[] = [
  { by: "all" },
  { by: "key", value: "h/page" },
  { by: "key", value: "/page" },
  { by: "prefix", value: "h/pa" },
  { by: "tag", value: "news" },
];
const page: Partial<CacheRecord> = { resource: "h/page", tags: ["news"] };

describe.each(purges)("a purge %p", (which) => {
  test("holds for all workers before it is swept, and for none of what is stored after it", async () => {
    const { maintenance, cache, other } = cacheOf();
    for (let at = 0; at < 5000; at++) cache.put(recordOf(cache, `${at}`, page));
    const purged = maintenance.purge(which, hard);
    // `key` removes in slices; the others are rules, which hold as soon as the call returns.
    if (which.by !== "key") {
      expect(maintenance.counts().entries).toBeGreaterThan(0);
      for (let at = 0; at < 5000; at++) expect(has(other, `${at}`)).toBe(false);
    }
    expect(other.put(recordOf(other, "new", page))).toBe(true);
    expect(await purged).toBe(5000);
    expect(has(cache, "new")).toBe(true);
    expect(maintenance.counts().entries).toBe(1);
  });

  test("keeps out a response whose fetch began before, also when it comes long after the sweep", async () => {
    const { maintenance, cache, other } = cacheOf();
    const early = recordOf(cache, "early", page);
    const unconcerned = recordOf(cache, "other");
    expect(cache.isOutdated(early, early.epoch)).toBe(false);
    await maintenance.purge(which, hard);
    expect(other.isOutdated(early, early.epoch)).toBe(true);
    expect(other.put(early)).toBe(false);
    expect(other.put(unconcerned)).toBe(which.by !== "all");
    // So many later rules that the first one's slot is used again: then nothing of that age is stored.
    for (let at = 0; at < 100; at++) await maintenance.purge({ by: "tag", value: `${at}` }, hard);
    expect(other.put(early)).toBe(false);
    expect(other.put(recordOf(other, "late", page))).toBe(true);
  });

  test("made softly leaves stale responses, until they are stored or updated again", async () => {
    const { maintenance, cache, other } = cacheOf();
    for (const key of ["one", "two", "three"]) cache.put(recordOf(cache, key, page));
    const softOf = (key: string) => other.find(key, () => true)?.isSoftPurged;
    const early = recordOf(cache, "one", page);
    const purged = maintenance.purge(which, softly);
    if (which.by !== "key") expect(softOf("one")).toBe(true);
    expect(await purged).toBe(3);
    expect(["one", "two", "three"].map(softOf)).toEqual([true, true, true]);
    expect(other.put(early)).toBe(false);
    expect(other.put(recordOf(other, "one", page))).toBe(true);
    const { body, ...next } = recordOf(other, "two", page);
    expect(body.length).toBe(100);
    expect(
      other.update(
        other.find("two", () => true)!,
        next,
      ),
    ).toBe(true);
    expect(["one", "two", "three"].map(softOf)).toEqual([false, false, true]);
  });
});

test("an invalidation refuses only fetches of its resource that began before", () => {
  const { cache, other } = cacheOf();
  const [early, unconcerned] = [recordOf(cache, "page"), recordOf(cache, "unconcerned")];
  expect(cache.put(early)).toBe(true);
  expect(other.invalidate("h/page")).toBe(1);
  expect(has(cache, "page")).toBe(false);
  expect(cache.put(early)).toBe(false);
  expect(cache.put(unconcerned)).toBe(true);
  expect(cache.put(recordOf(cache, "page"))).toBe(true);
});

test("more purges at once than there are slots for rules all hold at the end", async () => {
  const { memory, maintenance, cache } = cacheOf();
  for (let at = 0; at < 200; at++) cache.put(recordOf(cache, `${at}`, { tags: [`t${at}`] }));
  const counts = await Promise.all(
    Array.from({ length: 200 }, (_, at) => maintenance.purge({ by: "tag", value: `t${at}` }, hard)),
  );
  expect(counts).toEqual(Array.from({ length: 200 }, () => 1));
  expect(checkCache(memory)).toEqual([]);
});

test("a rule whose text is too long concerns all that begins with as much of it as there is room for", async () => {
  const { maintenance, cache } = cacheOf();
  const path = "ä".repeat(4096);
  for (const end of ["", "x", "y"]) cache.put(recordOf(cache, `${path}${end}`));
  for (const end of ["", "x", "y"]) expect(has(cache, `${path}${end}`)).toBe(true);
  // 8,192 bytes are the slash and 4,095 letters.
  expect(await maintenance.purge({ by: "prefix", value: `/${path}x` }, hard)).toBe(3);
  cache.put(recordOf(cache, path.slice(1)));
  expect(await maintenance.purge({ by: "prefix", value: `/${path}x` }, hard)).toBe(1);
  expect(await maintenance.purge({ by: "prefix", value: `/${path.slice(1)}x` }, hard)).toBe(0);
});

test("an invalidation of a URL with entries of 10,000 consumers is complete, and their lookups stay short", async () => {
  const { memory, maintenance, cache, other } = cacheOf(67_108_864);
  const resource = "h/account";
  for (let at = 0; at < 10_000; at++) cache.put(recordOf(cache, `consumer-${at}`, { resource }));
  expect(maintenance.counts().entries).toBe(10_000);
  let decoded = 0;
  const counting = openCache(memory, {
    decode: (bytes) => {
      decoded++;
      return JSON.parse(Buffer.from(bytes).toString());
    },
  });
  for (let at = 0; at < 10_000; at++) expect(has(counting, `consumer-${at}`)).toBe(true);
  expect(decoded).toBe(10_000);
  const early = recordOf(cache, "consumer-1", { resource });
  // Up to 4,096 at once, the rest by a rule, which the main thread sweeps.
  expect(other.invalidate(resource)).toBe(4096);
  for (let at = 0; at < 10_000; at++) expect(has(cache, `consumer-${at}`)).toBe(false);
  expect(cache.put(early)).toBe(false);
  expect(cache.put(recordOf(cache, "consumer-1", { resource }))).toBe(true);
  await maintenance.purge({ by: "tag", value: "none" }, hard);
  expect(checkCache(memory)).toEqual(["consumer-1"]);
});
