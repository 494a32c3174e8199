// A map of what was used last, and when it is better to remember nothing.
import { describe, expect, test } from "bun:test";
import { RecentMap } from "../../../src/pdk/recent-map.ts";

const SIZE = 8;
const STANDS_ASIDE = 16 * SIZE;

/** Asks for a key and remembers it where it was not known; whether it was. */
function use(map: RecentMap<number, string>, key: number): boolean {
  const isKnown = map.get(key) !== undefined;
  if (!isKnown) map.set(key, `value ${key}`);
  return isKnown;
}

/** Uses keys of which none comes again, so many. */
function useNew(map: RecentMap<number, string>, count: number, from = 1_000): void {
  for (let key = from; key < from + count; key++) expect(use(map, key)).toBe(false);
}

describe("what is used again", () => {
  test("is known for ever, while it is not more than the map holds", () => {
    const map = new RecentMap<number, string>(SIZE);
    for (let key = 0; key < SIZE; key++) use(map, key);
    for (let turn = 0; turn < 100; turn++)
      for (let key = 0; key < SIZE; key++) expect(map.get(key)).toBe(`value ${key}`);
  });

  test("is known beside much that is not", () => {
    const map = new RecentMap<number, string>(SIZE);
    use(map, 1);
    for (let turn = 0; turn < 500; turn++) {
      useNew(map, 2, 1_000 + 2 * turn);
      expect(use(map, 1)).toBe(true);
    }
  });
});

describe("where nothing comes again", () => {
  test("nothing is remembered for a while, and then it is tried again", () => {
    const map = new RecentMap<number, string>(SIZE);
    // The first that finds no room has turned the map over.
    useNew(map, SIZE + 1);
    map.set(1, "one");
    for (let asked = 0; asked < STANDS_ASIDE; asked++) expect(map.get(1)).toBeUndefined();
    expect(use(map, 1)).toBe(false);
    expect(use(map, 1)).toBe(true);
  });

  test("cached entries are released", () => {
    const map = new RecentMap<number, string>(SIZE);
    use(map, 1);
    useNew(map, SIZE);
    for (let asked = 0; asked < STANDS_ASIDE; asked++) map.get(2);
    expect(map.get(1)).toBeUndefined();
  });

  test("one use too few of four is not worth it", () => {
    const map = new RecentMap<number, string>(SIZE);
    for (let key = 0; key < SIZE; key++) use(map, key);
    expect(use(map, 0)).toBe(true);
    expect(use(map, 0)).toBe(true);
    // Two of eleven: the next new one turns the map over.
    use(map, 100);
    expect(use(map, 100)).toBe(false);
  });
});
