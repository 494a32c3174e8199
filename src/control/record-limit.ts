// Holds back what somebody could fill the audit log with: repeated refusals and sign-ins are counted instead; knows no log.
import type { AuditEntry } from "./audit-entry.ts";

type Entry = Omit<AuditEntry, "at">;

/** What is held back is told once for each of these. */
const WINDOW_MS = 60_000;
/** Of one address that nobody signed in from. */
const ANONYMOUS_EACH = 10;
/** Of all of them together. */
const ANONYMOUS_ALL = 60;
/** Of one user or token. */
const KNOWN_EACH = 60;
/** Addresses that are told apart; the counts of more are kept together. */
const MAX_ADDRESSES = 1000;

interface Caller {
  admitted: number;
  heldBack: number;
  /** The last one that was held back. */
  last: Entry | null;
}

const newCaller = (): Caller => ({ admitted: 0, heldBack: 0, last: null });

/**
 * Lets the first few entries of each caller and minute through and counts the rest. What somebody did successfully is never
 * held back, except signing in and out, which anybody with an account can repeat without end.
 */
export class RecordLimit {
  /** When the first entry of the present minute came. */
  #start = Number.NEGATIVE_INFINITY;
  readonly #known = new Map<string, Caller>();
  readonly #addresses = new Map<string, Caller>();
  /** For all addresses together. */
  #anonymous = newCaller();
  #heldBack = 0;

  /** Whether the entry is to be stored now; false: it was counted. */
  admits(entry: Entry, now: number): boolean {
    if (entry.result === "ok" && entry.action !== "login" && entry.action !== "logout") return true;
    if (this.#known.size + this.#addresses.size === 0) this.#start = now;
    if (entry.method !== "none" && entry.method !== "disabled") {
      const caller = callerOf(this.#known, `${entry.method} ${entry.actor}`);
      return caller.admitted < KNOWN_EACH ? admit(caller) : this.#holdBack(caller, entry);
    }
    const isNew = !this.#addresses.has(entry.address);
    if (isNew && this.#addresses.size >= MAX_ADDRESSES)
      return this.#holdBack(this.#anonymous, entry);
    const caller = callerOf(this.#addresses, entry.address);
    if (caller.admitted >= ANONYMOUS_EACH) return this.#holdBack(caller, entry);
    if (this.#anonymous.admitted >= ANONYMOUS_ALL) return this.#holdBack(this.#anonymous, entry);
    return admit(caller) && admit(this.#anonymous);
  }

  /** Whether there is something to tell at the end of the minute. */
  get holdsBack(): boolean {
    return this.#heldBack > 0;
  }

  /** Milliseconds until the minute is over. */
  msLeft(now: number): number {
    return Math.min(WINDOW_MS, Math.max(1, this.#start + WINDOW_MS - now));
  }

  /** When the minute is over, or with `all` in any case: one entry for each caller whose entries were held back. */
  due(now: number, all = false): Entry[] {
    // A clock that was set back must not keep a minute open for ever.
    const isOver = now >= this.#start + WINDOW_MS || now < this.#start;
    if (!isOver && !all) return [];
    const told = [...this.#known.values(), ...this.#addresses.values()].flatMap(tellOf);
    const others = tellOf(this.#anonymous).map((entry) => ({ ...entry, address: "" }));
    this.#known.clear();
    this.#addresses.clear();
    this.#anonymous = newCaller();
    this.#heldBack = 0;
    return [...told, ...others];
  }

  #holdBack(caller: Caller, entry: Entry): false {
    this.#heldBack++;
    caller.heldBack++;
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

/** What the caller did last, and how often something was held back. */
function tellOf({ heldBack, last }: Caller): Entry[] {
  if (last === null) return [];
  return [{ ...last, detail: { repeated: heldBack, last: last.detail } }];
}
