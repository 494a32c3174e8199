// All plugin instances of one version, and the chain of those that apply to a route; knows no request.
import type { Condition } from "../../model/condition.ts";
import { asksForConsumer, compileCondition, compileStreamCondition } from "../../pdk/condition.ts";
import type { RequestContext, StreamContext } from "../../pdk/context.ts";
import { type AnyPlugin, phaseHandlers, type PluginHandlers } from "../../pdk/definition.ts";
import type { PluginPlan } from "../../snapshot/snapshot.ts";

/** An instance in this worker. It stays when a new version of the configuration does not change it. */
export interface PluginRuntime {
  readonly plan: PluginPlan;
  readonly definition: AnyPlugin;
  readonly handlers: PluginHandlers;
  /** Higher first. */
  readonly order: number;
  /** Null: for every request. */
  readonly when: ((context: RequestContext) => boolean) | null;
  /** The same for stream connections. */
  readonly whenStream: ((context: StreamContext) => boolean) | null;
  /** Whether the condition depends on the consumer. */
  readonly asksForConsumer: boolean;
  readonly onError: "open" | "closed";
}

/** Combines an instance's plan with its definition and handlers. */
export const pluginRuntime = (
  plan: PluginPlan,
  definition: AnyPlugin,
  handlers: PluginHandlers,
): PluginRuntime => ({
  plan,
  definition,
  handlers,
  order: plan.priority ?? definition.order,
  when: compiled(plan.when),
  asksForConsumer: plan.when !== null && asksForConsumer(plan.when),
  whenStream: plan.when === null ? null : compileStreamCondition(plan.when),
  onError: plan.onError ?? definition.onError,
});

const compiled = (when: Condition | null) => (when === null ? null : compileCondition(when));

/** What decides which instances apply to a request. */
export interface ChainScope {
  readonly routeId: string | null;
  readonly serviceId: string | null;
}

/** Of two instances of a plugin the one with the more specific scope runs. */
const RANK = {
  global: 1,
  service: 2,
  route: 3,
  consumer: 4,
  consumer_service: 5,
  consumer_route: 6,
  stream_route: 7,
} as const satisfies Record<PluginPlan["scope"], number>;

const NONE: readonly PluginRuntime[] = [];

/** A bound, because routes that change their service leave chains in the cache. */
const MAX_STREAM_CHAINS = 10_000;

/** The phases before the response, by their handlers. */
export const requestPhases = [
  phaseHandlers.pre_auth,
  phaseHandlers.auth,
  phaseHandlers.access,
  phaseHandlers.request,
] as const;
export type RequestPhase = (typeof requestPhases)[number];

/** Chains for single consumers that one chain caches. */
const MAX_CONSUMERS = 10_000;

/** Chains for other services that one chain caches. */
const MAX_SERVICES = 10_000;

/** A step among the request phases: the handler that was called last. */
export interface ChainStep {
  /** Index in `requestPhases`. */
  readonly phase: number;
  readonly step: number;
}

/** What a chain was built for. */
export interface ChainOrigin {
  readonly set: PluginSet;
  readonly scope: ChainScope;
  readonly consumerId: string | null;
}

/** The plugins that a request has passed as one of another service. */
interface Passed {
  /** By request phase: the plugins whose handler was called, or could have been. */
  readonly done: readonly ReadonlySet<PluginRuntime>[];
  readonly identityStrippers: ReadonlySet<PluginRuntime>;
  /** Plugins of the other service that have run: they log the end too, to release what they hold for the request. */
  readonly former: readonly PluginRuntime[];
}

/** Immutable except for its caches. */
export class Chain {
  readonly all: readonly PluginRuntime[];
  /** Plugins with `stripIdentity`, which runs whether or not `when` matches. */
  readonly identityStrippers: readonly PluginRuntime[];
  readonly preAuth: readonly PluginRuntime[];
  readonly auth: readonly PluginRuntime[];
  readonly access: readonly PluginRuntime[];
  readonly request: readonly PluginRuntime[];
  /** In reverse: the last to see the request sees the response first. */
  readonly response: readonly PluginRuntime[];
  readonly log: readonly PluginRuntime[];
  readonly logBatch: readonly PluginRuntime[];
  /** Whether a plugin gives requests their ids. */
  readonly namesRequests: boolean;
  readonly #origin: ChainOrigin;
  readonly #passed: Passed | null;
  readonly #byConsumer = new Map<string, Chain>();
  readonly #byService = new Map<string, Chain>();

  constructor(chosen: readonly PluginRuntime[], origin: ChainOrigin, passed: Passed | null = null) {
    const having = (phase: keyof PluginHandlers, from = chosen) =>
      from.filter(({ handlers }) => handlers[phase] !== undefined);
    const toDo = (at: number) =>
      having(requestPhases[at] ?? "request").filter((each) => passed?.done[at]?.has(each) !== true);
    const former = passed?.former ?? [];
    const names = new Set(former.length === 0 ? [] : chosen.map(({ plan }) => plan.name));
    const unreplaced = former.filter(({ plan }) => !names.has(plan.name));
    const ending = former.length === 0 ? chosen : [...chosen, ...former].sort(byOrder);
    const responding = former.length === 0 ? chosen : [...chosen, ...unreplaced].sort(byOrder);
    this.all = responding;
    this.identityStrippers = having("stripIdentity").filter(
      (each) => passed?.identityStrippers.has(each) !== true,
    );
    this.preAuth = toDo(0);
    this.auth = toDo(1);
    this.access = toDo(2);
    this.request = toDo(3);
    this.response = having("response", responding).reverse();
    this.log = having("log", ending);
    this.logBatch = having("logBatch", ending);
    this.namesRequests = chosen.some(({ definition }) => definition.namesRequests === true);
    this.#origin = origin;
    this.#passed = passed;
  }

  /** The chain with this consumer's instances replacing the general ones; the same chain when the consumer has none. */
  forConsumer(consumerId: string): Chain {
    const { set, scope } = this.#origin;
    if (!set.hasConsumers) return this;
    const known = this.#byConsumer.get(consumerId);
    if (known !== undefined) return known;
    const chain = set.hasInstancesFor(consumerId, scope)
      ? new Chain(set.instancesFor(scope, consumerId), { set, scope, consumerId }, this.#passed)
      : this;
    if (this.#byConsumer.size >= MAX_CONSUMERS) this.#byConsumer.clear();
    this.#byConsumer.set(consumerId, chain);
    return chain;
  }

  /**
   * For a request whose service a plugin has changed at this step: the plugins of that service without those that have run
   * already. Plugins of earlier phases come first, so that a request cannot bypass them. The same chain when neither service
   * has any.
   */
  inService(serviceId: string, at: ChainStep): Chain {
    const { set, scope, consumerId } = this.#origin;
    if (!set.differs(scope.serviceId, serviceId)) return this;
    const key = `${serviceId} ${at.phase} ${at.step}`;
    const known = this.#byService.get(key);
    if (known !== undefined) return known;
    const next = { ...scope, serviceId };
    const chosen = set.instancesFor(next, consumerId);
    const chain = new Chain(
      chosen,
      { set, scope: next, consumerId },
      this.#passedAt(at, new Set(chosen)),
    );
    if (this.#byService.size >= MAX_SERVICES) this.#byService.clear();
    this.#byService.set(key, chain);
    return chain;
  }

  #passedAt({ phase, step }: ChainStep, staying: ReadonlySet<PluginRuntime>): Passed {
    const done = requestPhases.map((name, at) => {
      const until = at < phase ? this[name].length : at === phase ? step + 1 : 0;
      return new Set([...(this.#passed?.done[at] ?? []), ...this[name].slice(0, until)]);
    });
    const acted = new Set([...(this.#passed?.former ?? []), ...done.flatMap((each) => [...each])]);
    return {
      done,
      identityStrippers: new Set([
        ...(this.#passed?.identityStrippers ?? []),
        ...this.identityStrippers,
      ]),
      former: [...acted].filter((each) => !staying.has(each)),
    };
  }
}

/** Execution order: the higher `order` first, then by name, then the older one. */
function byOrder(a: PluginRuntime, b: PluginRuntime): number {
  if (a.order !== b.order) return b.order - a.order;
  const [x, y] = [keyOf(a), keyOf(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

const keyOf = ({ plan }: PluginRuntime) => `${plan.name} ${plan.createdAt} ${plan.id}`;

/** Immutable; chains are built at first use. */
export class PluginSet {
  readonly all: ReadonlyMap<string, PluginRuntime>;
  readonly isEmpty: boolean;
  readonly #global: PluginRuntime[] = [];
  readonly #byService = new Map<string, PluginRuntime[]>();
  readonly #byRoute = new Map<string, PluginRuntime[]>();
  readonly #byStreamRoute = new Map<string, PluginRuntime[]>();
  /** Instances for a consumer, alone or with a route or service. */
  readonly #byConsumer = new Map<string, PluginRuntime[]>();
  /** Services that have an instance, alone or with a consumer. */
  readonly #services = new Set<string>();
  /** Cached chains of stream routes. */
  readonly #ofStreams = new Map<string, readonly PluginRuntime[]>();
  readonly #unmatched: Chain | null;

  constructor(all: ReadonlyMap<string, PluginRuntime>) {
    this.all = all;
    this.isEmpty = all.size === 0;
    for (const runtime of all.values()) {
      const { serviceId, routeId, consumerId, streamRouteId } = runtime.plan;
      if (serviceId !== null) this.#services.add(serviceId);
      if (streamRouteId !== null) append(this.#byStreamRoute, streamRouteId, runtime);
      else if (consumerId !== null) append(this.#byConsumer, consumerId, runtime);
      else if (routeId !== null) append(this.#byRoute, routeId, runtime);
      else if (serviceId !== null) append(this.#byService, serviceId, runtime);
      else this.#global.push(runtime);
    }
    this.#unmatched = this.#compose({ routeId: null, serviceId: null });
  }

  static readonly empty = new PluginSet(new Map());

  /** The chain of requests that match no route; null: no plugin. */
  get unmatched(): Chain | null {
    return this.#unmatched;
  }

  /** Builds the chain of a scope; null: no plugin runs there. Cache it: this goes through all instances of the scope. */
  chainFor(scope: ChainScope): Chain | null {
    return this.#compose(scope);
  }

  /** Instances for connections of a stream route, in order, without those for HTTP only. */
  forStream(streamRouteId: string, serviceId: string | null): readonly PluginRuntime[] {
    if (this.isEmpty) return NONE;
    const key = `${streamRouteId} ${serviceId}`;
    const known = this.#ofStreams.get(key);
    if (known !== undefined) return known;
    const chosen = this.#chosenForStream(streamRouteId, serviceId);
    if (this.#ofStreams.size >= MAX_STREAM_CHAINS) this.#ofStreams.clear();
    this.#ofStreams.set(key, chosen);
    return chosen;
  }

  #chosenForStream(streamRouteId: string, serviceId: string | null): readonly PluginRuntime[] {
    const candidates = [
      ...this.#global,
      ...(this.#byService.get(serviceId ?? "") ?? []),
      ...(this.#byStreamRoute.get(streamRouteId) ?? []),
    ];
    return chosenOf(candidates).filter(({ handlers }) => handlers.connect !== undefined);
  }

  /** Whether the consumer has an instance in this scope. */
  hasInstancesFor(consumerId: string, scope: ChainScope): boolean {
    return this.#ofConsumer(consumerId, scope).length > 0;
  }

  /** The instances that apply in this scope, with the consumer's own. */
  instancesFor(scope: ChainScope, consumerId: string | null): readonly PluginRuntime[] {
    const candidates = [
      ...this.#global,
      ...(this.#byService.get(scope.serviceId ?? "") ?? []),
      ...(this.#byRoute.get(scope.routeId ?? "") ?? []),
      ...(consumerId === null ? [] : this.#ofConsumer(consumerId, scope)),
    ];
    return chosenOf(candidates);
  }

  /** Whether the two services may have different plugins. */
  differs(one: string | null, other: string): boolean {
    const has = (id: string | null) => id !== null && this.#services.has(id);
    return one !== other && (has(one) || has(other));
  }

  get hasConsumers(): boolean {
    return this.#byConsumer.size > 0;
  }

  #ofConsumer(consumerId: string, { routeId, serviceId }: ChainScope): PluginRuntime[] {
    return (this.#byConsumer.get(consumerId) ?? []).filter(
      ({ plan }) =>
        (plan.routeId === null || plan.routeId === routeId) &&
        (plan.serviceId === null || plan.serviceId === serviceId),
    );
  }

  #compose(scope: ChainScope): Chain | null {
    const chosen = this.instancesFor(scope, null);
    // Instances for consumers alone need no chain: only an authentication plugin of this chain finds the consumer.
    return chosen.length === 0 ? null : new Chain(chosen, { set: this, scope, consumerId: null });
  }
}

function append(map: Map<string, PluginRuntime[]>, key: string, runtime: PluginRuntime): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [runtime]);
  else list.push(runtime);
}

/** Of each plugin the instance with the most specific scope, or all of them if it allows several; in order. */
function chosenOf(candidates: readonly PluginRuntime[]): readonly PluginRuntime[] {
  const best = new Map<string, PluginRuntime>();
  const chosen: PluginRuntime[] = [];
  for (const runtime of candidates) {
    if (runtime.definition.allowsMultiple === true) {
      chosen.push(runtime);
      continue;
    }
    const other = best.get(runtime.plan.name);
    if (other === undefined || RANK[other.plan.scope] < RANK[runtime.plan.scope])
      best.set(runtime.plan.name, runtime);
  }
  return [...chosen, ...best.values()].sort(byOrder);
}
