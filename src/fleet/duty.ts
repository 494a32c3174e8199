// Which node does the work that only one of the fleet may do: the present node with the lowest id; knows no work.
import type { FleetDuty, FleetView } from "../control/fleet-view.ts";

export interface DutyOptions {
  readonly nodes: FleetView["nodes"];
  /** Id of this node. */
  readonly id: string;
  /** Milliseconds after which the others count a node without heartbeats as away. */
  readonly awayMs: number;
  /** Milliseconds between two looks at the nodes. Default: 1000. */
  readonly everyMs?: number;
  readonly now?: () => number;
}

/**
 * A node that stops on its way, or two nodes that see each other late, may both have the duty for some seconds: what it does
 * must bear that. A node that is cut off has lost it before the others take it.
 */
export class Duty implements FleetDuty {
  readonly #options: DutyOptions;
  readonly #now: () => number;
  readonly #listeners: (() => void)[] = [];
  /** By the monotonic clock: until then the last look is valid. */
  #validUntil = Number.NEGATIVE_INFINITY;
  #wasOurs = false;
  #timer: Timer | null = null;

  constructor(options: DutyOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  get isOurs(): boolean {
    return this.#now() < this.#validUntil;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Call it after the first heartbeat: before, this node is not among the nodes. */
  begin(): void {
    const { everyMs = 1000 } = this.#options;
    this.#timer ??= setInterval(() => void this.look(), everyMs);
    this.#timer.unref();
    void this.look();
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#validUntil = Number.NEGATIVE_INFINITY;
  }

  /** Never rejects: without the nodes the duty ends by itself. */
  async look(): Promise<void> {
    const { id, awayMs } = this.#options;
    const asked = this.#now();
    const isBegun = this.#timer !== null;
    const nodes = await this.#options.nodes().catch(() => []);
    // It ended meanwhile: another process goes on.
    if (isBegun && this.#timer === null) return;
    const present = nodes.filter(({ state }) => state === "serving" || state === "lagging");
    const [first] = present.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    // Others count this node as away from its last heartbeat on: half of that time is for the way.
    if (first?.id === id) this.#validUntil = asked + awayMs / 2 - first.seen_ms_ago;
    else if (first !== undefined) this.#validUntil = Number.NEGATIVE_INFINITY;
    const { isOurs } = this;
    if (isOurs === this.#wasOurs) return;
    this.#wasOurs = isOurs;
    for (const listener of this.#listeners) listener();
  }
}
