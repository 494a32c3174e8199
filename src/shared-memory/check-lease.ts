// The lease for active health checks: held by one worker, renewed in shared memory; knows no check.

/** A lease expires this long after its last renewal. */
const LEASE_MS = 3000;

/** The lease as one 64-bit number: 0: free, else the time of the last renewal in milliseconds and the worker's number from 1. */
const WORKER_BITS = 16n;
const WORKER_MASK = (1n << WORKER_BITS) - 1n;

const leaseOf = (worker: number, now: number) =>
  (BigInt(Math.floor(now)) << WORKER_BITS) | BigInt(worker + 1);
const holderOf = (lease: bigint) => Number(lease & WORKER_MASK) - 1;

/** The memory of the lease: TargetBoard. */
interface LeaseMemory {
  readonly lease: BigUint64Array;
}

/** One worker's view of the lease. Times are milliseconds since the Unix epoch. */
export class CheckLease {
  readonly #cell: BigUint64Array;
  readonly #worker: number;

  constructor(board: LeaseMemory, worker: number) {
    this.#cell = board.lease;
    this.#worker = worker;
  }

  /** Acquires or renews the lease; false: another worker has it. Call it several times within LEASE_MS. */
  hold(now: number): boolean {
    const lease = Atomics.load(this.#cell, 0);
    const isFree = lease === 0n || holderOf(lease) === this.#worker || hasExpired(lease, now);
    if (!isFree) return false;
    return Atomics.compareExchange(this.#cell, 0, lease, leaseOf(this.#worker, now)) === lease;
  }

  /** Whether this worker has the lease and it has not expired. */
  isHeld(now: number): boolean {
    const lease = Atomics.load(this.#cell, 0);
    return holderOf(lease) === this.#worker && !hasExpired(lease, now);
  }

  release(): void {
    releaseLease(this.#cell, this.#worker);
  }
}

/** Releases the lease of a worker, which may have ended. */
export function releaseLease(cell: BigUint64Array, worker: number): void {
  const lease = Atomics.load(cell, 0);
  if (holderOf(lease) === worker) Atomics.compareExchange(cell, 0, lease, 0n);
}

/** The worker with the lease; null: none. */
export function checkingWorker(board: LeaseMemory): number | null {
  const lease = Atomics.load(board.lease, 0);
  return lease === 0n ? null : holderOf(lease);
}

/** `abs`: a clock that was set back must not extend a lease. */
const hasExpired = (lease: bigint, now: number) =>
  Math.abs(now - Number(lease >> WORKER_BITS)) > LEASE_MS;
