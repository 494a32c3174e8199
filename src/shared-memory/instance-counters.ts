// The counters of one plugin instance by key, in shared memory; knows no plugin.
import type {
  Admission,
  Counters,
  Stock,
  WindowCost,
  WindowCount,
  WindowDemand,
} from "../pdk/kit.ts";
import {
  type CounterSlots,
  kinds,
  marks,
  MAX_INSIDE,
  NEVER,
  PERSISTED,
  usableLow,
} from "./counter-slots.ts";

/** Mixed into keys, so that window, bucket, concurrency, value and stock of one key are five entries. */
const mixes = {
  window: 0,
  bucket: 0x2545f491,
  inside: 0x6c078965,
  value: 0x19d699a5,
  stock: 0x5d588b65,
} as const;
/** Odd, so that different window lengths stay different. */
const LENGTH_MIX = 0x9e3779b1;
/** Tolerance for rounding errors. */
const ROUNDING = 1e-9;
/** One 64-bit float holds the rest of a limit times this, plus the units of a stock: both are exact below 2^52. */
const STOCK_RADIX = 2 ** 22;

export interface InstanceCountersOptions {
  /** From 0. */
  readonly worker: number;
  readonly instanceId: string;
  /** Whether windows and buckets outlive the gateway. */
  readonly persist: boolean;
}

/**
 * Two keys with the same 64-bit hash share an entry. The hash is salted, so clients cannot search for such keys; that there are two
 * among a million has a probability of one to 37 million.
 */
export class InstanceCounters implements Counters {
  readonly #slots: CounterSlots;
  readonly #seed: bigint;
  /** Offset of the worker's shares. */
  readonly #shares: number;
  readonly #persisted: number;
  readonly #hash = new BigUint64Array(1);
  readonly #halves = new Int32Array(this.#hash.buffer);

  constructor(slots: CounterSlots, { worker, instanceId, persist }: InstanceCountersOptions) {
    this.#slots = slots;
    this.#seed = Bun.hash.wyhash(instanceId, slots.salt[0] ?? 0n);
    this.#shares = worker * slots.count;
    this.#persisted = persist ? PERSISTED : 0;
  }

  now(): number {
    return this.#slots.now();
  }

  add(key: string, amount: number, windowMs: number): WindowCount {
    const count = this.#count(key, { cost: amount, windowMs, max: Infinity, isSliding: false });
    const { current, previous, elapsedMs } = count;
    return { current, previous, elapsedMs };
  }

  admit(key: string, demand: WindowDemand): Admission {
    return this.#count(key, demand);
  }

  #count(key: string, { cost, windowMs, max, isSliding }: WindowDemand): Admission {
    const slots = this.#slots;
    const now = slots.now();
    const window = Math.floor(now / windowMs);
    const tick = slots.tick(now);
    const high = this.#high(key, mixes.window);
    const low = this.#low(Math.imul(windowMs, LENGTH_MIX));
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      let slot = slots.find(low, high);
      let current = 0;
      let previous = 0;
      let elapsedMs = now - window * windowMs;
      let age = 0;
      if (slot !== -1) {
        const known = slots.first(slot);
        age = slots.windowsSince(slot, window);
        // -1: another thread has read the time later and updated the entry earlier.
        const isSame = age === 0 || age === -1;
        if (age === -1) elapsedMs = 0;
        previous = isSame ? slots.second(slot) : age === 1 ? known : 0;
        current = isSame ? known : 0;
        slots.touch(slot, tick);
      }
      const before = isSliding ? previous * (1 - elapsedMs / windowMs) : 0;
      const isAdmitted = before + current + cost <= max + ROUNDING;
      if (isAdmitted && cost !== 0) {
        current = Math.max(0, current + cost);
        if (slot === -1) slot = slots.claim({ low, high }, kinds.window, tick);
        if (slot !== -1) {
          slots.setSecond(slot, previous);
          slots.setFirst(slot, current);
          const flags = kinds.window | this.#persisted;
          if (this.#persisted !== 0) this.#notePersisted();
          slots.setUse(slot, { flags, window: age === -1 ? window + 1 : window, tick });
          slots.setExpires(slot, slots.tick((window + 2) * windowMs));
        }
      }
      return { isAdmitted, current, previous, elapsedMs, window: age === -1 ? window + 1 : window };
    });
  }

  /** Also subtracts from the previous window when the window has changed meanwhile. */
  revoke(key: string, { window }: Pick<Admission, "window">, { cost, windowMs }: WindowCost): void {
    const slots = this.#slots;
    const high = this.#high(key, mixes.window);
    const low = this.#low(Math.imul(windowMs, LENGTH_MIX));
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      const slot = slots.find(low, high);
      const age = slot === -1 ? 1 : slots.windowsSince(slot, window);
      if (age === 0) slots.setFirst(slot, Math.max(0, slots.first(slot) - cost));
      else if (age === -1) slots.setSecond(slot, Math.max(0, slots.second(slot) - cost));
    });
  }

  /** `wait` is `Infinity` for a cost above the capacity. */
  take(
    key: string,
    {
      capacity,
      perSecond,
      cost,
    }: {
      readonly capacity: number;
      readonly perSecond: number;
      readonly cost: number;
    },
  ): { readonly remaining: number; readonly wait: number } {
    const slots = this.#slots;
    const now = slots.now();
    const tick = slots.tick(now);
    const high = this.#high(key, mixes.bucket);
    const low = this.#low(0);
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      const known = slots.find(low, high);
      const slot = known === -1 ? slots.claim({ low, high }, kinds.bucket, tick) : known;
      let filledAt = now;
      let level = capacity;
      if (known !== -1) {
        const last = slots.second(slot);
        // Another thread has read the time later and updated the entry earlier; beyond 1 s the clock was set back.
        if (last > now && last - now < 1000) filledAt = last;
        const gained = (Math.max(0, now - last) * perSecond) / 1000;
        level = Math.min(capacity, slots.first(slot) + gained);
      }
      const isTaken = level + ROUNDING >= cost;
      if (isTaken) level = Math.min(capacity, Math.max(0, level - cost));
      if (slot !== -1) {
        slots.setFirst(slot, level);
        slots.setSecond(slot, filledAt);
        if (this.#persisted !== 0) this.#notePersisted();
        slots.setUse(slot, { flags: kinds.bucket | this.#persisted, window: 0, tick });
        // A full bucket equals none.
        slots.setExpires(slot, slots.tick(now + msToGain(capacity - level, perSecond)));
      }
      if (isTaken) return { remaining: level, wait: 0 };
      const wait = cost > capacity ? Infinity : Math.ceil(msToGain(cost - level, perSecond));
      return { remaining: level, wait };
    });
  }

  /** Admits uncounted when the table is full. */
  enter(key: string, max: number): boolean {
    const slots = this.#slots;
    const now = slots.now();
    const high = this.#high(key, mixes.inside);
    const low = this.#low(0);
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      let slot = slots.find(low, high);
      const before = slot === -1 ? 0 : slots.first(slot);
      const mayEnter = before < max;
      if (mayEnter && slot === -1) {
        slot = slots.claim({ low, high }, kinds.inside, slots.tick(now));
        if (Atomics.load(slots.marks, marks.inside) === 0)
          Atomics.store(slots.marks, marks.inside, 1);
      }
      const share = this.#shares + slot;
      if (mayEnter && slot !== -1 && (slots.shares[share] ?? 0) < MAX_INSIDE) {
        // First: if this thread dies, `forgetWorker` finds its share.
        slots.shares[share] = (slots.shares[share] ?? 0) + 1;
        slots.setExpires(slot, NEVER);
        slots.setFirst(slot, before + 1);
      }
      return mayEnter;
    });
  }

  leave(key: string): void {
    const slots = this.#slots;
    const now = slots.now();
    const high = this.#high(key, mixes.inside);
    const low = this.#low(0);
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      const slot = slots.find(low, high);
      const share = slot === -1 ? 0 : (slots.shares[this.#shares + slot] ?? 0);
      if (share > 0) {
        const left = slots.first(slot) - 1;
        slots.setFirst(slot, left);
        if (left <= 0) slots.setExpires(slot, slots.tick(now));
        slots.shares[this.#shares + slot] = share - 1;
      }
    });
  }

  inside(key: string): number {
    const slots = this.#slots;
    const high = this.#high(key, mixes.inside);
    const low = this.#low(0);
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      const slot = slots.find(low, high);
      const count = slot === -1 ? 0 : slots.first(slot);
      return count;
    });
  }

  value(key: string): number {
    const slots = this.#slots;
    const now = slots.now();
    const high = this.#high(key, mixes.value);
    const low = this.#low(0);
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      const slot = slots.find(low, high);
      const tick = slots.tick(now);
      const isThere = slot !== -1 && slots.expires(slot) > tick;
      const value = isThere ? slots.first(slot) : 0;
      if (isThere) slots.touch(slot, tick);
      return value;
    });
  }

  replace(
    key: string,
    {
      expected,
      next,
      keepMs,
    }: { readonly expected: number; readonly next: number; readonly keepMs: number },
  ): boolean {
    const slots = this.#slots;
    const now = slots.now();
    const tick = slots.tick(now);
    const high = this.#high(key, mixes.value);
    const low = this.#low(0);
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      let slot = slots.find(low, high);
      const isThere = slot !== -1 && slots.expires(slot) > tick;
      const isExpected = (isThere ? slots.first(slot) : 0) === expected;
      if (isExpected && slot === -1) slot = slots.claim({ low, high }, kinds.value, tick);
      if (isExpected && slot !== -1) {
        slots.setFirst(slot, next);
        slots.touch(slot, tick);
        slots.setExpires(slot, slots.tick(now + keepMs));
      }
      return isExpected;
    });
  }

  spend(key: string, cost: number): Stock | null {
    const slots = this.#slots;
    const now = slots.now();
    const high = this.#high(key, mixes.stock);
    const low = this.#low(0);
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      const slot = slots.find(low, high);
      const packed = slot === -1 ? 0 : slots.first(slot);
      const untilMs = slot === -1 ? 0 : slots.second(slot);
      const units = packed % STOCK_RADIX;
      const isSpent = now < untilMs && units >= cost;
      if (isSpent && cost !== 0) {
        slots.setFirst(slot, packed - cost);
        slots.touch(slot, slots.tick(now));
      }
      if (!isSpent) return null;
      return { units: units - cost, rest: Math.floor(packed / STOCK_RADIX), untilMs };
    });
  }

  /** An evicted stock is lost: the limit then admits less, never more. */
  store(key: string, { units, rest, untilMs }: Stock): void {
    const slots = this.#slots;
    const now = slots.now();
    const tick = slots.tick(now);
    const high = this.#high(key, mixes.stock);
    const low = this.#low(0);
    const group = slots.groupOf(high);

    return slots.locks.holding(group, () => {
      const known = slots.find(low, high);
      const slot = known === -1 ? slots.claim({ low, high }, kinds.value, tick) : known;
      if (slot !== -1) {
        const isLive = known !== -1 && now < slots.second(slot);
        const held = isLive ? slots.first(slot) % STOCK_RADIX : 0;
        const until = held > 0 ? Math.min(slots.second(slot), untilMs) : untilMs;
        slots.setFirst(slot, rest * STOCK_RADIX + Math.min(STOCK_RADIX - 1, held + units));
        slots.setSecond(slot, until);
        slots.touch(slot, tick);
        slots.setExpires(slot, slots.tick(until));
      }
    });
  }

  /** On the first count, because the instance may belong to a version that never becomes active. */
  #notePersisted(): void {
    const { marks: words } = this.#slots;
    if (Atomics.load(words, marks.persisted) === 0) Atomics.store(words, marks.persisted, 1);
  }

  /** Hashes the key; `#low` gives the other half. */
  #high(key: string, mix: number): number {
    this.#hash[0] = Bun.hash.wyhash(key, this.#seed);
    return (this.#halves[1] ?? 0) ^ mix;
  }

  #low(mix: number): number {
    return usableLow((this.#halves[0] ?? 0) ^ mix);
  }
}

function msToGain(amount: number, perSecond: number): number {
  if (amount <= 0) return 0;
  return perSecond > 0 ? (amount / perSecond) * 1000 : Infinity;
}
