// Starts a data plane inside the test's own process, on a free port, without control plane, database or worker thread.
import type { DataPlaneOptions } from "../../src/dataplane/data-plane.ts";
import { createDataPlane } from "../../src/dataplane/runtime.ts";
import { ManagementCookies } from "../../src/http/management-cookies.ts";
import { decode } from "../../src/model/decode.ts";
import { type ListenerInput, listenerInput } from "../../src/model/listener.ts";
import { type Route, type RouteInput, routeInput } from "../../src/model/route.ts";
import { pathMatchOf } from "../../src/model/route-match.ts";
import { type ServiceInput, serviceInput } from "../../src/model/service.ts";
import { type SettingsInput, settingsInput } from "../../src/model/settings.ts";
import { scopeOf } from "../../src/model/plugin.ts";
import { catalogueOf } from "../../src/pdk/catalogue.ts";
import type { AnyPlugin } from "../../src/pdk/definition.ts";
import { engineOf } from "./engines.ts";
import { type Reporter, reportNoMore, reportWith } from "./failure-report.ts";
import { plugins } from "./plugins.ts";
import type { PluginCatalogue } from "../../src/snapshot/plugin-config.ts";
import { inlineTargetInput } from "../../src/model/target.ts";
import type { Issue } from "../../src/model/error.ts";
import { type CountersCommand, WorkerCounters } from "../../src/shared-counters/worker-counters.ts";
import { CounterTable } from "../../src/shared-memory/counter-table.ts";
import { TargetBoard } from "../../src/shared-memory/target-board.ts";
import { WorkerBoard } from "../../src/shared-memory/worker-board.ts";
import { createCallout } from "../../src/dataplane/plugin/callout.ts";
import { createLog } from "../../src/log.ts";
import { ConsumerStore } from "../../src/supervisor/consumer-store.ts";
import { PluginFeeds } from "../../src/supervisor/plugin-feeds.ts";
import type { Pace } from "../../src/pace.ts";
import { cut } from "../../src/snapshot/pieces.ts";
import { RouteStore } from "../../src/supervisor/route-store.ts";
import type {
  CertificatePlan,
  ConsumerPlan,
  CredentialPlan,
  ListenerPlan,
  PluginPlan,
  ServicePlan,
  SnapshotChange,
  StreamRoutePlan,
} from "../../src/snapshot/snapshot.ts";
import { PluginStores } from "./plugin-stores.ts";
import { quietPort } from "./quiet-port.ts";

/** Every level is optional, with the product's defaults. */
type Sketch<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]?: Sketch<T[K]> }
    : T;

/** A service with its targets. Its id is its name by default; a target's id is `<service>-<position>`. */
export type ServiceSketch = Sketch<ServiceInput> & {
  readonly name: string;
  readonly id?: string;
  readonly clientCertificate?: ServicePlan["clientCertificate"];
  readonly targets?: readonly {
    /** Default: `<service>-<position>`. */
    readonly id?: string;
    readonly host?: string;
    readonly port?: number | null;
    readonly weight?: number;
    readonly priority?: number;
  }[];
};

/** A route, whose name is its id. */
export type RouteSketch = Sketch<RouteInput> & { readonly name: string };

export interface DataPlaneSketch {
  readonly services?: readonly ServiceSketch[];
  readonly routes?: readonly RouteSketch[];
  readonly settings?: Sketch<SettingsInput>;
  readonly plugins?: readonly PluginSketch[];
  readonly consumers?: readonly (Partial<ConsumerPlan> & { readonly username: string })[];
  readonly credentials?: readonly (Partial<CredentialPlan> &
    Pick<CredentialPlan, "type" | "consumerId">)[];
}

/** An instance; its id is its label or the plugin's name. Its scope follows from the given ids. */
export type PluginSketch = Omit<Partial<PluginPlan>, "scope"> & { readonly name: string };

export interface DataPlaneChange extends DataPlaneSketch {
  readonly removedPlugins?: readonly string[];
  readonly removedServices?: readonly string[];
  readonly removedRoutes?: readonly string[];
  readonly streamRoutes?: readonly StreamRoutePlan[];
  readonly removedStreamRoutes?: readonly string[];
  readonly certificates?: readonly CertificatePlan[];
  readonly removedCertificates?: readonly string[];
  /** Changes of the listener's initial settings; its port stays. */
  readonly listener?: Sketch<ListenerInput>;
}

export interface LoggedLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface RunningDataPlane {
  readonly port: number;
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  /** `ws://127.0.0.1:port`, or `wss:` when the listener speaks TLS. */
  readonly webSocketUrl: string;
  readonly board: WorkerBoard;
  readonly targets: TargetBoard;
  readonly counters: CounterTable;
  readonly log: readonly LoggedLine[];
  /** Serves the next version, with these objects added or replaced. */
  apply(change: DataPlaneChange): Promise<void>;
  /** Prepares such a version, waits for `meanwhile`, and discards it; returns the issues. */
  discard(change: DataPlaneChange, meanwhile?: () => Promise<unknown>): Promise<readonly Issue[]>;
  drain(timeoutMs: number): Promise<number>;
  /** Closes all connections. */
  stop(): Promise<void>;
}

const identity = (id: string) => ({
  id,
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
});

function servicePlan(sketch: ServiceSketch): ServicePlan {
  const { id = sketch.name, targets = [], clientCertificate = null, ...service } = sketch;
  return {
    id,
    service: { ...decode(serviceInput, service), ...identity(id) },
    clientCertificate,
    targets: targets.map(({ id: own, ...target }, index) => ({
      ...decode(inlineTargetInput, { host: "127.0.0.1", ...target }),
      service_id: id,
      ...identity(own ?? `${id}-${index}`),
    })),
  };
}

function routeFrom(sketch: RouteSketch): Route {
  const route = decode(routeInput, sketch);
  return { ...route, paths: route.paths.map(pathMatchOf), ...identity(sketch.name) };
}

function pluginPlan(sketch: PluginSketch, catalogue: PluginCatalogue): PluginPlan {
  const places = {
    serviceId: sketch.serviceId ?? null,
    routeId: sketch.routeId ?? null,
    consumerId: sketch.consumerId ?? null,
    streamRouteId: sketch.streamRouteId ?? null,
  };
  const scope = scopeOf({
    service_id: places.serviceId,
    route_id: places.routeId,
    consumer_id: places.consumerId,
    stream_route_id: places.streamRouteId,
  });
  const definition = catalogue.get(sketch.name);
  if (scope === null || definition === undefined) throw new Error(`no plugin ${sketch.name}`);
  return {
    id: sketch.label ?? sketch.name,
    label: null,
    priority: null,
    when: null,
    onError: null,
    createdAt: "2026-01-01T00:00:00.000Z",
    ...sketch,
    ...places,
    scope,
    config: decode(definition.config, sketch.config ?? {}),
  };
}

const consumerPlan = (sketch: Partial<ConsumerPlan> & { readonly username: string }) => ({
  id: sketch.username,
  customId: null,
  groups: [],
  ...sketch,
});

/** What a credential may have, all empty. */
export const noCredential = {
  name: null,
  identifier: null,
  algorithm: null,
  publicKey: null,
  expiresAt: null,
  hash: null,
  secret: null,
  previous: null,
} as const;

const credentialPlan = (
  sketch: Partial<CredentialPlan> & Pick<CredentialPlan, "type" | "consumerId">,
): CredentialPlan => ({
  id: Bun.randomUUIDv7(),
  ...noCredential,
  ...sketch,
});

const planChange = <T>(upserts: readonly T[]) => ({
  size: upserts.length,
  upserts,
  removals: [],
});

function listenerPlan(sketch: Sketch<ListenerInput>, tls: ListenerPlan["tls"]): ListenerPlan {
  const input = {
    name: "listener",
    address: "127.0.0.1",
    port: freePort(),
    protocol: tls === null ? "http" : "https",
    ...engineOf(sketch),
    ...sketch,
  };
  return {
    id: "listener",
    listener: { ...decode(listenerInput, input), ...identity("listener") },
    tls,
  };
}

/** A free port of 127.0.0.1: listeners need an explicit one. */
export function freePort(): number {
  return quietPort();
}

/** Serves the services and routes named, on one listener on 127.0.0.1; call `stop` at the end. */
export async function startDataPlane(
  sketch: DataPlaneSketch & {
    readonly listener?: Sketch<ListenerInput>;
    /** Makes it an https listener. */
    readonly tls?: { readonly cert: string; readonly key: string };
    readonly webSocketTimeouts?: DataPlaneOptions["webSocketTimeouts"];
    readonly dnsServers?: DataPlaneOptions["dnsServers"];
    readonly logDirectories?: DataPlaneOptions["logDirectories"];
    readonly bodyDirectory?: string;
    /** Metrics of plugins, optionally with their own clock. */
    readonly counters?: CounterTable;
    /** A server of counters for all nodes. Default: none. */
    readonly sharedCounters?: CountersCommand;
    /** Default: 1. */
    readonly nodes?: number;
    /** In common with other planes. Default: its own. */
    readonly stores?: PluginStores;
    /** Beside those of the product. */
    readonly ownPlugins?: readonly AnyPlugin[];
    /** Cuts the work on versions into slices. */
    readonly pace?: Pace;
  },
): Promise<RunningDataPlane> {
  const board = WorkerBoard.create(1);
  const targets = TargetBoard.create(1);
  const counters = sketch.counters ?? CounterTable.create({ keys: 1024, workers: 1 });
  board.nodes = sketch.nodes ?? 1;
  const log: LoggedLine[] = [];
  const logLine: DataPlaneOptions["log"] = (level, message, fields = {}) =>
    log.push({ level, message, fields });
  const catalogue = catalogueOf([...plugins, ...(sketch.ownPlugins ?? [])]);
  const { worker, withCache } = (sketch.stores ?? new PluginStores()).join();
  const feeds = new PluginFeeds({
    definitionOf: (name) => catalogue.get(name),
    callout: createCallout({ loopToken: "sluice-test" }),
    countersOf: (id) => counters.forInstance(0, id),
    log: createLog({
      level: "debug",
      format: "json",
      sink(line) {
        const { time: _, level, message, ...fields } = JSON.parse(line);
        log.push({ level, message, fields });
      },
    }),
  });
  const live = new Map<string, PluginPlan>();
  const dataPlane = createDataPlane({
    worker: 0,
    thread: worker + 1,
    instanceId: "test",
    managementCookies: new ManagementCookies("test", () => false),
    board,
    targets,
    stickyKey: "test",
    pluginKey: "test",
    plugins: catalogue,
    webSocketTimeouts: sketch.webSocketTimeouts,
    dnsServers: sketch.dnsServers ?? [],
    logDirectories: sketch.logDirectories ?? null,
    bodyDirectory: sketch.bodyDirectory ?? null,
    counters,
    sharedCounters:
      sketch.sharedCounters === undefined
        ? null
        : new WorkerCounters(sketch.sharedCounters, {
            board,
            worker: 0,
            log: logLine,
            key: "test",
          }),
    ...(sketch.pace === undefined ? {} : { pace: sketch.pace }),
    log: logLine,
  });
  const listener = listenerPlan(sketch.listener ?? {}, sketch.tls ?? null);
  const consumers = new ConsumerStore();
  const routes = new RouteStore();
  let revision = 0;
  const changeOf = async (
    next: DataPlaneChange,
    listeners: readonly ListenerPlan[],
  ): Promise<SnapshotChange> => {
    const upserts = (next.routes ?? []).map(routeFrom);
    const stored = await routes.write({ upserts, removals: next.removedRoutes ?? [] });
    const services = (next.services ?? []).map(servicePlan);
    return {
      routeTable: stored.table,
      routes: { upserts: stored.upserts, removals: stored.removals },
      base: revision === 0 ? null : revision,
      revision: revision + 1,
      services: {
        upserts: services,
        removals: next.removedServices ?? [],
      },
      listeners: { upserts: listeners, removals: [] },
      streamRoutes: { upserts: next.streamRoutes ?? [], removals: next.removedStreamRoutes ?? [] },
      plugins: {
        upserts: (next.plugins ?? []).map((plugin) =>
          feeds.withFeed(withCache(pluginPlan(plugin, catalogue))),
        ),
        removals: next.removedPlugins ?? [],
      },
      consumers: consumers.change({
        consumers: planChange((next.consumers ?? []).map(consumerPlan)),
        credentials: planChange((next.credentials ?? []).map(credentialPlan)),
      }),
      certificates: { upserts: next.certificates ?? [], removals: next.removedCertificates ?? [] },
      settings:
        next.settings === undefined && revision > 0
          ? null
          : {
              ...decode(settingsInput, next.settings ?? {}),
              updated_at: "2026-01-01T00:00:00.000Z",
            },
    };
  };
  // As the supervisor: a worker gets a copy, in pieces of limited size.
  const prepare = async (change: SnapshotChange) => {
    const { pieces, last } = cut(change);
    for (const piece of pieces) await dataPlane.take(change.revision, structuredClone(piece));
    return await dataPlane.prepare(structuredClone(last));
  };
  const serve = async (next: DataPlaneChange, listeners: readonly ListenerPlan[]) => {
    const change = await changeOf(next, listeners);
    const issues = await prepare(change);
    if (issues.length > 0) throw new Error(`not served: ${JSON.stringify(issues)}`);
    consumers.commit();
    routes.commit();
    revision = change.revision;
    await dataPlane.activate(revision);
    for (const plan of change.plugins.upserts) live.set(plan.id, plan);
    for (const id of change.plugins.removals) live.delete(id);
    feeds.retain(live);
  };
  const { port } = listener.listener;
  const reporter: Reporter = {
    get logSize() {
      return log.length;
    },
    logBetween: (from, to) =>
      log
        .slice(from, to)
        .map((line) => JSON.stringify(line))
        .join("\n"),
    state: () => [`data plane in this process, on port ${port}`],
    requests: async () => [],
  };
  reportWith(reporter);
  await serve(sketch, [listener]);
  const listenersOf = ({ listener: own }: DataPlaneChange) =>
    own === undefined ? [] : [listenerPlan({ ...sketch.listener, ...own, port }, listener.tls)];
  return {
    port,
    url: `${listener.listener.protocol}://127.0.0.1:${port}`,
    webSocketUrl: `${sketch.tls === undefined ? "ws" : "wss"}://127.0.0.1:${port}`,
    board,
    targets,
    counters,
    log,
    apply: (change) => serve(change, listenersOf(change)),
    async discard(next, meanwhile = () => Promise.resolve()) {
      const change = await changeOf(next, listenersOf(next));
      const issues = await prepare(change);
      await meanwhile();
      consumers.rollback();
      routes.rollback();
      dataPlane.discard(change.revision);
      return issues;
    },
    drain: (timeoutMs) => dataPlane.drain({ timeoutMs, lingerMs: 0 }),
    stop: async () => {
      reportNoMore(reporter);
      feeds.close();
      await dataPlane.drain({ timeoutMs: 0, lingerMs: 0 });
    },
  };
}
