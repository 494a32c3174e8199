// A thread that uses a board as hard as it can and reports what it did; run by target-board.test.ts.
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { Random } from "../../support/random.ts";

declare const self: Worker;

/** The task of a thread. */
export interface HammerTask {
  readonly buffer: SharedArrayBuffer;
  readonly worker: number;
  readonly workers: number;
  readonly rounds: number;
  /** Counts the running threads, so that all begin together. */
  readonly start: SharedArrayBuffer;
}

export interface HammerResult {
  /** The row of each id that all threads requested, by round. */
  readonly rows: readonly number[];
  /** Requests that it left in flight, by row. */
  readonly left: Readonly<Record<number, number>>;
}

self.onmessage = ({ data }: MessageEvent<HammerTask>) => {
  const start = new Int32Array(data.start);
  Atomics.add(start, 0, 1);
  Atomics.notify(start, 0);
  for (let there = Atomics.load(start, 0); there < data.workers; there = Atomics.load(start, 0))
    Atomics.wait(start, 0, there, 1000);
  self.postMessage(hammer(data));
};

function hammer({ buffer, worker, rounds }: HammerTask): HammerResult {
  const board = new TargetBoard(buffer);
  const random = new Random(worker + 1);
  const rows: number[] = [];
  const left: Record<number, number> = {};
  for (let round = 0; round < rounds; round++) {
    const shared = board.rowOf(`shared ${round}`);
    rows.push(shared);
    for (let request = 0; request < 20; request++) {
      board.enter(shared, worker);
      if (random.next() < 0.1) left[shared] = (left[shared] ?? 0) + 1;
      else board.leave(shared, worker);
    }
    // Claims and releases between the others, so that rows are reused.
    const own = board.rowOf(`own ${worker} ${round}`);
    const before = board.enter(own, worker);
    if (before !== 0) throw new Error(`a new row has ${before} requests in flight`);
    if (board.release(`own ${worker} ${round}`)) throw new Error("given up with a request on it");
    board.leave(own, worker);
    if (!board.release(`own ${worker} ${round}`)) throw new Error("not given up");
  }
  return { rows, left };
}
