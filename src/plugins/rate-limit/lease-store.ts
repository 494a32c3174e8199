// Counts limits over all nodes with few questions to their server: takes units for many requests at once, which all workers spend.
import type { Counters, SharedCount } from "../../pdk/kit.ts";
import { RecentMap } from "../../pdk/recent-map.ts";
import { ExactStore, type ExactStoreOptions, toShared, verdictOf } from "./exact-store.ts";
import {
  bucketVerdict,
  type Demand,
  isBucket,
  type Rule,
  type Verdict,
  type Verdicts,
} from "./store.ts";

/** Requests that find no units wait for the server so many times, then take a unit each. */
const ROUNDS = 3;
/** Most growth from one lease to the next, and least part that is asked for again. */
const GROWTH = 4;
const SHRINKAGE = 0.5;
/** After so many times the length of a lease, its size means nothing any more. */
const OUTDATED = 10;
/** A lease holds units for this part of the window, within bounds in milliseconds. */
const WINDOW_PART = 8;
const LEASE_MS = { least: 200, most: 30_000 } as const;
/** How long units from a bucket last; its capacity is lower by as much as it gains meanwhile, so that none is exceeded. */
const BUCKET_LEASE_MS = 100;
/** When nothing is left, the server is asked again after this part of the window, at most a second. */
const PAUSE_PART = 10;
const MAX_PAUSE_MS = 1000;
const MAX_UNITS = 1_000_000;
const RECENT_KEYS = 10_000;

interface Lease {
  /** Units that were asked for and that were taken. */
  readonly want: number;
  readonly units: number;
  readonly at: number;
}

export interface LeaseStoreOptions extends ExactStoreOptions {
  readonly counters: Counters;
}

export class LeaseStore extends ExactStore {
  readonly #counters: Counters;
  /** The last lease of a key that this worker has got. */
  readonly #last = new RecentMap<string, Lease>(RECENT_KEYS);
  /** Leases on their way. */
  readonly #running = new Map<string, Promise<boolean>>();
  /** Cost of the requests that wait, by key. */
  readonly #waiting = new Map<string, number>();

  constructor(options: LeaseStoreOptions) {
    super(options);
    this.#counters = options.counters;
  }

  override take(demands: readonly Demand[]): Verdicts {
    for (const demand of demands) if (!isLeasable(demand)) return super.take(demands);
    return this.#takeStocked(demands) ?? this.#takeLater(demands);
  }

  /** From units that the node has; null: one limit has too few, and more may be had. */
  #takeStocked(demands: readonly Demand[]): readonly Verdict[] | null {
    const verdicts: Verdict[] = [];
    for (const demand of demands) {
      const verdict = this.#spend(demand) ?? this.#refusal(demand);
      if (verdict === null || !verdict.isAllowed) {
        for (let at = 0; at < verdicts.length; at++) this.#giveBack(demands[at]);
        if (verdict === null) return null;
        // The other limits have what they had.
        return demands.map((other) => (other === demand ? verdict : this.#look(other)));
      }
      verdicts.push(verdict);
    }
    return verdicts;
  }

  #spend(demand: Demand): Verdict | null {
    const stock = this.#counters.spend(demand.key, demand.cost);
    if (stock === null) return null;
    return this.#allowed(demand, stock.units + stock.rest, stock.untilMs);
  }

  #allowed(demand: Demand, remaining: number, untilMs: number): Verdict {
    if (isBucket(demand)) return bucketVerdict(demand.rule, remaining, 0);
    return { isAllowed: true, remaining, resetMs: untilMs - this.#counters.now() };
  }

  /** Null: the server may have more. */
  #refusal(demand: Demand): Verdict | null {
    const resetMs = this.#counters.value(refusalKey(demand)) - this.#counters.now();
    return resetMs > 0 ? { isAllowed: false, remaining: 0, resetMs } : null;
  }

  #look(demand: Demand): Verdict {
    const stock = this.#counters.spend(demand.key, 0);
    if (stock !== null) return this.#allowed(demand, stock.units + stock.rest, stock.untilMs);
    return this.#refusal(demand) ?? this.#allowed(demand, 0, this.#counters.now());
  }

  #giveBack(demand: Demand | undefined): void {
    if (demand === undefined) return;
    const stock = this.#counters.spend(demand.key, 0);
    if (stock !== null) this.#counters.store(demand.key, { ...stock, units: demand.cost });
  }

  async #takeLater(demands: readonly Demand[]): Promise<readonly Verdict[] | null> {
    for (const { key, cost } of demands)
      this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + cost);
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const leases = demands.filter((demand) => this.#isDry(demand));
        const answers = await Promise.all(leases.map((demand) => this.#lease(demand)));
        if (answers.includes(false)) break;
        const verdicts = this.#takeStocked(demands);
        if (verdicts !== null) return verdicts;
      }
    } finally {
      for (const { key, cost } of demands) this.#stopWaiting(key, cost);
    }
    return await super.take(demands);
  }

  #stopWaiting(key: string, cost: number): void {
    const left = (this.#waiting.get(key) ?? 0) - cost;
    if (left > 0) this.#waiting.set(key, left);
    else this.#waiting.delete(key);
  }

  #isDry(demand: Demand): boolean {
    const { key, cost } = demand;
    return (this.#counters.spend(key, 0)?.units ?? 0) < cost && this.#refusal(demand) === null;
  }

  /** False: the server is away. */
  #lease(demand: Demand): Promise<boolean> {
    const { key } = demand;
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const lease = this.#fetch(demand).finally(() => this.#running.delete(key));
    this.#running.set(key, lease);
    return lease;
  }

  async #fetch(demand: Demand): Promise<boolean> {
    const { rule, key, cost } = demand;
    const waiting = Math.min(MAX_UNITS, Math.max(cost, this.#waiting.get(key) ?? cost));
    const want = this.#want(demand, waiting);
    const sentAt = this.#counters.now();
    const capacity = leasedCapacity(rule);
    const asked = toShared({ ...demand, rule: { ...rule, capacity } }, { waiting, want });
    const counts = await this.options.shared.count("take", [asked]);
    const [count] = counts ?? [];
    if (count === undefined) return false;
    if (count.taken > 0) this.#last.set(key, { want, units: count.taken, at: sentAt });
    this.noteTaken(demand, count.taken);
    this.#stock(demand, count, sentAt);
    return true;
  }

  #stock(demand: Demand, count: SharedCount, sentAt: number): void {
    const { key, cost } = demand;
    // Not for the units that were taken, but for the next ones.
    const next = verdictOf(demand, count, null);
    const lifeMs = isBucket(demand) ? BUCKET_LEASE_MS : demand.rule.windowMs - count.elapsedMs;
    // From before the question on: not later than on the server, whatever the clocks.
    const untilMs = sentAt + lifeMs;
    const { remaining: rest } = next;
    if (count.taken > 0) this.#counters.store(key, { units: count.taken, rest, untilMs });
    if (count.taken > 0 && rest >= cost) return;
    const { resetMs } = verdictOf(demand, count, false);
    const keepMs = Math.max(resetMs, pauseOf(demand.rule));
    const refused = refusalKey(demand);
    const expected = this.#counters.value(refused);
    this.#counters.replace(refused, { expected, next: sentAt + keepMs, keepMs });
  }

  /** Units for a part of the window, at the rate at which the last ones were spent. */
  #want({ rule, key, cost }: Demand, waiting: number): number {
    const last = this.#last.get(key);
    if (last === undefined) return waiting;
    const { least, most } = LEASE_MS;
    const leaseMs = isBucket({ rule })
      ? BUCKET_LEASE_MS
      : Math.min(most, Math.max(least, rule.windowMs / WINDOW_PART));
    const spentMs = Math.max(1, this.#counters.now() - last.at);
    if (spentMs > OUTDATED * leaseMs) return waiting;
    const units = Math.min(last.want * GROWTH, (last.units * leaseMs) / spentMs, MAX_UNITS);
    return Math.max(waiting, Math.round(Math.max(units, last.want * SHRINKAGE) / cost) * cost);
  }
}

const leasedCapacity = (rule: Rule) =>
  isBucket({ rule }) ? rule.capacity - (rule.perSecond * BUCKET_LEASE_MS) / 1000 : rule.capacity;

/** Small and fast buckets are counted request by request. */
const isLeasable = ({ rule, cost }: Demand) =>
  !isBucket({ rule }) || leasedCapacity(rule) >= Math.max(cost, rule.capacity / 2);

/** A raised limit has room at once. */
const refusalKey = ({ rule, key }: Demand) => `${key} ${rule.capacity}`;

const pauseOf = ({ algorithm, capacity, perSecond, windowMs }: Rule) =>
  Math.min(
    MAX_PAUSE_MS,
    (algorithm === "token_bucket" ? (capacity / perSecond) * 1000 : windowMs) / PAUSE_PART,
  );
