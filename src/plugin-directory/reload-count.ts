// Counts reloads, and has the workers replaced after many of them; knows no plugin and no worker.
import type { Log } from "../log.ts";

/** Pause before another attempt, in milliseconds. */
const AGAIN_MS = 60_000;

export interface ReloadLimit {
  /** Reloads after which the workers are replaced; 0: they never are. */
  readonly most: number;
  /** Replaces all workers one by one; false: not all were. Never rejects. */
  readonly renewWorkers: () => Promise<boolean>;
}

/** Bun never releases the code of a module: only new threads are without what was replaced. */
export class ReloadCount {
  readonly #log: Log;
  #since = 0;
  #renewals = 0;
  #isRenewing = false;
  #renewAt = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Reloads since the workers were replaced. */
  get since(): number {
    return this.#since;
  }

  /** How often the workers were replaced. */
  get renewals(): number {
    return this.#renewals;
  }

  add(): void {
    this.#since++;
  }

  async renewIfDue({ most, renewWorkers }: ReloadLimit): Promise<void> {
    const reloads = this.#since;
    if (most === 0 || reloads < most || this.#isRenewing || performance.now() < this.#renewAt)
      return;
    this.#isRenewing = true;
    this.#log.info("the workers are replaced one by one, because plugins were reloaded", {
      reloads,
    });
    const isDone = await renewWorkers();
    this.#isRenewing = false;
    if (!isDone) {
      this.#renewAt = performance.now() + AGAIN_MS;
      return;
    }
    // Those that were reloaded meanwhile cost memory in the new threads.
    this.#since -= reloads;
    this.#renewals++;
    this.#log.info("all workers were replaced");
  }
}
