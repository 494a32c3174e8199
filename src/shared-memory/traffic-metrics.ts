// What the workers count of the traffic, read by the main thread without asking them; exact, and kept when a worker ends. Knows no names.
import { type Histogram, record, snapshot } from "./histogram.ts";
import {
  CODES_AT,
  codeCell,
  codes,
  counterAt,
  histogramAt,
  ROW_CELLS,
  type TrafficCounter,
  type TrafficHistogram,
} from "./traffic-cells.ts";

/** Rows for routes, stream routes, listeners and plugins together. */
const CAPACITY = 1000;
/** Part of the keys that may be in use: more, and finding one that is not there would look at very many. */
const MOST_FILLED = 0.8;
/** As 64-bit floats: the number of workers and the capacity. */
const HEADER_BYTES = 64;
const FREE = 0n;
const REUSABLE = 1n;

/**
 * The memory of `TrafficMetrics` as it crosses to a thread. Each worker's cells are a buffer of their own, because a thread that
 * holds a large buffer collects its garbage later: it must not hold those of all others.
 */
export interface TrafficMemory {
  /** The number of workers and the capacity; keys, the row of each, and epochs. */
  readonly index: SharedArrayBuffer;
  /** Of each worker; null: not for whoever gets this. */
  readonly cells: readonly (SharedArrayBuffer | null)[];
}

/** Rows that always exist: of everything that has no row of its own, and of requests that no route took. */
export const OTHER_ROW = 0;
export const NO_ROUTE_ROW = 1;
const FIRST_ROW = 2;

/** A row as whoever counts in it holds it. Once the row is given to something else, it counts no more there. */
export interface Series {
  readonly row: number;
  readonly epoch: number;
}

/** One request that has ended. */
export interface EndedRequest {
  readonly status: number;
  /** Microseconds. */
  readonly totalUs: number;
  /** Time in which it was with a target; 0 or less: never. */
  readonly upstreamUs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly retries: number;
  readonly isBrokenOff: boolean;
}

/** A row at one moment, over all workers. */
export interface TrafficSnapshot {
  readonly counters: Readonly<Record<TrafficCounter, number>>;
  /** By the values of the label `code`; those that never came are left out. */
  readonly codes: ReadonlyMap<string, number>;
  readonly histograms: Readonly<Record<TrafficHistogram, Histogram>>;
}

/**
 * Each worker has cells of its own in every row and adds to them without locks: there is one writer, and 64-bit stores never
 * tear. Only the main thread makes rows and gives them up; workers find them by key. A worker that is started again goes on
 * in the cells of the one before it.
 */
export class TrafficMetrics {
  readonly memory: TrafficMemory;
  readonly workers: number;
  /** Rows that there may be, beside those that always exist. */
  readonly capacity: number;
  readonly #keys: BigUint64Array;
  /** Of each key. */
  readonly #rows: Int32Array;
  /** Of each row. */
  readonly #epochs: Int32Array;
  /** Of each worker; empty where the memory is not at hand. */
  readonly #cells: readonly Float64Array[];
  /** Rows that a key has. Of the main thread. */
  readonly #taken: Uint8Array;
  #inUse = 0;

  constructor(memory: TrafficMemory) {
    const { index, cells } = memory;
    this.memory = memory;
    const [workers = 0, capacity = 0] = new Float64Array(index, 0, 2);
    this.workers = workers;
    this.capacity = capacity;
    const places = placesFor(capacity);
    this.#keys = new BigUint64Array(index, HEADER_BYTES, places);
    this.#rows = new Int32Array(index, HEADER_BYTES + places * 8, places);
    this.#epochs = new Int32Array(index, HEADER_BYTES + places * 12, FIRST_ROW + capacity);
    this.#taken = new Uint8Array(FIRST_ROW + capacity).fill(1, 0, FIRST_ROW);
    this.#cells = cells.map((buffer) => new Float64Array(buffer ?? new SharedArrayBuffer(0)));
  }

  static create(workers: number, { capacity = CAPACITY } = {}): TrafficMetrics {
    const index = new SharedArrayBuffer(indexBytes(capacity));
    new Float64Array(index, 0, 2).set([workers, capacity]);
    const cells = Array.from(
      { length: workers },
      () => new SharedArrayBuffer((FIRST_ROW + capacity) * ROW_CELLS * 8),
    );
    return new TrafficMetrics({ index, cells });
  }

  /** What a worker is given to make its own view of. */
  memoryFor(worker: number): TrafficMemory {
    const { index, cells } = this.memory;
    return { index, cells: cells.map((buffer, of) => (of === worker ? buffer : null)) };
  }

  /** Rows in use; for the main thread. */
  get inUse(): number {
    return this.#inUse;
  }

  /** The row of a key, made when there is none; `OTHER_ROW` when there is no room. For the main thread. */
  claim(key: string): number {
    const hash = hashOf(key);
    const known = this.#find(hash);
    if (known !== null) return this.#rowAt(known);
    if (this.#inUse >= this.capacity) return OTHER_ROW;
    let place = this.#firstOf(hash);
    while (Atomics.load(this.#keys, place) > REUSABLE) place = this.#after(place);
    // The first that is free: if keys that come and go led to rows all over the place, all of the memory would be in use soon.
    const row = this.#taken.indexOf(0);
    const at = row * ROW_CELLS;
    // Memory that was never written to takes no room: zeros are written only where something else is.
    for (const cells of this.#cells) if (isUsed(cells, at)) cells.fill(0, at, at + ROW_CELLS);
    this.#taken[row] = 1;
    this.#inUse++;
    Atomics.store(this.#rows, place, row);
    // Last, because from here on others find it.
    Atomics.store(this.#keys, place, hash);
    return row;
  }

  /** Lets the row of a key be given to another one. Whoever still counts in it counts in `OTHER_ROW` from here on. */
  release(key: string): void {
    const place = this.#find(hashOf(key));
    if (place === null) return;
    const row = this.#rowAt(place);
    Atomics.add(this.#epochs, row, 1);
    Atomics.store(this.#keys, place, REUSABLE);
    this.#taken[row] = 0;
    this.#inUse--;
  }

  /** The row of a key for who counts; `OTHER_ROW` when it has none. Any thread may ask. */
  seriesOf(key: string): Series {
    const hash = hashOf(key);
    const place = this.#find(hash);
    if (place === null) return this.#seriesAt(OTHER_ROW);
    const series = this.#seriesAt(this.#rowAt(place));
    // Meanwhile another key may have come to the same place.
    return Atomics.load(this.#keys, place) === hash ? series : this.#seriesAt(OTHER_ROW);
  }

  /** The row of requests that no route took. */
  get noRoute(): Series {
    return this.#seriesAt(NO_ROUTE_ROW);
  }

  /** For one worker, which alone may use it. */
  writer(worker: number): TrafficWriter {
    return new TrafficWriter(this.#cells[worker] ?? new Float64Array(), this.#epochs);
  }

  /** The counts of a row over all workers. */
  read(row: number): TrafficSnapshot {
    const at = row * ROW_CELLS;
    let sum: Float64Array | null = null;
    for (const cells of this.#cells) {
      if (!isUsed(cells, at)) continue;
      sum ??= new Float64Array(ROW_CELLS);
      for (let cell = 0; cell < ROW_CELLS; cell++)
        sum[cell] = (sum[cell] ?? 0) + (cells[at + cell] ?? 0);
    }
    return sum === null ? NOTHING : toSnapshot(sum);
  }

  #seriesAt(row: number): Series {
    return { row, epoch: Atomics.load(this.#epochs, row) };
  }

  #rowAt(place: number): number {
    return Atomics.load(this.#rows, place);
  }

  /** The place of a key. */
  #find(hash: bigint): number | null {
    let place = this.#firstOf(hash);
    for (let step = 0; step < this.#keys.length; step++) {
      const found = Atomics.load(this.#keys, place);
      if (found === hash) return place;
      if (found === FREE) return null;
      place = this.#after(place);
    }
    return null;
  }

  #firstOf(hash: bigint): number {
    return Number(hash % BigInt(this.#keys.length));
  }

  #after(place: number): number {
    return place + 1 === this.#keys.length ? 0 : place + 1;
  }
}

/** Counts for one worker. */
export class TrafficWriter {
  readonly #cells: Float64Array;
  readonly #epochs: Int32Array;

  constructor(cells: Float64Array, epochs: Int32Array) {
    this.#cells = cells;
    this.#epochs = epochs;
  }

  /** Counts a request that has ended. Runs once for each, so it must cost next to nothing. */
  ended(series: Series, request: EndedRequest): void {
    const cells = this.#cells;
    const at = this.#at(series);
    const { totalUs, upstreamUs, bytesIn, bytesOut, retries } = request;
    add(cells, at + counterAt.ended, 1);
    add(cells, at + codeCell(request.status), 1);
    if (bytesIn > 0) add(cells, at + counterAt.bytes_in, bytesIn);
    if (bytesOut > 0) add(cells, at + counterAt.bytes_out, bytesOut);
    if (retries > 0) add(cells, at + counterAt.retries, retries);
    if (request.isBrokenOff) add(cells, at + counterAt.broken_off, 1);
    // A WebSocket lasts for as long as people like: that says nothing about speed.
    if (request.status === 101) return;
    record(cells, at + histogramAt.total, totalUs);
    if (upstreamUs > 0) {
      record(cells, at + histogramAt.upstream, upstreamUs);
      record(cells, at + histogramAt.overhead, Math.max(0, totalUs - upstreamUs));
    }
  }

  /** Adds to one counter. */
  add(series: Series, counter: TrafficCounter, amount: number): void {
    add(this.#cells, this.#at(series) + counterAt[counter], amount);
  }

  /** Adds a duration in microseconds to one histogram. */
  record(series: Series, histogram: TrafficHistogram, us: number): void {
    record(this.#cells, this.#at(series) + histogramAt[histogram], us);
  }

  /** A plain read: the engine makes a locked instruction of an atomic one, and neither sees a change before it is made. */
  #at({ row, epoch }: Series): number {
    return (this.#epochs[row] === epoch ? row : OTHER_ROW) * ROW_CELLS;
  }
}

function add(cells: Float64Array, cell: number, amount: number): void {
  cells[cell] = (cells[cell] ?? 0) + amount;
}

function toSnapshot(cells: Float64Array): TrafficSnapshot {
  const found = new Map<string, number>();
  codes.forEach((code, index) => {
    const count = cells[CODES_AT + index] ?? 0;
    if (count > 0) found.set(code, count);
  });
  const valuesOf = <K extends string, V>(at: Readonly<Record<K, number>>, of: (at: number) => V) =>
    Object.fromEntries(
      Object.entries<number>(at).map(([name, cell]) => [name, of(cell)]),
    ) as Record<K, V>;
  return {
    counters: valuesOf(counterAt, (cell) => cells[cell] ?? 0),
    codes: found,
    histograms: valuesOf(histogramAt, (cell) => snapshot(cells, cell)),
  };
}

const NOTHING: TrafficSnapshot = toSnapshot(new Float64Array(ROW_CELLS));

const placesFor = (capacity: number) => Math.ceil(capacity / MOST_FILLED) + 1;

/** Of the header, the keys, their rows and the epochs. */
const indexBytes = (capacity: number) =>
  HEADER_BYTES + placesFor(capacity) * 12 + (FIRST_ROW + capacity) * 4;

function isUsed(cells: Float64Array, at: number): boolean {
  for (let cell = at; cell < at + CODES_AT; cell++) if ((cells[cell] ?? 0) !== 0) return true;
  return false;
}

/** 64 bits of a key; the two smallest numbers mean something else. */
function hashOf(key: string): bigint {
  const hash = BigInt.asUintN(64, BigInt(Bun.hash(key)));
  return hash < 2n ? hash + 2n : hash;
}
