// Counts limits over all nodes, each request on the server of shared counters; decides by itself while that is away.
import type { SharedCount, SharedCounters, SharedDemand } from "../../pdk/kit.ts";
import type { Config } from "./settings.ts";
import {
  bucketVerdict,
  type Demand,
  isBucket,
  type LimitStore,
  type Rule,
  type SharedStore,
  type Verdict,
  type Verdicts,
  windowVerdict,
} from "./store.ts";

export interface ExactStoreOptions {
  readonly shared: SharedCounters;
  /** Counts of this node. */
  readonly local: SharedStore;
  readonly onError: Config["on_shared_error"];
}

export class ExactStore implements LimitStore {
  protected readonly options: ExactStoreOptions;
  readonly #shares = new WeakMap<Rule, { readonly nodes: number; readonly rule: Rule }>();

  constructor(options: ExactStoreOptions) {
    this.options = options;
  }

  take(demands: readonly Demand[]): Verdicts {
    return this.#ask("take", demands);
  }

  look(demands: readonly Demand[]): Verdicts {
    return this.#ask("look", demands);
  }

  count(demands: readonly Demand[]): Verdicts {
    return this.#ask("add", demands);
  }

  #ask(how: "take" | "look" | "add", demands: readonly Demand[]): Verdicts {
    const counts = this.options.shared.count(
      how,
      demands.map((demand) => toShared(demand)),
    );
    return counts === null
      ? this.#withoutServer(how, demands)
      : counts.then((all) =>
          all === null
            ? this.#withoutServer(how, demands)
            : all.map((count, at) => this.#verdict(demands[at], count, how)),
        );
  }

  #verdict(demand: Demand | undefined, count: SharedCount, how: "take" | "look" | "add"): Verdict {
    if (demand === undefined) throw new Error("the server has counted more limits than were asked");
    this.noteTaken(demand, count.taken);
    return verdictOf(demand, count, how === "look" ? null : count.taken > 0);
  }

  /** The share of this node knows what the node has taken, so that it allows little more when the server goes away. */
  protected noteTaken(demand: Demand, units: number): void {
    if (units > 0 && this.options.onError === "node")
      this.options.local.count([{ ...this.#share(demand), cost: units }]);
  }

  #withoutServer(how: "take" | "look" | "add", demands: readonly Demand[]): Verdicts {
    const { onError, local, shared } = this.options;
    shared.noteFallback();
    if (onError === "closed") return null;
    if (onError === "open") return [];
    const shares = demands.map((demand) => this.#share(demand));
    if (how === "take") return local.take(shares);
    return how === "look" ? local.look(shares) : local.count(shares);
  }

  /** The part of the limit that is this node's; at least one request. */
  #share(demand: Demand): Demand {
    const { rule, cost } = demand;
    const { nodes } = this.options.shared;
    if (nodes === 1) return demand;
    let share = this.#shares.get(rule);
    if (share?.nodes !== nodes) {
      const capacity = Math.max(cost, Math.floor(rule.capacity / nodes));
      share = { nodes, rule: { ...rule, capacity, perSecond: rule.perSecond / nodes } };
      this.#shares.set(rule, share);
    }
    return { ...demand, rule: share.rule };
  }
}

export const toShared = (
  { rule, key, cost }: Demand,
  { waiting, want }: { readonly waiting: number; readonly want: number } = {
    waiting: cost,
    want: cost,
  },
): SharedDemand => {
  const { algorithm, capacity, windowMs, perSecond } = rule;
  return { key, algorithm, capacity, windowMs, perSecond, cost, waiting, want };
};

/** `isAllowed`: null: whether there is room for the cost now. */
export function verdictOf(demand: Demand, count: SharedCount, isAllowed: boolean | null): Verdict {
  const { rule, cost } = demand;
  if (isBucket(demand)) {
    const missing = isAllowed === true ? 0 : cost - count.level;
    return bucketVerdict(rule, count.level, missing > 0 ? (missing / rule.perSecond) * 1000 : 0);
  }
  const { current, previous, elapsedMs } = count;
  const weight = rule.algorithm === "sliding" ? 1 - elapsedMs / rule.windowMs : 0;
  const hasRoom = current + previous * weight + cost <= rule.capacity;
  return windowVerdict(demand, { ...count, isAdmitted: isAllowed ?? hasRoom });
}
