// What all threads know about targets and services: requests in flight, health, turns; exact over all workers. Knows no HTTP.

/** Words of a row, each a 32-bit integer. Times are tenths of a second since the board was made. */
const words = [
  /** Requests in flight, of all workers. */
  "active",
  /** Failures of the traffic in a row. */
  "failures",
  /** How often it was ejected in a row. */
  "ejections",
  "ejected_until",
  /** What active checks say: 0 nothing, 1 healthy, 2 unhealthy. */
  "check",
  /** Equal results of active checks in a row. */
  "check_streak",
  /** What a person said: 0 nothing, 1 healthy, 2 unhealthy. */
  "override",
  /** 0: for ever. */
  "override_until",
  /** When the state last changed; 0: never. */
  "since",
  /** Number of the last failure, see `failureText`; 0: none. */
  "error",
  /** Average time to the response head in microseconds; 0: none known. */
  "latency",
  "latency_at",
  /** When it was first seen or recovered, for slow starts. */
  "started_at",
  /** What the traffic last said: 0 nothing, 1 it works, 2 it failed. */
  "outcome",
  /** Of a service: whose turn it is. */
  "turn",
  /** Of a service: changes whenever the health of a target does. */
  "version",
  /** Of a service: hundredths of retries made that its requests have not paid for yet. */
  "spent",
  "spent_at",
] as const;
export type Word = (typeof words)[number];

const WORDS = words.length;
const at = Object.fromEntries(words.map((name, index) => [name, index])) as Record<Word, number>;

/** Rows: targets and services together. */
const CAPACITY = 32_768;
/** Before the rows: when the board was made, in milliseconds since the Unix epoch, and the number of workers. */
const HEADER_BYTES = 64;
/** Keys that mean something: no row, and a row that may be used again. */
const FREE = 0n;
const REUSABLE = 1n;

/** More targets and services than rows. */
export class BoardFullError extends Error {}

/**
 * Rows are found by id and stay where they are as long as the id is in use, whatever changes around it. Each worker also
 * keeps its own share of the requests in flight, so that those of a worker that died can be taken off again.
 */
export class TargetBoard {
  readonly buffer: SharedArrayBuffer;
  readonly #keys: BigUint64Array;
  readonly #cells: Int32Array;
  readonly #shares: Int32Array;
  readonly #madeAt: number;
  readonly #workers: number;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    const header = new Float64Array(buffer, 0, HEADER_BYTES / 8);
    this.#madeAt = header[0] ?? 0;
    this.#workers = header[1] ?? 0;
    const cellsAt = HEADER_BYTES + CAPACITY * 8;
    const sharesAt = cellsAt + CAPACITY * WORDS * 4;
    this.#keys = new BigUint64Array(buffer, HEADER_BYTES, CAPACITY);
    this.#cells = new Int32Array(buffer, cellsAt, CAPACITY * WORDS);
    this.#shares = new Int32Array(buffer, sharesAt, CAPACITY * this.#workers);
  }

  /** `now`: milliseconds since the Unix epoch. */
  static create(workers: number, now = Date.now()): TargetBoard {
    const bytes = HEADER_BYTES + CAPACITY * (8 + WORDS * 4 + workers * 4);
    const buffer = new SharedArrayBuffer(bytes);
    const header = new Float64Array(buffer, 0, 2);
    header[0] = now;
    header[1] = workers;
    return new TargetBoard(buffer);
  }

  /** The row of an id, made when there is none. Any thread may ask; all get the same one. */
  rowOf(id: string): number {
    const key = keyOf(id);
    const start = Number(key % BigInt(CAPACITY));
    let reusable = -1;
    for (let step = 0; step < CAPACITY; step++) {
      const row = (start + step) % CAPACITY;
      const found = Atomics.load(this.#keys, row);
      if (found === key) return row;
      if (found === REUSABLE && reusable < 0) reusable = row;
      if (found !== FREE) continue;
      return this.#claim(reusable < 0 ? row : reusable, key, id);
    }
    if (reusable >= 0) return this.#claim(reusable, key, id);
    throw new BoardFullError(`there are more than ${CAPACITY} targets and services`);
  }

  /** Another thread may claim the same row, or another row for the same id, at the same time: then look again. */
  #claim(row: number, key: bigint, id: string): number {
    const expected = Atomics.load(this.#keys, row);
    if (expected !== FREE && expected !== REUSABLE) return this.rowOf(id);
    if (Atomics.compareExchange(this.#keys, row, expected, key) !== expected) return this.rowOf(id);
    if (expected === REUSABLE) this.#cells.fill(0, row * WORDS, (row + 1) * WORDS);
    this.set(row, "started_at", this.time(Date.now()));
    return row;
  }

  /** Lets the row of an id be used again; the caller knows that no request uses it any more. */
  release(id: string): void {
    const key = keyOf(id);
    const start = Number(key % BigInt(CAPACITY));
    for (let step = 0; step < CAPACITY; step++) {
      const row = (start + step) % CAPACITY;
      const found = Atomics.load(this.#keys, row);
      if (found === FREE) return;
      if (found !== key) continue;
      Atomics.compareExchange(this.#keys, row, key, REUSABLE);
      return;
    }
  }

  get(row: number, word: Word): number {
    return Atomics.load(this.#cells, row * WORDS + at[word]);
  }

  set(row: number, word: Word, value: number): void {
    Atomics.store(this.#cells, row * WORDS + at[word], value | 0);
  }

  /** Returns the value before. */
  add(row: number, word: Word, delta: number): number {
    return Atomics.add(this.#cells, row * WORDS + at[word], delta);
  }

  /** Sets a word if it still is `from`; true when it was. */
  swap(
    row: number,
    word: Word,
    { from, to }: { readonly from: number; readonly to: number },
  ): boolean {
    const cell = row * WORDS + at[word];
    return Atomics.compareExchange(this.#cells, cell, from, to | 0) === from;
  }

  /** A request of this worker begins on the target. */
  enter(row: number, worker: number): void {
    Atomics.add(this.#cells, row * WORDS, 1);
    const share = worker * CAPACITY + row;
    this.#shares[share] = (this.#shares[share] ?? 0) + 1;
  }

  /** It has ended. */
  leave(row: number, worker: number): void {
    Atomics.sub(this.#cells, row * WORDS, 1);
    const share = worker * CAPACITY + row;
    this.#shares[share] = (this.#shares[share] ?? 0) - 1;
  }

  /** Requests in flight. */
  active(row: number): number {
    return Atomics.load(this.#cells, row * WORDS);
  }

  /** Takes off what a worker that ended had in flight. */
  forgetWorker(worker: number): void {
    const first = worker * CAPACITY;
    for (let row = 0; row < CAPACITY; row++) {
      const share = this.#shares[first + row] ?? 0;
      if (share === 0) continue;
      Atomics.sub(this.#cells, row * WORDS, share);
      this.#shares[first + row] = 0;
    }
  }

  /** Milliseconds since the Unix epoch in the board's tenths of a second; at least 1, because 0 means never. */
  time(now: number): number {
    return Math.max(1, Math.floor((now - this.#madeAt) / 100));
  }

  /** And back. */
  date(time: number): number {
    return this.#madeAt + time * 100;
  }
}

/** 64 bits of an id; the two smallest numbers mean something else. */
function keyOf(id: string): bigint {
  const key = BigInt.asUintN(64, BigInt(Bun.hash(id)));
  return key < 2n ? key + 2n : key;
}
