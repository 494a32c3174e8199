// What all threads know about targets and services: requests in flight, health, turns; exact over all workers. Knows no HTTP.
import { AddressCounts } from "./address-counts.ts";
import { releaseLease } from "./check-lease.ts";

/** Words of a row, each a 32-bit integer. Times are tenths of a second since the board was made. */
const words = [
  /** Requests in flight, of all workers. */
  "active",
  /** Failures of the traffic in a row. */
  "failures",
  /** How often it was ejected in a row. */
  "ejections",
  "ejected_until",
  /** How often it was ejected at all. */
  "ejected_total",
  /** What active checks say: 0 nothing, 1 healthy, 2 unhealthy. */
  "check",
  /** Equal results of active checks in a row: successes above 0, failures below. */
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
  /** What the traffic last said: 0 nothing, 1 it works, 2 it failed, 3 failed `consecutive_failures` times in a row. */
  "outcome",
  /** Of a service: whose turn it is. */
  "turn",
  /** Of a service: changes whenever the health of a target does. */
  "version",
  /** Of a service: hundredths of retries made that its requests have not paid for yet. */
  "spent",
  "spent_at",
  /** Changes when the row is given up, so that who still holds it can tell. Never goes back to 0. */
  "epoch",
] as const;
export type Word = (typeof words)[number];

const WORDS = words.length;
const at = Object.fromEntries(words.map((name, index) => [name, index])) as Record<Word, number>;

/** Targets and services together. */
const CAPACITY = 30_000;
/** Part of the rows that may be in use: more, and finding one that is not there would look at very many. */
const MOST_FILLED = 0.9;
/**
 * Before the rows: as 64-bit floats when the board was made, in milliseconds since the Unix epoch, the number of workers and
 * the capacity; then 8 bytes for the lease of `CheckLease`; then as 32-bit integers the lock and the number of rows in use.
 */
const HEADER_BYTES = 64;
const LEASE_BYTE = 24;
const LOCK = 8;
const IN_USE = 9;
/** Rows are made and given up in microseconds: who takes longer has died while holding the lock. */
const LOCK_STALE_MS = 1000;
const LOCK_TIME_MASK = 0x3fff_ffff;
/** Keys that mean something: no row, and a row that may be used again. */
const FREE = 0n;
const REUSABLE = 1n;

/** More targets and services than there may be. */
export class BoardFullError extends Error {}

/**
 * Rows are found by id and stay where they are as long as the id is in use, whatever changes around it. Each worker also
 * keeps its own share of the requests in flight, so that those of a worker that died can be taken off again.
 */
export class TargetBoard {
  readonly buffer: SharedArrayBuffer;
  /** Targets and services that there may be. */
  readonly capacity: number;
  /** Who makes the active checks; see `CheckLease`. */
  readonly lease: BigUint64Array;
  /** Connections of client addresses. */
  readonly addresses: AddressCounts;
  readonly #header: Int32Array;
  readonly #rows: number;
  readonly #keys: BigUint64Array;
  readonly #cells: Int32Array;
  readonly #shares: Int32Array;
  readonly #madeAt: number;

  constructor(buffer: SharedArrayBuffer) {
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
    this.addresses = new AddressCounts(buffer, bytesBefore(this.#rows, workers), workers);
  }

  /** `now`: milliseconds since the Unix epoch. */
  static create(workers: number, { now = Date.now(), capacity = CAPACITY } = {}): TargetBoard {
    const bytes = bytesBefore(rowsFor(capacity), workers) + AddressCounts.bytesFor(workers);
    const buffer = new SharedArrayBuffer(bytes);
    new Float64Array(buffer, 0, 3).set([now, workers, capacity]);
    return new TargetBoard(buffer);
  }

  /** Rows in use. */
  get inUse(): number {
    return Atomics.load(this.#header, IN_USE);
  }

  /** The row of an id, made when there is none; throws BoardFullError. Any thread may ask; all get the same one. */
  rowOf(id: string): number {
    const key = keyOf(id);
    return this.#find(key) ?? this.#locked(() => this.#claim(key));
  }

  /** The row of an id; null when there is none. */
  findRow(id: string): number | null {
    return this.#find(keyOf(id));
  }

  /**
   * Lets the row of an id be used again, unless a request is in flight on it. False: one is, so ask again later. Nobody may
   * ask for the row at the same time.
   */
  release(id: string): boolean {
    const key = keyOf(id);
    return this.#locked(() => {
      const row = this.#find(key);
      if (row === null) return true;
      // First the mark, then the look: who enters looks for the mark afterwards, so one of the two sees the other.
      this.add(row, "epoch", 1);
      if (this.active(row) !== 0) return false;
      Atomics.store(this.#keys, row, REUSABLE);
      Atomics.sub(this.#header, IN_USE, 1);
      this.#tidy(row);
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
    // All but the requests in flight, which are none: one that comes too late, looks at the mark and goes again, may be there.
    this.#cells.fill(0, row * WORDS + 1, (row + 1) * WORDS);
    this.set(row, "epoch", epoch);
    this.set(row, "started_at", this.time(Date.now()));
    // Last, because from here on others find it.
    Atomics.store(this.#keys, row, key);
    Atomics.add(this.#header, IN_USE, 1);
    return row;
  }

  /** Rows that may be used again keep a search going. Before a free one they need not: those become free too. */
  #tidy(row: number): void {
    if (Atomics.load(this.#keys, (row + 1) % this.#rows) !== FREE) return;
    let last = row;
    while (Atomics.load(this.#keys, last) === REUSABLE) {
      Atomics.store(this.#keys, last, FREE);
      last = last === 0 ? this.#rows - 1 : last - 1;
    }
  }

  /** One thread at a time makes or gives up rows. */
  #locked<T>(work: () => T): T {
    const token = this.#lock();
    try {
      return work();
    } finally {
      Atomics.compareExchange(this.#header, LOCK, token, 0);
    }
  }

  #lock(): number {
    for (;;) {
      const now = (Date.now() & LOCK_TIME_MASK) | 1;
      const held = Atomics.load(this.#header, LOCK);
      // Also when it was locked after `now` was read.
      const isFresh = ((now - held + LOCK_STALE_MS) & LOCK_TIME_MASK) < 2 * LOCK_STALE_MS;
      const isTaken = held !== 0 && isFresh;
      if (isTaken) Atomics.wait(this.#header, LOCK, held, 1);
      else if (Atomics.compareExchange(this.#header, LOCK, held, now) === held) return now;
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

  /** A request of this worker begins on the target; returns how many there were before it. */
  enter(row: number, worker: number): number {
    const before = Atomics.add(this.#cells, row * WORDS, 1);
    const share = worker * this.#rows + row;
    this.#shares[share] = (this.#shares[share] ?? 0) + 1;
    return before;
  }

  /** It has ended. */
  leave(row: number, worker: number): void {
    Atomics.sub(this.#cells, row * WORDS, 1);
    const share = worker * this.#rows + row;
    this.#shares[share] = (this.#shares[share] ?? 0) - 1;
  }

  /** Requests in flight. */
  active(row: number): number {
    return Atomics.load(this.#cells, row * WORDS);
  }

  /** Takes off what a worker that ended had in flight, and the lease of checks if it had that. */
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

  /** And back. */
  date(time: number): number {
    return this.#madeAt + time * 100;
  }
}

const rowsFor = (capacity: number) => Math.ceil(capacity / MOST_FILLED) + 1;

/** Bytes of everything but the addresses, at a border of eight. */
const bytesBefore = (rows: number, workers: number) =>
  Math.ceil((HEADER_BYTES + rows * (8 + WORDS * 4 + workers * 4)) / 8) * 8;

/** 64 bits of an id; the two smallest numbers mean something else. */
function keyOf(id: string): bigint {
  const key = BigInt.asUintN(64, BigInt(Bun.hash(id)));
  return key < 2n ? key + 2n : key;
}
