// The listeners of one worker: binds them for a version, swaps them on activation and drains the old ones; knows no route.
import type { WebSocketHandler } from "bun";
import type { Issue } from "../../model/error.ts";
import type { HttpEngine } from "../../model/listener.ts";
import type { Settings } from "../../model/settings.ts";
import { beyondBun } from "../../snapshot/engine-choice.ts";
import type { CertificatePlan, ListenerPlan } from "../../snapshot/snapshot.ts";
import type { Preread } from "./pending-connection.ts";
import type { SocketOwner } from "./client-socket.ts";
import type { OpenChallenges } from "../challenges.ts";
import type { CertificateIndex } from "./certificate-index.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import {
  type ClientCounts,
  type HttpListener,
  openHttp3Listener,
  openHttpListener,
} from "../server/bun-server.ts";
import { SocketListener } from "../server/socket-listener.ts";
import { tlsProblem } from "../server/tls-self-test.ts";
import type { StreamHandler } from "../server/bun-stream.ts";
import type { Http2End } from "../server/served-connection.ts";
import type { ListenerRuntime } from "./listener-runtime.ts";
import { listenersByPort, portKey } from "./shared-port.ts";
import type { SocketContext } from "./socket-context.ts";

/** The part of a configuration version that listeners need. */
export interface ListenerVersion {
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
  readonly certificateIndex: CertificateIndex;
  /** By `portKey`: the listener of a connection until its host selects one of those at the port. */
  readonly entries: ReadonlyMap<string, ListenerRuntime>;
  /** Ports, as `portKey`, at which stream routes match TLS names. */
  readonly passthroughPorts: ReadonlySet<string>;
  readonly settings: Settings;
}

export interface ListenersOptions {
  /** `key` as `portKey`: the listener with this id binds the port; others may share it. */
  serveOn(listenerId: string, key: string): StreamHandler;
  readonly websocket: WebSocketHandler<never>;
  readonly limits: ConnectionLimits;
  /** Hands the socket to the stream route at the port that matches the name; null when none does. */
  adopt(portKey: string, preread: Preread): SocketOwner | null;
  refused(listener: string, reason: string, address: string): void;
  /** The gateway has ended a connection of HTTP/2 for what its client sent. */
  onHttp2End(reason: Http2End): void;
  /** A TLS handshake on the listener with this id succeeded or failed, where the gateway sees it. */
  onHandshake(listenerId: string, isDone: boolean): void;
  readonly challenges: OpenChallenges;
  /** A listener could not be rebound, or is served in another way than it asks for. */
  failed(issue: Issue): void;
  /** Serves all listeners that can do with it, against their settings. Default: each has its own. */
  readonly engine?: HttpEngine | null | undefined;
}

/** Listeners bound for a version that is not active yet, by `portKey`. */
export type OpenedListeners = Map<string, HttpListener>;

export class Listeners {
  readonly #options: ListenersOptions;
  readonly #bound = new Map<string, HttpListener>();
  /** Listeners that no longer accept and wait for their last request. */
  readonly #draining = new Set<HttpListener>();
  #live: ListenerVersion | null = null;
  /** The worker accepts nothing, for want of file descriptors. */
  #isPaused = false;
  #isStopped = false;
  /** Keys of bindings that could not be bound after a pause. */
  readonly #missing = new Set<string>();
  /** Why TLS cannot begin on sockets of ours; null: it can, `undefined`: not tested yet. */
  #tlsProblem: string | null | undefined;

  constructor(options: ListenersOptions) {
    this.#options = options;
  }

  /** Binds what the version needs and is not bound yet; call `discard` if the version does not become active. */
  async prepare(version: ListenerVersion): Promise<{
    readonly opened: OpenedListeners;
    readonly issues: readonly Issue[];
  }> {
    const opened: OpenedListeners = new Map();
    const issues: Issue[] = [...(await this.#tlsIssues(version))];
    if (issues.length > 0) return { opened, issues };
    for (const binding of this.#bindingsOf(version)) {
      if (!this.#mustBind(binding, version)) continue;
      try {
        opened.set(binding.key, this.#open(binding, version));
      } catch (error) {
        issues.push(bindIssue(binding, error));
      }
    }
    return { opened, issues };
  }

  /**
   * Client certificates would fail open on a Bun whose TLS is another: it is tested before the first listener with TLS. Where it
   * fails, Bun.serve carries what it can, and what it cannot is refused.
   */
  async #tlsIssues({ listeners }: ListenerVersion): Promise<readonly Issue[]> {
    const secured = [...listeners.values()].filter(({ tls }) => tls !== null);
    const certificate = secured[0]?.tls ?? null;
    if (certificate === null || this.#tlsProblem === null) return [];
    const before = this.#tlsProblem;
    this.#tlsProblem = await tlsProblem(certificate);
    if (this.#tlsProblem === null) return [];
    const cause = `Bun ${Bun.version} has no TLS on sockets of the gateway (${this.#tlsProblem})`;
    const message = `listeners with TLS are served by engine "bun", because ${cause}`;
    if (before === undefined) this.#options.failed({ path: "engine", message, status: 409 });
    return secured.flatMap(({ listener }) => {
      const path = beyondBun(listener);
      return path === null ? [] : [{ path, message: `cannot be served: ${cause}`, status: 409 }];
    });
  }

  /** Serves a version for which `prepare` has bound the listeners; replaced listeners drain. */
  activate(version: ListenerVersion, opened: OpenedListeners): void {
    this.#live = version;
    for (const [key, listener] of opened) {
      this.#retire(key);
      this.#bound.set(key, listener);
    }
    this.#retireOthers(this.#bindingsOf(version));
    this.reconcile();
    for (const listener of this.#bound.values()) listener.update?.();
    if (this.#isPaused) this.#retireAll();
  }

  /** Closes what `prepare` has bound. The live version goes on serving clients that have connected there meanwhile. */
  discard(opened: OpenedListeners): void {
    for (const listener of opened.values()) this.#drain(listener);
    opened.clear();
  }

  /** Accepts nothing while `isPaused` and listens again afterwards. Call it periodically: it retries what could not be bound. */
  pauseWhile(isPaused: boolean): void {
    if (isPaused && this.#isPaused) this.#closeSilent();
    if (isPaused === this.#isPaused && (isPaused || this.#missing.size === 0)) return;
    const wasPaused = this.#isPaused;
    this.#isPaused = isPaused;
    if (isPaused) this.#retireAll();
    else this.#bindMissing(wasPaused);
  }

  /** Of all listeners, also those that drain. */
  get clients(): ClientCounts {
    const counts = { http1: 0, http2: 0, streams: 0 };
    for (const listener of this.#bound.values()) listener.countClients?.(counts);
    for (const listener of this.#draining) listener.countClients?.(counts);
    return counts;
  }

  /** Connections without a request would stay open until their idle timeout. */
  #closeSilent(): void {
    for (const listener of this.#draining) if (listener.pending === 0) void listener.close();
  }

  /** `isFirst`: report failures, which later attempts do not repeat. */
  #bindMissing(isFirst: boolean): void {
    const live = this.#live;
    this.#missing.clear();
    if (live === null || this.#isStopped) return;
    for (const binding of this.#bindingsOf(live)) {
      if (this.#bound.has(binding.key)) continue;
      try {
        this.#bound.set(binding.key, this.#open(binding, live));
      } catch (error) {
        this.#missing.add(binding.key);
        if (isFirst) this.#options.failed(bindIssue(binding, error));
      }
    }
  }

  /**
   * Serves https listeners of Bun.serve on sockets of ours while a CA may ask for a challenge certificate. One that cannot be rebound
   * stays as it is.
   */
  reconcile(): void {
    const live = this.#live;
    if (live === null) return;
    const bindings = this.#bindingsOf(live);
    for (const binding of bindings) {
      const bound = this.#bound.get(binding.key);
      // What could not be bound is tried again elsewhere.
      if (bound === undefined ? binding.carrier !== "http3" : isCarriedBy(bound, binding)) continue;
      try {
        const opened = this.#open(binding, live);
        this.#retire(binding.key);
        this.#bound.set(binding.key, opened);
      } catch (error) {
        this.#options.failed(bindIssue(binding, error));
      }
    }
    this.#retireOthers(bindings);
  }

  #retireOthers(bindings: readonly Binding[]): void {
    const needed = new Set(bindings.map(({ key }) => key));
    for (const key of [...this.#bound.keys()]) if (!needed.has(key)) this.#retire(key);
  }

  /** Stops accepting; connections close after their current request. */
  stopAccepting(): void {
    this.#isStopped = true;
    this.#retireAll();
  }

  #retireAll(): void {
    for (const key of [...this.#bound.keys()]) this.#retire(key);
    for (const listener of this.#draining) listener.goAway();
  }

  /** Closes the listeners that are still draining. */
  async close(): Promise<void> {
    await closeListeners(this.#draining);
  }

  /** Only what the socket was given needs a new one; everything else is read at each request. */
  #mustBind(binding: Binding, version: ListenerVersion): boolean {
    const { key, plan, carrier } = binding;
    const bound = this.#bound.get(key);
    if (bound === undefined || !isCarriedBy(bound, binding)) return true;
    // It reads everything else at each connection.
    if (carrier === "socket") return socketKey(bound.plan) !== socketKey(plan);
    if (plan.tls !== null && this.#live?.certificates !== version.certificates) return true;
    return bound.plan !== plan && serverKey(bound.plan) !== serverKey(plan);
  }

  #open(binding: Binding, version: ListenerVersion): HttpListener {
    const { serveOn, websocket, limits, adopt, refused, challenges, onHandshake } = this.#options;
    const { plan, carrier } = binding;
    const { id, listener } = plan;
    const key = portKey(listener.address, listener.port);
    const context = { serve: serveOn(id, key), websocket, certificates: version.certificates };
    if (carrier === "http3") return openHttp3Listener(plan, context);
    if (carrier === "bun") return openHttpListener(plan, context);
    // Another listener may have taken the place of the one that bound the port.
    const livePlan = () => plansAt(this.#live ?? version, key)[0] ?? plan;
    const socketContext: SocketContext = {
      ...context,
      challenges,
      // The live version's, because a change of limits rebinds nothing.
      admit: () => limits.admit(livePlan().listener),
      headTimeoutMs: () => (this.#live ?? version).settings.limits.head_read_timeout,
      proxyLists: () => (this.#live ?? version).settings,
      prereadTimeout: () => (this.#live ?? version).settings.limits.preread_timeout,
      adopt: (preread) => adopt(key, preread),
      refused: (reason, address) => refused(livePlan().listener.name, reason, address),
      onHttp2End: this.#options.onHttp2End,
      onHandshake: (isDone) => onHandshake(livePlan().id, isDone),
      livePlan,
      planFor: (name) => planFor(this.#live ?? version, key, name) ?? livePlan(),
      livePlans: () => plansAt(this.#live ?? version, key),
      responseWriteTimeout: () => (this.#live ?? version).settings.limits.response_write_timeout,
      liveCertificates: () => (this.#live ?? version).certificateIndex,
    };
    return new SocketListener(plan, socketContext);
  }

  /** What serves the listener in the live version. */
  engineOf(plan: ListenerPlan): HttpEngine | null {
    if (this.#live === null) return null;
    return this.#ownsSockets(plan, this.#live) ? "sluice" : "bun";
  }

  /** Of listeners that share a port, one binds the sockets. */
  #bindingsOf(version: ListenerVersion): readonly Binding[] {
    const bindings: Binding[] = [];
    for (const [key, [plan]] of listenersByPort(version.listeners.values())) {
      if (plan === undefined || plan.isUnbound === true) continue;
      const isOwn = this.#ownsSockets(plan, version);
      bindings.push({ key, plan, carrier: isOwn ? "socket" : "bun" });
      if (isOwn && plan.listener.http3 && plan.tls !== null)
        bindings.push({ key: `${key} http3`, plan, carrier: "http3" });
    }
    return bindings;
  }

  /** Whether a socket of ours carries it. */
  #ownsSockets({ listener, tls }: ListenerPlan, { passthroughPorts }: ListenerVersion): boolean {
    if (beyondBun(listener) !== null) return true;
    if (tls !== null && this.#tlsProblem != null) return false;
    if (tls !== null && this.#options.challenges.hasNames) return true;
    if (passthroughPorts.has(portKey(listener.address, listener.port))) return true;
    return (this.#options.engine ?? listener.engine) === "sluice";
  }

  #retire(key: string): void {
    const listener = this.#bound.get(key);
    if (listener === undefined) return;
    this.#bound.delete(key);
    this.#drain(listener);
  }

  #drain(listener: HttpListener): void {
    this.#draining.add(listener);
    void listener.stop().finally(() => this.#draining.delete(listener));
  }
}

/** A socket, or a server with several, that a version needs. */
interface Binding {
  readonly key: string;
  readonly plan: ListenerPlan;
  /** What carries it: a socket of ours, Bun.serve, or Bun.serve for HTTP/3 alone beside a socket of ours. */
  readonly carrier: "socket" | "bun" | "http3";
}

/** Closes listeners at once, with their connections. */
async function closeListeners(listeners: Iterable<HttpListener>): Promise<void> {
  await Promise.all([...listeners].map((listener) => listener.close()));
}

/** Of the listener at the port that serves the name. */
function runtimeFor({ entries }: ListenerVersion, key: string, name: string | null) {
  const entry = entries.get(key);
  return entry?.choice?.find(name ?? "") ?? entry;
}

function planFor(version: ListenerVersion, key: string, name: string | null) {
  const listener = runtimeFor(version, key, name);
  return listener === undefined ? undefined : version.listeners.get(listener.id);
}

function plansAt({ listeners }: ListenerVersion, key: string): readonly ListenerPlan[] {
  return listenersByPort(listeners.values()).get(key) ?? [];
}

const isCarriedBy = (listener: HttpListener, { carrier }: Binding) =>
  listener instanceof SocketListener === (carrier === "socket");

const socketKey = ({ listener: { address, port, protocol } }: ListenerPlan) =>
  JSON.stringify([address, port, protocol]);

/** What a Bun.serve was given. */
const serverKey = (plan: ListenerPlan) => {
  const { http2, http3, idle_timeout, tls_min_version } = plan.listener;
  const settings = [http2, http3, idle_timeout, tls_min_version];
  return JSON.stringify([socketKey(plan), plan.tls, ...settings]);
};

function bindIssue({ plan: { listener }, carrier }: Binding, error: unknown): Issue {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    path: "port",
    message: `cannot listen on ${listener.address} ${carrier === "http3" ? "UDP " : ""}port ${listener.port}: ${reason}`,
    status: 409,
  };
}
