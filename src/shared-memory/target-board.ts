// The state of targets and services that all threads share: requests in flight, health, turns; exact over all workers. Knows no HTTP.
import { AddressCounts } from "./address-counts.ts";
import { releaseLease } from "./check-lease.ts";
import { Locks, threadsOf } from "./locks.ts";

/** Words of a row, each a 32-bit integer. Times are tenths of a second since the board's creation. */
const words = [
  /** Requests in flight, of all workers. */
  "active",
  /** Consecutive failed requests. */
  "failures",
  /** Consecutive ejections. */
  "ejections",
  "ejected_until",
  /** All ejections. */
  "ejected_total",
  /** Result of active checks: 0 none, 1 healthy, 2 unhealthy. */
  "check",
  /** Consecutive equal results of active checks: successes above 0, failures below. */
  "check_streak",
  /** Override by a user: 0 none, 1 healthy, 2 unhealthy. */
  "override",
  /** 0: for ever. */
  "override_until",
  /** When the state last changed; 0: never. */
  "since",
  /** Number of the last failure, see `failureText`; 0: none. */
  "error",
  /** Average time to the response head in microseconds; 0: unknown. */
  "latency",
  "latency_at",
  /** When it was added or recovered, for slow starts. */
  "started_at",
  /** Last result of the traffic, see `outcomes`: 3 is `consecutive_failures` failures in a row. */
  "outcome",
  /** Of a service: the round robin counter. */
  "turn",
  /** Of a service: changes whenever the health of a target does. */
  "version",
  /** Of a service: hundredths of retries that deposits have not covered yet. */
  "spent",
  "spent_at",
  /** Changes when the row is released, so that its holders notice. Never reset. */
  "epoch",
] as const;
export type Word = (typeof words)[number];

const WORDS = words.length;
const at = Object.fromEntries(words.map((name, index) => [name, index])) as Record<Word, number>;

/** Targets and services together. */
const CAPACITY = 30_000;
/** Load factor: beyond it unsuccessful searches become slow. */
const MAX_FILLED = 0.9;
/**
 * Before the rows: as 64-bit floats the creation time in milliseconds since the Unix epoch, the number of workers and
 * the capacity; then 8 bytes for the lease of `CheckLease`; then as a 32-bit integer the number of rows in use.
 */
const HEADER_BYTES = 64;
const LEASE_BYTE = 24;
const IN_USE = 8;
/** Its locks: of the creation and release of rows, and of `addresses`. */
const [ROWS, ADDRESSES] = [0, 1] as const;
const locksOf = (workers: number) => ({ count: 2, threads: threadsOf(workers) });
/** Reserved keys: no row, and a released row (tombstone). */
const FREE = 0n;
const REUSABLE = 1n;

/** More targets and services than the board has rows for. */
export class BoardFullError extends Error {}

/**
 * Rows are found by id and do not move while the id is in use. Each worker also
 * counts its own share of the requests in flight, so that those of a worker that died can be subtracted.
 */
export class TargetBoard {
  readonly buffer: SharedArrayBuffer;
  /** Most targets and services. */
  readonly capacity: number;
  /** See `CheckLease`. */
  readonly lease: BigUint64Array;
  /** Connections per client address. */
  readonly addresses: AddressCounts;
  readonly locks: Locks;
  readonly #header: Int32Array;
  readonly #rows: number;
  readonly #keys: BigUint64Array;
  readonly #cells: Int32Array;
  readonly #shares: Int32Array;
  readonly #madeAt: number;

  /** `thread`: as in `StartCommand`; default: the main thread. */
  constructor(buffer: SharedArrayBuffer, thread?: number) {
    this.buffer = buffer;
    const [madeAt = 0, workers = 0, capacity = 0] = new Float64Array(buffer, 0, 3);
    this.#madeAt = madeAt;
    this.capacity = capacity;
    this.lease = new BigUint64Array(buffer, LEASE_BYTE, 1);
    this.#header = new Int32Array(buffer, 0, HEADER_BYTES / 4);
    this.#rows = rowsFor(capacity);
    const cellsAt = HEADER_BYTES + this.#rows * 8;
    const sharesAt = cellsAt + this.#rows * WORDS * 4;
    this.#keys = new BigUint64Array(buffer, HEADER_BYTES, this.#rows);
    this.#cells = new Int32Array(buffer, cellsAt, this.#rows * WORDS);
    this.#shares = new Int32Array(buffer, sharesAt, this.#rows * workers);
    const addressesAt = bytesBefore(this.#rows, workers);
    const locksAt = addressesAt + AddressCounts.bytesFor(workers);
    this.locks = Locks.at(buffer, locksAt, { ...locksOf(workers), holder: thread });
    this.addresses = new AddressCounts(buffer, addressesAt, {
      workers,
      locked: (work) => this.locks.holding(ADDRESSES, work),
    });
  }

  /** `now`: milliseconds since the Unix epoch. */
  static create(workers: number, { now = Date.now(), capacity = CAPACITY } = {}): TargetBoard {
    const bytes = bytesBefore(rowsFor(capacity), workers) + AddressCounts.bytesFor(workers);
    const buffer = new SharedArrayBuffer(bytes + Locks.bytesFor(locksOf(workers)));
    new Float64Array(buffer, 0, 3).set([now, workers, capacity]);
    return new TargetBoard(buffer);
  }

  /** Rows in use. */
  get inUse(): number {
    return Atomics.load(this.#header, IN_USE);
  }

  /** The row of an id, created if needed; throws BoardFullError. Thread-safe. */
  rowOf(id: string): number {
    const key = keyOf(id);
    return this.#find(key) ?? this.locks.holding(ROWS, () => this.#claim(key));
  }

  /** The row of an id; null: none. */
  findRow(id: string): number | null {
    return this.#find(keyOf(id));
  }

  /**
   * Releases the row of an id. False: a request is in flight on it, try again later. No thread may call `rowOf` for the id
   * concurrently.
   */
  release(id: string): boolean {
    const key = keyOf(id);
    return this.locks.holding(ROWS, () => {
      const row = this.#find(key);
      if (row === null) return true;
      // Changes the epoch before reading `active`; `enter` counts before its caller reads the epoch, so one of them sees the other.
      this.add(row, "epoch", 1);
      if (this.active(row) !== 0) return false;
      Atomics.store(this.#keys, row, REUSABLE);
      Atomics.sub(this.#header, IN_USE, 1);
      this.#reclaim(row);
      return true;
    });
  }

  #find(key: bigint): number | null {
    const rows = this.#rows;
    let row = Number(key % BigInt(rows));
    for (let step = 0; step < rows; step++) {
      const found = Atomics.load(this.#keys, row);
      if (found === key) return row;
      if (found === FREE) return null;
      row = row + 1 === rows ? 0 : row + 1;
    }
    return null;
  }

  #claim(key: bigint): number {
    const known = this.#find(key);
    if (known !== null) return known;
    if (this.inUse >= this.capacity)
      throw new BoardFullError(`there are more than ${this.capacity} targets and services`);
    let row = Number(key % BigInt(this.#rows));
    while (Atomics.load(this.#keys, row) > REUSABLE) row = (row + 1) % this.#rows;
    const epoch = this.get(row, "epoch");
    // All words except `active`, which a late `enter` may hold until its caller has read the epoch.
    this.#cells.fill(0, row * WORDS + 1, (row + 1) * WORDS);
    this.set(row, "epoch", epoch);
    this.set(row, "started_at", this.time(Date.now()));
    // Last, because from here on other threads find the row.
    Atomics.store(this.#keys, row, key);
    Atomics.add(this.#header, IN_USE, 1);
    return row;
  }

  /** Tombstones extend searches; those before a free row become free. */
  #reclaim(row: number): void {
    if (Atomics.load(this.#keys, (row + 1) % this.#rows) !== FREE) return;
    let last = row;
    while (Atomics.load(this.#keys, last) === REUSABLE) {
      Atomics.store(this.#keys, last, FREE);
      last = last === 0 ? this.#rows - 1 : last - 1;
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

  /** Compare and swap; true when the word was `from`. */
  swap(
    row: number,
    word: Word,
    { from, to }: { readonly from: number; readonly to: number },
  ): boolean {
    const cell = row * WORDS + at[word];
    return Atomics.compareExchange(this.#cells, cell, from, to | 0) === from;
  }

  /** Counts a request of this worker; returns the count before it. */
  enter(row: number, worker: number): number {
    const before = Atomics.add(this.#cells, row * WORDS, 1);
    const share = worker * this.#rows + row;
    this.#shares[share] = (this.#shares[share] ?? 0) + 1;
    return before;
  }

  /** The request has ended. */
  leave(row: number, worker: number): void {
    Atomics.sub(this.#cells, row * WORDS, 1);
    const share = worker * this.#rows + row;
    this.#shares[share] = (this.#shares[share] ?? 0) - 1;
  }

  /** Whether the last requests to the target have not failed: its last outcome is this one. */
  isAt(row: number, outcome: number): boolean {
    const first = row * WORDS;
    return (
      Atomics.load(this.#cells, first + at.failures) === 0 &&
      Atomics.load(this.#cells, first + at.outcome) === outcome
    );
  }

  /** Requests in flight. */
  active(row: number): number {
    return Atomics.load(this.#cells, row * WORDS);
  }

  /** Subtracts the requests in flight of a worker that has ended, and releases its lease. */
  forgetWorker(worker: number): void {
    releaseLease(this.lease, worker);
    this.addresses.forgetWorker(worker);
    const first = worker * this.#rows;
    for (let row = 0; row < this.#rows; row++) {
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

  /** The inverse of `time`. */
  date(time: number): number {
    return this.#madeAt + time * 100;
  }
}

const rowsFor = (capacity: number) => Math.ceil(capacity / MAX_FILLED) + 1;

/** Bytes of everything but the addresses, aligned to eight. */
const bytesBefore = (rows: number, workers: number) =>
  Math.ceil((HEADER_BYTES + rows * (8 + WORDS * 4 + workers * 4)) / 8) * 8;

/** A 64-bit hash that avoids the reserved keys. */
function keyOf(id: string): bigint {
  const key = BigInt.asUintN(64, BigInt(Bun.hash(id)));
  return key < 2n ? key + 2n : key;
}
