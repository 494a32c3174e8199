// Ports of the stored configuration that this machine cannot listen on: the gateway serves without them and tries again. Binds none
// for clients.
import type { Log } from "../log.ts";
import type { Issue } from "../model/error.ts";
import type { UnboundPort } from "../model/unbound-port.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { failingPorts, type PortFailure, probePort } from "./port-probe.ts";

/** Pauses between two attempts. Milliseconds. */
export interface RetryPauses {
  readonly first: number;
  readonly longest: number;
}

const PAUSES: RetryPauses = { first: 1000, longest: 15_000 };

/** A range may have thousands of ports. */
const MAX_LINES = 10;

type Failures = ReadonlyMap<string, PortFailure>;

export class UnboundPorts {
  readonly #log: Log;
  readonly #pauses: RetryPauses;
  #served: Failures = new Map();
  #prepared: Failures | null = null;
  #timer: Timer | null = null;
  /** The last version and what of it workers got: what did not change must be the same object again. */
  #last: { readonly key: string; readonly whole: Snapshot; readonly bound: Snapshot } | null = null;

  constructor({ log, pauses = PAUSES }: { readonly log: Log; readonly pauses?: RetryPauses }) {
    this.#log = log;
    this.#pauses = pauses;
  }

  /** Of the served version, in its order. */
  list(): readonly UnboundPort[] {
    return [...this.#served.values()].map(({ port, reason }) => {
      const { object, id, name, transport, port: number } = port;
      return { object, id, name, transport, port: number, reason };
    });
  }

  /** Before the first version: notes which of its ports cannot be bound. */
  async begin(snapshot: Snapshot): Promise<void> {
    this.#served = byKey(await failingPorts(null, snapshot));
    const failures = [...this.#served.values()];
    for (const { port, issue } of failures.slice(0, MAX_LINES))
      this.#log.error(`${issue.message}; the gateway serves without it and tries again`, {
        [port.object]: port.name,
      });
    const more = failures.length - MAX_LINES;
    if (more > 0) this.#log.error("more ports cannot be bound", { ports: more });
  }

  /**
   * The version as workers can serve it, without the ports that could not be bound before and still cannot. The issues are those of
   * other ports. `active`: what the workers have.
   */
  async admit(
    active: Snapshot,
    next: Snapshot,
  ): Promise<{ readonly issues: readonly Issue[]; readonly snapshot: Snapshot }> {
    const failing = byKey(await failingPorts(active, next));
    const added = [...failing].filter(([key]) => !this.#served.has(key));
    const issues = added.map(([, { issue }]) => issue);
    if (issues.length > 0) return { issues, snapshot: next };
    this.#prepared = failing;
    return { issues, snapshot: this.bound(next, failing) };
  }

  /** The version that `admit` returned is served. */
  commit(): void {
    const before = this.#served;
    this.#served = this.#prepared ?? before;
    this.#prepared = null;
    const bound = [...before].filter(([key]) => !this.#served.has(key));
    if (bound.length > 0)
      this.#log.info("ports that could not be bound are bound, or no longer needed", {
        ports: bound.map(([, { port }]) => `${port.owner}: ${port.port}`),
      });
  }

  rollback(): void {
    this.#prepared = null;
  }

  /** The version without the ports that cannot be bound. */
  bound(whole: Snapshot, failures: Failures = this.#served): Snapshot {
    if (failures.size === 0) return whole;
    const key = [...failures.keys()].join("\n");
    const last = this.#last?.key === key ? this.#last : null;
    const listeners =
      last?.whole.listeners === whole.listeners
        ? last.bound.listeners
        : boundListeners(whole, failures);
    const streamRoutes =
      last?.whole.streamRoutes === whole.streamRoutes
        ? last.bound.streamRoutes
        : boundStreams(whole, failures);
    const bound = { ...whole, listeners, streamRoutes };
    this.#last = { key, whole, bound };
    return bound;
  }

  /** From now on calls `bind` at growing intervals while ports are not bound. */
  watch(bind: () => Promise<unknown>): void {
    const again = (pauseMs: number): void => {
      if (this.#served.size === 0) return;
      this.#timer = setTimeout(() => {
        const next = () => again(Math.min(pauseMs * 2, this.#pauses.longest));
        void this.#isOneFree()
          .then((isFree) => isFree && bind())
          .then(next, next);
      }, pauseMs);
    };
    again(this.#pauses.first);
  }

  async #isOneFree(): Promise<boolean> {
    for (const { port } of this.#served.values()) if ((await probePort(port)) === null) return true;
    return false;
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#served = new Map();
  }
}

const byKey = (failures: readonly PortFailure[]): Failures =>
  new Map(
    failures.map((failure) => {
      const { object, id, transport, address, port } = failure.port;
      return [`${object} ${id} ${transport} ${address} ${port}`, failure];
    }),
  );

function boundListeners({ listeners }: Snapshot, failures: Failures): Snapshot["listeners"] {
  const bound = new Map(listeners);
  for (const { port } of failures.values()) {
    const plan = port.object === "listener" ? bound.get(port.id) : undefined;
    if (plan === undefined) continue;
    // Over TCP it serves without HTTP/3.
    if (port.transport === "tcp") bound.set(port.id, { ...plan, isUnbound: true });
    else bound.set(port.id, { ...plan, listener: { ...plan.listener, http3: false } });
  }
  return bound;
}

function boundStreams({ streamRoutes }: Snapshot, failures: Failures): Snapshot["streamRoutes"] {
  const bound = new Map(streamRoutes);
  for (const { port } of failures.values()) {
    const plan = port.object === "stream_route" ? bound.get(port.id) : undefined;
    if (plan === undefined) continue;
    bound.set(port.id, { ...plan, ports: plan.ports.filter((each) => each !== port.port) });
  }
  return bound;
}
