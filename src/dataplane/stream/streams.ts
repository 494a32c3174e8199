// The TCP stream routes of one worker: ports, connections and their timeouts; knows no HTTP.
import type { Issue } from "../../model/error.ts";
import { formatEndpoint } from "../../net/address.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import type { StreamConnectionView } from "../../snapshot/message.ts";
import type { Preread } from "../listener/pending-connection.ts";
import {
  acceptedHandlers,
  type ClientSocket,
  type SocketOwner,
} from "../listener/client-socket.ts";
import type { CertificateIndex } from "../listener/certificate-index.ts";
import type { ConnectionInfo } from "../listener/connection-info.ts";
import { portKey } from "../listener/shared-port.ts";
import type { ProxiedEnds } from "../../net/proxy-protocol.ts";
import type { Settings } from "../../model/settings.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import type { ServiceRuntime } from "../service-runtime.ts";
import type { PluginSet } from "../plugin/plugin-set.ts";
import { type StreamPluginHost, StreamPluginContext } from "../plugin/stream-plugin-context.ts";
import { dial } from "./dial.ts";
import type { TrafficRecorder } from "../traffic-recorder.ts";
import { StreamConnection, type StreamWorkerServices } from "./stream-connection.ts";
import { StreamRecorder } from "./stream-recorder.ts";
import { routeOfName, type StreamRouteRuntime } from "./stream-runtime.ts";
import { TerminatingPort } from "./terminating-port.ts";

/** The part of a configuration version that streams need. */
export interface StreamVersion {
  readonly streamRoutes: ReadonlyMap<string, StreamRouteRuntime>;
  readonly services: ReadonlyMap<string, ServiceRuntime>;
  /** At a listener's port, the listener accepts connections and passes on those that a stream route matches. */
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly certificateIndex: CertificateIndex;
  readonly plugins: PluginSet;
  readonly settings: Settings;
}

/** A bound port. */
export interface StreamPort {
  /** Whether TLS ends here; everything else is read at each connection. */
  readonly hasTls: boolean;
  stop(): void;
}

/** Ports bound for a version that is not active yet, by key. */
export type OpenedPorts = Map<string, StreamPort>;

export interface StreamsOptions {
  readonly worker: number;
  readonly board: TargetBoard;
  readonly refused: StreamWorkerServices["refused"];
  readonly plugins: StreamPluginHost;
  readonly recorder: TrafficRecorder;
  /** Whether the worker refuses new connections. Default: it does not. */
  readonly isShedding?: () => boolean;
}

const TICK_MS = 1000;

export class Streams {
  readonly #options: StreamsOptions;
  readonly #ports = new Map<string, StreamPort>();
  readonly #connections = new Map<string, StreamConnection>();
  readonly #draining = new Map<StreamConnection, number>();
  readonly #workerServices: StreamWorkerServices;
  readonly #recorder: StreamRecorder;
  #live: StreamVersion | null = null;
  #byPort: ReadonlyMap<string, readonly StreamRouteRuntime[]> = new Map();
  #timer: Timer | null = null;
  #count = 0;

  constructor(options: StreamsOptions) {
    const { board, worker } = options;
    this.#options = options;
    this.#recorder = new StreamRecorder(options.recorder, "tcp");
    this.#workerServices = {
      now: () => performance.now(),
      prereadTimeout: () => prereadTimeout(this.#live),
      routesAt: (key) => this.#byPort.get(key) ?? [],
      serviceOf: ({ route }) => this.#live?.services.get(route.service_id) ?? null,
      enter: ({ route, row }) => {
        if (options.isShedding?.() === true) return false;
        board.enter(row, worker);
        if (route.max_connections === 0 || board.active(row) <= route.max_connections) return true;
        board.leave(row, worker);
        return false;
      },
      leave: ({ row }) => board.leave(row, worker),
      pluginContext: (info, route) =>
        pluginContextOf(info, route, { version: this.#live, options }),
      dial,
      refused: options.refused,
      closed: (connection) => {
        this.#recorder.ended(connection);
        this.#connections.delete(connection.id);
        this.#draining.delete(connection);
      },
    };
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Binds what the version needs and is not bound yet; nothing when there are issues. */
  prepare(version: StreamVersion): { readonly opened: OpenedPorts; readonly issues: Issue[] } {
    const opened: OpenedPorts = new Map();
    const issues: Issue[] = [];
    const ofListeners = listenerPorts(version);
    for (const [key, routes] of groupByPort(version)) {
      const [first] = routes;
      if (first === undefined || ofListeners.has(key)) continue;
      if (this.#ports.get(key)?.hasTls === (first.plan.tls !== null)) continue;
      try {
        opened.set(key, this.#bind(key, first));
      } catch (error) {
        issues.push(bindIssue(first, key, error));
      }
    }
    if (issues.length > 0) discardPorts(opened);
    return { opened, issues };
  }

  /** Serves a version for which `prepare` has bound the ports. */
  activate(version: StreamVersion, opened: OpenedPorts): void {
    const before = this.#live;
    this.#live = version;
    this.#byPort = groupByPort(version);
    for (const [key, port] of opened) {
      this.#ports.get(key)?.stop();
      this.#ports.set(key, port);
    }
    const ofListeners = listenerPorts(version);
    for (const [key, port] of this.#ports) {
      if (this.#byPort.has(key) && !ofListeners.has(key)) continue;
      port.stop();
      this.#ports.delete(key);
    }
    if (before !== null && before.streamRoutes !== version.streamRoutes)
      this.#drainChanged(version);
  }

  /** Connections of routes that were deleted or lead elsewhere drain; all others go on. */
  #drainChanged({ streamRoutes, settings }: StreamVersion): void {
    const until = performance.now() + settings.limits.stream_drain_timeout;
    for (const connection of this.#connections.values()) {
      const { route } = connection;
      if (route === null || this.#draining.has(connection)) continue;
      const next = streamRoutes.get(route.id);
      if (next === undefined || trafficOf(next) !== trafficOf(route))
        this.#draining.set(connection, until);
    }
  }

  /** Connections of these routes drain. */
  end(routeIds: ReadonlySet<string>): void {
    const drainMs = this.#live?.settings.limits.stream_drain_timeout ?? 0;
    for (const connection of this.#connections.values())
      if (connection.route !== null && routeIds.has(connection.route.id))
        this.#draining.set(connection, performance.now() + drainMs);
  }

  /** Stops accepting. */
  stopAccepting(): void {
    for (const port of this.#ports.values()) port.stop();
    this.#ports.clear();
  }

  /** Waits for connections to end and closes the rest; resolves with the number of closed ones. */
  async drain(timeoutMs: number): Promise<number> {
    const end = performance.now() + timeoutMs;
    while (this.#connections.size > 0 && performance.now() < end) await Bun.sleep(20);
    const late = [...this.#connections.values()];
    for (const connection of late) connection.close();
    if (this.#timer !== null) clearInterval(this.#timer);
    return late.length;
  }

  /** The connections of one stream route. */
  list(routeId: string): StreamConnectionView[] {
    return [...this.#connections.values()]
      .filter((connection) => connection.route?.id === routeId)
      .map((connection) => ({
        id: connection.id,
        stream_route_id: routeId,
        client: formatEndpoint(connection.client),
        target_id: connection.target?.id ?? null,
        bytes_in: connection.bytesIn,
        bytes_out: connection.bytesOut,
        started_at: new Date(connection.startedAt).toISOString(),
      }));
  }

  /** Closes a connection; false when it is not one of this worker. */
  kill(id: string): boolean {
    const connection = this.#connections.get(id);
    connection?.close();
    return connection !== undefined;
  }

  /** Takes over a connection from a listener's port if a stream route there matches its TLS server name. */
  adopt(key: string, { socket, ends, hello, buffered }: Preread): SocketOwner | null {
    const routes = this.#byPort.get(key);
    if (routes === undefined || hello === null) return null;
    if (routeOfName(routes, hello.serverName) === null) return null;
    const connection = this.#accept(socket, key, { ends });
    connection.clientSent(buffered);
    return connection;
  }

  #bind(key: string, runtime: StreamRouteRuntime): StreamPort {
    const { plan, route } = runtime;
    const port = Number(key.slice(key.lastIndexOf(" ") + 1));
    if (plan.tls !== null) return this.#bindTerminating(key, route.listen_address, port);
    const server = Bun.listen({
      hostname: route.listen_address,
      port,
      reusePort: true,
      allowHalfOpen: true,
      socket: acceptedHandlers((socket) => {
        const connection = this.#accept(socket, key, {});
        socket.data = connection;
        connection.begin();
      }),
    } as unknown as Parameters<typeof Bun.listen<SocketOwner>>[0]);
    return { hasTls: false, stop: () => server.stop(false) };
  }

  #bindTerminating(key: string, address: string, port: number): StreamPort {
    const terminating = new TerminatingPort({
      address,
      port,
      route: () => this.#byPort.get(key)?.[0] ?? null,
      certificates: () => this.#live?.certificateIndex ?? null,
      prereadTimeout: () => prereadTimeout(this.#live),
      accepted: (socket, info) => {
        const { serverName } = info;
        const connection = this.#accept(socket, key, { ends: endsOf(info), serverName });
        connection.begin();
        return connection;
      },
      refused: (reason, client) => this.#options.refused(reason, { client, port: key }),
    });
    return { hasTls: true, stop: () => terminating.stop() };
  }

  #accept(
    socket: unknown,
    key: string,
    known: { readonly ends?: ProxiedEnds | null; readonly serverName?: string | null },
  ): StreamConnection {
    const id = `${this.#options.worker + 1}-${++this.#count}-${Date.now().toString(36)}`;
    const worker = this.#workerServices;
    const at = { portKey: key, worker, ...known };
    const connection = new StreamConnection(id, socket as ClientSocket, at);
    this.#connections.set(id, connection);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
    return connection;
  }

  #tick(): void {
    const now = performance.now();
    for (const connection of this.#connections.values()) {
      connection.tick(now);
      if (this.#connections.has(connection.id)) this.#recorder.moved(connection);
    }
    for (const [connection, until] of this.#draining) if (now >= until) connection.close();
    if (this.#connections.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

/** 0 before the first version, when no port is bound. */
const prereadTimeout = (version: StreamVersion | null): number =>
  version?.settings.limits.preread_timeout ?? 0;

/** The context that plugins see of a new connection; null: no plugin runs for it. */
export function pluginContextOf(
  info: Parameters<StreamWorkerServices["pluginContext"]>[0],
  { id, route }: StreamRouteRuntime,
  by: { readonly version: StreamVersion | null; readonly options: StreamsOptions },
): StreamPluginContext | null {
  const chain = by.version?.plugins.forStream(id, route.service_id) ?? [];
  if (chain.length === 0) return null;
  const streamRoute = { id, name: route.name };
  return new StreamPluginContext({ ...info, streamRoute }, by.options.plugins, chain);
}

/** Closes ports that were bound for a discarded version. */
export function discardPorts(opened: OpenedPorts): void {
  for (const port of opened.values()) port.stop();
  opened.clear();
}

function groupByPort({ streamRoutes }: StreamVersion): Map<string, StreamRouteRuntime[]> {
  const groups = new Map<string, StreamRouteRuntime[]>();
  for (const runtime of streamRoutes.values()) {
    if (runtime.route.protocol !== "tcp") continue;
    for (const port of runtime.plan.ports) {
      const key = portKey(runtime.route.listen_address, port);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [runtime]);
      else group.push(runtime);
    }
  }
  return groups;
}

function listenerPorts({ listeners }: StreamVersion): ReadonlySet<string> {
  const keys = [...listeners.values()].map(({ listener }) =>
    portKey(listener.address, listener.port),
  );
  return new Set(keys);
}

const endsOf = (info: ConnectionInfo): ProxiedEnds => ({
  source: { address: info.address, port: info.port },
  destination: { address: info.localAddress, port: info.localPort },
});

/** The fields of a route that affect its connections. */
function trafficOf({ route }: StreamRouteRuntime): string {
  const { name: _, description, tags, updated_at, max_connections, ...rest } = route;
  return JSON.stringify(rest);
}

/** A port that could not be bound, as an issue of the change. */
export function bindIssue({ route }: StreamRouteRuntime, key: string, error: unknown): Issue {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    path: "listen_port",
    message: `cannot listen on ${key} for "${route.name}": ${reason}`,
    status: 409,
  };
}
