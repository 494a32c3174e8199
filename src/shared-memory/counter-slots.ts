// The memory of a counter table: slots by 64-bit key, one lock per group of slots; knows not what they count.
import { Locks, threadsOf } from "./locks.ts";

/** Slots per lock; a key may be in any of them. A power of two. */
const GROUP = 64;
/** Slots per expected key: with fewer, some groups are full long before the table is. */
const SLOTS_PER_KEY = 1.5;
/** As 64-bit floats: creation time, number of workers, number of groups; then 8 bytes of salt, then the `marks`. */
const HEADER_BYTES = 64;
const SALT_BYTE = 24;
const MARKS_BYTE = 32;
/** Reserved first halves of keys: an unused slot, and one whose key is being replaced. */
const [UNUSED, CHANGING] = [0, 1];
/** As the expiry tick: the slot must not be reused. */
export const NEVER = 0x7fff_ffff;

/** What a slot holds. */
export const kinds = { value: 0, window: 1, bucket: 2, inside: 3 } as const;
export const KIND_MASK = 3;
/** Flag beside the kind: part of the snapshot that outlives the gateway. */
export const PERSISTED = 4;

/** Layout of an entry: contiguous, for few cache lines; 24 bytes, and a key of 8. */
const RECORD = { floats: 3, words: 6, expires: 4, use: 5 } as const;
const SLOT_BYTES = 32;
/** The word `use`, from the lowest bit: 3 bits of flags, 11 of the window number, 18 of the tick. */
const FLAGS_MASK = 7;
const WINDOW_SHIFT = 3;
const WINDOW_MASK = 0x7ff;
const TOUCHED_SHIFT = 14;
const TOUCHED_MASK = 0x3ffff;
/** Masks the tick out. */
const BELOW_TOUCHED = (1 << TOUCHED_SHIFT) - 1;

/** Most that a worker's share of one key can count; further entries are admitted uncounted. */
export const MAX_INSIDE = 0xffff;

/** Indexes of `CounterSlots.marks`. */
export const marks = { inside: 0, persisted: 1 } as const;

/** A key, split so that no bigint is needed to compare it. */
export interface SlotKey {
  readonly low: number;
  readonly high: number;
}

/** The memory and the clock of a table. */
export class CounterSlots {
  readonly buffer: SharedArrayBuffer;
  readonly count: number;
  readonly workers: number;
  readonly salt: BigUint64Array;
  /** 1 once such entries may exist, which saves searches for them; see `marks`. */
  readonly marks: Int32Array;
  /** For each worker, its share of each slot; see `MAX_INSIDE`. */
  readonly shares: Uint16Array;
  readonly now: () => number;
  /** The two halves of each slot's key. */
  readonly #keys: Int32Array;
  /** Records, as 64-bit floats and as words. */
  readonly #floats: Float64Array;
  readonly #words: Int32Array;
  /** One for each group. */
  readonly locks: Locks;
  readonly #groups: number;
  readonly #madeAt: number;

  /** `thread`: as in `StartCommand`; default: the main thread. */
  constructor(buffer: SharedArrayBuffer, now: () => number, thread?: number) {
    const [madeAt = 0, workers = 0, groups = 0] = new Float64Array(buffer, 0, 3);
    const count = groups * GROUP;
    this.buffer = buffer;
    this.now = now;
    this.count = count;
    this.workers = workers;
    this.#madeAt = madeAt;
    this.#groups = groups;
    this.salt = new BigUint64Array(buffer, SALT_BYTE, 1);
    this.marks = new Int32Array(buffer, MARKS_BYTE, 2);
    this.#floats = new Float64Array(buffer, HEADER_BYTES, count * RECORD.floats);
    this.#words = new Int32Array(buffer, HEADER_BYTES, count * RECORD.words);
    let offset = HEADER_BYTES + count * RECORD.words * 4;
    const words = (length: number) => {
      const view = new Int32Array(buffer, offset, length);
      offset += length * 4;
      return view;
    };
    this.#keys = words(count * 2);
    const sizes = { count: groups, threads: threadsOf(workers) };
    this.locks = Locks.at(buffer, offset, { ...sizes, holder: thread });
    offset += Locks.bytesFor(sizes);
    this.shares = new Uint16Array(buffer, offset, count * workers);
  }

  static create(
    { keys, workers }: { readonly keys: number; readonly workers: number },
    now: () => number,
  ): CounterSlots {
    const groups = Math.ceil((keys * SLOTS_PER_KEY) / GROUP);
    const locks = Locks.bytesFor({ count: groups, threads: threadsOf(workers) });
    const bytes = HEADER_BYTES + locks + groups * GROUP * (SLOT_BYTES + 2 * workers);
    const buffer = new SharedArrayBuffer(bytes);
    new Float64Array(buffer, 0, 3).set([now(), workers, groups]);
    new BigUint64Array(buffer, SALT_BYTE, 1).set(crypto.getRandomValues(new BigUint64Array(1)));
    return new CounterSlots(buffer, now);
  }

  /** Milliseconds since 1970 in the table's tenths of a second. */
  tick(time: number): number {
    return Math.min(NEVER - 1, Math.max(-NEVER, Math.ceil((time - this.#madeAt) / 100))) | 0;
  }

  /** The inverse of `tick`. */
  time(tick: number): number {
    return this.#madeAt + tick * 100;
  }

  /** Whether the key was written completely. */
  isWhole(slot: number): boolean {
    const low = this.low(slot);
    return low !== CHANGING && low !== UNUSED;
  }

  low(slot: number): number {
    return this.#keys[slot * 2] ?? UNUSED;
  }

  high(slot: number): number {
    return this.#keys[slot * 2 + 1] ?? 0;
  }

  /** Two 64-bit floats, whose meaning depends on the kind. */
  first(slot: number): number {
    return this.#floats[slot * RECORD.floats] ?? 0;
  }

  second(slot: number): number {
    return this.#floats[slot * RECORD.floats + 1] ?? 0;
  }

  setFirst(slot: number, value: number): void {
    this.#floats[slot * RECORD.floats] = value;
  }

  setSecond(slot: number, value: number): void {
    this.#floats[slot * RECORD.floats + 1] = value;
  }

  /** Tick from which on the entry equals none. */
  expires(slot: number): number {
    return this.#words[slot * RECORD.words + RECORD.expires] ?? 0;
  }

  setExpires(slot: number, tick: number): void {
    this.#words[slot * RECORD.words + RECORD.expires] = tick;
  }

  /** Kind and `PERSISTED`. */
  flags(slot: number): number {
    return this.#use(slot) & FLAGS_MASK;
  }

  /** The low bits of the window number of the first value. */
  windowOf(slot: number): number {
    return (this.#use(slot) >> WINDOW_SHIFT) & WINDOW_MASK;
  }

  /** Windows since the stored one; wraps beyond a thousand in either direction, when the entry has expired. */
  windowsSince(slot: number, window: number): number {
    return ((window - this.windowOf(slot)) << 21) >> 21;
  }

  /** The tick of the last use. */
  touch(slot: number, tick: number): void {
    this.#setUse(slot, (this.#use(slot) & BELOW_TOUCHED) | (tick << TOUCHED_SHIFT));
  }

  setUse(slot: number, use: { flags: number; window: number; tick: number }): void {
    const { flags, window, tick } = use;
    this.#setUse(slot, flags | ((window & WINDOW_MASK) << WINDOW_SHIFT) | (tick << TOUCHED_SHIFT));
  }

  #use(slot: number): number {
    return this.#words[slot * RECORD.words + RECORD.use] ?? 0;
  }

  #setUse(slot: number, use: number): void {
    this.#words[slot * RECORD.words + RECORD.use] = use;
  }

  /** Ticks since the last use; wraps after seven hours. */
  #idle(slot: number, tick: number): number {
    return (tick - (this.#use(slot) >> TOUCHED_SHIFT)) & TOUCHED_MASK;
  }

  /** The group of a key. */
  groupOf(high: number): number {
    return Math.floor(((high >>> 0) / 0x1_0000_0000) * this.#groups);
  }

  groupOfSlot(slot: number): number {
    return Math.floor(slot / GROUP);
  }

  /** The slot of a key; -1: none. Requires the group's lock. */
  find(low: number, high: number): number {
    const keys = this.#keys;
    const first = this.groupOf(high) * GROUP;
    for (let step = 0; step < GROUP; step++) {
      const slot = first + ((low + step) & (GROUP - 1));
      const found = keys[slot * 2];
      if (found === low && keys[slot * 2 + 1] === high) return slot;
      if (found === UNUSED) return -1;
    }
    return -1;
  }

  /**
   * Assigns a slot to a key without one: an unused, expired or least recently used slot; its values are 0.
   * -1 when all slots of the group are in use by `enter`. Requires the group's lock.
   */
  claim({ low, high }: SlotKey, flags: number, tick: number): number {
    const slot = this.#victim(this.groupOf(high) * GROUP, low, tick);
    if (slot === -1) return -1;
    const keys = this.#keys;
    // Not found under either key until everything is written: the writer may die in between.
    keys[slot * 2] = CHANGING;
    this.setFirst(slot, 0);
    this.setSecond(slot, 0);
    this.setExpires(slot, tick);
    this.setUse(slot, { flags, window: 0, tick });
    keys[slot * 2 + 1] = high;
    keys[slot * 2] = low;
    return slot;
  }

  #victim(first: number, low: number, tick: number): number {
    let idlest = -1;
    let longest = -1;
    for (let step = 0; step < GROUP; step++) {
      const slot = first + ((low + step) & (GROUP - 1));
      const expires = this.expires(slot);
      if (this.low(slot) === UNUSED || expires <= tick) return slot;
      const idle = this.#idle(slot, tick);
      if (expires === NEVER || idle <= longest) continue;
      idlest = slot;
      longest = idle;
    }
    return idlest;
  }
}

/** Avoids the reserved first halves of keys. */
export const usableLow = (low: number) => (low === UNUSED || low === CHANGING ? low + 2 : low);
