// All plugin instances of one version, which of them apply where, and the chain that they make there; knows no request.
import type { Condition } from "../../model/condition.ts";
import { asksForConsumer, compileCondition, compileStreamCondition } from "../../pdk/condition.ts";
import type { RequestContext, StreamContext } from "../../pdk/context.ts";
import { type AnyPlugin, phaseHandlers, type PluginHandlers } from "../../pdk/definition.ts";
import type { PluginPlan } from "../../snapshot/snapshot.ts";

/** An instance in this worker. It outlives versions of the configuration that do not change it. */
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
  /** Whether the condition asks who the client is. */
  readonly asksForConsumer: boolean;
  readonly onError: "open" | "closed";
}

/** Puts an instance together with what was made from it. */
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

/** Where a request is, as far as it decides which instances apply. */
export interface Place {
  readonly routeId: string | null;
  readonly serviceId: string | null;
}

/** Of two instances of a plugin the one in the more special place runs. */
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

/** Routes that change their service leave chains behind. */
const MAX_STREAM_CHAINS = 10_000;

/** The phases before the response, by their handlers. */
export const requestPhases = [
  phaseHandlers.pre_auth,
  phaseHandlers.auth,
  phaseHandlers.access,
  phaseHandlers.request,
] as const;
export type RequestPhase = (typeof requestPhases)[number];

/** Chains for single consumers that one chain remembers. */
const MAX_CONSUMERS = 10_000;

/** Chains for other services that one chain remembers. */
const MAX_SERVICES = 10_000;

/** A step among the request phases: the handler that was called last. */
export interface ChainStep {
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
  readonly identityStrippers: ReadonlySet<PluginRuntime>;
  /** Those of the other service that have acted: they are told how the request ends, so that they can give back what they took. */
  readonly left: readonly PluginRuntime[];
}

/** Immutable but for what it remembers. */
export class Chain {
  readonly all: readonly PluginRuntime[];
  /** Plugins with `stripIdentity`, which runs whether or not `when` matches. */
  readonly identityStrippers: readonly PluginRuntime[];
  readonly preAuth: readonly PluginRuntime[];
  readonly auth: readonly PluginRuntime[];
  readonly access: readonly PluginRuntime[];
  readonly request: readonly PluginRuntime[];
  /** The last to see the request sees the answer first. */
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
    const left = passed?.left ?? [];
    const names = new Set(left.length === 0 ? [] : chosen.map(({ plan }) => plan.name));
    const unreplaced = left.filter(({ plan }) => !names.has(plan.name));
    const ending = left.length === 0 ? chosen : [...chosen, ...left].sort(byOrder);
    const answering = left.length === 0 ? chosen : [...chosen, ...unreplaced].sort(byOrder);
    this.all = answering;
    this.identityStrippers = having("stripIdentity").filter(
      (each) => passed?.identityStrippers.has(each) !== true,
    );
    this.preAuth = toDo(0);
    this.auth = toDo(1);
    this.access = toDo(2);
    this.request = toDo(3);
    this.response = having("response", answering).reverse();
    this.log = having("log", ending);
    this.logBatch = having("logLater", ending);
    this.namesRequests = chosen.some(({ definition }) => definition.namesRequests === true);
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
  inService(serviceId: string, at: ChainStep): Chain {
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

  #passedAt({ phase, step }: ChainStep, staying: ReadonlySet<PluginRuntime>): Passed {
    const done = requestPhases.map((name, at) => {
      const until = at < phase ? this[name].length : at === phase ? step + 1 : 0;
      return new Set([...(this.#passed?.done[at] ?? []), ...this[name].slice(0, until)]);
    });
    const acted = new Set([...(this.#passed?.left ?? []), ...done.flatMap((each) => [...each])]);
    return {
      done,
      identityStrippers: new Set([
        ...(this.#passed?.identityStrippers ?? []),
        ...this.identityStrippers,
      ]),
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

/** Immutable; chains are put together when they are first needed. */
export class PluginSet {
  readonly all: ReadonlyMap<string, PluginRuntime>;
  readonly isEmpty: boolean;
  readonly #global: PluginRuntime[] = [];
  readonly #byService = new Map<string, PluginRuntime[]>();
  readonly #byRoute = new Map<string, PluginRuntime[]>();
  readonly #byStreamRoute = new Map<string, PluginRuntime[]>();
  /** Those for a consumer, alone or with a route or service. */
  readonly #byConsumer = new Map<string, PluginRuntime[]>();
  /** Services that an instance is for, alone or with a consumer. */
  readonly #services = new Set<string>();
  /** Chains of stream routes, as far as they were asked for. */
  readonly #ofStreams = new Map<string, readonly PluginRuntime[]>();
  readonly #elsewhere: Chain | null;

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
    this.#elsewhere = this.#compose({ routeId: null, serviceId: null });
  }

  static readonly empty = new PluginSet(new Map());

  /** Of requests that no route takes; null: no plugin. */
  get elsewhere(): Chain | null {
    return this.#elsewhere;
  }

  /** Puts the chain of a place together; null: no plugin runs there. Keep it: this looks at all instances of the place. */
  chainAt(place: Place): Chain | null {
    return this.#compose(place);
  }

  /** Instances for connections of a stream route, in order; those for HTTP are left out. */
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

  /** Whether some instance is for this consumer there. */
  hasOwn(consumerId: string, place: Place): boolean {
    return this.#ofConsumer(consumerId, place).length > 0;
  }

  /** With the instances for the consumer in their place. */
  chosenAt(place: Place, consumerId: string | null): readonly PluginRuntime[] {
    const candidates = [
      ...this.#global,
      ...(this.#byService.get(place.serviceId ?? "") ?? []),
      ...(this.#byRoute.get(place.routeId ?? "") ?? []),
      ...(consumerId === null ? [] : this.#ofConsumer(consumerId, place)),
    ];
    return chosenOf(candidates);
  }

  /** Whether other plugins may be for the one service than for the other. */
  differs(one: string | null, other: string): boolean {
    const has = (id: string | null) => id !== null && this.#services.has(id);
    return one !== other && (has(one) || has(other));
  }

  get hasConsumers(): boolean {
    return this.#byConsumer.size > 0;
  }

  #ofConsumer(consumerId: string, { routeId, serviceId }: Place): PluginRuntime[] {
    return (this.#byConsumer.get(consumerId) ?? []).filter(
      ({ plan }) =>
        (plan.routeId === null || plan.routeId === routeId) &&
        (plan.serviceId === null || plan.serviceId === serviceId),
    );
  }

  #compose(place: Place): Chain | null {
    const chosen = this.chosenAt(place, null);
    // A consumer of its own may have plugins where nobody else has any, but only authentication tells who it is.
    return chosen.length === 0 ? null : new Chain(chosen, { set: this, place, consumerId: null });
  }
}

function append(map: Map<string, PluginRuntime[]>, key: string, runtime: PluginRuntime): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [runtime]);
  else list.push(runtime);
}

/** Of each plugin the instance in the most special place, or all of them if it allows several; in order. */
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
