// Load shedding and limits of requests in flight; knows no request line and no route.
import type { TargetBoard } from "../shared-memory/target-board.ts";
import { pressures, type WorkerBoard } from "../shared-memory/worker-board.ts";
import { failures, type ProxyError } from "./error.ts";

/** A full collection stops the worker for a moment. */
const MIN_GC_INTERVAL_MS = 5000;

/** A limit of requests in flight, counted in a row of the board over all workers. */
export interface InFlightLimit {
  readonly row: number;
  readonly most: number;
}

/** A request to count. */
export interface CountedRequest {
  /** The limits that it counts against; null: none. */
  heldLimits: readonly InFlightLimit[] | null;
  readonly listener: { readonly inFlightLimits: readonly InFlightLimit[] };
}

export interface OverloadOptions {
  readonly worker: number;
  readonly board: WorkerBoard;
  readonly targets: TargetBoard;
}

export class Overload {
  readonly #options: OverloadOptions;
  readonly #board: WorkerBoard;
  #collectedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OverloadOptions) {
    this.#options = options;
    this.#board = options.board;
  }

  /** Whether the worker refuses new work. One load. */
  get isShedding(): boolean {
    return this.#board.pressure !== 0;
  }

  /** Whether the process runs out of file descriptors. */
  get isShortOfDescriptors(): boolean {
    return (this.#board.pressure & pressures.descriptors) !== 0;
  }

  /** Counts a refusal while `isShedding`, and says why. */
  shed(): ProxyError {
    const kind = this.isShortOfDescriptors ? "descriptors" : "memory";
    this.#board.add(this.#options.worker, `shed_${kind}`, 1);
    return kind === "memory" ? failures.shortOfMemory : failures.shortOfDescriptors;
  }

  /** Collects garbage while memory is short, every MIN_GC_INTERVAL_MS. */
  relieve(now: number): void {
    const isShort = (this.#board.pressure & pressures.memory) !== 0;
    if (!isShort || now - this.#collectedAt < MIN_GC_INTERVAL_MS) return;
    this.#collectedAt = now;
    Bun.gc(true);
  }

  /** Counts a refusal by a limit of requests in flight. */
  refused(): void {
    this.#board.add(this.#options.worker, "shed_in_flight", 1);
  }

  /** Counts a request against each limit of the listener; false, and counts nothing, when one is reached. */
  enter(counted: CountedRequest): boolean {
    const { targets, worker } = this.#options;
    const limits = counted.listener.inFlightLimits;
    for (let taken = 0; taken < limits.length; taken++) {
      const limit = limits[taken];
      if (limit === undefined || targets.enter(limit.row, worker) < limit.most) continue;
      for (const { row } of limits.slice(0, taken + 1)) targets.leave(row, worker);
      return false;
    }
    counted.heldLimits = limits;
    return true;
  }

  /** The request has ended. */
  leave(counted: CountedRequest): void {
    const held = counted.heldLimits;
    if (held === null) return;
    counted.heldLimits = null;
    for (const { row } of held) this.#options.targets.leave(row, this.#options.worker);
  }
}
