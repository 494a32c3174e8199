// Who of all workers makes the active checks: a lease in shared memory that must be renewed; knows no check.

/** A holder that was silent for so long has lost the lease. */
const SILENT_MS = 3000;

/** The lease as one 64-bit number: 0 nobody, else the time of the last renewal in milliseconds and the worker's number from 1. */
const WORKER_BITS = 16n;
const WORKER_MASK = (1n << WORKER_BITS) - 1n;

const leaseOf = (worker: number, now: number) =>
  (BigInt(Math.floor(now)) << WORKER_BITS) | BigInt(worker + 1);
const holderOf = (lease: bigint) => Number(lease & WORKER_MASK) - 1;

/** Where the lease lies: the board of targets. */
interface LeaseHolder {
  readonly lease: BigUint64Array;
}

/** One worker's view of it. All times are milliseconds since the Unix epoch. */
export class CheckLease {
  readonly #cell: BigUint64Array;
  readonly #worker: number;

  constructor(board: LeaseHolder, worker: number) {
    this.#cell = board.lease;
    this.#worker = worker;
  }

  /** Takes the lease or renews it; false: another worker has it. Call it several times within three seconds. */
  hold(now: number): boolean {
    const lease = Atomics.load(this.#cell, 0);
    const isOpen = lease === 0n || holderOf(lease) === this.#worker || isSilent(lease, now);
    if (!isOpen) return false;
    return Atomics.compareExchange(this.#cell, 0, lease, leaseOf(this.#worker, now)) === lease;
  }

  /** Whether this worker has it and may act on it: one that was held up for too long may not. */
  isHeld(now: number): boolean {
    const lease = Atomics.load(this.#cell, 0);
    return holderOf(lease) === this.#worker && !isSilent(lease, now);
  }

  /** Gives it up at once. */
  release(): void {
    releaseLease(this.#cell, this.#worker);
  }
}

/** Gives the lease up in the name of a worker that may have ended. */
export function releaseLease(cell: BigUint64Array, worker: number): void {
  const lease = Atomics.load(cell, 0);
  if (holderOf(lease) === worker) Atomics.compareExchange(cell, 0, lease, 0n);
}

/** Who has the lease; null: nobody. */
export function checkingWorker(board: LeaseHolder): number | null {
  const lease = Atomics.load(board.lease, 0);
  return lease === 0n ? null : holderOf(lease);
}

/** A clock that was set back must not make a lease last for ever. */
const isSilent = (lease: bigint, now: number) =>
  Math.abs(now - Number(lease >> WORKER_BITS)) > SILENT_MS;
