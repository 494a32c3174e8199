// Traffic counters of the workers in shared memory, read by the main thread; exact, and they outlive a worker. Knows no names.
import { type Histogram, record, snapshot } from "./histogram.ts";
import {
  CODES_AT,
  codeCells,
  codes,
  counterAt,
  histogramAt,
  OTHER_CODE,
  ROW_CELLS,
  type TrafficCounter,
  type TrafficHistogram,
} from "./traffic-cells.ts";

/** Rows for routes, stream routes, listeners and plugins together. */
const CAPACITY = 1000;
/** Load factor: beyond it unsuccessful searches become slow. */
const MAX_FILLED = 0.8;
/** As 64-bit floats: the number of workers and the capacity. */
const HEADER_BYTES = 64;
const FREE = 0n;
const REUSABLE = 1n;

/**
 * The memory of `TrafficMetrics` as sent to a thread. Each worker's cells have their own buffer, because a thread that
 * holds large buffers collects garbage later: a worker gets only its own.
 */
export interface TrafficMemory {
  /** The number of workers and the capacity; keys, their rows, and epochs. */
  readonly index: SharedArrayBuffer;
  /** By worker; null: not shared with this thread. */
  readonly cells: readonly (SharedArrayBuffer | null)[];
}

/** Rows that always exist: for everything without a row of its own, and for requests without a route. */
export const OTHER_ROW = 0;
export const NO_ROUTE_ROW = 1;
const FIRST_ROW = 2;

/** A writer's handle on a row. After the row's release it counts in `OTHER_ROW`. */
export interface Series {
  readonly row: number;
  readonly epoch: number;
}

/** One request that has ended. */
export interface EndedRequest {
  readonly status: number;
  /** Microseconds. */
  readonly totalUs: number;
  /** Time in upstream attempts; 0 or less: none. */
  readonly upstreamUs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly retries: number;
  readonly isResponseAborted: boolean;
}

/** A row at one moment, over all workers. */
export interface TrafficSnapshot {
  readonly counters: Readonly<Record<TrafficCounter, number>>;
  /** By the values of the label `code`, without zeros. */
  readonly codes: ReadonlyMap<string, number>;
  readonly histograms: Readonly<Record<TrafficHistogram, Histogram>>;
}

/**
 * Each worker has its own cells in every row and adds to them without locks: there is one writer, and 64-bit stores never
 * tear. Only the main thread creates and releases rows; workers find them by key. A restarted worker continues
 * with the cells of its predecessor.
 */
export class TrafficMetrics {
  readonly memory: TrafficMemory;
  readonly workers: number;
  /** Most rows, beside those that always exist. */
  readonly capacity: number;
  readonly #keys: BigUint64Array;
  /** Row by key. */
  readonly #rows: Int32Array;
  /** Epoch by row. */
  readonly #epochs: Int32Array;
  /** By worker; empty where not shared with this thread. */
  readonly #cells: readonly Float64Array[];
  /** Rows in use; main thread only. */
  readonly #taken: Uint8Array;
  #inUse = 0;

  constructor(memory: TrafficMemory) {
    const { index, cells } = memory;
    this.memory = memory;
    const [workers = 0, capacity = 0] = new Float64Array(index, 0, 2);
    this.workers = workers;
    this.capacity = capacity;
    const positions = positionsFor(capacity);
    this.#keys = new BigUint64Array(index, HEADER_BYTES, positions);
    this.#rows = new Int32Array(index, HEADER_BYTES + positions * 8, positions);
    this.#epochs = new Int32Array(index, HEADER_BYTES + positions * 12, FIRST_ROW + capacity);
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

  /** The memory for one worker's view. */
  memoryFor(worker: number): TrafficMemory {
    const { index, cells } = this.memory;
    return { index, cells: cells.map((buffer, of) => (of === worker ? buffer : null)) };
  }

  /** Number of rows in use; main thread only. */
  get inUse(): number {
    return this.#inUse;
  }

  /** The row of a key, created if needed; `OTHER_ROW` when the table is full. Main thread only. */
  claim(key: string): number {
    const hash = hashOf(key);
    const known = this.#find(hash);
    if (known !== null) return this.#rowAt(known);
    if (this.#inUse >= this.capacity) return OTHER_ROW;
    let position = this.#firstOf(hash);
    while (Atomics.load(this.#keys, position) > REUSABLE) position = this.#after(position);
    // The first free row, so that keys that come and go do not touch all pages of the memory.
    const row = this.#taken.indexOf(0);
    const at = row * ROW_CELLS;
    // Unwritten pages take no memory: zeros only where there are counts.
    for (const cells of this.#cells) if (isUsed(cells, at)) cells.fill(0, at, at + ROW_CELLS);
    this.#taken[row] = 1;
    this.#inUse++;
    Atomics.store(this.#rows, position, row);
    // Last, because from here on workers find the row.
    Atomics.store(this.#keys, position, hash);
    return row;
  }

  /** Releases the row of a key. Its handles count in `OTHER_ROW` from here on. */
  release(key: string): void {
    const position = this.#find(hashOf(key));
    if (position === null) return;
    const row = this.#rowAt(position);
    Atomics.add(this.#epochs, row, 1);
    Atomics.store(this.#keys, position, REUSABLE);
    this.#taken[row] = 0;
    this.#inUse--;
  }

  /** The handle of a key's row; `OTHER_ROW` when it has none. Thread-safe. */
  seriesOf(key: string): Series {
    const hash = hashOf(key);
    const position = this.#find(hash);
    if (position === null) return this.#seriesAt(OTHER_ROW);
    const series = this.#seriesAt(this.#rowAt(position));
    // Meanwhile another key may have come to the same position.
    return Atomics.load(this.#keys, position) === hash ? series : this.#seriesAt(OTHER_ROW);
  }

  /** The row of requests without a route. */
  get noRoute(): Series {
    return this.#seriesAt(NO_ROUTE_ROW);
  }

  /** The only writer of a worker's cells. */
  writer(worker: number): TrafficWriter {
    return new TrafficWriter(this.#cells[worker] ?? new Float64Array(), this.#epochs);
  }

  /** A row, summed over all workers. */
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

  #rowAt(position: number): number {
    return Atomics.load(this.#rows, position);
  }

  #find(hash: bigint): number | null {
    let position = this.#firstOf(hash);
    for (let step = 0; step < this.#keys.length; step++) {
      const found = Atomics.load(this.#keys, position);
      if (found === hash) return position;
      if (found === FREE) return null;
      position = this.#after(position);
    }
    return null;
  }

  #firstOf(hash: bigint): number {
    return Number(hash % BigInt(this.#keys.length));
  }

  #after(position: number): number {
    return position + 1 === this.#keys.length ? 0 : position + 1;
  }
}

// Read by every request.
const ENDED = counterAt.ended;
const BYTES_OUT = counterAt.bytes_out;
const TOTAL = histogramAt.total;

/** Writes the counters of one worker. */
export class TrafficWriter {
  readonly #cells: Float64Array;
  readonly #epochs: Int32Array;

  constructor(cells: Float64Array, epochs: Int32Array) {
    this.#cells = cells;
    this.#epochs = epochs;
  }

  /** Counts an ended request. Hot path. */
  ended(series: Series, request: EndedRequest): void {
    const cells = this.#cells;
    const row = this.#epochs[series.row] === series.epoch ? series.row : OTHER_ROW;
    const at = row * ROW_CELLS;
    const { totalUs, upstreamUs, bytesIn, bytesOut, retries } = request;
    const code = at + (codeCells[request.status] ?? OTHER_CODE);
    cells[at + ENDED] = (cells[at + ENDED] ?? 0) + 1;
    cells[code] = (cells[code] ?? 0) + 1;
    if (bytesIn > 0) add(cells, at + counterAt.bytes_in, bytesIn);
    if (bytesOut > 0) cells[at + BYTES_OUT] = (cells[at + BYTES_OUT] ?? 0) + bytesOut;
    if (retries > 0) add(cells, at + counterAt.retries, retries);
    if (request.isResponseAborted) add(cells, at + counterAt.aborted_responses, 1);
    // The duration of a WebSocket is not a latency.
    if (request.status === 101) return;
    record(cells, at + TOTAL, totalUs);
    if (upstreamUs <= 0) return;
    record(cells, at + histogramAt.upstream, upstreamUs);
    record(cells, at + histogramAt.overhead, Math.max(0, totalUs - upstreamUs));
  }

  /** Adds to one counter. */
  add(series: Series, counter: TrafficCounter, amount: number): void {
    add(this.#cells, this.#at(series) + counterAt[counter], amount);
  }

  /** Adds a duration in microseconds to one histogram. */
  record(series: Series, histogram: TrafficHistogram, us: number): void {
    record(this.#cells, this.#at(series) + histogramAt[histogram], us);
  }

  /** A plain read: an atomic one would cost a locked instruction and gain nothing. */
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

const positionsFor = (capacity: number) => Math.ceil(capacity / MAX_FILLED) + 1;

/** Header, keys, their rows and epochs. */
const indexBytes = (capacity: number) =>
  HEADER_BYTES + positionsFor(capacity) * 12 + (FIRST_ROW + capacity) * 4;

function isUsed(cells: Float64Array, at: number): boolean {
  for (let cell = at; cell < at + CODES_AT; cell++) if ((cells[cell] ?? 0) !== 0) return true;
  return false;
}

/** A 64-bit hash that avoids the reserved keys. */
function hashOf(key: string): bigint {
  const hash = BigInt.asUintN(64, BigInt(Bun.hash(key)));
  return hash < 2n ? hash + 2n : hash;
}
