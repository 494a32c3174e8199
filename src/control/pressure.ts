// What the process is short of at the moment, for people; measures nothing.
import type { PressureHappening } from "../supervisor/pressure-watch.ts";
import type { EventHub } from "./events.ts";

/** The process is short of something from now on, or no longer. */
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

  /** Remembers it and tells whoever listens. */
  happened(happening: PressureHappening): void {
    if (happening.state === "begun") this.#lasting.set(happening.what, happening);
    else this.#lasting.delete(happening.what);
    this.#events.publish("overload", { ...happening, at: new Date(this.#now()).toISOString() });
  }

  /** One sentence for each thing that is short. */
  warnings(): readonly string[] {
    return [...this.#lasting.values()].map(({ what, limit }) =>
      what === "memory"
        ? `memory is short (${Math.floor(limit / 1_048_576)} MiB are the mark): new requests are answered with 503`
        : `too many files and sockets are open (${limit} may be): no new connections are accepted`,
    );
  }
}
