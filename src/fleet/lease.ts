// The lease of the work that only one node of the fleet does; knows no work.
import type { FleetDuty, NodeState } from "../control/fleet-view.ts";
import type { LeaseSource, Term } from "./source.ts";

export interface LeaseTimes {
  /** The database gives the work to another node so long after the last renewal. Milliseconds. Default 3000. */
  readonly ttl: number;
  /** The holder counts on it so long after it began to ask for the renewal, by its own monotonic clock. Default 2000. */
  readonly held: number;
  /** Between two renewals. Default 1000. */
  readonly renew: number;
}

export const leaseTimes: LeaseTimes = { ttl: 3000, held: 2000, renew: 1000 };

export interface LeaseOptions {
  readonly source: LeaseSource;
  /** Id of this node. */
  readonly id: string;
  /** What this node says about itself. */
  readonly state: () => NodeState;
  readonly times?: LeaseTimes;
  readonly now?: () => number;
}

/** A node in another state does not have the last changes, or stops. */
const WORKING: readonly NodeState[] = ["serving", "lagging", "draining"];

/** Until the look after the end of another node's lease. */
const AFTER_END_MS = 20;

/**
 * Of two nodes at most one has the work, also when one was stopped in the middle, as long as its clock runs as fast as the
 * database's: it counts on it for less time than the database gives. What it writes to the log meanwhile is refused by the
 * epoch.
 */
export class Lease implements FleetDuty {
  readonly #options: LeaseOptions;
  readonly #times: LeaseTimes;
  readonly #now: () => number;
  /** Of this process: the one before it may still have an append on its way. */
  readonly #holder: string = crypto.randomUUID();
  readonly #listeners: (() => void)[] = [];
  #epoch = 0;
  /** By the monotonic clock. */
  #heldUntil = Number.NEGATIVE_INFINITY;
  #wasOurs = false;
  #isBegun = false;
  #looking: Promise<unknown> = Promise.resolve();
  #timer: Timer | null = null;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#times = options.times ?? leaseTimes;
    this.#now = options.now ?? (() => performance.now());
  }

  get isOurs(): boolean {
    return this.#now() < this.#heldUntil;
  }

  /** What entries of the work are appended with; null: another node may have it. */
  get term(): Term | null {
    return this.isOurs ? { holder: this.#holder, epoch: this.#epoch } : null;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  begin(): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    void this.#work();
  }

  /** Lets another node have it at once. */
  async end(): Promise<void> {
    this.#isBegun = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#looking;
    await this.#release();
  }

  async #work(): Promise<void> {
    const looking = this.look();
    this.#looking = looking;
    const wait = await looking;
    if (!this.#isBegun) return;
    // A lease that is not renewed in time ends between two looks.
    const left = Math.max(this.#heldUntil - this.#now(), 0);
    this.#timer = setTimeout(() => void this.#work(), this.isOurs ? Math.min(wait, left) : wait);
    this.#timer.unref();
  }

  /** Asks for the lease, or for its renewal; resolves to the time until the next look. Never rejects. */
  async look(): Promise<number> {
    this.#inform();
    if (!WORKING.includes(this.#options.state())) {
      await this.#release();
      return this.#times.renew;
    }
    const { source, id } = this.#options;
    const { ttl, held, renew } = this.#times;
    const asked = this.#now();
    const late = setTimeout(() => this.#inform(), Math.max(this.#heldUntil - asked, 0));
    const known = await source
      .lease({ holder: this.#holder, nodeId: id, ms: ttl })
      .catch(() => null);
    clearTimeout(late);
    const isOurs = known?.holder === this.#holder;
    if (isOurs) {
      this.#epoch = known.epoch;
      this.#heldUntil = asked + held;
    } else if (known !== null) this.#heldUntil = Number.NEGATIVE_INFINITY;
    this.#inform();
    return known === null || isOurs ? renew : Math.min(renew, known.leftMs + AFTER_END_MS);
  }

  async #release(): Promise<void> {
    if (!this.isOurs) return;
    this.#heldUntil = Number.NEGATIVE_INFINITY;
    this.#inform();
    // Otherwise it ends by itself.
    await this.#options.source.release(this.#holder).catch(() => undefined);
  }

  #inform(): void {
    const { isOurs } = this;
    if (isOurs === this.#wasOurs) return;
    this.#wasOurs = isOurs;
    for (const listener of this.#listeners) listener();
  }
}
