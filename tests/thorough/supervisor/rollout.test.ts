// How a change proceeds when workers fail during it: real threads, the real protocol, injected faults.
import { describe, expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { ApiError } from "../../../src/model/error.ts";
import { eventually } from "../../support/poll.ts";
import type { Fault } from "./fault.ts";
import { freePort, PATIENT_MS, poolOf, snapshotOf } from "./fixture.ts";

/**
 * The message that the promise rejects with; empty when it resolves. `expect(…).rejects` would run the event loop from inside
 * the event of the worker that resolved the line before, and Bun delivers no further events of that worker meanwhile.
 */
const failureOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "",
    (error: Error) =>
      error instanceof ApiError
        ? `${error.status} ${error.headers["retry-after"] ?? ""} ${error.message}`
        : error.message,
  );

describe("a version", () => {
  test("is served by every worker when activate resolves", async () => {
    await using fixture = poolOf(snapshotOf(1));
    expect(await fixture.pool.start()).toEqual([]);
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 1 });
    expect(await fixture.rollout.prepare(snapshotOf(2))).toEqual([]);
    expect(fixture.rollout.status().revision).toBe(1);
    await fixture.rollout.activate(2);
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 2 });
  });

  test("can be prepared while the workers are still starting", async () => {
    await using fixture = poolOf(snapshotOf(1));
    const started = fixture.pool.start();
    expect(await fixture.rollout.prepare(snapshotOf(2))).toEqual([]);
    expect(await started).toEqual([]);
    await fixture.rollout.activate(2);
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 2 });
  });

  test("is dropped by every worker when it is discarded", async () => {
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    await fixture.rollout.prepare(snapshotOf(2));
    await fixture.rollout.discard(2);
    // A worker that still had revision 2 would end here.
    expect(await fixture.rollout.prepare(snapshotOf(2))).toEqual([]);
    expect(fixture.log.filter(({ message }) => message === "discarded")).toHaveLength(2);
  });

  test("that was not prepared cannot be activated", async () => {
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    expect(await failureOf(fixture.rollout.activate(2))).toContain("revision 2 was not prepared");
  });
});

test("a version that is activated while the pool ends delays the end by nothing, and starts no worker", async () => {
  await using fixture = poolOf(snapshotOf(1), { replaceMs: 2 * PATIENT_MS });
  await fixture.pool.start();
  await fixture.rollout.prepare(snapshotOf(2));
  const begun = performance.now();
  const ended = fixture.pool.drain(100);
  expect(await failureOf(fixture.rollout.activate(2))).toContain("not yet served");
  await ended;
  expect(performance.now() - begun).toBeLessThan(PATIENT_MS);
  expect(fixture.log.map(({ message }) => message)).not.toContain("worker is replaced");
});

describe("while a version is prepared", () => {
  test("a rejection of one worker rejects it for all", async () => {
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    const faults: Fault[] = [{ worker: 1, kind: "reject", place: "prepare" }];
    const issues = await fixture.rollout.prepare(snapshotOf(2, { faults }));
    expect(issues).toEqual([{ path: "services", message: "refused", status: 400 }]);
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 1 });
    await eventually(() => fixture.log.some(({ message }) => message === "discarded"));
  });

  test.each([
    {
      kind: "throw",
      says: "503 5 worker 1 stopped while preparing revision 2; nothing was changed",
    },
    {
      kind: "exit",
      says: "503 5 worker 1 stopped while preparing revision 2; nothing was changed",
    },
    { kind: "wait", says: "503 5 worker 1 did not answer while preparing revision 2; nothing" },
    { kind: "loop", says: "503 5 worker 1 did not answer while preparing revision 2; nothing" },
  ] as const)("a worker that does $kind leaves the old version in service", async (row) => {
    const endsItself = row.kind === "throw" || row.kind === "exit";
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    const faults: Fault[] = [{ worker: 0, kind: row.kind, place: "prepare" }];
    if (!endsItself) fixture.setTimes({ prepareMs: 300 });
    const prepared = fixture.rollout.prepare(snapshotOf(2, { faults }));
    expect(await failureOf(prepared)).toContain(row.says);
    fixture.setTimes({ prepareMs: PATIENT_MS });
    await eventually(() => fixture.rollout.status().ready === 2);
    expect(fixture.rollout.status().revision).toBe(1);
    // The next change finds every worker intact again.
    expect(await fixture.rollout.prepare(snapshotOf(3))).toEqual([]);
    await fixture.rollout.activate(3);
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 3 });
  });

  test("the issues of a worker that cannot start are not its response to the change", async () => {
    const faults: Fault[] = [{ worker: 0, kind: "reject", place: "start" }];
    await using fixture = poolOf(snapshotOf(1, { faults }));
    const started = fixture.pool.start();
    const prepared = fixture.rollout.prepare(snapshotOf(2));
    expect(await failureOf(prepared)).toContain(
      "503 5 worker 1 stopped while preparing revision 2",
    );
    expect(await started).toHaveLength(1);
  });

  test("a change is rejected when no worker runs", async () => {
    const faults = [0, 1].map((worker): Fault => ({ worker, kind: "exit", place: "start" }));
    await using fixture = poolOf(snapshotOf(1, { faults }), { firstPauseMs: 5000 });
    await fixture.pool.start().catch(() => undefined);
    await eventually(() => fixture.pool.slots.every((slot) => !slot.isLive));
    expect(await failureOf(fixture.rollout.prepare(snapshotOf(2)))).toContain(
      "503 5 no worker is running at the moment; nothing was changed; the gateway starts them again: repeat the request",
    );
  });
});

describe("a large version", () => {
  const many = (count: number): Fault[] =>
    Array.from({ length: count }, () => ({ worker: 9, kind: "wait", place: "serve" }));

  test("reaches each worker in pieces of at most 500 objects", async () => {
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    expect(await fixture.rollout.prepare(snapshotOf(2, { faults: many(1_234) }))).toEqual([]);
    await fixture.rollout.activate(2);
    const pieces = fixture.log.filter(({ message }) => message === "piece");
    for (const worker of [1, 2]) {
      const own = pieces.filter((line) => line["worker"] === worker);
      expect(own.map(({ objects }) => objects)).toEqual([500, 500, 234]);
    }
  });

  test("keeps only half of the processors busy, so that clients of the other workers do not wait", async () => {
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    const slow: Fault = { worker: 0, kind: "slow", place: "prepare" };
    const isNext = availableParallelism() >= 4;
    const prepared = fixture.rollout.prepare(snapshotOf(2, { faults: [slow, ...many(1_500)] }));
    expect(await prepared).toEqual([]);
    const workers = fixture.log
      .filter(({ message }) => message === "piece")
      .map((line) => line["worker"]);
    const last = workers.lastIndexOf(1);
    expect(workers.indexOf(2) < last).toBe(isNext);
    expect(workers.filter((worker) => worker === 2)).toHaveLength(4);
  });

  test("reaches a worker at its start in pieces too", async () => {
    await using fixture = poolOf(snapshotOf(1, { faults: many(501) }));
    expect(await fixture.pool.start()).toEqual([]);
    const pieces = fixture.log.filter(({ message }) => message === "piece");
    expect(pieces.map(({ objects }) => objects).sort()).toEqual([1, 1, 500, 500]);
  });

  test.each([
    {
      kind: "throw",
      prepareMs: PATIENT_MS,
      says: "503 5 worker 1 stopped while preparing revision 2",
    },
    {
      kind: "exit",
      prepareMs: PATIENT_MS,
      says: "503 5 worker 1 stopped while preparing revision 2",
    },
    {
      kind: "wait",
      prepareMs: 500,
      says: "503 5 worker 1 did not answer while preparing revision 2",
    },
  ] as const)("during which a worker does $kind changes nothing", async (row) => {
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    const faults: Fault[] = [...many(900), { worker: 0, kind: row.kind, place: "take" }];
    fixture.setTimes({ prepareMs: row.prepareMs });
    const prepared = fixture.rollout.prepare(snapshotOf(2, { faults }));
    expect(await failureOf(prepared)).toContain(`${row.says}; nothing was changed`);
    fixture.setTimes({ prepareMs: PATIENT_MS });
    await eventually(() => fixture.rollout.status().ready === 2);
    expect(fixture.rollout.status().revision).toBe(1);
    expect(await fixture.rollout.prepare(snapshotOf(3, { faults: many(700) }))).toEqual([]);
    await fixture.rollout.activate(3);
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 3 });
  });

  test("may take longer than the response and heartbeat timeouts, as long as it makes progress", async () => {
    // Eight times what a piece takes, so that a busy machine is not silence.
    const times = { silentMs: 2_000, prepareMs: 2_000 };
    await using fixture = poolOf(snapshotOf(1), times);
    await fixture.pool.start();
    const faults: Fault[] = [{ worker: 0, kind: "slow", place: "prepare" }, ...many(5_000)];
    const began = performance.now();
    expect(await fixture.rollout.prepare(snapshotOf(2, { faults }))).toEqual([]);
    expect(performance.now() - began).toBeGreaterThan(times.prepareMs);
    await fixture.rollout.activate(2);
    expect(fixture.pool.slots.map(({ restarts }) => restarts)).toEqual([0, 0]);
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 2 });
  });
});

test("a worker that has responded is not ended because this thread was blocked", async () => {
  await using fixture = poolOf(snapshotOf(1));
  await fixture.pool.start();
  fixture.setTimes({ prepareMs: 500 });
  const prepared = fixture.rollout.prepare(snapshotOf(2));
  // Until the commands are sent.
  await Bun.sleep(5);
  Bun.sleepSync(1_500);
  expect(await prepared).toEqual([]);
  expect(fixture.pool.slots.map(({ restarts }) => restarts)).toEqual([0, 0]);
});

describe("while a version is activated", () => {
  test.each([{ kind: "throw" }, { kind: "exit" }, { kind: "loop" }] as const)(
    "a worker that does $kind is replaced by one that serves the new version",
    async ({ kind }) => {
      await using fixture = poolOf(snapshotOf(1));
      await fixture.pool.start();
      const faults: Fault[] = [{ worker: 1, kind, place: "activate" }];
      await fixture.rollout.prepare(snapshotOf(2, { faults }));
      if (kind === "loop") fixture.setTimes({ activateMs: 500 });
      await fixture.rollout.activate(2);
      expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 2 });
    },
  );

  test("a worker that ended since it was prepared is started with the new version", async () => {
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    await fixture.rollout.prepare(snapshotOf(2));
    // What a crash between the two steps looks like: another thread, which knows revision 1 only.
    fixture.pool.slots[0]!.replace("test");
    await eventually(() => fixture.pool.slots[0]!.servedRevision === 1);
    await fixture.rollout.activate(2);
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 2, revision: 2 });
  });

  test("a worker that cannot start is reported, and the other ones serve", async () => {
    await using fixture = poolOf(snapshotOf(1), { replaceMs: 200 });
    await fixture.pool.start();
    const faults: Fault[] = [
      { worker: 1, kind: "exit", place: "activate" },
      { worker: 1, kind: "exit", place: "start" },
    ];
    await fixture.rollout.prepare(snapshotOf(2, { faults }));
    const activated = fixture.rollout.activate(2);
    expect(await failureOf(activated)).toContain(
      "revision 2 is stored but not yet served by every worker",
    );
    expect(fixture.rollout.status()).toEqual({ workers: 2, ready: 1, revision: 2 });
  });
});

describe("a port", () => {
  test("that another program uses rejects the version with its name and the reason", async () => {
    using holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    const { port } = holder;
    const issues = await fixture.rollout.prepare(snapshotOf(2, { ports: [port] }));
    const start = `listener "listener-${port}": port ${port} on 127.0.0.1: address already in use by `;
    expect(issues).toEqual([{ path: "", message: expect.stringContaining(start), status: 409 }]);
    expect(issues[0]?.message).toEndWith(`(pid ${process.pid})`);
  });

  test("that another program shares with SO_REUSEPORT is rejected as well", async () => {
    // The types do not know the option.
    const shared = { hostname: "127.0.0.1", port: 0, reusePort: true, socket: { data() {} } };
    using holder = Bun.listen(shared);
    await using fixture = poolOf(snapshotOf(1));
    await fixture.pool.start();
    const issues = await fixture.rollout.prepare(snapshotOf(2, { ports: [holder.port] }));
    expect(issues.map(({ status }) => status)).toEqual([409]);
  });

  test("that the gateway's own workers listen on is not a conflict", async () => {
    const port = freePort();
    await using fixture = poolOf(snapshotOf(1, { ports: [port] }));
    await fixture.pool.start();
    expect(await fixture.rollout.prepare(snapshotOf(2, { ports: [port] }))).toEqual([]);
  });
});
