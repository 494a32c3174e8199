// One version of the configuration in the form that a worker serves from; immutable, shares what did not change with the version before.
import type {
  CollectionChange,
  RoutePlan,
  ServicePlan,
  SnapshotChange,
} from "../snapshot/snapshot.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import { loopToken } from "../http/cdn-loop.ts";
import type { ManagementCookies } from "../http/management-cookies.ts";
import type { Settings } from "../model/settings.ts";
import { inFlightLimits, listenerFacts, type ListenerFacts } from "./listener/listener-facts.ts";
import type { CertificatePlan, ListenerPlan } from "../snapshot/snapshot.ts";
import { CertificateIndex } from "./listener/certificate-index.ts";
import { ListenerChoice, listenersByPort, portKey } from "./listener/shared-port.ts";
import { ConsumerIndex } from "./plugin/consumer-index.ts";
import type { BodyTimes } from "./client-body.ts";
import type { PluginSet } from "./plugin/plugin-set.ts";
import { Router } from "./router.ts";
import { type RouteRuntime, routeRuntime } from "./route-runtime.ts";
import {
  type PoolRegistry,
  type ServiceContext,
  type ServiceRuntime,
  serviceRuntime,
} from "./service-runtime.ts";
import { type StreamRouteRuntime, streamRouteRuntime } from "./stream/stream-runtime.ts";
import type { TrafficRecorder } from "./traffic-recorder.ts";

export interface Generation {
  readonly revision: number;
  readonly settings: Settings;
  readonly router: Router<RouteRuntime>;
  readonly services: ReadonlyMap<string, ServiceRuntime>;
  readonly plugins: PluginSet;
  readonly consumers: ConsumerIndex;
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
  readonly certificateIndex: CertificateIndex;
  readonly streamRoutes: ReadonlyMap<string, StreamRouteRuntime>;
  readonly passthroughPorts: ReadonlySet<string>;
  readonly listenerFacts: ReadonlyMap<string, ListenerFacts>;
  /** By address and port: what is known of a request before its host tells which listener it is for. */
  readonly entries: ReadonlyMap<string, ListenerFacts>;
  readonly loopToken: string;
  /** Via and CDN-Loop of requests that came through no other gateway. */
  readonly hopFields: string;
  /** Neither reach targets nor come from them. */
  readonly managementCookies: ManagementCookies;
  /** 0: no limit. */
  readonly maxInFlight: number;
  readonly maxResponseHeadBytes: number;
  readonly bodyTimes: BodyTimes;
  readonly responseWriteTimeout: number;
  /** Port of the first https listener, null when there is none. */
  readonly httpsPort: number | null;
  /** Fields that name worker and revision, null when settings.debug_headers is off. */
  readonly debugFields: readonly (readonly [string, string])[] | null;
}

export interface GenerationContext extends ServiceContext {
  readonly instanceId: string;
  readonly pools: PoolRegistry;
  readonly recorder: TrafficRecorder;
  /** Made before, because that may take a while. */
  readonly plugins: PluginSet;
}

/** The next version. `previous` goes on serving as it is; null starts from nothing, and then the change is the whole. */
export function nextGeneration(
  previous: Generation | null,
  change: SnapshotChange,
  context: GenerationContext,
): Generation {
  const settings = change.settings ?? previous?.settings;
  if (settings === undefined) throw new Error("the first version has no settings");
  const listeners = apply(previous?.listeners, change.listeners, (plan) => plan);
  const streamRoutes = apply(previous?.streamRoutes, change.streamRoutes, (plan) =>
    streamRouteRuntime(plan, context.board.rowOf(`stream ${plan.id}`)),
  );
  const certificates = apply(previous?.certificates, change.certificates, (plan) => plan);
  const { limits } = settings;
  const token = loopToken(context.instanceId);
  const factsOfListeners = nextFacts(previous, listeners, { settings, board: context.board });
  context.recorder.forgetTargets();
  return {
    revision: change.revision,
    settings,
    router: nextRouter(previous?.router ?? Router.empty(), change.routes, context.recorder),
    services: apply(previous?.services, change.services, (plan: ServicePlan) =>
      serviceRuntime(plan, context.pools, context),
    ),
    listeners,
    plugins: context.plugins,
    consumers: (previous?.consumers ?? ConsumerIndex.empty).at(change.consumers),
    streamRoutes,
    passthroughPorts:
      previous?.streamRoutes === streamRoutes
        ? previous.passthroughPorts
        : passthroughPorts(streamRoutes),
    certificates,
    certificateIndex:
      previous?.certificates === certificates
        ? previous.certificateIndex
        : new CertificateIndex(certificates),
    loopToken: token,
    hopFields: `via: 1.1 sluice\r\ncdn-loop: ${token}\r\n`,
    listenerFacts: factsOfListeners,
    entries: entriesOf(listeners, factsOfListeners),
    managementCookies: context.managementCookies,
    maxInFlight: limits.max_in_flight_requests,
    maxResponseHeadBytes: limits.max_response_head_bytes,
    bodyTimes: { readTimeout: limits.body_read_timeout, rateGrace: limits.body_min_rate_grace },
    responseWriteTimeout: limits.response_write_timeout || Number.POSITIVE_INFINITY,
    httpsPort: httpsPortOf(listeners),
    debugFields: settings.debug_headers
      ? [
          ["X-Sluice-Worker", String(context.worker)],
          ["X-Sluice-Revision", String(change.revision)],
        ]
      : null,
  };
}

function nextRouter(
  router: Router<RouteRuntime>,
  change: CollectionChange<RoutePlan>,
  recorder: TrafficRecorder,
): Router<RouteRuntime> {
  if (change.upserts.length === 0 && change.removals.length === 0) return router;
  return router.with({
    upserts: change.upserts.map((plan) =>
      routeRuntime(plan, recorder.routeSeries(plan.id, plan.route.service_id)),
    ),
    removals: change.removals,
  });
}

/** Facts hang on the listener and the settings; those of an unchanged pair stay the same object. */
function nextFacts(
  previous: Generation | null,
  listeners: ReadonlyMap<string, ListenerPlan>,
  { settings, board }: { readonly settings: Settings; readonly board: TargetBoard },
): ReadonlyMap<string, ListenerFacts> {
  const facts = new Map<string, ListenerFacts>();
  for (const [id, plan] of listeners) {
    const known = previous?.settings === settings && previous.listeners.get(id) === plan;
    const before = known ? previous.listenerFacts.get(id) : undefined;
    const limits = () => inFlightLimits(plan.listener, settings, board);
    facts.set(id, before ?? listenerFacts(plan.listener, settings, limits()));
  }
  return facts;
}

/** Listeners without names of their own that share no port are what they were. */
function entriesOf(
  listeners: ReadonlyMap<string, ListenerPlan>,
  facts: ReadonlyMap<string, ListenerFacts>,
): ReadonlyMap<string, ListenerFacts> {
  const entries = new Map<string, ListenerFacts>();
  for (const [key, plans] of listenersByPort(listeners.values())) {
    const members = plans.flatMap(({ id, listener: { hosts } }) => {
      const own = facts.get(id);
      return own === undefined ? [] : [{ facts: own, hosts }];
    });
    const first = members[0];
    if (first === undefined) continue;
    const isPlain = members.length === 1 && first.hosts.length === 0;
    const elsewhere = { ...first.facts, isElsewhere: true };
    const choice = isPlain ? null : new ListenerChoice(members, elsewhere);
    entries.set(key, choice === null ? first.facts : { ...first.facts, choice });
  }
  return entries;
}

function passthroughPorts(
  streamRoutes: ReadonlyMap<string, StreamRouteRuntime>,
): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const { plan, route } of streamRoutes.values())
    if (route.protocol === "tcp" && route.tls_mode === "passthrough")
      for (const port of plan.ports) keys.add(portKey(route.listen_address, port));
  return keys;
}

function httpsPortOf(listeners: ReadonlyMap<string, ListenerPlan>): number | null {
  for (const { listener } of listeners.values())
    if (listener.protocol === "https") return listener.port;
  return null;
}

/** A map with the change made; the same map when there is none. */
function apply<P extends { readonly id: string }, R>(
  before: ReadonlyMap<string, R> | undefined,
  change: CollectionChange<P>,
  prepare: (plan: P) => R,
): ReadonlyMap<string, R> {
  if (before !== undefined && change.upserts.length === 0 && change.removals.length === 0)
    return before;
  const next = new Map(before);
  for (const id of change.removals) next.delete(id);
  for (const plan of change.upserts) next.set(plan.id, prepare(plan));
  return next;
}
