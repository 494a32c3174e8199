// Refuses what is too much for the process or for a limit, and counts it; knows no request line and no route.
import type { TargetBoard } from "../shared-memory/target-board.ts";
import { pressures, type WorkerBoard } from "../shared-memory/worker-board.ts";
import { failures, type ProxyError } from "./error.ts";

/** A collection stops the worker for a moment: not more often. */
const COLLECT_MS = 5000;

/** A number of requests that may be in flight at once, counted in a row that all workers share. */
export interface InFlightLimit {
  readonly row: number;
  readonly most: number;
}

/** Whoever is counted in. */
export interface Counted {
  /** The limits that it takes a place of; null: it takes none. */
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

  /** Whether nothing new may begin. Costs a request one load. */
  get isShedding(): boolean {
    return this.#board.pressure !== 0;
  }

  /** Whether connections are to be refused because too few files are left to open. */
  get isShortOfDescriptors(): boolean {
    return (this.#board.pressure & pressures.descriptors) !== 0;
  }

  /** Counts a refusal while `isShedding`, and says why. */
  shed(): ProxyError {
    const kind = this.isShortOfDescriptors ? "descriptors" : "memory";
    this.#board.add(this.#options.worker, `shed_${kind}`, 1);
    return kind === "memory" ? failures.shortOfMemory : failures.shortOfDescriptors;
  }

  /** Has garbage collected while memory is short: at once, and now and then as long as it lasts. */
  relieve(now: number): void {
    const isShort = (this.#board.pressure & pressures.memory) !== 0;
    if (!isShort || now - this.#collectedAt < COLLECT_MS) return;
    this.#collectedAt = now;
    Bun.gc(true);
  }

  /** One more was refused because of a limit of requests in flight. */
  refused(): void {
    this.#board.add(this.#options.worker, "shed_in_flight", 1);
  }

  /** Takes a place of each limit of the listener; false, and nothing taken, when one has none left. */
  enter(counted: Counted): boolean {
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

  /** Gives the places back; runs when a request has ended. */
  leave(counted: Counted): void {
    const held = counted.heldLimits;
    if (held === null) return;
    counted.heldLimits = null;
    for (const { row } of held) this.#options.targets.leave(row, this.#options.worker);
  }
}
