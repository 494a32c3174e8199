// The difference of two maps, against a plain comparison of all elements.
import { expect, test } from "bun:test";
import { diffMaps } from "../../../src/snapshot/diff.ts";
import { Random, seedOfRun } from "../../support/random.ts";

test("finds what a plain comparison finds, whatever the order", () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  let before = new Map<string, object>();
  for (let round = 0; round < 3_000; round++) {
    const after = new Map(before);
    for (let step = random.between(0, 6); step > 0; step--) {
      const id = `${random.between(0, 40)}`;
      if (random.chance(0.4)) after.delete(id);
      else after.set(id, {});
    }
    const next = random.chance(0.2)
      ? new Map<string, object>([...after].sort(([a], [b]) => (a < b ? -1 : 1)))
      : after;
    const { upserts, removals } = diffMaps(before, next);
    const changed = [...next].filter(([id, element]) => before.get(id) !== element);
    const gone = [...before.keys()].filter((id) => !next.has(id));
    expect(upserts, `seed ${seed}`).toEqual(changed.map(([, element]) => element));
    expect(removals, `seed ${seed}`).toEqual(gone);
    for (const [index, element] of upserts.entries()) expect(element).toBe(changed[index]![1]);
    before = next;
  }
});

test("costs nothing for the same map, and lists all elements from an empty one", () => {
  const map = new Map([["a", {}]]);
  expect(diffMaps(map, map)).toEqual({ upserts: [], removals: [] });
  expect(diffMaps(undefined, map)).toEqual({ upserts: [{}], removals: [] });
});
