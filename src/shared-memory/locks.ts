// Locks in shared memory, each with the number of the thread that holds it; knows not what they protect.

/** Tries before a thread sleeps; work under a lock takes microseconds. */
const SPINS = 100;
/** A thread that was woken may be terminated before it wakes the next one. */
const MAX_SLEEP_MS = 10;
/** Beside the holder: a thread sleeps until the lock is free. */
const WAITED = 1 << 30;
/** As holder: what the lock protects is being repaired, which takes long, or must not change any more. */
const REPAIRING = -1;
/** A thread that is about to end leaves its locks in microseconds, but the machine may be busy. */
const MAX_END_MS = 2000;

/** Numbers of threads that so many places need: a thread and the one before it at its place have different ones. */
export const threadsOf = (places: number): number => 2 * places;

/**
 * No lock is ever taken from a thread that may still run, however long it is interrupted: the clock says nothing about that. `end` makes
 * threads leave theirs before they are terminated; `free` and `seize` are for the locks of a thread that has ended all the same.
 */
export class Locks {
  readonly #words: Int32Array;
  readonly #holder: number;
  /** By thread: 1 when it must take no lock any more. */
  readonly #ended: Int32Array | null;

  /** `holder`: from 1. */
  constructor(words: Int32Array, holder: number, ended: Int32Array | null = null) {
    this.#words = words;
    this.#holder = holder;
    this.#ended = ended;
  }

  /** Locks for threads from 1 on, and for the main thread, which has the number after theirs. */
  static bytesFor({ count, threads }: LockSizes): number {
    return (count + threads + 2) * 4;
  }

  /** `offset` must be a multiple of four. Default holder: the main thread. */
  static at(
    buffer: SharedArrayBuffer,
    offset: number,
    { count, threads, holder = threads + 1 }: LockSizes & { readonly holder?: number | undefined },
  ): Locks {
    const ended = new Int32Array(buffer, offset, threads + 2);
    return new Locks(new Int32Array(buffer, offset + ended.byteLength, count), holder, ended);
  }

  /** Runs `work` with the lock. */
  holding<T>(at: number, work: () => T): T {
    this.acquire(at);
    try {
      return work();
    } finally {
      this.release(at);
    }
  }

  /** False: not locked, after at most about `patienceMs`, or because of a repair. */
  acquire(at: number, patienceMs: number = Infinity): boolean {
    if (Atomics.compareExchange(this.#words, at, 0, this.#holder) === 0) return this.#mayHold(at);
    return this.#contend(at, patienceMs);
  }

  #contend(at: number, patienceMs: number): boolean {
    for (let spin = 0; spin < SPINS; spin++) {
      Atomics.pause();
      const held = Atomics.compareExchange(this.#words, at, 0, this.#holder);
      if (held === 0) return this.#mayHold(at);
      if (held === REPAIRING) return false;
    }
    return this.#wait(at, performance.now() + patienceMs);
  }

  #wait(at: number, until: number): boolean {
    const words = this.#words;
    for (;;) {
      // Others may sleep too: the release of this lock wakes one of them.
      const held = Atomics.compareExchange(words, at, 0, this.#holder | WAITED);
      if (held === 0) return this.#mayHold(at);
      const leftMs = until - performance.now();
      if (held === REPAIRING || leftMs <= 0) return false;
      const waited = held | WAITED;
      if (held === waited || Atomics.compareExchange(words, at, held, waited) === held)
        Atomics.wait(words, at, waited, Math.min(leftMs, MAX_SLEEP_MS));
    }
  }

  #mayHold(at: number): boolean {
    if (this.#ended === null || Atomics.load(this.#ended, this.#holder) === 0) return true;
    return this.#park(at, this.#ended);
  }

  /** Waits until this thread is terminated. */
  #park(at: number, ended: Int32Array): never {
    this.release(at);
    for (;;) Atomics.wait(ended, this.#holder, 1);
  }

  release(at: number): void {
    if ((Atomics.exchange(this.#words, at, 0) & WAITED) !== 0) Atomics.notify(this.#words, at, 1);
  }

  /** A thread with this number starts. */
  begin(thread: number): void {
    if (this.#ended !== null) Atomics.store(this.#ended, thread, 0);
  }

  /** Before a thread is terminated: returns when it holds no lock, and takes none any more. */
  end(thread: number): void {
    if (this.#ended === null) return;
    // Before the look at the locks: a thread that takes one later sees it.
    Atomics.store(this.#ended, thread, 1);
    const until = performance.now() + MAX_END_MS;
    for (let at = 0; at < this.#words.length; at++)
      while (this.#isHeldBy(at, thread) && performance.now() < until)
        Atomics.wait(this.#words, at, Atomics.load(this.#words, at), 1);
  }

  /** Frees what a thread that executes nothing any more has held. */
  free(dead: number): void {
    for (let at = 0; at < this.#words.length; at++) if (this.#isHeldBy(at, dead)) this.release(at);
  }

  /** Takes the lock from a thread that executes nothing any more, for a repair; false: it did not hold it. */
  seize(at: number, dead: number): boolean {
    if (!this.#isHeldBy(at, dead)) return false;
    Atomics.store(this.#words, at, REPAIRING);
    return true;
  }

  /** Takes the free lock for ever: no thread waits for it. False: it is not free. */
  retire(at: number): boolean {
    return Atomics.compareExchange(this.#words, at, 0, REPAIRING) === 0;
  }

  #isHeldBy(at: number, thread: number): boolean {
    const held = Atomics.load(this.#words, at);
    return held !== REPAIRING && (held & ~WAITED) === thread;
  }
}

export interface LockSizes {
  readonly count: number;
  readonly threads: number;
}
