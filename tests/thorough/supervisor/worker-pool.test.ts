// Workers that end, hang or cannot start outside of changes.
import { describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import type { Fault } from "./fault.ts";
import { freePort, PATIENT_MS, poolOf, snapshotOf } from "./fixture.ts";

test.each([
  { kind: "throw", why: "an uncaught error" },
  { kind: "exit", why: "an exit" },
] as const)("a worker that ends by $why is started again", async ({ kind }) => {
  await using fixture = poolOf(snapshotOf(1));
  await fixture.pool.start();
  const faults: Fault[] = [{ worker: 0, kind, place: "serve" }];
  await fixture.rollout.prepare(snapshotOf(2, { faults }));
  await fixture.rollout.activate(2);
  await eventually(() => fixture.log.some(({ message }) => message === "worker serves again"));
  expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 2 });
  const ended = fixture.log.find(({ message }) => message.startsWith("worker stopped"));
  expect(ended).toMatchObject({ level: "error", worker: 1 });
});

test("the events of each worker come in order", async () => {
  await using fixture = poolOf(snapshotOf(1));
  await fixture.pool.start();
  const faults: Fault[] = [{ worker: 0, kind: "throw", place: "serve" }];
  await fixture.rollout.prepare(snapshotOf(2, { faults }));
  await fixture.rollout.activate(2);
  const eventsOf = (worker: number) => fixture.events.filter((event) => event.worker === worker);
  await eventually(() => eventsOf(1).length >= 5);
  expect(eventsOf(1)).toEqual([
    { event: "started", worker: 1, revision: 1, restarts: 0, why: null },
    { event: "ready", worker: 1, revision: 1, restarts: 0, why: null },
    { event: "died", worker: 1, revision: 2, restarts: 0, why: expect.any(String) },
    { event: "restarted", worker: 1, revision: 2, restarts: 1, why: null },
    { event: "ready", worker: 1, revision: 2, restarts: 1, why: null },
  ]);
  expect(eventsOf(2).map(({ event }) => event)).toEqual(["started", "ready"]);
});

test("a replaced worker emits an event like one that ended", async () => {
  await using fixture = poolOf(snapshotOf(1));
  await fixture.pool.start();
  const faults: Fault[] = [{ worker: 1, kind: "loop", place: "activate" }];
  await fixture.rollout.prepare(snapshotOf(2, { faults }));
  fixture.setTimes({ activateMs: 500 });
  await fixture.rollout.activate(2);
  const second = fixture.events.filter(({ worker }) => worker === 2).map(({ event }) => event);
  expect(second).toEqual(["started", "ready", "died", "restarted", "ready"]);
});

test("the counters of a worker that ended are free again, those of others are not", async () => {
  await using fixture = poolOf(snapshotOf(1));
  await fixture.pool.start();
  const [ending, staying] = [0, 1].map((worker) => fixture.counters.forInstance(worker, "a"));
  expect([ending?.enter("k", 2), staying?.enter("k", 2), staying?.enter("k", 2)]).toEqual([
    ...[true, true, false],
  ]);
  const faults: Fault[] = [{ worker: 0, kind: "exit", place: "serve" }];
  await fixture.rollout.prepare(snapshotOf(2, { faults }));
  await fixture.rollout.activate(2);
  await eventually(() => staying?.inside("k") === 1);
  expect([staying?.enter("k", 2), staying?.enter("k", 2)]).toEqual([true, false]);
});

test("a worker that hangs is ended and replaced", async () => {
  await using fixture = poolOf(snapshotOf(1), { silentMs: 2_000 });
  await fixture.pool.start();
  const faults: Fault[] = [{ worker: 1, kind: "loop", place: "serve" }];
  await fixture.rollout.prepare(snapshotOf(2, { faults }));
  await fixture.rollout.activate(2);
  await eventually(() => fixture.log.some(({ message }) => message === "worker serves again"));
  expect(fixture.log.find(({ why }) => why === "shows no sign of life")).toMatchObject({
    worker: 2,
  });
  expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 2 });
});

test("a restarted worker never serves another version than the active one", async () => {
  const port = freePort();
  await using fixture = poolOf(snapshotOf(1, { ports: [port] }));
  await fixture.pool.start();
  const faults: Fault[] = [{ worker: 0, kind: "exit", place: "serve" }];
  await fixture.rollout.prepare(snapshotOf(2, { ports: [port], faults }));
  await fixture.rollout.activate(2);
  const seen = new Set<string>();
  await eventually(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`).then(
      async (response) => (response.status === 200 ? response.json() : null),
      () => null,
    );
    if (answer !== null) seen.add(JSON.stringify(answer));
    // Until the new thread of worker 0 has responded as well.
    const restarted = fixture.log.some(({ message }) => message === "worker serves again");
    return (
      restarted && seen.has('{"worker":0,"revision":2}') && seen.has('{"worker":1,"revision":2}')
    );
  });
  expect([...seen].filter((answer) => !answer.endsWith('"revision":2}'))).toEqual([]);
});

test("the pause before a start grows while starts fail", async () => {
  const faults: Fault[] = [{ worker: 0, kind: "exit", place: "start" }];
  await using fixture = poolOf(snapshotOf(1, { faults }), { longestPauseMs: 30 });
  await expect(fixture.pool.start()).rejects.toThrow("stopped");
  const pauses = () =>
    fixture.log.filter(({ pauseMs }) => pauseMs !== undefined).map(({ pauseMs }) => pauseMs);
  await eventually(() => pauses().length >= 5);
  expect(pauses().slice(0, 5)).toEqual([5, 10, 20, 30, 30]);
});

test("start returns the issues of a worker that rejects the stored version", async () => {
  const faults: Fault[] = [{ worker: 0, kind: "reject", place: "start" }];
  await using fixture = poolOf(snapshotOf(1, { faults }));
  expect(await fixture.pool.start()).toEqual([
    { path: "services", message: "refused", status: 400 },
  ]);
});

test("drain ends every worker and adds up the aborted requests", async () => {
  await using fixture = poolOf(snapshotOf(1));
  await fixture.pool.start();
  expect(await fixture.pool.drain(PATIENT_MS)).toBe(3);
  expect(fixture.pool.slots.map((slot) => slot.isLive)).toEqual([false, false]);
});

describe("a worker that is replaced by a new thread", () => {
  test("has it start with what the others get meanwhile", async () => {
    await using fixture = poolOf(snapshotOf(1));
    const { pool, log } = fixture;
    await pool.start();
    const renewed = pool.renew(pool.slots[0]!);
    await pool.showChallenges({ http: [], tls: [] });
    const asked = log.filter(({ message }) => message === "asked").map(({ place }) => place);
    // Each at its start, and then all of them.
    expect(asked.toSorted()).toEqual([0, 0, 1, 1, 2, 2]);
    const retiring = await renewed;
    expect(await pool.retire(retiring!, { timeoutMs: PATIENT_MS, lingerMs: 0 })).toBe(1);
  });

  test("gets no second one before the first has retired", async () => {
    await using fixture = poolOf(snapshotOf(1));
    const { pool } = fixture;
    await pool.start();
    const retiring = await pool.renew(pool.slots[0]!);
    expect(await pool.renew(pool.slots[1]!)).toBeNull();
    await pool.retire(retiring!, { timeoutMs: PATIENT_MS, lingerMs: 0 });
    expect(await pool.renew(pool.slots[1]!)).not.toBeNull();
  });

  test("is ended when it hangs while it retires", async () => {
    await using fixture = poolOf(snapshotOf(1), { silentMs: 2_000 });
    const { pool, rollout } = fixture;
    await pool.start();
    // Until its successor has started, however long that takes.
    fixture.setTimes({ silentMs: PATIENT_MS });
    const faults: Fault[] = [{ worker: 0, kind: "loop", place: "serve" }];
    await rollout.prepare(snapshotOf(2, { faults }));
    await rollout.activate(2);
    const retiring = await pool.renew(pool.slots[0]!);
    fixture.setTimes({ silentMs: 2_000 });
    // By its heartbeat: long before this time.
    expect(await pool.retire(retiring!, { timeoutMs: 3_600_000, lingerMs: 0 })).toBe(0);
    expect(rollout.status()).toEqual({ workers: 2, ready: 2, revision: 2 });
  });
});
