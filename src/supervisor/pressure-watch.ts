// Checks four times a second whether memory or file descriptors run out, and makes the workers shed load meanwhile; knows no request.
import type { Log } from "../log.ts";
import { type PressureKind, pressures, type WorkerBoard } from "../shared-memory/worker-board.ts";
import { DescriptorReserve } from "./descriptor-reserve.ts";
import { allowedMemory, descriptorLimit, residentMemory } from "./host-limits.ts";

/** A shortage of memory or descriptors began or is over. */
export interface PressureEvent {
  readonly what: PressureKind;
  readonly state: "begun" | "over";
  /** Bytes, or descriptors. */
  readonly limit: number;
}

export interface PressureWatchOptions {
  readonly board: WorkerBoard;
  readonly log: Log;
  /** The current `max_memory_bytes`; 0: a fraction of the allowed memory. */
  readonly maxMemoryBytes: () => number;
  readonly onEvent: (event: PressureEvent) => void;
  /** Bytes of memory in use. Default: the resident memory of this process. */
  readonly memoryInUse?: () => number;
  /** Default: what the machine and the cgroup allow. */
  readonly memoryAllowed?: number;
  /** Null: descriptors are not watched. Default: a reserve of system descriptors. */
  readonly reserve?: DescriptorReserve | null;
  readonly now?: () => number;
  readonly collectGarbage?: () => void;
}

const WATCH_MS = 250;
/** Fraction of the allowed memory from which the gateway refuses new requests. */
const DEFAULT_MARK = 0.8;
/** Fraction of the mark below which the shortage is over: without hysteresis it would toggle with each request. */
const RECOVERED = 0.9;
/** Without requests in flight: garbage was collected meanwhile, and the rest of the memory is not freed. */
const IN_VAIN_MS = 6000;
/** Factor above the memory in use without traffic, and the highest mark as a fraction of the allowed memory. */
const HEADROOM = 1.25;
const HIGHEST_MARK = 0.95;
/** Workers check the board every 250 ms, and must close their connections before other parts may open files. */
const PAUSED_MS = 600;
/** Shortest time without accepting: the gateway must not toggle several times a second. */
const SHORTEST_MS = 1000;
/** The same line is logged at most once in this time. */
const QUIET_MS = 60_000;
const LOW_LIMIT = 1024;

interface Shortage {
  isLasting: boolean;
  since: number;
  loggedAt: number;
  /** How often it began since the last log line. */
  unlogged: number;
}

const noShortage = (): Shortage => ({
  isLasting: false,
  since: 0,
  loggedAt: Number.NEGATIVE_INFINITY,
  unlogged: 0,
});

export class PressureWatch {
  readonly #options: PressureWatchOptions;
  readonly #now: () => number;
  readonly #inUse: () => number;
  readonly #allowed: number;
  readonly #reserve: DescriptorReserve | null;
  readonly #shortages: Readonly<Record<PressureKind, Shortage>> = {
    memory: noShortage(),
    descriptors: noShortage(),
  };
  #timer: Timer | null = null;
  /** Since when memory is short without requests in flight. */
  #idleSince: number | null = null;
  /** Memory that the gateway needs without requests, measured under this mark. */
  #needed = { bytes: 0, mark: 0 };

  constructor(options: PressureWatchOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#inUse = options.memoryInUse ?? residentMemory();
    this.#allowed = options.memoryAllowed ?? allowedMemory();
    this.#reserve = options.reserve === undefined ? systemReserve() : options.reserve;
  }

  /** Bytes from which the gateway refuses new requests. */
  get memoryMark(): number {
    const mark = this.#options.maxMemoryBytes() || Math.floor(this.#allowed * DEFAULT_MARK);
    if (this.#needed.mark !== mark) this.#needed = { bytes: 0, mark };
    const least = Math.min(this.#needed.bytes * HEADROOM, this.#allowed * HIGHEST_MARK);
    return Math.max(mark, Math.floor(least));
  }

  start(): void {
    const limit = this.#reserve?.limit ?? LOW_LIMIT;
    if (limit < LOW_LIMIT)
      this.#options.log.warn("few files and sockets may be open; raise the limit: ulimit -n", {
        limit,
      });
    this.#timer = setInterval(() => this.tick(), WATCH_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#reserve?.release();
  }

  /** Checks once. */
  tick(): void {
    this.#watchMemory();
    if (this.#reserve !== null) this.#watchDescriptors(this.#reserve);
  }

  #watchMemory(): void {
    const [inUse, mark] = [this.#inUse(), this.memoryMark];
    const { isLasting } = this.#shortages.memory;
    if (!isLasting && inUse >= mark) {
      this.#begin("memory", mark, { bytes: inUse });
      (this.#options.collectGarbage ?? (() => Bun.gc(true)))();
    } else if (isLasting && (inUse < mark * RECOVERED || this.#isInVain(inUse, mark)))
      this.#end("memory", this.memoryMark);
    if (!this.#shortages.memory.isLasting) this.#idleSince = null;
  }

  /** Whether no request has been in flight for a while, so that shedding load frees no memory: raises the mark. */
  #isInVain(inUse: number, mark: number): boolean {
    const { board, log } = this.#options;
    if (board.sum("active_requests") > 0) this.#idleSince = null;
    else this.#idleSince ??= this.#now();
    if (this.#idleSince === null || this.#now() - this.#idleSince < IN_VAIN_MS) return false;
    this.#idleSince = this.#now();
    this.#needed = { ...this.#needed, bytes: inUse };
    const raised = this.memoryMark;
    if (raised <= inUse) return false;
    if (raised > mark)
      log.warn("the gateway needs this memory without requests in flight: the mark is raised", {
        bytes: inUse,
        mark,
        raised,
      });
    return true;
  }

  #watchDescriptors(reserve: DescriptorReserve): void {
    const { isLasting, since } = this.#shortages.descriptors;
    if (!isLasting) {
      if (reserve.isShort()) this.#begin("descriptors", reserve.limit, {});
      return;
    }
    const lasted = this.#now() - since;
    if (lasted >= PAUSED_MS && reserve.isHeld) {
      // The workers have stopped accepting: descriptors freed from here on are for the management API and for files.
      reserve.release();
      return;
    }
    if (lasted >= SHORTEST_MS && reserve.isEnough() && reserve.take())
      this.#end("descriptors", reserve.limit);
  }

  #begin(what: PressureKind, limit: number, fields: object): void {
    const { board, log, onEvent } = this.#options;
    const shortage = this.#shortages[what];
    board.pressure |= pressures[what];
    shortage.isLasting = true;
    shortage.since = this.#now();
    if (shortage.since - shortage.loggedAt < QUIET_MS) shortage.unlogged++;
    else {
      log.warn(words[what].begun, { ...fields, limit, times_not_logged: shortage.unlogged });
      shortage.loggedAt = shortage.since;
      shortage.unlogged = 0;
    }
    onEvent({ what, state: "begun", limit });
  }

  #end(what: PressureKind, limit: number): void {
    const { board, log, onEvent } = this.#options;
    const shortage = this.#shortages[what];
    board.pressure &= ~pressures[what];
    shortage.isLasting = false;
    if (shortage.unlogged === 0) log.info(words[what].over, { limit });
    onEvent({ what, state: "over", limit });
  }
}

const words = {
  memory: {
    begun: "memory is short: the gateway responds to new requests with 503",
    over: "memory is sufficient again: the gateway serves new requests",
  },
  descriptors: {
    begun: "too many files and sockets are open: the gateway accepts no new connections",
    over: "the gateway accepts connections again",
  },
} as const;

function systemReserve(): DescriptorReserve | null {
  const limit = descriptorLimit();
  return limit === null ? null : new DescriptorReserve(limit);
}
