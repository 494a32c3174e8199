// The UDP stream routes of one worker: ports, sessions by client and their timeouts; knows no HTTP.
import type { Issue } from "../../model/error.ts";
import { formatEndpoint } from "../../net/address.ts";
import type { StreamConnectionView } from "../../snapshot/message.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import type { StreamPluginContext } from "../plugin/stream-plugin-context.ts";
import type { ServiceRuntime } from "../service-runtime.ts";
import type { StreamRouteRuntime } from "./stream-runtime.ts";
import { bindIssue, type StreamsOptions, type StreamVersion, pluginContextOf } from "./streams.ts";
import { StreamRecorder } from "./stream-recorder.ts";
import { plainAddress, UdpPort } from "./udp-port.ts";
import { type ClientEndpoint, UdpSession } from "./udp-session.ts";

export interface UdpVersion extends StreamVersion {
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
}

/** A session that is about to begin. */
interface NewSession {
  readonly id: string;
  readonly client: ClientEndpoint;
  readonly route: StreamRouteRuntime;
  readonly service: ServiceRuntime;
}

/** A bound port and its sessions. */
interface Bound {
  port: UdpPort | null;
  readonly sessions: Map<string, UdpSession>;
  /** Null when the route was deleted and the last sessions drain. */
  route: StreamRouteRuntime | null;
}

/** Ports bound for a version that is not active yet, by key. */
export type OpenedUdpPorts = Map<string, Bound>;

/** UDP has no FIN: when the worker stops, a session that is silent for this long is over. */
const SILENT_MS = 1000;
const TICK_MS = 1000;

export class UdpStreams {
  readonly #options: StreamsOptions;
  readonly #ports = new Map<string, Bound>();
  readonly #sessions = new Map<string, UdpSession>();
  readonly #draining = new Map<UdpSession, number>();
  /** Datagrams dropped since the last log line, by route and reason. */
  readonly #drops = new Map<string, Drop>();
  /** Ports that the version in preparation needs. */
  #needed: ReadonlySet<string> = new Set();
  readonly #recorder: StreamRecorder;
  #live: UdpVersion | null = null;
  #timer: Timer | null = null;
  #count = 0;
  #isStopping = false;

  constructor(options: StreamsOptions) {
    this.#options = options;
    this.#recorder = new StreamRecorder(options.recorder, "udp");
  }

  /** Binds what the version needs and is not bound yet; nothing when there are issues. */
  async prepare(version: UdpVersion): Promise<{ opened: OpenedUdpPorts; issues: Issue[] }> {
    const opened: OpenedUdpPorts = new Map();
    const issues: Issue[] = [];
    const routes = routesByPort(version);
    this.#needed = new Set(routes.keys());
    for (const [key, route] of routes) {
      if (this.#ports.has(key)) continue;
      const bound: Bound = { port: null, sessions: new Map(), route: null };
      try {
        const at = { address: route.route.listen_address, port: portOf(key) };
        bound.port = await UdpPort.open(at, (datagram, client) =>
          this.#received(bound, datagram, client),
        );
        opened.set(key, bound);
      } catch (error) {
        issues.push(bindIssue(route, key, error));
      }
    }
    if (issues.length > 0) closePorts(opened);
    return { opened, issues };
  }

  /** Closes what `prepare` has bound for a discarded version. */
  discard(opened: OpenedUdpPorts): void {
    this.#needed = new Set();
    closePorts(opened);
  }

  /** Serves a version for which `prepare` has bound the ports. */
  activate(version: UdpVersion, opened: OpenedUdpPorts): void {
    const before = this.#live;
    this.#live = version;
    this.#needed = new Set();
    for (const [key, bound] of opened) this.#ports.set(key, bound);
    if (before?.streamRoutes === version.streamRoutes && before.services === version.services)
      return;
    const routes = routesByPort(version);
    for (const [key, bound] of this.#ports) {
      bound.route = routes.get(key) ?? null;
      for (const session of bound.sessions.values()) this.#renew(session, bound.route);
      const isUsedByListener = [...version.listeners.values()].some((plan) =>
        usesUdp(plan, portOf(key)),
      );
      if (bound.route === null && (bound.sessions.size === 0 || isUsedByListener))
        this.#close(key, bound);
    }
  }

  /** Sessions whose route still leads to the same targets go on; the others drain. */
  #renew(session: UdpSession, next: StreamRouteRuntime | null): void {
    const service = this.#live?.services.get(next?.route.service_id ?? "");
    const target = session.target?.id;
    const isThere =
      target === undefined || service?.targets.some(({ id }) => id === target) === true;
    const isSame = next !== null && trafficOf(next) === trafficOf(session.route);
    if (next !== null && isSame && isThere) session.route = next;
    else if (!this.#draining.has(session))
      this.#draining.set(session, performance.now() + this.#drainMs);
  }

  get #drainMs(): number {
    return this.#live?.settings.limits.stream_drain_timeout ?? 0;
  }

  /** Accepts no new session. */
  stopAccepting(): void {
    this.#isStopping = true;
  }

  /** Waits for sessions to fall silent and closes all; resolves with the number of those that were still active. */
  async drain(timeoutMs: number): Promise<number> {
    const end = performance.now() + Math.min(timeoutMs, this.#drainMs);
    const busy = () => {
      const now = performance.now();
      const all = [...this.#sessions.values()];
      return all.filter((session) => now - session.lastAt < SILENT_MS).length;
    };
    while (busy() > 0 && performance.now() < end) await Bun.sleep(20);
    const late = busy();
    for (const session of [...this.#sessions.values()]) session.close();
    for (const [key, bound] of [...this.#ports]) this.#close(key, bound);
    this.#tick();
    return late;
  }

  /** The sessions of one stream route. */
  list(routeId: string): StreamConnectionView[] {
    return [...this.#sessions.values()]
      .filter((session) => session.route.id === routeId)
      .map((session) => ({
        id: session.id,
        stream_route_id: routeId,
        client: formatEndpoint(session.client),
        target_id: session.target?.id ?? null,
        bytes_in: session.bytesIn,
        bytes_out: session.bytesOut,
        started_at: new Date(session.startedAt).toISOString(),
      }));
  }

  /** Closes a session; false when it is not one of this worker. */
  kill(id: string): boolean {
    const session = this.#sessions.get(id);
    session?.close();
    return session !== undefined;
  }

  #received(bound: Bound, datagram: Buffer, client: ClientEndpoint): void {
    const key = `${client.address} ${client.port}`;
    const now = performance.now();
    const session = bound.sessions.get(key) ?? this.#open(bound, client, now);
    session?.sent(datagram, now);
  }

  #open(bound: Bound, from: ClientEndpoint, now: number): UdpSession | null {
    const { route } = bound;
    const service = this.#live?.services.get(route?.route.service_id ?? "");
    // The route is not active yet or was deleted, or the worker stops.
    if (route === null || service === undefined || this.#isStopping) return null;
    const client = { address: plainAddress(from.address), port: from.port };
    if (!route.admits(client.address)) return this.#drop(route, "the address may not connect");
    if (this.#options.isShedding?.() === true) return this.#drop(route, "the gateway is busy");
    if (bound.sessions.size >= route.route.udp_max_sessions || !this.#enter(route))
      return this.#drop(route, "too many sessions");
    const key = `${from.address} ${from.port}`;
    const id = `${this.#options.worker + 1}-u${++this.#count}-${Date.now().toString(36)}`;
    const pluginContext = this.#pluginContextOf({ id, client, route, service });
    const refusal = pluginContext?.connect()?.reason ?? null;
    if (refusal !== null) return this.#refuse(pluginContext, { route, refusal });
    const session = new UdpSession({
      id,
      client,
      route,
      service,
      now,
      reply: (datagram) => bound.port?.send(datagram, from),
      dropped: (reason) => void this.#drop(route, reason),
      closed: (gone) => {
        this.#recorder.ended(gone);
        pluginContext?.end({
          bytesIn: gone.bytesIn,
          bytesOut: gone.bytesOut,
          durationMs: Date.now() - gone.startedAt,
          targetId: gone.target?.id ?? null,
          refusal: gone.refusal,
        });
        bound.sessions.delete(key);
        this.#sessions.delete(gone.id);
        this.#draining.delete(gone);
        this.#options.board.leave(route.row, this.#options.worker);
      },
    });
    bound.sessions.set(key, session);
    this.#sessions.set(session.id, session);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
    session.begin();
    return session;
  }

  #pluginContextOf({ id, client, route, service }: NewSession): StreamPluginContext | null {
    const named = { id: service.id, name: service.service.name };
    const info = { id, protocol: "udp", client, serverName: null, service: named } as const;
    return pluginContextOf(info, route, { version: this.#live, options: this.#options });
  }

  /** A plugin has refused the client. */
  #refuse(
    pluginContext: StreamPluginContext | null,
    { route, refusal }: { readonly route: StreamRouteRuntime; readonly refusal: string },
  ): null {
    this.#options.board.leave(route.row, this.#options.worker);
    pluginContext?.end({ bytesIn: 0, bytesOut: 0, durationMs: 0, targetId: null, refusal });
    return this.#drop(route, refusal);
  }

  #enter({ route, row }: StreamRouteRuntime): boolean {
    const { board, worker } = this.#options;
    board.enter(row, worker);
    if (route.max_connections === 0 || board.active(row) <= route.max_connections) return true;
    board.leave(row, worker);
    return false;
  }

  /** Counts a drop; `#tick` logs drops once a second, so that a flood does not fill the log. */
  #drop(route: StreamRouteRuntime, reason: string): null {
    const key = `${route.id} ${reason}`;
    const drop = this.#drops.get(key);
    if (drop === undefined) this.#drops.set(key, { route: route.route.name, reason, count: 1 });
    else drop.count++;
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
    return null;
  }

  #tick(): void {
    const now = performance.now();
    for (const session of this.#sessions.values())
      if (now - session.lastAt >= session.route.route.udp_session_timeout * 1000) session.close();
      else this.#recorder.moved(session);
    for (const [session, until] of this.#draining) if (now >= until) session.close();
    for (const [key, bound] of this.#ports)
      if (bound.route === null && bound.sessions.size === 0 && !this.#needed.has(key))
        this.#close(key, bound);
    for (const { route, reason, count } of this.#drops.values())
      this.#options.refused(reason, { route, datagrams: count });
    this.#drops.clear();
    if (this.#sessions.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #close(key: string, bound: Bound): void {
    this.#ports.delete(key);
    for (const session of [...bound.sessions.values()]) session.close();
    bound.port?.close();
  }
}

interface Drop {
  readonly route: string | null;
  readonly reason: string;
  count: number;
}

function closePorts(opened: OpenedUdpPorts): void {
  for (const { port } of opened.values()) port?.close();
  opened.clear();
}

function routesByPort({ streamRoutes }: StreamVersion): Map<string, StreamRouteRuntime> {
  const routes = new Map<string, StreamRouteRuntime>();
  for (const runtime of streamRoutes.values())
    if (runtime.route.protocol === "udp")
      for (const port of runtime.plan.ports)
        routes.set(`${runtime.route.listen_address} ${port}`, runtime);
  return routes;
}

const portOf = (key: string) => Number(key.slice(key.lastIndexOf(" ") + 1));

/** The fields of a route that affect its sessions. */
function trafficOf({ route: { service_id: service, allow, deny } }: StreamRouteRuntime): string {
  return JSON.stringify([service, allow, deny]);
}

const usesUdp = ({ listener }: ListenerPlan, port: number) =>
  listener.http3 && listener.protocol === "https" && listener.port === port;
