// One row of numbers for each worker in shared memory, read by the main thread; knows no HTTP.

/** Columns of a row, each one 64-bit slot. */
const columns = [
  "heartbeat",
  "revision",
  "active_requests",
  "requests_total",
  "open_websockets",
  /** Of clients, on our own engine. */
  "http1_connections",
  "http2_connections",
  "http2_streams",
  /** Requests refused by load shedding and limits. */
  "shed_memory",
  "shed_descriptors",
  "shed_in_flight",
  "shed_aborts_connection",
  "shed_aborts_address",
  /** Requests that clients have aborted while a target worked for them. */
  "aborted_requests",
  /** Connections of HTTP/2 that the gateway has ended for what their client sent, see `budgets.ts`. */
  "http2_frames",
  "http2_resets",
  "http2_errors",
  "http2_refusals",
  "http2_heads",
  "http2_unread",
  "http2_protocol",
  /** Commands to the server of shared counters, those that failed, and decisions made without it. */
  "counters_operations",
  "counters_errors",
  "counters_fallbacks",
  /** 1 while the worker does not reach that server. */
  "counters_lost",
  /** Number of the plugin from a directory that runs; 0: none. */
  "running_plugin",
  /** See `findPoll`; 0: its sockets are not known, or are aborted. */
  "poll",
] as const;
export type BoardColumn = (typeof columns)[number];

/** All others are totals. */
const states = [
  "heartbeat",
  "revision",
  "active_requests",
  "open_websockets",
  "http1_connections",
  "http2_connections",
  "http2_streams",
  "counters_lost",
  "running_plugin",
  "poll",
] as const satisfies readonly BoardColumn[];

/** Scarce resources of the process, as bits of `pressure`. */
export const pressures = { memory: 1, descriptors: 2 } as const;
export type PressureKind = keyof typeof pressures;

const index = Object.fromEntries(columns.map((name, position) => [name, position])) as Record<
  BoardColumn,
  number
>;

/** Counters over a SharedArrayBuffer; a row has one writer, its worker, and aligned 64-bit stores never tear. */
export class WorkerBoard {
  readonly buffer: SharedArrayBuffer;
  readonly #cells: Float64Array;
  /** Behind the rows. */
  readonly #pressureCell: number;
  readonly #nodesCell: number;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#cells = new Float64Array(buffer);
    this.#pressureCell = this.#cells.length - 2;
    this.#nodesCell = this.#cells.length - 1;
  }

  static create(workers: number): WorkerBoard {
    return new WorkerBoard(new SharedArrayBuffer((workers * columns.length + 2) * 8));
  }

  /** Scarce resources of the process, bits of `pressures`; 0: none. Only the main thread sets it. */
  get pressure(): number {
    return this.#cells[this.#pressureCell] ?? 0;
  }

  set pressure(bits: number) {
    this.#cells[this.#pressureCell] = bits;
  }

  /** A view of the cell of `pressure`, for those who read it very often. */
  pressureCell(): Float64Array {
    return this.#cells.subarray(this.#pressureCell, this.#pressureCell + 1);
  }

  /** Number of nodes of the fleet that are present; at least 1. Only the main thread sets it. */
  get nodes(): number {
    return Math.max(1, this.#cells[this.#nodesCell] ?? 1);
  }

  set nodes(count: number) {
    this.#cells[this.#nodesCell] = count;
  }

  get(worker: number, column: BoardColumn): number {
    return this.#cells[worker * columns.length + index[column]] ?? 0;
  }

  /** Over all workers. */
  sum(column: BoardColumn): number {
    let total = 0;
    for (let cell = index[column]; cell < this.#pressureCell; cell += columns.length)
      total += this.#cells[cell] ?? 0;
    return total;
  }

  set(worker: number, column: BoardColumn, value: number): void {
    this.#cells[worker * columns.length + index[column]] = value;
  }

  /** A view of one cell, for a column that is written very often. */
  cell(worker: number, column: BoardColumn): Float64Array {
    const at = worker * columns.length + index[column];
    return this.#cells.subarray(at, at + 1);
  }

  /** Not atomic: only the row's own worker may call it. */
  add(worker: number, column: BoardColumn, delta: number): void {
    const cell = worker * columns.length + index[column];
    this.#cells[cell] = (this.#cells[cell] ?? 0) + delta;
  }

  /** Zeros the present state of a worker that has ended. Its totals go on with the next one. */
  reset(worker: number): void {
    for (const column of states) this.set(worker, column, 0);
  }
}
