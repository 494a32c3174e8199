// The last events in memory, so that reconnecting clients receive missed ones; knows no reader.
import type { EventKind } from "./event-kinds.ts";

export interface RingEvent {
  /** 1, 2, 3 and so on, over all kinds. */
  readonly sequence: number;
  readonly kind: EventKind;
  /** The same among the events of its kind. */
  readonly nth: number;
  /** JSON for admins, and for other roles. */
  readonly data: string;
  readonly reduced: string;
}

/** Counters of the events of one kind. */
interface Tally {
  published: number;
  /** Number of the oldest ones that have left the ring. */
  evicted: number;
  /** Sequence of the last evicted event; 0: none. */
  lastEvicted: number;
}

export interface RingLimits {
  readonly events: number;
  readonly bytes: number;
}

export class EventRing {
  readonly #limits: RingLimits;
  readonly #events: RingEvent[] = [];
  readonly #tallies = new Map<EventKind, Tally>();
  #bytes = 0;
  #last = 0;

  constructor(limits: RingLimits) {
    this.#limits = limits;
  }

  /** Sequence of the newest event; 0: none. */
  get last(): number {
    return this.#last;
  }

  append(kind: EventKind, data: string, reduced: string): void {
    const tally = this.#tallyOf(kind);
    tally.published++;
    this.#last++;
    this.#events.push({ sequence: this.#last, kind, nth: tally.published, data, reduced });
    this.#bytes += sizeOf(data, reduced);
    const { events, bytes } = this.#limits;
    while (this.#events.length > events || (this.#bytes > bytes && this.#events.length > 1))
      this.#evict();
  }

  /** The first event after `sequence` in the ring. */
  after(sequence: number): RingEvent | undefined {
    const first = this.#last - this.#events.length + 1;
    return this.#events[Math.max(0, sequence + 1 - first)];
  }

  /** Whether all events of the kind after `sequence` are still in the ring. */
  isComplete(kind: EventKind, sequence: number): boolean {
    return this.#tallyOf(kind).lastEvicted <= sequence;
  }

  /** Number of events of the kind up to `sequence`; valid while all later ones are in the ring. */
  countUpTo(kind: EventKind, sequence: number): number {
    const next = this.#events.find((event) => event.kind === kind && event.sequence > sequence);
    return next === undefined ? this.#tallyOf(kind).published : next.nth - 1;
  }

  /** Number of events of the kind that have left the ring. */
  evicted(kind: EventKind): number {
    return this.#tallyOf(kind).evicted;
  }

  #evict(): void {
    const event = this.#events.shift();
    if (event === undefined) return;
    this.#bytes -= sizeOf(event.data, event.reduced);
    const tally = this.#tallyOf(event.kind);
    tally.evicted = event.nth;
    tally.lastEvicted = event.sequence;
  }

  #tallyOf(kind: EventKind): Tally {
    let tally = this.#tallies.get(kind);
    if (tally === undefined) {
      tally = { published: 0, evicted: 0, lastEvicted: 0 };
      this.#tallies.set(kind, tally);
    }
    return tally;
  }
}

/** Both texts are usually the same. */
const sizeOf = (data: string, reduced: string) =>
  data.length + (reduced === data ? 0 : reduced.length);
