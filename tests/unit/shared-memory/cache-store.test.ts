// The shared cache in one thread: what is stored is found, replaced, evicted, invalidated and purged, and memory stays bounded.
import { afterEach, describe, expect, test } from "bun:test";
import { CacheMaintenance } from "../../../src/shared-memory/cache/cache-maintenance.ts";
import { createCacheMemory } from "../../../src/shared-memory/cache/memory.ts";
import { checkCache, faultOf, has, openCache, recordOf } from "./cache-support.ts";

const open: CacheMaintenance[] = [];
afterEach(() => {
  for (const each of open.splice(0)) void each.close();
});

function cacheOf(maxBytes: number, { maxFileBytes = 0 } = {}) {
  const memory = createCacheMemory({ maxBytes, workers: 2, maxFileBytes });
  const maintenance = new CacheMaintenance(memory);
  open.push(maintenance);
  return { memory, maintenance, cache: openCache(memory), other: openCache(memory, { worker: 1 }) };
}

test("of several variants the newest one that the request accepts is found, and a variant is replaced", () => {
  const { memory, maintenance, cache } = cacheOf(1_000_000);
  for (const variant of ["de", "en", "fr"]) cache.put(recordOf(cache, "page", { variant }));
  expect(cache.find("page", () => true)?.head.variant).toBe("fr");
  expect(cache.find("page", ({ variant }) => variant === "de")?.head.variant).toBe("de");
  expect(cache.find("page", () => false)).toBeNull();
  cache.put(recordOf(cache, "page", { variant: "en", version: 2 }));
  expect(cache.find("page", ({ variant }) => variant === "en")?.head.version).toBe(2);
  expect(maintenance.counts().entries).toBe(3);
  checkCache(memory);
});

test("at each step of a replacement other workers find the old or the new version", () => {
  const { memory, cache, other } = cacheOf(1_000_000);
  cache.put(recordOf(cache, "page"));
  const seen = new Map<string, number | undefined>();
  const at = (step: string) => void seen.set(step, other.find("page", () => true)?.head.version);
  const replacing = openCache(memory, { at });
  expect(replacing.put(recordOf(cache, "page", { version: 1 }))).toBe(true);
  const found = replacing.find("page", () => true)!;
  const { body: _, ...next } = recordOf(cache, "page", { version: 2, variant: "de" });
  expect([...seen.values()]).not.toContain(undefined);
  seen.clear();
  expect(replacing.update(found, next)).toBe(true);
  expect(seen.get("linked")).toBe(1);
  expect(seen.get("readable")).toBe(2);
  expect([...seen.values()]).not.toContain(undefined);
  checkCache(memory);
});

describe("the bound of the memory", () => {
  test("is never exceeded, and a flood of URLs requested once does not evict what clients use", () => {
    const { memory, maintenance, cache } = cacheOf(100_000);
    for (let at = 0; at < 10; at++) cache.put(recordOf(cache, `page-${at}`, { length: 1000 }));
    for (let round = 0; round < 2000; round++) {
      for (let at = 0; at < 10; at++) expect(has(cache, `page-${at}`)).toBe(true);
      expect(cache.put(recordOf(cache, `junk-${round}`, { length: 1000 }))).toBe(true);
      expect(maintenance.counts().bytes).toBeLessThanOrEqual(100_000);
    }
    expect(maintenance.counts().evictions).toBeGreaterThan(1900);
    checkCache(memory);
  });

  test("0 stores nothing, and an entry as large as all blocks is stored, a longer one not", () => {
    const none = cacheOf(0);
    expect(none.cache.put(recordOf(none.cache, "page"))).toBe(false);
    expect(none.maintenance.counts()).toMatchObject({ entries: 0, bytes: 0, refused: 1 });
    const { memory, cache } = cacheOf(100_000);
    // 97 segments of 1024 bytes, cut into blocks of 512.
    const prefix = 16 + "page".length + "h/page".length + recordOf(cache, "page").head.length;
    for (let at = 0; at < 50; at++) cache.put(recordOf(cache, `${at}`));
    expect(cache.put(recordOf(cache, "page", { length: 97 * 1024 - prefix + 1 }))).toBe(false);
    expect(cache.put(recordOf(cache, "page", { length: 97 * 1024 - prefix }))).toBe(true);
    expect(faultOf(cache, "page")).toBeNull();
    expect(checkCache(memory)).toEqual(["page"]);
  });

  test("another size of responses gets room, and does not evict more than it needs", () => {
    const { memory, maintenance, cache } = cacheOf(8_388_608);
    for (let at = 0; at < 20_000; at++) cache.put(recordOf(cache, `small-${at}`, { length: 700 }));
    for (let at = 0; at < 400; at++)
      expect(cache.put(recordOf(cache, `large-${at}`, { length: 12_000 }))).toBe(true);
    const large = Array.from({ length: 400 }, (_, at) => at).filter((at) =>
      has(cache, `large-${at}`),
    );
    expect(large.length).toBeGreaterThan(200);
    expect(maintenance.counts().bytes).toBeGreaterThan(7_000_000);
    for (let at = 0; at < 20_000; at++) cache.put(recordOf(cache, `more-${at}`, { length: 700 }));
    const small = Array.from({ length: 20_000 }, (_, at) => at).filter((at) =>
      has(cache, `more-${at}`),
    );
    expect(small.length).toBeGreaterThan(4000);
    checkCache(memory);
  });
});

describe("variants of one key", () => {
  const find = (cache: ReturnType<typeof openCache>, wanted: string) =>
    cache.find("page", ({ variant }) => variant === wanted) !== null;

  test("are at most 64", () => {
    const { memory, maintenance, cache } = cacheOf(1_000_000);
    const put = (variant: string) => cache.put(recordOf(cache, "page", { variant }));
    for (let at = 0; at < 64; at++) put(`${at}`);
    expect(maintenance.counts()).toMatchObject({ entries: 64, evictions: 0 });
    put("64");
    expect(maintenance.counts()).toMatchObject({ entries: 64, evictions: 1 });
    expect([find(cache, "0"), find(cache, "1"), find(cache, "64")]).toEqual([false, true, true]);
    checkCache(memory);
  });

  test("in a flood evict no popular variant, and block no new one", () => {
    const { cache } = cacheOf(1_000_000);
    const put = (variant: string) => cache.put(recordOf(cache, "page", { variant }));
    put("de");
    expect(find(cache, "de")).toBe(true);
    for (let at = 0; at < 100; at++) put(`x-${at}`);
    expect(["de", "x-0", "x-99"].map((each) => find(cache, each))).toEqual([true, false, true]);
    // Also by a client that requests each of them twice.
    for (let at = 0; at < 100; at++) {
      put(`y-${at}`);
      find(cache, `y-${at}`);
    }
    for (const value of ["en", "fr", "it"]) put(value);
    expect(["en", "fr", "it"].map((each) => find(cache, each))).toEqual([true, true, true]);
  });

  test("that are replaced keep their popularity", () => {
    const { cache } = cacheOf(1_000_000);
    const put = (variant: string) => cache.put(recordOf(cache, "page", { variant }));
    put("de");
    find(cache, "de");
    put("de");
    for (let at = 0; at < 64; at++) put(`x-${at}`);
    expect(find(cache, "de")).toBe(true);
  });
});

test("keys with the same hash, and resources with the same hash, are different entries", () => {
  const memory = createCacheMemory({ maxBytes: 4_194_304, workers: 1 });
  const cache = openCache(memory, { hash: () => 7n });
  for (let at = 0; at < 100; at++) expect(cache.put(recordOf(cache, `${at}`))).toBe(true);
  for (let at = 0; at < 100; at++) expect(cache.find(`${at}`, () => true)?.head.key).toBe(`${at}`);
  expect(cache.invalidate("h/50")).toBe(1);
  expect(has(cache, "50")).toBe(false);
  expect(has(cache, "51")).toBe(true);
});

describe("entries with files", () => {
  function withFiles() {
    const memory = createCacheMemory({ maxBytes: 1_000_000, workers: 1, maxFileBytes: 1000 });
    const removed: string[] = [];
    const onFileRemoved = ({ key, version }: { key: string; version: number }) =>
      void removed.push(`${key} ${version}`);
    const cache = openCache(memory, { onFileRemoved });
    const maintenance = new CacheMaintenance(memory, {
      onFileRemoved: (head) => onFileRemoved(JSON.parse(Buffer.from(head).toString())),
    });
    open.push(maintenance);
    const put = (key: string, bytes: number, version = 0) =>
      cache.put(recordOf(cache, key, { version, length: 0, file: { bytes } }));
    return { memory, maintenance, cache, removed, put };
  }

  test("are bounded by the bytes of the files, and evicted in an order of their own", () => {
    const { memory, maintenance, cache, removed, put } = withFiles();
    expect(put("huge", 1001)).toBe(false);
    expect(put("whole", 1000)).toBe(true);
    for (const key of ["a", "b", "c", "d"]) expect(put(key, 250)).toBe(true);
    expect(removed.splice(0)).toEqual(["whole 0"]);
    for (let at = 0; at < 100; at++) cache.put(recordOf(cache, `${at}`));
    expect(maintenance.counts()).toMatchObject({ entries: 104, fileBytes: 1000, evictions: 1 });
    has(cache, "a");
    expect(put("e", 300)).toBe(true);
    expect(removed.splice(0)).toEqual(["b 0", "c 0"]);
    expect(maintenance.counts()).toMatchObject({ fileBytes: 800 });
    expect(checkCache(memory)).toContain("a");
  });

  test("give their file back when they are replaced, removed, invalidated or purged, not when they are updated", async () => {
    const { memory, maintenance, cache, removed, put } = withFiles();
    for (const key of ["a", "b", "c", "d", "e"]) put(key, 100);
    put("a", 100, 1);
    expect(removed.splice(0)).toEqual(["a 0"]);
    cache.remove(cache.find("b", () => true)!);
    expect(removed.splice(0)).toEqual(["b 0"]);
    cache.invalidate("h/c");
    expect(removed.splice(0)).toEqual(["c 0"]);
    const { body, ...next } = recordOf(cache, "d", { version: 1, length: 0 });
    expect(
      cache.update(
        cache.find("d", () => true)!,
        { ...next, variant: "x" },
      ),
    ).toBe(true);
    expect(body.length).toBe(0);
    expect(removed).toEqual([]);
    expect(maintenance.counts()).toMatchObject({ entries: 3, fileBytes: 300 });
    expect(await maintenance.purge({ by: "key", value: "h/d" }, { soft: false })).toBe(1);
    expect(removed.splice(0)).toEqual(["d 1"]);
    await maintenance.purge({ by: "all" }, { soft: false });
    expect(removed.toSorted()).toEqual(["a 1", "e 0"]);
    expect(maintenance.counts()).toMatchObject({ entries: 0, fileBytes: 0 });
    checkCache(memory);
  });

  test("make room when the memory is full of them", () => {
    const { memory, cache, removed, put } = withFiles();
    for (let at = 0; at < 1000; at++) put(`${at}`, 1);
    for (let at = 0; at < 2000; at++)
      expect(cache.put(recordOf(cache, `page-${at}`, { length: 1500 }))).toBe(true);
    expect(removed.length).toBeGreaterThan(500);
    checkCache(memory);
  });
});

test.each([100, 100_000])(
  "an entry of %i bytes that another worker has removed or replaced has no body, and is not removed again",
  (length) => {
    const { cache, other } = cacheOf(4_000_000);
    for (const change of ["replace", "remove", "invalidate"]) {
      cache.put(recordOf(cache, "page", { length }));
      const found = cache.find("page", () => true)!;
      const bodyNow = () => cache.find("page", () => true)!.body();
      for (let request = 0; request < 3; request++) expect(bodyNow()?.byteLength).toBe(length);
      // From a worker's own copy.
      expect(bodyNow()).toBe(bodyNow());
      if (change === "replace") other.put(recordOf(other, "page", { version: 1 }));
      else if (change === "remove") other.remove(other.find("page", () => true)!);
      else other.invalidate("h/page");
      expect(found.body()).toBeNull();
      expect(cache.remove(found)).toBe(false);
      const { body, ...next } = recordOf(cache, "page");
      expect(body.length).toBe(100);
      expect(cache.update(found, next)).toBe(false);
      expect(has(cache, "page")).toBe(change === "replace");
    }
  },
);

test("memory that the system refuses is a RangeError", () => {
  expect(() => createCacheMemory({ maxBytes: 2 ** 40 + 1, workers: 1 })).toThrow(RangeError);
});
