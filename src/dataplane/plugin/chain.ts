// The plugins of one place in the order in which they run, by phase; knows no request.
import type { PluginHandlers } from "../../pdk/definition.ts";
import type { Place, PluginRuntime, PluginSet } from "./plugin-set.ts";

/** Phases before the answer. */
export const requestPhases = ["early", "auth", "access", "request"] as const;
export type RequestPhase = (typeof requestPhases)[number];

/** Chains for single consumers that one chain remembers. */
const MAX_CONSUMERS = 10_000;

/** Chains for other services that one chain remembers. */
const MAX_SERVICES = 10_000;

/** A step among the request phases: the handler that was called last. */
export interface Step {
  /** Index in `requestPhases`. */
  readonly phase: number;
  readonly step: number;
}

/** What a chain was put together for. */
export interface ChainOrigin {
  readonly set: PluginSet;
  readonly place: Place;
  readonly consumerId: string | null;
}

/** What a request has been through as one of another service. */
interface Passed {
  /** By request phase: the plugins whose handler was called, or could have been. */
  readonly done: readonly ReadonlySet<PluginRuntime>[];
  readonly protecting: ReadonlySet<PluginRuntime>;
  /** Those of the other service that have acted: they are told how the request ends, so that they can give back what they took. */
  readonly left: readonly PluginRuntime[];
}

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
  readonly #origin: ChainOrigin;
  readonly #passed: Passed | null;
  readonly #byConsumer = new Map<string, Chain>();
  readonly #byService = new Map<string, Chain>();

  constructor(chosen: readonly PluginRuntime[], origin: ChainOrigin, passed: Passed | null = null) {
    const having = (phase: keyof PluginHandlers, from = chosen) =>
      from.filter(({ handlers }) => handlers[phase] !== undefined);
    const toDo = (at: number) =>
      having(requestPhases[at] ?? "request").filter((each) => passed?.done[at]?.has(each) !== true);
    const left = passed?.left ?? [];
    const names = new Set(left.length === 0 ? [] : chosen.map(({ plan }) => plan.name));
    const unreplaced = left.filter(({ plan }) => !names.has(plan.name));
    const ending = left.length === 0 ? chosen : [...chosen, ...left].sort(byOrder);
    const answering = left.length === 0 ? chosen : [...chosen, ...unreplaced].sort(byOrder);
    this.all = answering;
    this.protecting = having("protect").filter((each) => passed?.protecting.has(each) !== true);
    this.early = toDo(0);
    this.auth = toDo(1);
    this.access = toDo(2);
    this.request = toDo(3);
    this.response = having("response", answering).reverse();
    this.log = having("log", ending);
    this.logLater = having("logLater", ending);
    this.namesRequests = chosen.some(({ definition }) => definition.namesRequests === true);
    const isHeard = this.log.length + this.logLater.length > 0;
    this.isHeardOnly = isHeard && !this.namesRequests && !chosen.some(actsBeforeEnd);
    this.#origin = origin;
    this.#passed = passed;
  }

  /** With the instances for this consumer in the place of those for all; the same chain when there are none. */
  forConsumer(consumerId: string): Chain {
    const { set, place } = this.#origin;
    if (!set.hasConsumers) return this;
    const known = this.#byConsumer.get(consumerId);
    if (known !== undefined) return known;
    const chain = set.hasOwn(consumerId, place)
      ? new Chain(set.chosenAt(place, consumerId), { set, place, consumerId }, this.#passed)
      : this;
    if (this.#byConsumer.size >= MAX_CONSUMERS) this.#byConsumer.clear();
    this.#byConsumer.set(consumerId, chain);
    return chain;
  }

  /**
   * For a request that has got another service at this step: the plugins of that service, without what it has been through
   * already. Those that it has missed come first, so that no way leads around them. The same chain when neither service has any.
   */
  inService(serviceId: string, at: Step): Chain {
    const { set, place, consumerId } = this.#origin;
    if (!set.differs(place.serviceId, serviceId)) return this;
    const key = `${serviceId} ${at.phase} ${at.step}`;
    const known = this.#byService.get(key);
    if (known !== undefined) return known;
    const next = { ...place, serviceId };
    const chosen = set.chosenAt(next, consumerId);
    const chain = new Chain(
      chosen,
      { set, place: next, consumerId },
      this.#passedAt(at, new Set(chosen)),
    );
    if (this.#byService.size >= MAX_SERVICES) this.#byService.clear();
    this.#byService.set(key, chain);
    return chain;
  }

  #passedAt({ phase, step }: Step, staying: ReadonlySet<PluginRuntime>): Passed {
    const done = requestPhases.map((name, at) => {
      const until = at < phase ? this[name].length : at === phase ? step + 1 : 0;
      return new Set([...(this.#passed?.done[at] ?? []), ...this[name].slice(0, until)]);
    });
    const acted = new Set([...(this.#passed?.left ?? []), ...done.flatMap((each) => [...each])]);
    return {
      done,
      protecting: new Set([...(this.#passed?.protecting ?? []), ...this.protecting]),
      left: [...acted].filter((each) => !staying.has(each)),
    };
  }
}

/** In which two plugins run: the higher place first, then by name, then the older one. */
export function byOrder(a: PluginRuntime, b: PluginRuntime): number {
  if (a.order !== b.order) return b.order - a.order;
  const [x, y] = [keyOf(a), keyOf(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

const keyOf = ({ plan }: PluginRuntime) => `${plan.name} ${plan.createdAt} ${plan.id}`;
