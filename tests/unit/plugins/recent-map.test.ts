// A cache of recently used entries, and when it is better to cache nothing.
import { describe, expect, test } from "bun:test";
import { RecentMap } from "../../../src/pdk/recent-map.ts";

const SIZE = 8;
const STANDS_ASIDE = 16 * SIZE;

/** Looks up a key and stores it if it is missing; returns whether it was there. */
function use(map: RecentMap<number, string>, key: number): boolean {
  const isKnown = map.get(key) !== undefined;
  if (!isKnown) map.set(key, `value ${key}`);
  return isKnown;
}

/** Uses this many keys, each of them once. */
function useNew(map: RecentMap<number, string>, count: number, from = 1_000): void {
  for (let key = from; key < from + count; key++) expect(use(map, key)).toBe(false);
}

describe("an entry that is used again", () => {
  test("stays cached while the entries in use fit into the map", () => {
    const map = new RecentMap<number, string>(SIZE);
    for (let key = 0; key < SIZE; key++) use(map, key);
    for (let turn = 0; turn < 100; turn++)
      for (let key = 0; key < SIZE; key++) expect(map.get(key)).toBe(`value ${key}`);
  });

  test("stays cached beside many that are used once", () => {
    const map = new RecentMap<number, string>(SIZE);
    use(map, 1);
    for (let turn = 0; turn < 500; turn++) {
      useNew(map, 2, 1_000 + 2 * turn);
      expect(use(map, 1)).toBe(true);
    }
  });
});

describe("keys that are used once", () => {
  test("pause the cache for a while, then it resumes", () => {
    const map = new RecentMap<number, string>(SIZE);
    // The first key without room has triggered a turnover.
    useNew(map, SIZE + 1);
    map.set(1, "one");
    for (let asked = 0; asked < STANDS_ASIDE; asked++) expect(map.get(1)).toBeUndefined();
    expect(use(map, 1)).toBe(false);
    expect(use(map, 1)).toBe(true);
  });

  test("release cached entries", () => {
    const map = new RecentMap<number, string>(SIZE);
    use(map, 1);
    useNew(map, SIZE);
    for (let asked = 0; asked < STANDS_ASIDE; asked++) map.get(2);
    expect(map.get(1)).toBeUndefined();
  });

  test("pause the cache below one hit in four", () => {
    const map = new RecentMap<number, string>(SIZE);
    for (let key = 0; key < SIZE; key++) use(map, key);
    expect(use(map, 0)).toBe(true);
    expect(use(map, 0)).toBe(true);
    // Two of eleven: the next new key triggers a turnover.
    use(map, 100);
    expect(use(map, 100)).toBe(false);
  });
});
