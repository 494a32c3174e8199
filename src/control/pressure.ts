// Publishes shortages of memory and descriptors as events and warnings; measures nothing.
import type { PressureEvent } from "../supervisor/pressure-watch.ts";
import type { EventHub } from "./events.ts";

export class Pressure {
  readonly #events: EventHub;
  readonly #now: () => number;
  readonly #lasting = new Map<PressureEvent["what"], PressureEvent>();

  constructor(events: EventHub, now: () => number) {
    this.#events = events;
    this.#now = now;
  }

  /** Publishes the event and updates the warnings. */
  report(event: PressureEvent): void {
    if (event.state === "begun") this.#lasting.set(event.what, event);
    else this.#lasting.delete(event.what);
    this.#events.publish("overload", { ...event, at: new Date(this.#now()).toISOString() });
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
