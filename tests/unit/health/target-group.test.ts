// Which targets of a service are in use: tiers, health, overrides, limits, slow starts; the same for every worker at once.
import { describe, expect, test } from "bun:test";
import { groupOf } from "./fixture.ts";

describe("health", () => {
  test("takes a target out on every worker at once, and brings it back", () => {
    const scene = groupOf([{}, {}, {}]);
    const all = () => scene.groups.map((group) => scene.picked(group));
    expect(all()).toEqual([
      ["t0", "t1", "t2"],
      ["t0", "t1", "t2"],
    ]);
    scene.fail(1);
    expect(all()).toEqual([
      ["t0", "t2"],
      ["t0", "t2"],
    ]);
    scene.order(1, "healthy");
    expect(all()[1]).toEqual(["t0", "t1", "t2"]);
  });

  test("is ignored when all are unhealthy: one of them is tried", () => {
    const scene = groupOf([{}, {}]);
    scene.fail(0);
    scene.fail(1);
    expect(scene.picked()).toEqual(["t0", "t1"]);
  });

  test("set by an override holds even then, unless it covers all targets", () => {
    const scene = groupOf([{}, {}]);
    scene.fail(0);
    scene.order(1, "unhealthy");
    expect(scene.picked()).toEqual(["t0"]);
    scene.order(0, "unhealthy");
    expect(scene.picked()).toEqual(["t0", "t1"]);
  });

  test("set by an override with a duration ends with it", () => {
    const scene = groupOf([{}, {}]);
    scene.order(0, "unhealthy", Date.now() + 60_000);
    expect(scene.picked()).toEqual(["t1"]);
    const { target } = scene.rowsOf(0);
    scene.board.set(target, "override_until", scene.board.time(Date.now()));
    // A change of another target makes the group reload.
    scene.order(1, "healthy");
    expect(scene.picked()).toEqual(["t0", "t1"]);
    scene.fail(0);
    scene.fail(1);
    expect(scene.picked()).toEqual(["t1"]);
  });
});

describe("panic_percent", () => {
  const four = [{}, {}, {}, {}];
  test.each([
    { percent: 0, unhealthy: 3, used: ["t3"], why: "0 never ignores health" },
    { percent: 50, unhealthy: 2, used: ["t2", "t3"], why: "half of them are enough" },
    { percent: 51, unhealthy: 2, used: ["t0", "t1", "t2", "t3"], why: "half are too few" },
    { percent: 50, unhealthy: 3, used: ["t0", "t1", "t2", "t3"], why: "one is too few" },
  ])("$why", ({ percent, unhealthy, used }) => {
    const scene = groupOf(four, { health: { panic_percent: percent } });
    for (let index = 0; index < unhealthy; index++) scene.fail(index);
    expect(scene.picked()).toEqual([...used]);
  });

  test("does not bring back what a user has taken out", () => {
    const scene = groupOf(four, { health: { panic_percent: 100 } });
    scene.order(0, "unhealthy");
    scene.fail(1);
    expect(scene.picked()).toEqual(["t1", "t2", "t3"]);
  });

  test("applies per tier: one without healthy targets falls back to the next", () => {
    const scene = groupOf([{}, { priority: 1 }], { health: { panic_percent: 50 } });
    scene.fail(0);
    expect(scene.picked()).toEqual(["t1"]);
  });
});

describe("priority", () => {
  const tiers = [{}, {}, { priority: 1 }, { priority: 5 }];

  test("a tier is used when all those before it are down", () => {
    const scene = groupOf(tiers);
    expect(scene.picked()).toEqual(["t0", "t1"]);
    scene.fail(0);
    expect(scene.picked()).toEqual(["t1"]);
    scene.fail(1);
    expect(scene.picked()).toEqual(["t2"]);
    scene.fail(2);
    expect(scene.picked()).toEqual(["t3"]);
    scene.order(1, "healthy");
    expect(scene.picked()).toEqual(["t1"]);
  });

  test("a request that was tried on all of a tier continues with the next one", () => {
    const { group } = groupOf(tiers);
    const next = (...tried: string[]) => group.pick({ key: null, tried: new Set(tried) })?.id;
    expect(next("t0")).toBe("t1");
    expect(next("t0", "t1")).toBe("t2");
    expect(next("t0", "t1", "t2")).toBe("t3");
    expect(next("t0", "t1", "t2", "t3")).toBeUndefined();
  });

  test("a full tier falls back to the next one", () => {
    const scene = groupOf(tiers, { max_connections_per_target: 1 });
    for (const index of [0, 1]) scene.board.enter(scene.rowsOf(index).target, 1);
    expect(scene.picked()).toEqual(["t2"]);
  });
});

test("weight 0 gets nothing, not even as the last one", () => {
  const scene = groupOf([{ weight: 0 }, {}]);
  scene.fail(1);
  expect(scene.picked()).toEqual(["t1"]);
  expect(groupOf([{ weight: 0 }]).picked()).toEqual(["none"]);
});

describe("max_connections_per_target", () => {
  test("is exact over all workers, also when they pick the same slot", () => {
    const scene = groupOf([{}, {}], { max_connections_per_target: 2 });
    const [first, second] = scene.groups;
    const [t0, t1] = scene.targets;
    if (!first || !second || !t0 || !t1) throw new Error("nothing there");
    expect([first.enter(t0), second.enter(t0), first.enter(t0), second.enter(t0)]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(scene.board.active(t0.row)).toBe(2);
    expect(scene.picked(second)).toEqual(["t1"]);
    first.enter(t1);
    first.enter(t1);
    expect(scene.picked(second)).toEqual(["none"]);
    expect(second.isFull).toBe(true);
    second.leave(t0);
    expect(scene.picked(first)).toEqual(["t0"]);
  });

  test("is not the reported reason when there is no target", () => {
    const scene = groupOf([], { max_connections_per_target: 2 });
    expect(scene.picked()).toEqual(["none"]);
    expect(scene.group.isFull).toBe(false);
  });
});

test("a target whose row was released gets no request of an old version", () => {
  const scene = groupOf([{}]);
  const [target] = scene.targets;
  if (!target) throw new Error("nothing there");
  expect(scene.board.release("t0")).toBe(true);
  expect(scene.group.enter(target)).toBe(false);
  expect(scene.board.active(target.row)).toBe(0);
});

describe("slow_start", () => {
  const SLOW_MS = 60_000;
  const shareAfter = (part: number, fields: object = {}) => {
    const scene = groupOf([{}, {}], {
      slow_start: SLOW_MS,
      algorithm: "least_connections",
      ...fields,
    });
    const startedAgo = (index: number, ms: number) =>
      scene.board.set(
        scene.rowsOf(index).target,
        "started_at",
        scene.board.time(Date.now()) - ms / 100,
      );
    startedAgo(0, part * SLOW_MS);
    startedAgo(1, 2 * SLOW_MS);
    let count = 0;
    for (let pick = 0; pick < 4000; pick++)
      if (scene.group.pick({ key: null, tried: null })?.id === "t0") count++;
    return count / 4000;
  };

  // With both idle, each is picked in proportion to its current weight.
  test.each([
    { part: 0, weight: 0.1 },
    { part: 0.05, weight: 0.1 },
    { part: 0.25, weight: 0.25 },
    { part: 0.5, weight: 0.5 },
    { part: 0.75, weight: 0.75 },
    { part: 1, weight: 1 },
    { part: 1.5, weight: 1 },
  ])("after $part of the time a target has $weight of its weight", ({ part, weight }) => {
    expect(shareAfter(part)).toBeCloseTo(weight / (1 + weight), 1);
  });

  test("is that of a target that recovered from an ejection too", () => {
    const scene = groupOf([{}, {}], { slow_start: SLOW_MS, algorithm: "least_connections" });
    for (const index of [0, 1])
      scene.board.set(scene.rowsOf(index).target, "started_at", -2 * SLOW_MS);
    const { target } = scene.rowsOf(0);
    scene.board.set(target, "ejected_until", scene.board.time(Date.now()));
    const picks = Array.from({ length: 2000 }, () => scene.group.pick({ key: null, tried: null }));
    expect(picks.filter((picked) => picked?.id === "t0").length / 2000).toBeCloseTo(0.1 / 1.1, 1);
  });

  test("0 turns it off", () => {
    expect(shareAfter(0, { slow_start: 0 })).toBeCloseTo(0.5, 1);
  });
});
