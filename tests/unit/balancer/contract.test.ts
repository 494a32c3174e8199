// What every balancer must do, whatever its algorithm.
import { describe, expect, test } from "bun:test";
import { createBalancer } from "../../../src/dataplane/balancer/algorithms.ts";
import type { BalancerTarget, Load } from "../../../src/dataplane/balancer/balancer.ts";
import { Random } from "../../support/random.ts";

const algorithms = [
  "round_robin",
  "least_connections",
  "random_two",
  "ewma",
  "consistent_hash",
  "first",
] as const;
/** Those that divide traffic by weight. */
const sharing = algorithms.filter((name) => name !== "first");

const PICKS = 10_000;

function loadOf(seed: number, change: Partial<Load<BalancerTarget>> = {}): Load<BalancerTarget> {
  const random = randomFrom(seed);
  let turn = 0;
  return {
    active: () => 0,
    latency: () => 1000,
    slowStartFactor: () => 1,
    isFull: () => false,
    nextTurn: () => turn++,
    random,
    ...change,
  };
}

const candidatesOf = (...weights: number[]): BalancerTarget[] =>
  weights.map((weight, index) => ({ id: `target ${index}`, weight }));

const keyFrom = (random: () => number) => Math.floor(random() * 2 ** 32) | 0;

/** How often each candidate was picked, by place. */
function shares(
  algorithm: (typeof algorithms)[number],
  candidates: BalancerTarget[],
  load = loadOf(1),
): number[] {
  const balancer = createBalancer(algorithm, candidates, load);
  const random = randomFrom(7);
  const counts = candidates.map(() => 0);
  for (let pick = 0; pick < PICKS; pick++) {
    const found = balancer.pick({ key: keyFrom(random), tried: null });
    const place = candidates.indexOf(found as BalancerTarget);
    counts[place] = (counts[place] ?? 0) + 1;
  }
  return counts.map((count) => count / PICKS);
}

describe.each(sharing.map((name) => [name] as const))("%s shares by weight", (algorithm) => {
  test.each([
    [[1, 1]],
    [[100, 100, 100, 100]],
    [[1, 2, 3]],
    [[5, 1, 1]],
    [[100, 50, 25, 25, 10, 1]],
    [[65_535, 3, 977]],
    [Array.from({ length: 40 }, (_, index) => 1 + (index % 7))],
  ])("%j, within 2 percent of all picks", (weights) => {
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const found = shares(algorithm, candidatesOf(...weights));
    for (const [index, weight] of weights.entries())
      expect(Math.abs((found[index] ?? 0) - weight / total)).toBeLessThan(0.02);
  });
});

describe.each(algorithms.map((name) => [name] as const))("%s", (algorithm) => {
  test("never picks a target that was tried, and says so when none is left", () => {
    const candidates = candidatesOf(3, 2, 1, 1);
    const balancer = createBalancer(algorithm, candidates, loadOf(2));
    for (let round = 0; round < 200; round++) {
      const tried = new Set<string>();
      for (let attempt = 0; attempt < candidates.length; attempt++) {
        const found = balancer.pick({ key: round, tried });
        expect(found).not.toBeNull();
        expect(tried.has(found?.id ?? "")).toBe(false);
        tried.add(found?.id ?? "");
      }
      expect(balancer.pick({ key: round, tried })).toBeNull();
    }
  });

  test("never picks a target at its connection limit", () => {
    const candidates = candidatesOf(1, 5, 1);
    const isFull = ({ id }: BalancerTarget) => id === "target 1";
    const found = shares(algorithm, candidates, loadOf(3, { isFull }));
    expect(found[1]).toBe(0);
    expect((found[0] ?? 0) + (found[2] ?? 0)).toBeCloseTo(1, 9);
  });

  test("returns no target from an empty list and the only one from a list of one", () => {
    expect(createBalancer(algorithm, [], loadOf(4)).pick({ key: 1, tried: null })).toBeNull();
    const only = candidatesOf(7);
    const balancer = createBalancer(algorithm, only, loadOf(4));
    expect(balancer.pick({ key: null, tried: null })).toBe(only[0] as BalancerTarget);
  });

  test("picks without a key", () => {
    const balancer = createBalancer(algorithm, candidatesOf(1, 1), loadOf(5));
    for (let pick = 0; pick < 50; pick++)
      expect(balancer.pick({ key: null, tried: null })).not.toBeNull();
  });

  test("a target in slow start gets fewer requests, and all when it is the only one", () => {
    const candidates = candidatesOf(1, 1);
    const active = () => 3;
    const slowStartFactor = ({ id }: BalancerTarget) => (id === "target 0" ? 0.1 : 1);
    if (algorithm !== "first" && algorithm !== "consistent_hash") {
      const [cold = 1] = shares(algorithm, candidates, loadOf(6, { slowStartFactor, active }));
      expect(cold).toBeLessThan(0.4);
    }
    const alone = createBalancer(algorithm, candidates.slice(0, 1), loadOf(6, { slowStartFactor }));
    expect(alone.pick({ key: 1, tried: null })?.id).toBe("target 0");
  });
});

test("round_robin takes turns strictly when weights are equal", () => {
  const candidates = candidatesOf(100, 100, 100);
  const balancer = createBalancer("round_robin", candidates, loadOf(8));
  const order = Array.from({ length: 9 }, () =>
    balancer.pick({ key: null, tried: null })?.id.slice(-1),
  );
  expect(order.join("")).toBe("012012012");
});

test("round_robin spreads the turns of a heavy target as nginx does", () => {
  const balancer = createBalancer("round_robin", candidatesOf(5, 1, 1), loadOf(9));
  const order = Array.from({ length: 7 }, () =>
    balancer.pick({ key: null, tried: null })?.id.slice(-1),
  );
  expect(order.join("")).toBe("0010200");
});

test("least_connections prefers the target with fewer requests for its weight", () => {
  const active = ({ id }: BalancerTarget) => (id === "target 0" ? 4 : 3);
  const balancer = createBalancer("least_connections", candidatesOf(2, 1), loadOf(10, { active }));
  expect(balancer.pick({ key: null, tried: null })?.id).toBe("target 0");
});

test("random_two never picks a target that is always the busier of two", () => {
  const active = ({ id }: BalancerTarget) => (id === "target 2" ? 100 : 1);
  const [, , busy] = shares("random_two", candidatesOf(1, 1, 1), loadOf(11, { active }));
  expect(busy).toBe(0);
});

test("ewma prefers the faster of two and tries one without measurements", () => {
  const latency = ({ id }: BalancerTarget) => (id === "target 0" ? 50_000 : 1000);
  const [slow] = shares("ewma", candidatesOf(1, 1), loadOf(12, { latency }));
  expect(slow).toBe(0);
  const unknown = ({ id }: BalancerTarget) => (id === "target 0" ? 0 : 1000);
  const [fresh] = shares("ewma", candidatesOf(1, 1), loadOf(12, { latency: unknown }));
  expect(fresh).toBe(1);
});

describe("consistent_hash", () => {
  const place = (candidates: BalancerTarget[]) => {
    const balancer = createBalancer("consistent_hash", candidates, loadOf(13));
    const random = randomFrom(14);
    return Array.from(
      { length: PICKS },
      () => balancer.pick({ key: keyFrom(random), tried: null })?.id,
    );
  };

  test.each([[2], [3], [5], [10], [50]])(
    "of %i targets, removing one moves only its own keys",
    (count) => {
      const all = candidatesOf(...Array.from({ length: count }, () => 100));
      const [before, after] = [place(all), place(all.slice(1))];
      const moved = before.filter((id, index) => id !== after[index]).length / PICKS;
      expect(moved).toBeLessThanOrEqual(1 / count + 0.05);
      for (const [index, id] of before.entries())
        if (id !== "target 0") expect(after[index]).toBe(id);
    },
  );

  test("is the same in every process and whatever the order of the targets", () => {
    const all = candidatesOf(1, 1, 1);
    expect(place(all)).toEqual(place(all.toReversed()));
    expect(place(all).slice(0, 3)).toMatchInlineSnapshot(`
      [
        "target 0",
        "target 1",
        "target 2",
      ]
    `);
  });

  test("a key whose target failed goes to the same second choice every time", () => {
    const balancer = createBalancer("consistent_hash", candidatesOf(1, 1, 1), loadOf(15));
    const first = balancer.pick({ key: 42, tried: null })?.id ?? "";
    const seconds = Array.from(
      { length: 20 },
      () => balancer.pick({ key: 42, tried: new Set([first]) })?.id,
    );
    expect(new Set(seconds).size).toBe(1);
  });
});

/** Numbers from 0 to below 1 that repeat with their seed. */
function randomFrom(seed: number): () => number {
  const random = new Random(seed);
  return () => random.next();
}
