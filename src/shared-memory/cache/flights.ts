// Fetches in flight that requests of all workers wait for, in shared memory; knows no request and no stored response.
import type { CacheFlight, FlightVerdict } from "../../pdk/cache-store.ts";

const DEFAULT_SLOTS = 4096;
/** Slots per group; a key may be in any of one group. As many as the bits of `VISIBLE_MASK`. */
const GROUP = 16;
/** A group's word: which of its slots are visible, and from this bit on the number of the last publication. */
const VERSION = 1 << GROUP;
/** Salt, and the number of slots. */
const HEADER_BYTES = 16;
/** Two 64-bit floats and four words. */
const SLOT_BYTES = 32;
/** Milliseconds after which a fetch neither has further followers nor keeps another one from leading. */
const MAX_AGE_MS = 30_000;

/** The lowest bits of a slot's state; the others count its flights, so that a follower does not mistake the next one for its own. */
const phases = { look: 0, flying: 1, fetch: 2 } as const;
const PHASE_MASK = 3;
const GENERATION = 4;

/** The parts of the memory. */
class FlightSlots {
  readonly count: number;
  readonly salt: bigint;
  readonly groups: Int32Array;
  /** Followers wait for a change of it. */
  readonly states: Int32Array;
  /** The owner's thread; 0: free. */
  readonly owners: Int32Array;
  /** Two words for each slot. */
  readonly hashes: Int32Array;
  /** For each slot the epoch, and the time of the beginning in milliseconds since 1970. */
  readonly begins: Float64Array;

  constructor(buffer: SharedArrayBuffer) {
    const [count = 0] = new Int32Array(buffer, 8, 1);
    this.count = count;
    this.salt = new BigUint64Array(buffer, 0, 1)[0] ?? 0n;
    this.begins = new Float64Array(buffer, HEADER_BYTES, count * 2);
    let offset = HEADER_BYTES + count * 16;
    const words = (length: number) => {
      const view = new Int32Array(buffer, offset, length);
      offset += length * 4;
      return view;
    };
    this.states = words(count);
    this.owners = words(count);
    this.hashes = words(count * 2);
    this.groups = words(count / GROUP);
  }

  /** Ends the flight with this state and frees its slot; for its owner, and for others once that thread has ended. */
  free(slot: number, state: number, verdict: FlightVerdict): void {
    if ((state & PHASE_MASK) === phases.flying)
      Atomics.store(this.states, slot, (state & ~PHASE_MASK) | phases[verdict]);
    Atomics.notify(this.states, slot);
    Atomics.and(this.groups, Math.floor(slot / GROUP), ~(1 << (slot % GROUP)));
    Atomics.store(this.owners, slot, 0);
  }
}

/** Memory for so many concurrent flights, a multiple of 16; 32 bytes each. Further fetches have no followers. */
export function createFlights(slots = DEFAULT_SLOTS): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(HEADER_BYTES + slots * SLOT_BYTES + (slots / GROUP) * 4);
  crypto.getRandomValues(new BigUint64Array(buffer, 0, 1));
  new Int32Array(buffer, 8, 1)[0] = slots;
  return buffer;
}

/** Ends the flights of a thread that has ended: their followers look, and one of them leads. */
export function forgetFlights(buffer: SharedArrayBuffer, thread: number): void {
  const slots = new FlightSlots(buffer);
  for (let slot = 0; slot < slots.count; slot++)
    if (Atomics.load(slots.owners, slot) === thread)
      slots.free(slot, Atomics.load(slots.states, slot), "look");
}

export interface FlightsOptions {
  /** From 1, different for each thread of the process. */
  readonly thread: number;
  /** Whether an invalidation of the resource, or a purge that may affect it, came after the epoch. */
  readonly isOutdated: (resource: string, epoch: number) => boolean;
  /** Milliseconds since 1970; all threads must agree on it. */
  readonly now?: () => number;
}

/** A flight at the time of a look. */
interface Sighting {
  readonly slot: number;
  readonly state: number;
}

interface Wait {
  readonly state: number;
  readonly verdict: Promise<FlightVerdict>;
}

/**
 * One thread's view. Slots have salted 64-bit hashes of keys: a request may wait for the fetch of another key with the same hash,
 * which costs time only, because it looks up its own key afterwards.
 *
 * Without locks: a thread owns a slot, describes its flight there, and then makes it visible by a change of the group's word, which
 * fails when another flight has become visible since the search. So two fetches of one key never lead at the same time, and a thread
 * may end at any step.
 */
export class Flights {
  readonly #slots: FlightSlots;
  readonly #thread: number;
  readonly #isOutdated: FlightsOptions["isOutdated"];
  readonly #now: () => number;
  /** One wait for all requests of this thread, by slot. */
  readonly #waits = new Map<number, Wait>();
  readonly #hash = new BigUint64Array(1);
  readonly #halves = new Int32Array(this.#hash.buffer);

  constructor(buffer: SharedArrayBuffer, { thread, isOutdated, now = Date.now }: FlightsOptions) {
    this.#slots = new FlightSlots(buffer);
    this.#thread = thread;
    this.#isOutdated = isOutdated;
    this.#now = now;
  }

  /** `epoch`: from before the fetch. Null: another fetch leads, or all slots for this key are in use. */
  lead(key: string, resource: string, epoch: number): CacheFlight | null {
    const slots = this.#slots;
    const group = this.#groupOf(key);
    if (this.#find(group, Atomics.load(slots.groups, group), resource) !== null) return null;
    const slot = this.#claim(group);
    if (slot === -1) return null;
    const [low = 0, high = 0] = this.#halves;
    slots.hashes[slot * 2] = low;
    slots.hashes[slot * 2 + 1] = high;
    slots.begins[slot * 2] = epoch;
    slots.begins[slot * 2 + 1] = this.#now();
    const generation = (Atomics.load(slots.states, slot) & ~PHASE_MASK) + GENERATION;
    const state = generation | phases.flying | 0;
    Atomics.store(slots.states, slot, state);
    if (!this.#publish(group, slot, resource)) {
      slots.free(slot, state, "look");
      return null;
    }
    let isFlying = true;
    return {
      end(verdict) {
        if (isFlying) slots.free(slot, state, verdict);
        isFlying = false;
      },
    };
  }

  /**
   * Resolves when the fetch ends, or with `fetch` after `timeoutMs`, which counts from the first request of this thread that waits
   * for it; these share the promise. Null: there is no fetch to wait for.
   */
  follow(key: string, resource: string, timeoutMs: number): Promise<FlightVerdict> | null {
    const group = this.#groupOf(key);
    const visible = Atomics.load(this.#slots.groups, group);
    const found = this.#find(group, visible, resource);
    if (found === null) return null;
    const { slot, state } = found;
    const known = this.#waits.get(slot);
    if (known?.state === state) return known.verdict;
    const left = MAX_AGE_MS - this.#ageOf(slot);
    const wait = { state, verdict: this.#wait(found, Math.min(timeoutMs, left)) };
    this.#waits.set(slot, wait);
    void wait.verdict.then(() => {
      if (this.#waits.get(slot) === wait) this.#waits.delete(slot);
    });
    return wait.verdict;
  }

  async #wait({ slot, state }: Sighting, timeoutMs: number): Promise<FlightVerdict> {
    const { states } = this.#slots;
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const current = Atomics.load(states, slot);
      // A later flight in the same slot: the verdict about this one is gone, and looking is always right.
      if (current !== state)
        return current === state - phases.flying + phases.fetch ? "fetch" : "look";
      const left = deadline - performance.now();
      if (left <= 0) return "fetch";
      // The end of the slot's flight before this one may wake it too.
      await Atomics.waitAsync(states, slot, state, left).value;
    }
  }

  /** Also writes the key's hash to `#halves`. */
  #groupOf(key: string): number {
    const { salt, groups } = this.#slots;
    this.#hash[0] = Bun.hash.xxHash3(key, salt);
    const [low = 0] = this.#halves;
    return (low >>> 0) % groups.length;
  }

  /** The visible flight with the hash in `#halves` that requests may wait for. */
  #find(group: number, word: number, resource: string): Sighting | null {
    const { states, hashes, begins } = this.#slots;
    const [low, high] = this.#halves;
    for (let bit = 0; bit < GROUP; bit++) {
      if ((word & (1 << bit)) === 0) continue;
      const slot = group * GROUP + bit;
      const state = Atomics.load(states, slot);
      if ((state & PHASE_MASK) !== phases.flying) continue;
      if (hashes[slot * 2] !== low || hashes[slot * 2 + 1] !== high) continue;
      if (this.#ageOf(slot) >= MAX_AGE_MS) continue;
      if (this.#isOutdated(resource, begins[slot * 2] ?? 0)) continue;
      // The slot may have got another flight meanwhile.
      if (Atomics.load(states, slot) === state) return { slot, state };
    }
    return null;
  }

  /** Milliseconds; `abs`: a clock that was set back must not make a flight young for longer. */
  #ageOf(slot: number): number {
    return Math.abs(this.#now() - (this.#slots.begins[slot * 2 + 1] ?? 0));
  }

  /** A slot of the group, now owned by this thread; -1: none is free. */
  #claim(group: number): number {
    const { groups, owners } = this.#slots;
    // In turn: a slot that is reused late has its last verdict for slow followers.
    const first = Atomics.load(groups, group) >>> GROUP;
    for (let step = 0; step < GROUP; step++) {
      const slot = group * GROUP + ((first + step) % GROUP);
      if (Atomics.compareExchange(owners, slot, 0, this.#thread) === 0) return slot;
    }
    return -1;
  }

  /** Makes the flight visible; false: another one for the key became visible first. */
  #publish(group: number, slot: number, resource: string): boolean {
    const { groups } = this.#slots;
    for (;;) {
      const word = Atomics.load(groups, group);
      if (this.#find(group, word, resource) !== null) return false;
      const next = (word + VERSION) | (1 << (slot % GROUP)) | 0;
      if (Atomics.compareExchange(groups, group, word, next) === word) return true;
    }
  }
}
