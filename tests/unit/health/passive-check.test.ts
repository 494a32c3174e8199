// When passive checks eject a target, for how long, and when they must not.
import { describe, expect, test } from "bun:test";
import {
  checkSucceeded,
  ejectedUntil,
  readHealth,
} from "../../../src/shared-memory/target-health.ts";
import { passiveOf } from "./fixture.ts";

describe("a target is ejected", () => {
  test("by as many failures in a row as the service says", () => {
    const scene = passiveOf(2, { consecutive_failures: 3 });
    scene.failed(0, 2);
    expect(scene.isEjected(0)).toBe(false);
    scene.failed(0);
    expect(scene.isEjected(0)).toBe(true);
    expect(scene.isEjected(1)).toBe(false);
    expect(readHealth(scene.board, scene.rowsOf(0).target, Date.now())).toMatchObject({
      state: "unhealthy",
      by: "passive",
      lastError: "the target refused the connection",
    });
  });

  test("by statuses that the service counts as failures, and by no others", () => {
    const scene = passiveOf(2, { consecutive_failures: 2, statuses: [503] });
    for (const status of [500, 502, 404, 500]) scene.answered(0, status);
    expect(scene.isEjected(0)).toBe(false);
    scene.answered(0, 503);
    scene.answered(0, 503);
    expect(scene.isEjected(0)).toBe(true);
    expect(readHealth(scene.board, scene.rowsOf(0).target, Date.now()).lastError).toBe(
      "the target responded with status 503",
    );
  });

  test("not when a success lies between the failures", () => {
    const scene = passiveOf(2, { consecutive_failures: 2 });
    for (let round = 0; round < 5; round++) {
      scene.failed(0);
      scene.answered(0, 200);
    }
    expect(scene.isEjected(0)).toBe(false);
  });

  test("not when passive checks are off", () => {
    const scene = passiveOf(2, { enabled: false, consecutive_failures: 1 });
    scene.failed(0, 10);
    scene.answered(0, 503);
    expect(scene.isEjected(0)).toBe(false);
    expect(readHealth(scene.board, scene.rowsOf(0).target, Date.now()).state).not.toBe("unhealthy");
  });

  test("once for simultaneous failures, however many", () => {
    const scene = passiveOf(2, { consecutive_failures: 1 });
    scene.failed(0, 20);
    expect(scene.board.get(scene.rowsOf(0).target, "ejections")).toBe(1);
  });
});

describe("an ejection", () => {
  const lengthOf = (scene: ReturnType<typeof passiveOf>) =>
    (scene.board.get(scene.rowsOf(0).target, "ejected_until") -
      scene.board.get(scene.rowsOf(0).target, "since")) /
    10;

  test("is longer each time, up to the longest", () => {
    const scene = passiveOf(2, {
      consecutive_failures: 1,
      ejection_seconds: 30,
      max_ejection_seconds: 100,
    });
    const lengths: number[] = [];
    for (let round = 0; round < 5; round++) {
      scene.failed(0);
      lengths.push(lengthOf(scene));
      scene.pass(0, lengthOf(scene) + 1);
    }
    expect(lengths).toEqual([30, 60, 90, 100, 100]);
  });

  test("ends when the clock was set back, instead of lasting longer", () => {
    const { board, rowsOf } = passiveOf(1);
    const { target } = rowsOf(0);
    board.set(target, "since", 100_000);
    board.set(target, "ejected_until", 100_300);
    expect(ejectedUntil(board, target, 100_010)).toBe(100_300);
    // The clocks of two threads may differ a little.
    expect(ejectedUntil(board, target, 99_980)).toBe(100_300);
    expect(ejectedUntil(board, target, 64_000)).toBe(0);
  });

  test("begins with the first length again after the target has worked for the longest", () => {
    const scene = passiveOf(2, {
      consecutive_failures: 1,
      ejection_seconds: 30,
      max_ejection_seconds: 100,
    });
    scene.failed(0);
    scene.pass(0, 31);
    scene.failed(0);
    expect(lengthOf(scene)).toBe(60);
    scene.pass(0, 60 + 102);
    scene.failed(0);
    expect(lengthOf(scene)).toBe(30);
  });
});

describe("max_ejection_percent", () => {
  test.each([
    { count: 1, percent: 100, ejected: 0, why: "the only one is never ejected" },
    { count: 2, percent: 50, ejected: 1, why: "half of two" },
    { count: 3, percent: 50, ejected: 1, why: "no more than half of three" },
    { count: 3, percent: 10, ejected: 1, why: "one of several may always go" },
    { count: 3, percent: 0, ejected: 0, why: "but not when none may" },
    { count: 10, percent: 30, ejected: 3, why: "three of ten" },
    { count: 4, percent: 100, ejected: 3, why: "never the last one" },
  ])(
    "limits ejections: $why: $count targets at $percent percent",
    ({ count, percent, ejected }) => {
      const scene = passiveOf(count, { consecutive_failures: 1, max_ejection_percent: percent });
      for (let round = 0; round < 3; round++)
        for (let index = 0; index < count; index++) scene.failed(index);
      const out = Array.from({ length: count }, (_, index) => scene.isEjected(index));
      expect(out.filter(Boolean)).toHaveLength(ejected);
    },
  );

  test("counts targets that active checks or users have taken out as not usable", () => {
    const scene = passiveOf(3, { consecutive_failures: 1, max_ejection_percent: 100 });
    scene.fail(0);
    scene.order(1, "unhealthy");
    scene.failed(2);
    expect(scene.isEjected(2)).toBe(false);
    scene.order(1, "auto");
    scene.failed(2);
    expect(scene.isEjected(2)).toBe(true);
  });
});

describe("a target that fails and stays in use", () => {
  const seen = (scene: ReturnType<typeof passiveOf>, index = 0) =>
    readHealth(scene.board, scene.rowsOf(index).target, Date.now());
  const version = (scene: ReturnType<typeof passiveOf>) =>
    scene.board.get(scene.rowsOf(0).service, "version");

  test.each([
    { why: "the only one", count: 1, settings: {} },
    { why: "none may be ejected", count: 2, settings: { max_ejection_percent: 0 } },
    { why: "passive checks are off", count: 2, settings: { enabled: false } },
  ])("is failing, from its first failure to its next success: $why", ({ count, settings }) => {
    const scene = passiveOf(count, settings);
    expect(seen(scene).state).toBe("unknown");
    for (let failures = 0; failures < 12; failures++) {
      scene.failed(0);
      expect(seen(scene)).toMatchObject({
        state: "failing",
        by: "passive",
        lastError: "the target refused the connection",
        isCertain: failures >= 4,
      });
    }
    expect(scene.isEjected(0)).toBe(false);
    scene.answered(0, 200);
    expect(seen(scene)).toMatchObject({ state: "healthy", by: "passive", isCertain: true });
  });

  test("keeps its share of the requests, alone or among several", () => {
    const alone = passiveOf(1);
    alone.failed(0, 20);
    expect(alone.picked()).toEqual(["t0"]);
    const two = passiveOf(2, { max_ejection_percent: 0 });
    two.failed(0, 20);
    expect(two.picked()).toEqual(["t0", "t1"]);
  });

  test("makes workers reload when it is certain and when it recovers, not for each failure", () => {
    const scene = passiveOf(1, { consecutive_failures: 3 });
    scene.answered(0, 200);
    const before = version(scene);
    for (let round = 0; round < 5; round++) {
      scene.failed(0, 2);
      scene.answered(0, 200);
    }
    expect(version(scene)).toBe(before);
    scene.failed(0, 10);
    expect(version(scene)).toBe(before + 1);
    scene.answered(0, 200);
    expect(version(scene)).toBe(before + 2);
  });

  test("is one that was ejected, too, from the end of the ejection to its next success", () => {
    const scene = passiveOf(2, { consecutive_failures: 2 });
    scene.failed(0, 2);
    expect(seen(scene).state).toBe("unhealthy");
    scene.pass(0, 31);
    expect(seen(scene)).toMatchObject({ state: "failing", by: "passive", isCertain: true });
    expect(scene.picked()).toEqual(["t0", "t1"]);
    scene.answered(0, 200);
    expect(seen(scene).state).toBe("healthy");
  });

  test("is healthy while active checks say so, until as many requests have failed as the service says", () => {
    const scene = passiveOf(1, { consecutive_failures: 2 });
    const thresholds = { healthy: 1, unhealthy: 1 };
    checkSucceeded(scene.board, scene.rowsOf(0), { thresholds, now: Date.now() });
    scene.failed(0);
    expect(seen(scene)).toMatchObject({ state: "healthy", by: "active" });
    scene.failed(0);
    expect(seen(scene)).toMatchObject({ state: "failing", by: "passive" });
    scene.fail(0);
    expect(seen(scene)).toMatchObject({ state: "unhealthy", by: "active" });
  });

  test("is unknown again when a user resets it, and an override takes precedence", () => {
    const scene = passiveOf(1);
    scene.failed(0, 10);
    scene.order(0, "healthy");
    expect(seen(scene)).toMatchObject({ state: "healthy", by: "override" });
    scene.order(0, "auto");
    expect(seen(scene)).toMatchObject({ state: "unknown", by: null });
    scene.failed(0);
    expect(seen(scene)).toMatchObject({ state: "failing", isCertain: false });
  });
});
