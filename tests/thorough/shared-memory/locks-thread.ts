// A thread that counts under a lock and stands still while it holds it; run by locks.test.ts.
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";

declare const self: Worker;

/** The task of a thread. */
export interface LockTask {
  readonly thread: number;
  readonly board: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
  /** Words: this thread holds all locks; it may go on; it has left them; it has counted after that; a count under the lock. */
  readonly signals: SharedArrayBuffer;
}

export const signals = { holds: 0, goOn: 1, left: 2, counted: 3, count: 4 } as const;

self.onmessage = ({ data }: MessageEvent<LockTask>) => {
  const words = new Int32Array(data.signals);
  const board = new TargetBoard(data.board, data.thread);
  const table = new CounterTable(data.counters, { thread: data.thread });
  const say = (signal: number) => {
    Atomics.store(words, signal, 1);
    Atomics.notify(words, signal);
  };
  const holding = [0, 1].reduceRight(
    (work, at) => () => board.locks.holding(at, work),
    () =>
      table.locks.holding(0, () => {
        const before = words[signals.count] ?? 0;
        say(signals.holds);
        Atomics.wait(words, signals.goOn, 0);
        words[signals.count] = before + 1;
      }),
  );
  holding();
  say(signals.left);
  table.locks.holding(0, () => say(signals.counted));
};
