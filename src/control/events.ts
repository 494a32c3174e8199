// Distributes events of the gateway to subscribers according to their role; knows no HTTP and no source of events.
import { eventKinds, type EventKind } from "./event-kinds.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { ConfigEvent } from "./config-event.ts";
import type { NodeTransition } from "./fleet-view.ts";
import type { HealthEvent } from "./health/health-watch.ts";
import type { ListenerEvent } from "./listener-event.ts";
import type { PressureEvent } from "../supervisor/pressure-watch.ts";
import type { WorkerLifecycleEvent } from "../supervisor/worker-slot.ts";
import { EventRing, type RingLimits } from "./event-ring.ts";
import { includesRole, type Role } from "./principal.ts";

/** Of a certificate. */
export interface CertificateEvent {
  readonly at: string;
  readonly what: "issued" | "renewed" | "revoked" | "expiring" | "expired";
  readonly id: string;
  readonly name: string;
  readonly domains: readonly string[];
  readonly not_after: string | null;
}

/** A shortage began or is over. */
export type OverloadEvent = PressureEvent & {
  /** RFC 3339, UTC. */
  readonly at: string;
};

/** A step of an order of a certificate. */
export interface AcmeEvent {
  readonly at: string;
  readonly status: "ordering" | "valid" | "failed";
  readonly id: string;
  readonly name: string;
  readonly domains: readonly string[];
  readonly attempts: number;
  readonly last_error: string | null;
  readonly next_attempt_at: string | null;
}

/** Payloads by kind. Kinds without a payload have no source yet. */
export interface EventPayloads {
  readonly config: ConfigEvent;
  readonly audit: AuditEntry;
  readonly health: HealthEvent;
  readonly certificate: CertificateEvent;
  readonly acme: AcmeEvent;
  readonly listener: ListenerEvent;
  readonly worker: WorkerEvent;
  readonly overload: OverloadEvent;
  readonly node: NodeEvent;
}

/** The state of a node of the fleet has changed. */
export type NodeEvent = NodeTransition & {
  /** RFC 3339, UTC. */
  readonly at: string;
};

/** A worker started, became ready or died. */
export type WorkerEvent = WorkerLifecycleEvent & {
  /** RFC 3339, UTC. */
  readonly at: string;
};

/** An event for one reader; the data is JSON. */
export interface StreamEvent {
  /** Null: the last event id stays that of the event before. */
  readonly id: string | null;
  /** `reset`: missed events are gone, so reload the state; `dropped`: the same, because the client read too slowly. */
  readonly kind: EventKind | "reset" | "dropped";
  readonly data: string;
}

export interface SubscribeOptions {
  readonly role: Role;
  readonly kinds: readonly EventKind[];
  /** Id of the last event that the client received; null: only new events. */
  readonly lastEventId: string | null;
}

/** One client's position in the events. There is no queue: it reads from the ring at its own speed. */
export interface Subscription {
  /** The next event; null: none yet. */
  next(): StreamEvent | null;
  /** Id up to which the client has received everything. */
  readonly position: string;
  close(): void;
}

export interface EventHubOptions {
  /** Distinguishes the ids of this run from others. Default: random. */
  readonly startId?: string;
  readonly limits?: RingLimits;
}

const DEFAULT_LIMITS: RingLimits = { events: 1000, bytes: 8 * 1_048_576 };

export class EventHub {
  readonly #startId: string;
  readonly #ring: EventRing;
  readonly #wakes = new Set<() => void>();

  constructor(options: EventHubOptions = {}) {
    this.#startId = options.startId ?? crypto.randomUUID().slice(0, 8);
    this.#ring = new EventRing(options.limits ?? DEFAULT_LIMITS);
  }

  /** `reduced` is the payload for roles below admin. */
  publish<K extends keyof EventPayloads>(
    kind: K,
    payload: EventPayloads[K],
    reduced: EventPayloads[K] = payload,
  ): void {
    const data = JSON.stringify(payload);
    this.#ring.append(kind, data, reduced === payload ? data : JSON.stringify(reduced));
    for (const wake of this.#wakes) wake();
  }

  /** Calls `wake` when events may be available. Skips kinds above the role. */
  subscribe(options: SubscribeOptions, wake: () => void): Subscription {
    const { role, lastEventId } = options;
    const kinds = options.kinds.filter((kind) => includesRole(role, eventKinds[kind]));
    const ring = this.#ring;
    const from = lastEventId === null ? ring.last : this.#sequenceOf(lastEventId);
    const isKnown = from !== null && kinds.every((kind) => ring.isComplete(kind, from));
    const reader = new Reader(ring, {
      toId: (sequence) => `${this.#startId}-${sequence}`,
      kinds,
      isAdmin: includesRole(role, "admin"),
      from: isKnown ? from : ring.last,
    });
    this.#wakes.add(wake);
    let isReset = !isKnown;
    return {
      next() {
        if (!isReset) return reader.next();
        isReset = false;
        return { id: reader.position, kind: "reset", data: "{}" };
      },
      get position() {
        return reader.position;
      },
      close: () => void this.#wakes.delete(wake),
    };
  }

  /** Null for an id of another run. */
  #sequenceOf(id: string): number | null {
    const [, startId, digits] = /^([^-]{1,64})-(\d{1,15})$/.exec(id) ?? [];
    const sequence = Number(digits);
    return startId === this.#startId && sequence <= this.#ring.last ? sequence : null;
  }
}

interface ReaderOptions {
  readonly toId: (sequence: number) => string;
  readonly kinds: readonly EventKind[];
  readonly isAdmin: boolean;
  readonly from: number;
}

/** Iterates over the ring after a sequence. */
class Reader {
  readonly #ring: EventRing;
  readonly #options: ReaderOptions;
  /** Number of events of each subscribed kind before the present position. */
  readonly #passed: Map<EventKind, number>;
  #at: number;

  constructor(ring: EventRing, options: ReaderOptions) {
    this.#ring = ring;
    this.#options = options;
    this.#at = options.from;
    this.#passed = new Map(
      options.kinds.map((kind) => [kind, ring.countUpTo(kind, options.from)] as const),
    );
  }

  get position(): string {
    return this.#options.toId(this.#at);
  }

  next(): StreamEvent | null {
    const dropped = this.#dropped();
    if (dropped > 0) return { id: null, kind: "dropped", data: JSON.stringify({ count: dropped }) };
    for (;;) {
      const event = this.#ring.after(this.#at);
      if (event === undefined) return null;
      this.#at = event.sequence;
      if (!this.#passed.has(event.kind)) continue;
      this.#passed.set(event.kind, event.nth);
      const data = this.#options.isAdmin ? event.data : event.reduced;
      return { id: this.position, kind: event.kind, data };
    }
  }

  /** Number of subscribed events that left the ring unread; counts each once. */
  #dropped(): number {
    let dropped = 0;
    for (const [kind, passed] of this.#passed) {
      const evicted = this.#ring.evicted(kind);
      if (evicted <= passed) continue;
      dropped += evicted - passed;
      this.#passed.set(kind, evicted);
    }
    return dropped;
  }
}
