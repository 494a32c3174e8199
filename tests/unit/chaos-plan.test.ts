// The plan of a run of chaos: what `--seed` repeats.
import { expect, test } from "bun:test";
import { drawPlan, kinds } from "../chaos/plan.ts";

test("a seed repeats the faults of a run, their order and their times", () => {
  expect(drawPlan({ seed: 7, minutes: 2 })).toEqual(drawPlan({ seed: 7, minutes: 2 }));
  expect(drawPlan({ seed: 7, minutes: 2 })).not.toEqual(drawPlan({ seed: 8, minutes: 2 }));
});

test("every fault and every size of a fleet is drawn, and no node has two faults at the same time", () => {
  const plans = Array.from({ length: 50 }, (_, seed) => drawPlan({ seed, minutes: 2 }));
  const rounds = plans.flatMap((plan) => plan.rounds);
  const drawn = rounds.flatMap(({ faults }) => faults.map(({ kind }) => kind));
  expect([...new Set<string>(drawn)].toSorted()).toEqual([...kinds].toSorted());
  expect(new Set(plans.map(({ nodes }) => nodes))).toEqual(new Set([3, 4, 5]));
  for (const { faults } of rounds)
    expect(new Set(faults.map(({ node }) => node)).size).toBe(faults.length);
});
