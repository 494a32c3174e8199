// Connections per client address and listener, exact over all workers; knows no socket.

/** A power of two. */
const SLOTS = 65_536;
/** Slots in use at most: beyond it probing becomes slow. */
const MAX_FILLED = SLOTS * 0.8;
/** A 32-bit integer: the number of slots in use. */
const HEADER_BYTES = 8;
const IN_USE = 0;

/** `untracked`: the table is full, so the connection was not counted. */
export type AddressAdmission = "counted" | "refused" | "untracked";

/** Runs work in one thread at a time. */
type Locked = <T>(work: () => T) => T;

/** A hash table with linear probing: 64-bit keys, one count for each worker. */
export class AddressCounts {
  readonly #header: Int32Array;
  readonly #keys: BigUint64Array;
  readonly #counts: Int32Array;
  readonly #workers: number;
  readonly #locked: Locked;

  /** `offset` must be a multiple of eight. */
  constructor(
    buffer: SharedArrayBuffer,
    offset: number,
    { workers, locked }: { readonly workers: number; readonly locked: Locked },
  ) {
    this.#workers = workers;
    this.#locked = locked;
    this.#header = new Int32Array(buffer, offset, HEADER_BYTES / 4);
    this.#keys = new BigUint64Array(buffer, offset + HEADER_BYTES, SLOTS);
    this.#counts = new Int32Array(buffer, offset + HEADER_BYTES + SLOTS * 8, SLOTS * workers);
  }

  static bytesFor(workers: number): number {
    return HEADER_BYTES + SLOTS * (8 + workers * 4);
  }

  /** Counts a connection unless there are `most` already. */
  enter(
    listenerId: string,
    address: string,
    { worker, most }: { readonly worker: number; readonly most: number },
  ): AddressAdmission {
    const key = keyOf(listenerId, address);
    return this.#locked(() => {
      let slot = this.#find(key);
      if (slot === null) {
        if (Atomics.load(this.#header, IN_USE) >= MAX_FILLED) return "untracked";
        slot = this.#claim(key);
      } else if (this.#total(slot) >= most) return "refused";
      this.#counts[slot * this.#workers + worker] = this.#count(slot, worker) + 1;
      return "counted";
    });
  }

  /** A counted connection has ended. */
  leave(listenerId: string, address: string, worker: number): void {
    const key = keyOf(listenerId, address);
    this.#locked(() => {
      const slot = this.#find(key);
      if (slot === null) return;
      this.#counts[slot * this.#workers + worker] = Math.max(0, this.#count(slot, worker) - 1);
      if (this.#total(slot) === 0) this.#remove(slot);
    });
  }

  /** Subtracts the counts of a worker that has ended. */
  forgetWorker(worker: number): void {
    this.#locked(() => {
      // The usual case; writing zeros would make the kernel allocate the whole table.
      if (Atomics.load(this.#header, IN_USE) === 0) return;
      for (let slot = 0; slot < SLOTS; slot++) this.#counts[slot * this.#workers + worker] = 0;
      // A removal may move a later key into this slot.
      for (let slot = 0; slot < SLOTS; slot++)
        while (this.#keys[slot] !== 0n && this.#total(slot) === 0) this.#remove(slot);
    });
  }

  #count(slot: number, worker: number): number {
    return this.#counts[slot * this.#workers + worker] ?? 0;
  }

  #total(slot: number): number {
    let sum = 0;
    for (let worker = 0; worker < this.#workers; worker++) sum += this.#count(slot, worker);
    return sum;
  }

  #find(key: bigint): number | null {
    for (let slot = firstSlotOf(key); ; slot = (slot + 1) % SLOTS) {
      const found = this.#keys[slot];
      if (found === key) return slot;
      if (found === 0n) return null;
    }
  }

  #claim(key: bigint): number {
    let slot = firstSlotOf(key);
    while (this.#keys[slot] !== 0n) slot = (slot + 1) % SLOTS;
    // Counted first: a worker that ends in between must not leave a key in a table that counts as empty.
    Atomics.add(this.#header, IN_USE, 1);
    this.#keys[slot] = key;
    return slot;
  }

  /** Moves following keys up into the gap, as far as their first slot allows: a search must never meet a gap before its end. */
  #remove(slot: number): void {
    let gap = slot;
    for (let next = (gap + 1) % SLOTS; ; next = (next + 1) % SLOTS) {
      const key = this.#keys[next] ?? 0n;
      if (key === 0n) break;
      const mayMove = distance(firstSlotOf(key), next) >= distance(gap, next);
      if (!mayMove) continue;
      this.#keys[gap] = key;
      this.#counts.copyWithin(
        gap * this.#workers,
        next * this.#workers,
        (next + 1) * this.#workers,
      );
      gap = next;
    }
    this.#keys[gap] = 0n;
    this.#counts.fill(0, gap * this.#workers, (gap + 1) * this.#workers);
    Atomics.sub(this.#header, IN_USE, 1);
  }
}

const distance = (from: number, to: number) => (to - from + SLOTS) % SLOTS;

const firstSlotOf = (key: bigint) => Number(key % BigInt(SLOTS));

/** Never 0, which marks a free slot. */
function keyOf(listenerId: string, address: string): bigint {
  const key = BigInt.asUintN(64, BigInt(Bun.hash(`${listenerId} ${address}`)));
  return key === 0n ? 1n : key;
}
