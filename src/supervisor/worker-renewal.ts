// Replaces the threads of all workers one by one while they serve; knows no reason for it and nothing of what they serve.
import type { Log } from "../log.ts";
import type { Steering } from "./port-steering.ts";
import type { WorkerPool } from "./worker-pool.ts";

/** How long clients have to find the new thread before the former one accepts nothing more. Changes wait for that. */
const LINGER_MS = 1000;

export interface WorkerRenewalOptions {
  readonly pool: WorkerPool;
  /** Runs work while no version is prepared; rejects while none may be, as during an upgrade. */
  readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
  /** For connections of a former thread to end, in milliseconds. */
  readonly drainMs: () => number;
  /** Null: the system distributes new connections. Some get a 503 while the new thread starts, or a reset when the former one stops. */
  readonly steering: Steering | null;
  readonly log: Log;
}

/** Resolves to whether all were replaced and the former threads have ended; at once when one cannot be. Call it again only then. */
export async function renewWorkers(options: WorkerRenewalOptions): Promise<boolean> {
  const { pool, log } = options;
  for (const slot of pool.slots) {
    const worker = slot.index + 1;
    try {
      if (!(await renewWorker(options, slot))) {
        log.warn("a worker could not be replaced by a new thread and goes on", { worker });
        return false;
      }
    } catch (error) {
      log.warn("a worker is not replaced by a new thread now", { worker, error });
      return false;
    }
  }
  return true;
}

async function renewWorker(
  { pool, alone, drainMs, steering, log }: WorkerRenewalOptions,
  slot: WorkerPool["slots"][number],
): Promise<boolean> {
  const retiring = await alone(async () => {
    // The new thread listens before it serves.
    steering?.keep();
    const former = await pool.renew(slot);
    if (former !== null) {
      steering?.toNewest();
      await former.stopAccepting(LINGER_MS);
    }
    steering?.forget();
    return former;
  });
  if (retiring === null) return false;
  log.info("a worker is replaced by a new thread", { worker: slot.index + 1 });
  const aborted = await pool.retire(retiring, { timeoutMs: drainMs(), lingerMs: LINGER_MS });
  if (aborted > 0)
    log.warn("requests did not finish in time and were aborted", { requests: aborted });
  return true;
}
