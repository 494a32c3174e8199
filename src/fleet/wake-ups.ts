// Notifications of the database about new entries: without them the heartbeats find those, only later. Reads no entry.
import type { Log } from "../log.ts";
import type { FleetSource } from "./source.ts";

interface WakeUpOptions {
  readonly source: Pick<FleetSource, "listen">;
  readonly log: Log;
}

export class WakeUps {
  readonly #options: WakeUpOptions;
  readonly #wake: (position: number) => void;
  #isListening = false;
  #arrive: boolean | null = null;

  /** Calls `wake` with the position of each new entry. */
  constructor(options: WakeUpOptions, wake: (position: number) => void) {
    this.#options = options;
    this.#wake = wake;
  }

  /** Whether notifications arrive; null: not tried yet. */
  get arrive(): boolean | null {
    return this.#arrive;
  }

  /** Where that is not done yet. */
  listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    const { source, log } = this.#options;
    source.listen(this.#wake).then(
      (arrive) => {
        if (!arrive && this.#arrive !== false)
          log.warn(
            "the database of the fleet sends no notifications, as behind a pooler in transaction mode: this node polls",
          );
        this.#arrive = arrive;
      },
      () => {
        this.#isListening = false;
      },
    );
  }

  /** The connections are made anew. */
  lose(): void {
    this.#isListening = false;
  }
}
