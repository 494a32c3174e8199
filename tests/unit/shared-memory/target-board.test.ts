// Rows by id and exact counts, from one thread and from several at once.
import { afterEach, describe, expect, test } from "bun:test";
import { checkingWorker, CheckLease } from "../../../src/shared-memory/check-lease.ts";
import { BoardFullError, TargetBoard } from "../../../src/shared-memory/target-board.ts";
import type { HammerResult, HammerTask } from "./hammer.ts";

const threads: Worker[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.terminate();
});

function hammer(task: HammerTask): Promise<HammerResult> {
  const thread = new Worker(new URL("./hammer.ts", import.meta.url));
  threads.push(thread);
  const { promise, resolve, reject } = Promise.withResolvers<HammerResult>();
  thread.addEventListener("message", ({ data }: MessageEvent<HammerResult>) => resolve(data));
  thread.addEventListener("error", (event) => reject(new Error(event.message)));
  thread.postMessage(task);
  return promise;
}

test("several threads get the same rows and count exactly, while rows are claimed and released", async () => {
  const [workers, rounds] = [4, 300];
  const board = TargetBoard.create(workers, { capacity: rounds + workers });
  const start = new SharedArrayBuffer(4);
  const results = await Promise.all(
    Array.from({ length: workers }, (_, worker) =>
      hammer({ buffer: board.buffer, worker, workers, rounds, start }),
    ),
  );
  const [first] = results;
  for (const { rows } of results) expect(rows).toEqual(first?.rows ?? []);
  expect(new Set(first?.rows).size).toBe(rounds);
  expect(board.inUse).toBe(rounds);
  for (const row of first?.rows ?? []) {
    const left = results.reduce((sum, result) => sum + (result.left[row] ?? 0), 0);
    expect(board.active(row)).toBe(left);
  }
  // Subtracting the counts of each worker leaves zero.
  for (let worker = 0; worker < workers; worker++) board.forgetWorker(worker);
  for (const row of first?.rows ?? []) expect(board.active(row)).toBe(0);
});

describe("a row", () => {
  test("is found again, from another view too, and not for another id", () => {
    const board = TargetBoard.create(1);
    const row = board.rowOf("a");
    expect(board.rowOf("a")).toBe(row);
    expect(new TargetBoard(board.buffer).rowOf("a")).toBe(row);
    expect(board.rowOf("b")).not.toBe(row);
    expect(board.findRow("c")).toBeNull();
    expect(board.inUse).toBe(2);
  });

  test("that was released starts over, and its previous holders can detect it", () => {
    const board = TargetBoard.create(1, { capacity: 1 });
    const row = board.rowOf("a");
    const epoch = board.get(row, "epoch");
    board.set(row, "check", 2);
    expect(board.release("a")).toBe(true);
    expect(board.findRow("a")).toBeNull();
    expect(board.get(row, "epoch")).not.toBe(epoch);
    const next = board.rowOf("b");
    expect(board.get(next, "check")).toBe(0);
    expect(board.get(next, "started_at")).toBeGreaterThan(0);
  });

  test("is not released while a request is in flight on it", () => {
    const board = TargetBoard.create(1);
    const row = board.rowOf("a");
    expect(board.enter(row, 0)).toBe(0);
    expect(board.release("a")).toBe(false);
    expect(board.findRow("a")).toBe(row);
    board.leave(row, 0);
    expect(board.release("a")).toBe(true);
    expect(board.release("a")).toBe(true);
  });

  test("is unavailable when all are in use, and available again when one is released", () => {
    const board = TargetBoard.create(1, { capacity: 50 });
    for (let id = 0; id < 50; id++) board.rowOf(`${id}`);
    expect(() => board.rowOf("more")).toThrow(BoardFullError);
    board.release("7");
    expect(board.rowOf("more")).toBe(board.rowOf("more"));
    expect(() => board.rowOf("again")).toThrow(BoardFullError);
  });

  test("is available after any number of claims and releases", () => {
    const board = TargetBoard.create(1, { capacity: 100 });
    const kept = board.rowOf("kept");
    for (let id = 0; id < 5000; id++) {
      board.rowOf(`${id}`);
      if (id >= 90) board.release(`${id - 90}`);
    }
    expect(board.inUse).toBe(91);
    expect(board.rowOf("kept")).toBe(kept);
    expect(board.findRow("4999")).not.toBeNull();
  });
});

describe("the lease of active checks", () => {
  const board = () => TargetBoard.create(3);
  const now = 1_800_000_000_000;

  test("has one holder at a time", () => {
    const shared = board();
    const [first, second] = [new CheckLease(shared, 0), new CheckLease(shared, 1)];
    expect(checkingWorker(shared)).toBeNull();
    expect(second.hold(now)).toBe(true);
    expect(first.hold(now + 2999)).toBe(false);
    expect(first.isHeld(now)).toBe(false);
    expect(second.isHeld(now + 2999)).toBe(true);
    expect(checkingWorker(shared)).toBe(1);
  });

  test("is lost by a holder that does not renew it for three seconds", () => {
    const shared = board();
    const [first, second] = [new CheckLease(shared, 0), new CheckLease(shared, 1)];
    first.hold(now);
    first.hold(now + 2000);
    expect(second.hold(now + 5000)).toBe(false);
    expect(first.isHeld(now + 5001)).toBe(false);
    expect(second.hold(now + 5001)).toBe(true);
    expect(first.hold(now + 5002)).toBe(false);
    expect(first.isHeld(now + 5002)).toBe(false);
  });

  test("is free at once when it is released, or when its worker has ended", () => {
    const shared = board();
    const [first, second] = [new CheckLease(shared, 0), new CheckLease(shared, 1)];
    first.hold(now);
    second.release();
    expect(checkingWorker(shared)).toBe(0);
    first.release();
    expect(second.hold(now + 1)).toBe(true);
    shared.forgetWorker(0);
    expect(checkingWorker(shared)).toBe(1);
    shared.forgetWorker(1);
    expect(checkingWorker(shared)).toBeNull();
  });

  test("expires even when the clock is set back", () => {
    const shared = board();
    const [first, second] = [new CheckLease(shared, 0), new CheckLease(shared, 1)];
    first.hold(now);
    expect(second.hold(now - 3_600_000)).toBe(true);
  });
});
