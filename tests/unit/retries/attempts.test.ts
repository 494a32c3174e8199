// Which target is next, when there is none, and that every connection slot is released.
import { describe, expect, test } from "bun:test";
import { failures, type ProxyError, wantsFresh } from "../../../src/dataplane/error.ts";
import { backOff } from "../../../src/dataplane/request/upstream-attempts.ts";
import { readHealth } from "../../../src/shared-memory/target-health.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { World } from "./fixture.ts";

const first = { algorithm: "first", retries: { count: 10, backoff_ms: 0 } };
const tiers = [{}, {}, { priority: 1 }, { priority: 1 }, { priority: 2 }];

/** Fails one attempt after another and lists the targets, until the failure is final. */
function allTargets(world: World, error = failures.closedEarly): string[] {
  const attempts = world.attempts();
  const targets = [attempts.startAttempt()?.id ?? "none"];
  while (attempts.pauseAfterFailure(error, "repeatable") !== null)
    targets.push(attempts.startAttempt()?.id ?? "none");
  attempts.end();
  return targets;
}

describe("tiers", () => {
  test("all of a tier are tried before the next one", () => {
    expect(allTargets(new World(first, tiers))).toEqual([
      "app-0",
      "app-1",
      "app-2",
      "app-3",
      "app-4",
    ]);
  });

  test.each(["round_robin", "least_connections", "random_two", "ewma", "consistent_hash", "first"])(
    "%s: each target once, tier by tier, and the last failure is returned",
    (algorithm) => {
      for (let round = 0; round < 20; round++) {
        const world = new World({ ...first, algorithm }, tiers);
        const targets = allTargets(world);
        expect(targets.slice(0, 2).sort()).toEqual(["app-0", "app-1"]);
        expect(targets.slice(2, 4).sort()).toEqual(["app-2", "app-3"]);
        expect(targets.slice(4)).toEqual(["app-4"]);
        expect(world.active()).toEqual([0, 0, 0, 0, 0]);
      }
    },
  );

  test("unhealthy targets come last, and those that a user has taken out are never tried", () => {
    const world = new World(first, tiers);
    world.eject(0);
    world.board.set(world.row(3), "override", 2);
    world.board.add(world.board.rowOf("app"), "version", 1);
    expect(allTargets(world)).toEqual(["app-1", "app-2", "app-4", "app-0"]);
  });

  test("drained targets are never tried", () => {
    expect(allTargets(new World(first, [{ weight: 0 }, {}, { weight: 0, priority: 1 }]))).toEqual([
      "app-1",
    ]);
  });

  test("without any target no attempt starts", () => {
    const attempts = new World(first, []).attempts();
    expect([attempts.startAttempt(), attempts.target, attempts.request.attempts]).toEqual([
      null,
      null,
      0,
    ]);
    attempts.end();
  });
});

describe("a slot on the next target", () => {
  test("is taken before the pause, so that the attempt is certain", () => {
    const world = new World({ ...first, max_connections_per_target: 1 }, [{}, {}]);
    const attempts = world.attempts();
    attempts.startAttempt();
    expect(attempts.pauseAfterStatus(503, "repeatable")).not.toBeNull();
    expect(world.active()).toEqual([0, 1]);
    // Another request finds that target full and uses the one that has become free.
    const other = world.attempts();
    expect(other.startAttempt()?.id).toBe("app-0");
    expect(attempts.startAttempt()?.id).toBe("app-1");
    attempts.end();
    other.end();
    expect(world.active()).toEqual([0, 0]);
  });

  test("is released when the request ends in the pause", () => {
    const world = new World(first, [{}, {}]);
    const attempts = world.attempts();
    attempts.startAttempt();
    attempts.pauseAfterStatus(503, "repeatable");
    attempts.end();
    attempts.end();
    expect(world.active()).toEqual([0, 0]);
  });

  test("is released when the body is gone or the budget exhausted, and the present one stays", () => {
    for (const [budget, body] of [
      [20, "gone"],
      [0, "repeatable"],
    ] as const) {
      const world = new World({ ...first, retries: { ...first.retries, budget_percent: budget } }, [
        {},
        {},
      ]);
      const attempts = world.attempts();
      attempts.startAttempt();
      expect(attempts.pauseAfterFailure(failures.closedEarly, body)).toBeNull();
      expect(attempts.isBlockedByBody).toBe(body === "gone");
      expect(world.active()).toEqual([1, 0]);
      attempts.end();
      expect(world.active()).toEqual([0, 0]);
    }
  });

  test("every slot is released, whatever happens", () => {
    const seed = seedOfRun();
    const random = new Random(seed);
    const service = { retries: { count: 3, methods: "all" }, max_connections_per_target: 2 };
    const world = new World(service, [{}, {}, { priority: 1 }]);
    const errors = [
      failures.refused(),
      failures.closedEarly,
      failures.closedKept,
      failures.incomplete,
    ];
    const open = new Set<ReturnType<World["attempts"]>>();
    for (let step = 0; step < 5000; step++) {
      const attempts = open.size < 5 ? world.attempts() : random.pick([...open]);
      if (!open.has(attempts)) {
        if (attempts.startAttempt() !== null) open.add(attempts);
        continue;
      }
      const body = random.next() < 0.1 ? "gone" : "repeatable";
      const pause = attempts.pauseAfterFailure(random.pick(errors), body);
      if (pause === null || random.next() < 0.1) {
        attempts.end();
        open.delete(attempts);
      } else expect(attempts.startAttempt(), `seed ${seed}, step ${step}`).not.toBeNull();
    }
    for (const attempts of open) attempts.end();
    expect(world.active(), `seed ${seed}`).toEqual([0, 0, 0]);
  });
});

describe("a keep-alive connection that was closed", () => {
  test("is replaced once, at once, on the same target, and does not count as a retry", () => {
    const world = new World({ ...first, retries: { count: 1, on: ["reset"] } }, [{}, {}, {}]);
    const attempts = world.attempts();
    attempts.startAttempt();
    expect(attempts.isFresh).toBe(false);
    expect(attempts.pauseAfterFailure(failures.closedKept, "repeatable")).toBe(0);
    expect(attempts.startAttempt()?.id).toBe("app-0");
    expect(attempts.isFresh).toBe(true);
    // The second time it is a reset like any other, and the one retry goes elsewhere.
    expect(attempts.pauseAfterFailure(failures.closedKept, "repeatable")).not.toBeNull();
    expect(attempts.startAttempt()?.id).toBe("app-1");
    expect(attempts.isFresh).toBe(false);
    expect(attempts.pauseAfterFailure(failures.closedKept, "repeatable")).toBeNull();
    expect(attempts.request.attempts).toBe(3);
    attempts.end();
    expect(world.active()).toEqual([0, 0, 0]);
  });

  test("is replaced at a later attempt too", () => {
    const world = new World(first, [{}, {}]);
    const attempts = world.attempts();
    attempts.startAttempt();
    attempts.pauseAfterFailure(failures.refused(), "repeatable");
    attempts.startAttempt();
    expect(attempts.pauseAfterFailure(failures.closedKept, "repeatable")).toBe(0);
    expect(attempts.startAttempt()?.id).toBe("app-1");
    expect(attempts.isFresh).toBe(true);
    attempts.end();
  });

  test.each([
    ["POST", "repeatable"],
    ["PUT", "gone"],
  ] as const)("is not replaced for %s with a body that is %s", (method, body) => {
    const attempts = new World(first, [{}, {}]).attempts(method);
    attempts.startAttempt();
    expect(attempts.pauseAfterFailure(failures.closedKept, body)).toBeNull();
  });

  test.each([
    ["repeatable", 0],
    ["gone", null],
  ] as const)(
    "before the request arrived, is for POST with a body that is %s: %p",
    (body, pause) => {
      const attempts = new World(first, [{}, {}]).attempts("POST");
      attempts.startAttempt();
      expect(attempts.pauseAfterFailure(failures.closedUnread, body)).toBe(pause);
    },
  );
});

describe("the pause", () => {
  test("is random, up to twice as long as before, and never above two seconds", () => {
    expect([0, 1, 2, 3].map((retries) => backOff(25, retries, 0.5))).toEqual([12.5, 25, 50, 100]);
    expect(backOff(25, 5, 0)).toBe(0);
    expect(backOff(25, 10, 0.9999)).toBeLessThan(2000);
    expect(backOff(86_400_000, 0, 0.9999)).toBeLessThan(2000);
    expect(backOff(0, 9, 0.9999)).toBe(0);
  });

  test("is random each time", () => {
    const pauses = Array.from({ length: 50 }, () => {
      const attempts = new World({ ...first, retries: { backoff_ms: 100 } }, [{}, {}]).attempts();
      attempts.startAttempt();
      return attempts.pauseAfterStatus(503, "repeatable") ?? -1;
    });
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...pauses)).toBeLessThan(100);
    expect(new Set(pauses).size).toBeGreaterThan(40);
  });

  test("is omitted once when the target did not accept the request", () => {
    const attempts = new World({ ...first, retries: { backoff_ms: 2000 } }, [{}, {}, {}]).attempts(
      "POST",
    );
    attempts.startAttempt();
    expect(attempts.pauseAfterFailure(failures.refused(), "repeatable")).toBe(0);
    attempts.startAttempt();
    expect(attempts.pauseAfterFailure(failures.refused(), "repeatable")).not.toBe(0);
    attempts.end();
  });
});

describe("what counts against the target", () => {
  const upstream = Object.entries(failures)
    .map(
      ([name, failure]) =>
        [
          name,
          typeof failure === "function"
            ? (failure as unknown as (detail: string) => ProxyError)(
                "the target's certificate is not valid",
              )
            : failure,
        ] as const,
    )
    .filter(([, error]) => error.source === "upstream" && !wantsFresh(error));

  test.each(upstream)("%s is a failure with a readable reason", (_, error) => {
    const world = new World(first, [{}]);
    const attempts = world.attempts();
    attempts.startAttempt();
    attempts.attemptFailed(error);
    const { lastError } = readHealth(world.board, world.row(0), Date.now());
    expect(lastError).toMatch(/^the (target|TLS|response)/);
    expect(world.board.get(world.row(0), "failures")).toBe(1);
  });

  test.each([
    failures.clientGone,
    failures.bodyTimeout,
    failures.noTarget,
    failures.closedKept,
    failures.closedUnread,
  ])("$detail is not a failure", (error) => {
    const world = new World(first, [{}]);
    const attempts = world.attempts();
    attempts.startAttempt();
    attempts.attemptFailed(error);
    expect(world.board.get(world.row(0), "failures")).toBe(0);
  });

  test("a response counts once it is complete, and a refused connection at once", () => {
    const world = new World(first, [{}]);
    const told = () =>
      ["failures", "outcome"].map((word) => world.board.get(world.row(0), word as "outcome"));
    const attempts = world.attempts();
    attempts.startAttempt();
    attempts.attemptResponded(200);
    expect(told()).toEqual([0, 0]);
    attempts.attemptFailed(failures.incomplete);
    attempts.attemptCompleted();
    expect(told()).toEqual([1, 2]);
    attempts.attemptResponded(200);
    attempts.attemptCompleted();
    expect(told()).toEqual([0, 1]);
    attempts.attemptResponded(503);
    attempts.attemptCompleted();
    expect(told()).toEqual([1, 2]);
  });
});
