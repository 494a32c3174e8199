// Limits the rate of audit entries: counts repeated rejections and sign-ins instead; knows no log.
import type { AuditEntry } from "../model/audit-entry.ts";

type Entry = Omit<AuditEntry, "at">;

/** One summary per window for suppressed entries. */
const WINDOW_MS = 60_000;
/** Per address without authentication. */
const ANONYMOUS_EACH = 10;
/** Of all such addresses together. */
const ANONYMOUS_ALL = 60;
/** Per user or token. */
const KNOWN_EACH = 60;
/** Addresses with own counts; further ones share one. */
const MAX_ADDRESSES = 1000;

interface Caller {
  admitted: number;
  suppressed: number;
  /** The last suppressed entry. */
  last: Entry | null;
}

const newCaller = (): Caller => ({ admitted: 0, suppressed: 0, last: null });

/**
 * Admits the first entries of each client and minute and counts the rest. Never suppresses successful actions except sign-in
 * and sign-out, which every user can repeat without end.
 */
export class RecordLimit {
  /** Time of the first entry of the present minute. */
  #start = Number.NEGATIVE_INFINITY;
  readonly #known = new Map<string, Caller>();
  readonly #addresses = new Map<string, Caller>();
  /** All addresses together. */
  #anonymous = newCaller();
  #suppressed = 0;

  /** Whether to store the entry now; false: it was counted. */
  admits(entry: Entry, now: number): boolean {
    if (entry.result === "ok" && entry.action !== "login" && entry.action !== "logout") return true;
    if (this.#known.size + this.#addresses.size === 0) this.#start = now;
    if (entry.method !== "none" && entry.method !== "disabled") {
      const caller = callerOf(this.#known, `${entry.method} ${entry.actor}`);
      return caller.admitted < KNOWN_EACH ? admit(caller) : this.#suppress(caller, entry);
    }
    const isNew = !this.#addresses.has(entry.address);
    if (isNew && this.#addresses.size >= MAX_ADDRESSES)
      return this.#suppress(this.#anonymous, entry);
    const caller = callerOf(this.#addresses, entry.address);
    if (caller.admitted >= ANONYMOUS_EACH) return this.#suppress(caller, entry);
    if (this.#anonymous.admitted >= ANONYMOUS_ALL) return this.#suppress(this.#anonymous, entry);
    return admit(caller) && admit(this.#anonymous);
  }

  /** Whether there is a summary to store at the end of the window. */
  get hasSuppressed(): boolean {
    return this.#suppressed > 0;
  }

  /** Milliseconds until the window is over. */
  msLeft(now: number): number {
    return Math.min(WINDOW_MS, Math.max(1, this.#start + WINDOW_MS - now));
  }

  /** At the end of the minute, or at once with `all`: one entry per client with suppressed entries. */
  due(now: number, all = false): Entry[] {
    // A clock that was set back must not extend a minute forever.
    const isOver = now >= this.#start + WINDOW_MS || now < this.#start;
    if (!isOver && !all) return [];
    const summaries = [...this.#known.values(), ...this.#addresses.values()].flatMap(summaryOf);
    const others = summaryOf(this.#anonymous).map((entry) => ({ ...entry, address: "" }));
    this.#known.clear();
    this.#addresses.clear();
    this.#anonymous = newCaller();
    this.#suppressed = 0;
    return [...summaries, ...others];
  }

  #suppress(caller: Caller, entry: Entry): false {
    this.#suppressed++;
    caller.suppressed++;
    caller.last = entry;
    return false;
  }
}

function callerOf(callers: Map<string, Caller>, key: string): Caller {
  const known = callers.get(key);
  if (known !== undefined) return known;
  const caller = newCaller();
  callers.set(key, caller);
  return caller;
}

function admit(caller: Caller): true {
  caller.admitted++;
  return true;
}

/** The last suppressed entry of a caller, with their number. */
function summaryOf({ suppressed, last }: Caller): Entry[] {
  if (last === null) return [];
  return [{ ...last, detail: { repeated: suppressed, last: last.detail } }];
}
