// One version of the configuration in the form that a worker serves from; immutable, shares what did not change with the version before.
import type {
  CollectionChange,
  RoutePlan,
  ServicePlan,
  SnapshotChange,
} from "../snapshot/snapshot.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type { Settings } from "../model/settings.ts";
import type { Intents } from "./intents.ts";
import { inFlightLimits, listenerFacts, type ListenerFacts } from "./listener/listener-facts.ts";
import type { CertificatePlan, ListenerPlan } from "../snapshot/snapshot.ts";
import { CertificateIndex } from "./listener/certificate-index.ts";
import { portKey } from "./listener/listeners.ts";
import { ConsumerIndex } from "./plugin/consumer-index.ts";
import type { PluginSet } from "./plugin/plugin-set.ts";
import { Router } from "./router.ts";
import { type RouteRuntime, routeRuntime } from "./route-runtime.ts";
import { type ServiceContext, type ServiceRuntime, serviceRuntime } from "./service-runtime.ts";
import { type StreamRouteRuntime, streamRouteRuntime } from "./stream/stream-runtime.ts";
import { loopToken } from "./upstream/request-writer.ts";

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
  readonly loopToken: string;
  /** 0: no limit. */
  readonly maxInFlight: number;
  readonly maxResponseHeadBytes: number;
  readonly bodyReadTimeout: number;
  readonly responseWriteTimeout: number;
  /** Port of the first https listener, null when there is none. */
  readonly httpsPort: number | null;
  /** Fields that name worker and revision, null when settings.debug_headers is off. */
  readonly debugFields: readonly (readonly [string, string])[] | null;
}

export interface GenerationContext extends ServiceContext {
  readonly instanceId: string;
  /** Made before, because that may take a while. */
  readonly plugins: PluginSet;
}

/** The next version. `previous` goes on serving as it is, and so does all that it shares with this one; null starts from nothing, and then the change is the whole. */
export function nextGeneration(
  previous: Generation | null,
  change: SnapshotChange,
  context: GenerationContext,
): Generation {
  const settings = change.settings ?? previous?.settings;
  if (settings === undefined) throw new Error("the first version has no settings");
  const listeners = apply(previous?.listeners, change.listeners, (plan) => plan);
  const streamRoutes = apply(previous?.streamRoutes, change.streamRoutes, (plan) =>
    streamRouteRuntime(plan, context),
  );
  const certificates = apply(previous?.certificates, change.certificates, (plan) => plan);
  const { limits } = settings;
  return {
    revision: change.revision,
    settings,
    router: nextRouter(previous?.router ?? Router.empty(), change.routes),
    services: apply(previous?.services, change.services, (plan: ServicePlan) =>
      serviceRuntime(plan, context),
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
    listenerFacts: nextFacts(previous, listeners, { ...context, settings }),
    loopToken: loopToken(context.instanceId),
    maxInFlight: limits.max_in_flight_requests,
    maxResponseHeadBytes: limits.max_response_head_bytes,
    bodyReadTimeout: limits.body_read_timeout,
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
): Router<RouteRuntime> {
  if (change.upserts.length === 0 && change.removals.length === 0) return router;
  return router.with({
    upserts: change.upserts.map(routeRuntime),
    removals: change.removals,
  });
}

/** Facts hang on the listener and the settings; those of an unchanged pair stay the same object. */
function nextFacts(
  previous: Generation | null,
  listeners: ReadonlyMap<string, ListenerPlan>,
  {
    settings,
    board,
    intents,
  }: { readonly settings: Settings; readonly board: TargetBoard; readonly intents: Intents },
): ReadonlyMap<string, ListenerFacts> {
  const facts = new Map<string, ListenerFacts>();
  for (const [id, plan] of listeners) {
    const known = previous?.settings === settings && previous.listeners.get(id) === plan;
    const before = known ? previous.listenerFacts.get(id) : undefined;
    const limits = () => inFlightLimits(plan.listener, settings, { board, intents });
    facts.set(id, before ?? listenerFacts(plan.listener, settings, limits()));
  }
  return facts;
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
