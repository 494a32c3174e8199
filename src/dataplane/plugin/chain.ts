// The plugins of one place in the order in which they run, by phase; knows no request.
import type { PluginHandlers } from "../../pdk/definition.ts";
import type { Place, PluginRuntime, PluginSet } from "./plugin-set.ts";

/** Phases before the answer. */
export const requestPhases = ["early", "auth", "access", "request"] as const;
export type RequestPhase = (typeof requestPhases)[number];

/** Chains for single consumers that one chain remembers. */
const MAX_CONSUMERS = 10_000;

/** What is called before a request has ended. */
const beforeEnd = [...requestPhases, "protect", "response"] as const;

const actsBeforeEnd = ({ handlers }: PluginRuntime): boolean =>
  beforeEnd.some((phase) => handlers[phase] !== undefined);

/** Immutable but for what it remembers. */
export class Chain {
  readonly all: readonly PluginRuntime[];
  /** Those that take away what clients must not say; whether their conditions hold makes no difference. */
  readonly protecting: readonly PluginRuntime[];
  readonly early: readonly PluginRuntime[];
  readonly auth: readonly PluginRuntime[];
  readonly access: readonly PluginRuntime[];
  readonly request: readonly PluginRuntime[];
  /** The last to see the request sees the answer first. */
  readonly response: readonly PluginRuntime[];
  readonly log: readonly PluginRuntime[];
  readonly logLater: readonly PluginRuntime[];
  /** Whether a plugin gives requests their ids. */
  readonly namesRequests: boolean;
  /** Whether plugins want to hear of the end of requests, and of nothing before. */
  readonly isHeardOnly: boolean;
  readonly #origin: { readonly set: PluginSet; readonly place: Place };
  readonly #byConsumer = new Map<string, Chain>();

  constructor(
    chosen: readonly PluginRuntime[],
    origin: { readonly set: PluginSet; readonly place: Place },
  ) {
    const having = (phase: keyof PluginHandlers) =>
      chosen.filter(({ handlers }) => handlers[phase] !== undefined);
    this.all = chosen;
    this.protecting = having("protect");
    this.early = having("early");
    this.auth = having("auth");
    this.access = having("access");
    this.request = having("request");
    this.response = having("response").reverse();
    this.log = having("log");
    this.logLater = having("logLater");
    this.namesRequests = chosen.some(({ definition }) => definition.namesRequests === true);
    const isHeard = this.log.length + this.logLater.length > 0;
    this.isHeardOnly = isHeard && !this.namesRequests && !chosen.some(actsBeforeEnd);
    this.#origin = origin;
  }

  /** With the instances for this consumer in the place of those for all; the same chain when there are none. */
  forConsumer(consumerId: string): Chain {
    const { set, place } = this.#origin;
    if (!set.hasConsumers) return this;
    const known = this.#byConsumer.get(consumerId);
    if (known !== undefined) return known;
    const chain = set.hasOwn(consumerId, place)
      ? new Chain(set.chosenAt(place, consumerId), this.#origin)
      : this;
    if (this.#byConsumer.size >= MAX_CONSUMERS) this.#byConsumer.clear();
    this.#byConsumer.set(consumerId, chain);
    return chain;
  }
}
