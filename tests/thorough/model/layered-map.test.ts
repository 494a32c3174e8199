// Maps of very many objects against a plain Map: random writes over many versions, indexes, order, and what differs.
import { describe, expect, test } from "bun:test";

import type { Identity } from "../../../src/model/fields.ts";
import { byAge, findBy, LayeredMap } from "../../../src/model/layered-map.ts";
import { PackedRows } from "../../../src/model/packed-rows.ts";

interface Thing extends Identity {
  readonly name: string;
  readonly owner: string | null;
  readonly words: readonly string[];
  readonly on: boolean;
}

const nameOf = ({ name }: Thing) => name;
const ownerOf = ({ owner }: Thing) => owner;
const indexes = [nameOf, ownerOf];

/** The same numbers in each run. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const at = (ms: number) => new Date(1_700_000_000_000 + ms).toISOString();

function createThings(seed: number) {
  const random = createRandom(seed);
  let made = 0;
  const words = ["", "ä", 'a "quoted" \\ word\n', "😀", "x".repeat(200)];
  const pick = () => words[random(words.length)] ?? "";
  return {
    random,
    make(created = ++made): Thing {
      const id = crypto.randomUUID();
      const own = {
        name: `${pick()} ${random(300)}`,
        owner: random(3) === 0 ? null : `owner ${random(20)}`,
        words: Array.from({ length: random(3) }, pick),
        on: random(2) === 0,
      };
      const times = { created_at: at(created), updated_at: at(created + random(2)) };
      // Members may stand in any order.
      return random(2) === 0 ? { id, ...own, ...times } : { ...times, ...own, id };
    },
  };
}

/** Every result of a map must equal that of the plain one. */
function expectSame(map: ReadonlyMap<string, Thing>, plain: ReadonlyMap<string, Thing>): void {
  const expected = [...plain.values()].sort(byAge);
  expect(map.size).toBe(expected.length);
  expect([...map.values()]).toEqual(expected);
  expect([...map.keys()]).toEqual(expected.map(({ id }) => id));
  expect([...map]).toEqual(expected.map((thing) => [thing.id, thing]));
  for (const thing of expected) expect(map.get(thing.id)).toEqual(thing);
  for (const [indexOf, count, text] of [
    [nameOf, 300, " "],
    [ownerOf, 20, "owner "],
  ] as const)
    for (let number = 0; number < count; number += 7) {
      const value = `${text}${number}`;
      const found = expected.filter((thing) => indexOf(thing) === value);
      expect(findBy(map, indexOf, { value })).toEqual(found);
      const except = found[0]?.id ?? null;
      expect(findBy(map, indexOf, { value, except })).toEqual(found.slice(1));
    }
}

describe("rows", () => {
  test("give back what was added, member by member in its order", () => {
    const { make } = createThings(1);
    const things = Array.from({ length: 5_000 }, () => make());
    const rows = PackedRows.of(things, indexes);
    expect(rows.size).toBe(things.length);
    for (const [row, thing] of things.entries()) {
      expect(rows.rowOf(thing.id)).toBe(row);
      expect(rows.at(row)).toEqual(thing);
      const withoutId = ({ id: _, ...rest }: Thing) => JSON.stringify(rest);
      expect(withoutId(rows.at(row))).toBe(withoutId(thing));
    }
    expect(rows.rowOf(crypto.randomUUID())).toBe(-1);
    expect(rows.latest).toBe(Math.max(...things.map((thing) => Date.parse(thing.updated_at))));
  });

  test("may be larger than a block", () => {
    const thing = { ...createThings(2).make(), name: "ß".repeat(2_000_000) };
    const other = createThings(3).make();
    const rows = PackedRows.of([other, thing, { ...other, id: crypto.randomUUID() }], indexes);
    expect(rows.at(1)).toEqual(thing);
    expect(rows.at(2).name).toBe(other.name);
    expect(rows.find(nameOf, thing.name, null)).toEqual([thing]);
  });
});

describe.each([
  ["packed", indexes],
  ["plain", null],
] as const)("a layered map over %s rows", (kind, indexes) => {
  test("equals a plain map over many versions, and earlier versions stay unchanged", () => {
    const { make, random } = createThings(4);
    const first = Array.from({ length: 2_000 }, () => make());
    let map = LayeredMap.of(first, indexes);
    let plain = new Map(first.map((thing) => [thing.id, thing]));
    expectSame(map, plain);
    const versions = [{ map, plain }];
    // Enough to merge recent writes, and to pack the merged rows.
    for (let version = 1; version <= 120; version++) {
      const [next, changed] = [map.draft(), new Map(plain)];
      // Of those there were before this version, and of those that it adds.
      const ids = [...changed.keys()];
      for (let write = random(160); write >= 0; write--) {
        const old = changed.get(ids[random(ids.length)] ?? "");
        const kind = random(4);
        if (kind === 0 && old !== undefined) {
          expect(next.delete(old.id)).toBe(true);
          changed.delete(old.id);
          // As when a deletion is reverted.
          if (random(4) > 0) continue;
        }
        const written =
          old === undefined || kind >= 2
            ? make()
            : { ...make(), id: old.id, created_at: old.created_at };
        next.set(written.id, written);
        changed.set(written.id, written);
        if (old === undefined || kind >= 2) ids.push(written.id);
      }
      expect(next.delete(crypto.randomUUID())).toBe(false);
      expect(next.size).toBe(changed.size);
      const known = next.changesSince(map);
      expect(known).not.toBeNull();
      const removals = [...plain.keys()].filter((id) => !changed.has(id));
      expect([...(known?.removals ?? [])].sort()).toEqual(removals.sort());
      const upserts = [...changed.values()].filter((thing) => plain.get(thing.id) !== thing);
      const byId = (a: Thing, b: Thing) => (a.id < b.id ? -1 : 1);
      expect([...(known?.upserts ?? [])].sort(byId)).toEqual(upserts.sort(byId));
      [map, plain] = [next, changed];
      if (version % 20 === 0) versions.push({ map, plain });
    }
    for (const version of versions) expectSame(version.map, version.plain);
  });

  test("knows the difference only from the version that it was made from", () => {
    const { make } = createThings(5);
    const first = LayeredMap.of([make(), make()], indexes);
    const second = first.draft().set("a", { ...make(), id: "a" });
    const third = second.draft();
    third.delete("a");
    expect(third.changesSince(second)).toEqual({ upserts: [], removals: ["a"] });
    expect(third.changesSince(first)).toBeNull();
    expect(second.changesSince(first)?.removals).toEqual([]);
    const undone = second.draft().set("b", { ...make(), id: "b" });
    undone.delete("b");
    expect(undone.changesSince(second)).toEqual({ upserts: [], removals: [] });
  });

  test("merges a large change into its rows, and still knows the difference", () => {
    const { make } = createThings(8);
    const first = LayeredMap.of([make(), make()], indexes);
    const draft = first.draft();
    const many = Array.from({ length: 6_000 }, () => make());
    for (const thing of many) draft.set(thing.id, thing);
    const [gone] = first.keys();
    draft.delete(gone ?? "");
    const settled = draft.settled();
    expect(settled).not.toBe(draft);
    expectSame(settled, new Map([...draft]));
    expect(settled.changesSince(first)).toEqual({ upserts: many, removals: [gone ?? ""] });
    expect(
      first
        .draft()
        .set("a", { ...make(), id: "a" })
        .settled().size,
    ).toBe(3);
  });

  test("keeps plain objects as they are", () => {
    const { make } = createThings(9);
    const things = [make(), make()];
    const map = LayeredMap.of(things, indexes).draft();
    const isSame = things.every((thing) => map.get(thing.id) === thing);
    expect(isSame).toBe(kind === "plain");
  });

  test("knows the latest time, also of later writes", () => {
    const { make } = createThings(6);
    const map = LayeredMap.of([make(10), make(20)], indexes);
    const draft = map.draft();
    draft.set("a", { ...make(5_000), id: "a", updated_at: at(9_000) });
    expect(draft.latest).toBe(Date.parse(at(9_000)));
    expect(map.latest).toBeLessThan(draft.latest);
  });
});

describe("a layered map over packed rows", () => {
  test("has only its own indexes", () => {
    const map = LayeredMap.of([createThings(7).make()], [nameOf]);
    expect(map.find(ownerOf, "owner 1")).toBeUndefined();
    const [only] = map.values();
    expect(findBy(map, ({ on }) => String(on), { value: String(only?.on) })).toHaveLength(1);
  });
});
