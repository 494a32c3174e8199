// The present overload state, for warnings; measures nothing.
import type { PressureHappening } from "../supervisor/pressure-watch.ts";
import type { EventHub } from "./events.ts";

/** An overload begins or ends. */
export type OverloadEvent = PressureHappening & {
  /** RFC 3339, UTC. */
  readonly at: string;
};

export class Pressure {
  readonly #events: EventHub;
  readonly #now: () => number;
  readonly #lasting = new Map<PressureHappening["what"], PressureHappening>();

  constructor(events: EventHub, now: () => number) {
    this.#events = events;
    this.#now = now;
  }

  /** Stores the state and notifies subscribers. */
  happened(happening: PressureHappening): void {
    if (happening.state === "begun") this.#lasting.set(happening.what, happening);
    else this.#lasting.delete(happening.what);
    this.#events.publish("overload", { ...happening, at: new Date(this.#now()).toISOString() });
  }

  /** One sentence per scarce resource. */
  warnings(): readonly string[] {
    return [...this.#lasting.values()].map(({ what, limit }) =>
      what === "memory"
        ? `memory is short (the limit is ${Math.floor(limit / 1_048_576)} MiB): the gateway responds to new requests with 503`
        : `too many files and sockets are open (the limit is ${limit}): the gateway accepts no new connections`,
    );
  }
}
