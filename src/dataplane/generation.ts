// One version of the configuration as a worker serves it; immutable, shares unchanged parts with the previous version.
import type { Settings } from "../model/settings.ts";
import type { Pace } from "../pace.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type {
  CertificatePlan,
  CollectionChange,
  ListenerPlan,
  SnapshotChange,
  SnapshotPiece,
} from "../snapshot/snapshot.ts";
import { loopToken } from "../http/cdn-loop.ts";
import type { ManagementCookies } from "../http/management-cookies.ts";
import type { Intents } from "./intents.ts";
import { CertificateIndex } from "./listener/certificate-index.ts";
import {
  inFlightLimits,
  listenerRuntime,
  type ListenerRuntime,
} from "./listener/listener-runtime.ts";
import { ListenerChoice, listenersByPort, portKey } from "./listener/shared-port.ts";
import { ConsumerIndex } from "./plugin/consumer-index.ts";
import type { BodyReadTimeouts } from "./client-body.ts";
import type { PluginSet } from "./plugin/plugin-set.ts";
import { type ReadyRoutes, RouteIndex, RouteRecords } from "./route-index.ts";
import type { RouteRuntime } from "./route-runtime.ts";
import { Router, type RouterEdit } from "./router.ts";
import { type ServiceContext, type ServiceRuntime, serviceRuntime } from "./service-runtime.ts";
import { type StreamRouteRuntime, streamRouteRuntime } from "./stream/stream-runtime.ts";

export interface Generation {
  readonly revision: number;
  readonly settings: Settings;
  readonly routes: RouteIndex;
  readonly services: ReadonlyMap<string, ServiceRuntime>;
  readonly plugins: PluginSet;
  readonly consumers: ConsumerIndex;
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
  readonly certificateIndex: CertificateIndex;
  readonly streamRoutes: ReadonlyMap<string, StreamRouteRuntime>;
  readonly passthroughPorts: ReadonlySet<string>;
  readonly listenerRuntimes: ReadonlyMap<string, ListenerRuntime>;
  /** By address and port: the listener of a request until its host selects one of those at the port. */
  readonly entries: ReadonlyMap<string, ListenerRuntime>;
  readonly loopToken: string;
  /** Via and CDN-Loop lines of requests without these header fields, by the HTTP version of the request. */
  readonly hopFields: Readonly<Record<string, string>>;
  /** Hidden from targets; targets cannot set them. */
  readonly managementCookies: ManagementCookies;
  /** 0: no limit. */
  readonly maxInFlight: number;
  readonly maxResponseHeadBytes: number;
  readonly bodyReadTimeouts: BodyReadTimeouts;
  readonly responseWriteTimeout: number;
  /** Port of the first https listener, null when there is none. */
  readonly httpsPort: number | null;
  /** Header fields with worker and revision; null when settings.debug_headers is off. */
  readonly debugFields: readonly (readonly [string, string])[] | null;
}

export interface GenerationContext extends ServiceContext {
  readonly instanceId: string;
  readonly ready: ReadyRoutes;
  readonly pace: Pace;
}

/**
 * Builds the next version from pieces and, at the end, everything that is not a collection. `previous` goes on serving,
 * unchanged; null: the pieces are the whole version.
 */
export class GenerationBuilder {
  readonly #previous: Generation | null;
  readonly #context: GenerationContext;
  readonly #services: MapEdit<ServiceRuntime>;
  readonly #listeners: MapEdit<ListenerPlan>;
  readonly #streamRoutes: MapEdit<StreamRouteRuntime>;
  readonly #certificates: MapEdit<CertificatePlan>;
  readonly #router: RouterEdit<RouteRuntime | null>;
  #records: RouteRecords | null;
  /** Ids of services that differ from `previous`, and of routes that only `previous` has. */
  readonly changedServices = new Set<string>();
  readonly removedRoutes = new Set<string>();

  constructor(previous: Generation | null, context: GenerationContext) {
    this.#previous = previous;
    this.#context = context;
    this.#services = new MapEdit(previous?.services);
    this.#listeners = new MapEdit(previous?.listeners);
    this.#streamRoutes = new MapEdit(previous?.streamRoutes);
    this.#certificates = new MapEdit(previous?.certificates);
    this.#router = (previous?.routes.router ?? Router.empty<RouteRuntime | null>()).edit();
    this.#records = previous?.routes.records ?? null;
  }

  async add(piece: SnapshotPiece): Promise<void> {
    const context = this.#context;
    if (piece.routeTable !== null)
      this.#records = new RouteRecords(piece.routeTable, this.#records);
    await this.#addRoutes(piece.routes);
    for (const id of piece.services.removals) this.changedServices.add(id);
    for (const { id } of piece.services.upserts) this.changedServices.add(id);
    const { pace } = context;
    await this.#services.apply(piece.services, (plan) => serviceRuntime(plan, context), pace);
    await this.#listeners.apply(piece.listeners, (plan) => plan, pace);
    await this.#certificates.apply(piece.certificates, (plan) => plan, pace);
    await this.#streamRoutes.apply(
      piece.streamRoutes,
      (plan) => streamRouteRuntime(plan, context),
      pace,
    );
  }

  async #addRoutes({ upserts, removals }: SnapshotPiece["routes"]): Promise<void> {
    const { pace } = this.#context;
    for (const id of removals) {
      this.removedRoutes.add(id);
      this.#router.remove(id);
      if (pace.isDue()) await pace.rest();
    }
    for (const position of upserts) {
      const route = this.#records?.at(position);
      if (route === undefined) throw new Error("routes arrived without their records");
      this.#router.add(route, null);
      if (pace.isDue()) await pace.rest();
    }
  }

  finish(change: SnapshotChange, plugins: PluginSet): Generation {
    const previous = this.#previous;
    const context = this.#context;
    const settings = change.settings ?? previous?.settings;
    if (settings === undefined) throw new Error("the first version has no settings");
    const { limits } = settings;
    const [listeners, certificates] = [this.#listeners.map, this.#certificates.map];
    const streamRoutes = this.#streamRoutes.map;
    const token = loopToken(context.instanceId);
    const listenerRuntimes = nextListenerRuntimes(previous, listeners, { ...context, settings });
    return {
      revision: change.revision,
      settings,
      routes: new RouteIndex(this.#router.finish(), this.#records, context.ready),
      services: this.#services.map,
      listeners,
      plugins,
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
      hopFields: Object.fromEntries(
        HTTP_VERSIONS.map((version) => [
          version,
          `Via: ${version} sluice\r\nCDN-Loop: ${token}\r\n`,
        ]),
      ),
      listenerRuntimes,
      entries: entriesOf(listeners, listenerRuntimes),
      managementCookies: context.managementCookies,
      maxInFlight: limits.max_in_flight_requests,
      maxResponseHeadBytes: limits.max_response_head_bytes,
      bodyReadTimeouts: {
        readTimeout: limits.body_read_timeout,
        rateGrace: limits.body_min_rate_grace,
      },
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
}

const HTTP_VERSIONS = ["1.0", "1.1", "2", "3"];

/** A runtime depends on the listener and the settings; an unchanged pair keeps its object. */
function nextListenerRuntimes(
  previous: Generation | null,
  listeners: ReadonlyMap<string, ListenerPlan>,
  {
    settings,
    board,
    intents,
  }: { readonly settings: Settings; readonly board: TargetBoard; readonly intents: Intents },
): ReadonlyMap<string, ListenerRuntime> {
  const runtimes = new Map<string, ListenerRuntime>();
  for (const [id, plan] of listeners) {
    const known = previous?.settings === settings && previous.listeners.get(id) === plan;
    const before = known ? previous.listenerRuntimes.get(id) : undefined;
    const limits = () => inFlightLimits(plan.listener, settings, { board, intents });
    runtimes.set(id, before ?? listenerRuntime(plan.listener, settings, limits()));
  }
  return runtimes;
}

/** A listener without hosts that shares no port needs no choice. */
function entriesOf(
  listeners: ReadonlyMap<string, ListenerPlan>,
  runtimes: ReadonlyMap<string, ListenerRuntime>,
): ReadonlyMap<string, ListenerRuntime> {
  const entries = new Map<string, ListenerRuntime>();
  for (const [key, plans] of listenersByPort(listeners.values())) {
    const members = plans.flatMap(({ id, listener: { hosts } }) => {
      const listener = runtimes.get(id);
      return listener === undefined ? [] : [{ listener, hosts }];
    });
    const first = members[0];
    if (first === undefined) continue;
    const isPlain = members.length === 1 && first.hosts.length === 0;
    const fallback = { ...first.listener, servesNoHost: true };
    const choice = isPlain ? null : new ListenerChoice(members, fallback);
    entries.set(key, choice === null ? first.listener : { ...first.listener, choice });
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

/** Copy-on-write map: the same object as before until something changes. */
class MapEdit<R> {
  readonly #before: ReadonlyMap<string, R> | undefined;
  #map: Map<string, R> | null = null;

  constructor(before: ReadonlyMap<string, R> | undefined) {
    this.#before = before;
  }

  get map(): ReadonlyMap<string, R> {
    return this.#map ?? this.#before ?? new Map();
  }

  async apply<P extends { readonly id: string }>(
    { upserts, removals }: CollectionChange<P>,
    prepare: (plan: P) => R,
    pace: Pace,
  ): Promise<void> {
    if (upserts.length + removals.length === 0) return;
    this.#map ??= new Map(this.#before);
    const map = this.#map;
    for (const id of removals) map.delete(id);
    for (const plan of upserts) {
      map.set(plan.id, prepare(plan));
      if (pace.isDue()) await pace.rest();
    }
  }
}
