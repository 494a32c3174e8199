// Looks a few times a second whether the process runs out of memory or of files, and has the workers take nothing more meanwhile; knows no request.
import type { Log } from "../log.ts";
import { type PressureKind, pressures, type WorkerBoard } from "../shared-memory/worker-board.ts";
import { DescriptorReserve } from "./descriptor-reserve.ts";
import { allowedMemory, descriptorLimit, residentMemory } from "./host-limits.ts";

/** The process has begun to be short of something, or has enough again. */
export interface PressureHappening {
  readonly what: PressureKind;
  readonly state: "begun" | "over";
  /** Bytes, or descriptors. */
  readonly limit: number;
}

export interface PressureWatchOptions {
  readonly board: WorkerBoard;
  readonly log: Log;
  /** `max_memory_bytes` as it is now; 0: a part of what is allowed. */
  readonly maxMemoryBytes: () => number;
  readonly happened: (happening: PressureHappening) => void;
  /** Bytes of memory in use. Default: the resident memory of this process. */
  readonly memoryInUse?: () => number;
  /** Default: what the machine and the control group allow. */
  readonly memoryAllowed?: number;
  /** Null: descriptors are not watched. Default: a reserve of the system's. */
  readonly reserve?: DescriptorReserve | null;
  readonly now?: () => number;
  readonly collectGarbage?: () => void;
}

const WATCH_MS = 250;
/** Part of what is allowed from which on nothing new is taken. */
const DEFAULT_MARK = 0.8;
/** Part of the mark below which things are well again: without a gap it would go on and off with each request. */
const WELL = 0.9;
/** With nothing in flight: garbage was collected meanwhile, and what is left is not given back. */
const IN_VAIN_MS = 6000;
/** Of what is needed at rest; and of what is allowed, where no mark may be above. */
const HEADROOM = 1.25;
const HIGHEST_MARK = 0.95;
/** Workers look at the board every 250 ms, and what they close then must be closed before others may open files. */
const PAUSED_MS = 600;
/** Not to accept and refuse in turn several times a second. */
const SHORTEST_MS = 1000;
/** The log says the same thing once in this time. */
const QUIET_MS = 60_000;
const LOW_LIMIT = 1024;

interface Shortage {
  isLasting: boolean;
  since: number;
  loggedAt: number;
  /** How often it began since it was last logged. */
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
  /** Since when memory is short with nothing in flight. */
  #quietSince: number | null = null;
  /** What the gateway was found to need without any request, for the mark that was set then. */
  #needed = { bytes: 0, mark: 0 };

  constructor(options: PressureWatchOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#inUse = options.memoryInUse ?? residentMemory();
    this.#allowed = options.memoryAllowed ?? allowedMemory();
    this.#reserve = options.reserve === undefined ? systemReserve() : options.reserve;
  }

  /** Bytes from which on nothing new is taken. */
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

  /** Looks once. */
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
    } else if (isLasting && (inUse < mark * WELL || this.#isInVain(inUse, mark)))
      this.#end("memory", this.memoryMark);
    if (!this.#shortages.memory.isLasting) this.#quietSince = null;
  }

  /** Whether nothing has been in flight for a while, so that refusing more would give nothing back: the mark is raised. */
  #isInVain(inUse: number, mark: number): boolean {
    const { board, log } = this.#options;
    if (board.sum("active_requests") > 0) this.#quietSince = null;
    else this.#quietSince ??= this.#now();
    if (this.#quietSince === null || this.#now() - this.#quietSince < IN_VAIN_MS) return false;
    this.#quietSince = this.#now();
    this.#needed = { ...this.#needed, bytes: inUse };
    const raised = this.memoryMark;
    if (raised <= inUse) return false;
    if (raised > mark)
      log.warn("the gateway needs this memory with nothing in flight: the mark is raised", {
        ...{ bytes: inUse, mark, raised },
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
      // The workers accept no more: what is free from here on is for the management API and for files.
      reserve.release();
      return;
    }
    if (lasted >= SHORTEST_MS && reserve.isEnough() && reserve.take())
      this.#end("descriptors", reserve.limit);
  }

  #begin(what: PressureKind, limit: number, fields: object): void {
    const { board, log, happened } = this.#options;
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
    happened({ what, state: "begun", limit });
  }

  #end(what: PressureKind, limit: number): void {
    const { board, log, happened } = this.#options;
    const shortage = this.#shortages[what];
    board.pressure &= ~pressures[what];
    shortage.isLasting = false;
    if (shortage.unlogged === 0) log.info(words[what].over, { limit });
    happened({ what, state: "over", limit });
  }
}

const words = {
  memory: {
    begun: "memory is short: new requests are answered with 503",
    over: "there is enough memory again",
  },
  descriptors: {
    begun: "too many files and sockets are open: no new connections are accepted",
    over: "connections are accepted again",
  },
} as const;

function systemReserve(): DescriptorReserve | null {
  const limit = descriptorLimit();
  return limit === null ? null : new DescriptorReserve(limit);
}
