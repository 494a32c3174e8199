// One row of shared numbers for each worker, read by the main thread without asking the worker; knows no HTTP.

/** Columns of a row, each one 64-bit slot. */
const columns = [
  "heartbeat",
  "revision",
  "active_requests",
  "requests_total",
  "open_websockets",
  /** Requests that were refused because there was too much of something. */
  "shed_memory",
  "shed_descriptors",
  "shed_in_flight",
  "shed_aborts_connection",
  "shed_aborts_address",
  /** Requests whose client left while a target worked for them. */
  "aborted_requests",
] as const;
export type BoardColumn = (typeof columns)[number];

/** What the process may be short of, each a bit of `pressure`. */
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

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#cells = new Float64Array(buffer);
    this.#pressureCell = this.#cells.length - 1;
  }

  static create(workers: number): WorkerBoard {
    return new WorkerBoard(new SharedArrayBuffer((workers * columns.length + 1) * 8));
  }

  /** What the whole process is short of, bits of `pressures`; 0: nothing. Only the main thread sets it. */
  get pressure(): number {
    return this.#cells[this.#pressureCell] ?? 0;
  }

  set pressure(bits: number) {
    this.#cells[this.#pressureCell] = bits;
  }

  get(worker: number, column: BoardColumn): number {
    return this.#cells[worker * columns.length + index[column]] ?? 0;
  }

  /** Of all workers. */
  sum(column: BoardColumn): number {
    let total = 0;
    for (let cell = index[column]; cell < this.#pressureCell; cell += columns.length)
      total += this.#cells[cell] ?? 0;
    return total;
  }

  set(worker: number, column: BoardColumn, value: number): void {
    this.#cells[worker * columns.length + index[column]] = value;
  }

  /** Adds without reading back; only the row's own worker may call it. */
  add(worker: number, column: BoardColumn, delta: number): void {
    const cell = worker * columns.length + index[column];
    this.#cells[cell] = (this.#cells[cell] ?? 0) + delta;
  }

  /** Sets a whole row to zero: a restarted worker starts anew. */
  reset(worker: number): void {
    this.#cells.fill(0, worker * columns.length, (worker + 1) * columns.length);
  }
}
