// The listeners of one worker: binds them for a version, swaps them on activation and drains the old ones; knows no route.
import type { WebSocketHandler } from "bun";
import type { Issue } from "../../model/error.ts";
import type { Settings } from "../../model/settings.ts";
import type { CertificatePlan, ListenerPlan } from "../../snapshot/snapshot.ts";
import type { Preread } from "./pending-connection.ts";
import type { SocketOwner } from "./loopback-tunnel.ts";
import type { OpenChallenges } from "../challenges.ts";
import type { CertificateIndex } from "./certificate-index.ts";
import type { AcceptorContext } from "./connection-server.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import { needsAcceptor, openAcceptorListener } from "./acceptor-listener.ts";
import { type HttpListener, openHttp3Listener, openHttpListener } from "../server/bun-server.ts";
import { SocketListener } from "../server/socket-listener.ts";
import { tlsProblem } from "../server/tls-self-test.ts";
import type { StreamHandler } from "../server/bun-stream.ts";
import type { Http2End } from "../server/served-connection.ts";
import type { EngineHosts } from "./engine-hosts.ts";
import type { ListenerRuntime } from "./listener-runtime.ts";
import { listenersByPort, portKey } from "./shared-port.ts";

/** The part of a configuration version that listeners need. */
export interface ListenerVersion {
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
  readonly certificateIndex: CertificateIndex;
  readonly engineHosts: EngineHosts;
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
  /** A listener could not be rebound. */
  failed(issue: Issue): void;
}

/** Listeners bound for a version that is not active yet, by id. */
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
  /** Ids of listeners that could not be bound after a pause. */
  readonly #missing = new Set<string>();
  /** Of this Bun; null: not asked yet. */
  #tlsProblem: Promise<string | null> | null = null;

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
    for (const binding of bindingsOf(version)) {
      if (!this.#mustBind(binding, version)) continue;
      try {
        opened.set(binding.key, this.#open(binding, version));
      } catch (error) {
        issues.push(bindIssue(binding, error));
      }
    }
    return { opened, issues };
  }

  /** Client certificates would fail open on a Bun whose TLS is another: asked once, before the first listener with our own engine. */
  async #tlsIssues(version: ListenerVersion): Promise<readonly Issue[]> {
    const secured = bindingsOf(version).find(
      ({ plan }) => plan.listener.engine === "sluice" && plan.tls !== null,
    );
    if (secured === undefined || secured.plan.tls === null) return [];
    this.#tlsProblem ??= tlsProblem(secured.plan.tls);
    const problem = await this.#tlsProblem;
    if (problem === null) return [];
    const message = `engine "sluice" has no TLS with Bun ${Bun.version} (${problem}): use engine "standard"`;
    return [{ path: "engine", message, status: 409 }];
  }

  /** Serves a version for which `prepare` has bound the listeners; replaced listeners drain. */
  activate(version: ListenerVersion, opened: OpenedListeners): void {
    this.#live = version;
    for (const [key, listener] of opened) {
      this.#retire(key);
      this.#bound.set(key, listener);
    }
    const needed = new Set(bindingsOf(version).map(({ key }) => key));
    for (const key of [...this.#bound.keys()]) if (!needed.has(key)) this.#retire(key);
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

  /** Connections without a request would stay open until their idle timeout. */
  #closeSilent(): void {
    for (const listener of this.#draining) if (listener.pending === 0) void listener.close();
  }

  /** `isFirst`: report failures, which later attempts do not repeat. */
  #bindMissing(isFirst: boolean): void {
    const live = this.#live;
    this.#missing.clear();
    if (live === null || this.#isStopped) return;
    for (const binding of bindingsOf(live)) {
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
   * Rebinds https listeners with an acceptor while a CA may ask for a challenge certificate, and without one afterwards. One that
   * cannot be rebound stays as it is.
   */
  reconcile(): void {
    const live = this.#live;
    if (live === null) return;
    const outdated = bindingsOf(live).filter((binding) => {
      const bound = this.#bound.get(binding.key);
      return bound !== undefined && bound.hasAcceptor !== this.#hasAcceptor(binding, live);
    });
    for (const binding of outdated) {
      try {
        const opened = this.#open(binding, live);
        this.#retire(binding.key);
        this.#bound.set(binding.key, opened);
      } catch (error) {
        this.#options.failed(bindIssue(binding, error));
      }
    }
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
    const { plan, isHttp3 } = binding;
    const bound = this.#bound.get(binding.key);
    if (bound === undefined) return true;
    if (bound.hasAcceptor !== this.#hasAcceptor(binding, version)) return true;
    // The other engines read certificates at each handshake.
    const hasOwnCertificates =
      plan.tls !== null && (plan.listener.engine === "standard" || isHttp3);
    if (hasOwnCertificates && this.#live?.certificates !== version.certificates) return true;
    if (bound.plan === plan) return false;
    const keyOf = isHttp3 ? http3BindKey : bindKey;
    return JSON.stringify(keyOf(bound.plan)) !== JSON.stringify(keyOf(plan));
  }

  #open(binding: Binding, version: ListenerVersion): HttpListener {
    const { serveOn, websocket, limits, adopt, refused, challenges, onHandshake } = this.#options;
    const { plan, isHttp3 } = binding;
    const { id, listener } = plan;
    const key = portKey(listener.address, listener.port);
    const context = { serve: serveOn(id, key), websocket, certificates: version.certificates };
    if (isHttp3) return openHttp3Listener(plan, context);
    if (!this.#hasAcceptor(binding, version)) return openHttpListener(plan, context);
    const livePlan = () => this.#live?.listeners.get(id) ?? plan;
    const acceptorContext: AcceptorContext = {
      ...context,
      challenges,
      // The live version's, because a change of limits rebinds nothing.
      admit: () => limits.admit(livePlan().listener),
      headTimeoutMs: () => (this.#live ?? version).settings.limits.head_read_timeout,
      prereadTimeout: () => (this.#live ?? version).settings.limits.preread_timeout,
      adopt: (preread) => adopt(key, preread),
      refused: (reason, address) => refused(listener.name, reason, address),
      onHttp2End: this.#options.onHttp2End,
      onHandshake: (isDone) => onHandshake(id, isDone),
      livePlan,
      planFor: (name) => planFor(this.#live ?? version, key, name) ?? livePlan(),
      livePlans: () => plansAt(this.#live ?? version, key),
      needsFullEngine: (name) => needsFullEngine(this.#live ?? version, key, name),
      responseWriteTimeout: () => (this.#live ?? version).settings.limits.response_write_timeout,
      liveCertificates: () => (this.#live ?? version).certificateIndex,
    };
    return listener.engine === "sluice"
      ? new SocketListener(plan, acceptorContext)
      : openAcceptorListener(plan, acceptorContext);
  }

  #hasAcceptor({ plan, isHttp3 }: Binding, { passthroughPorts }: ListenerVersion): boolean {
    if (isHttp3) return false;
    const { listener } = plan;
    const isShared = passthroughPorts.has(portKey(listener.address, listener.port));
    return (
      (plan.tls !== null && this.#options.challenges.hasNames) || needsAcceptor(listener, isShared)
    );
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

/** A socket that a version needs. */
interface Binding {
  readonly key: string;
  readonly plan: ListenerPlan;
  /** UDP beside the TCP socket of our own engine. Other engines have one server for both. */
  readonly isHttp3: boolean;
}

/** Of listeners that share a port, one binds the sockets. */
function bindingsOf({ listeners }: ListenerVersion): readonly Binding[] {
  const bindings: Binding[] = [];
  for (const [plan] of listenersByPort(listeners.values()).values()) {
    if (plan === undefined) continue;
    bindings.push({ key: plan.id, plan, isHttp3: false });
    const { engine, http3 } = plan.listener;
    if (engine === "sluice" && http3 && plan.tls !== null)
      bindings.push({ key: `${plan.id} http3`, plan, isHttp3: true });
  }
  return bindings;
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

function needsFullEngine(version: ListenerVersion, key: string, name: string | null): boolean {
  const listener = runtimeFor(version, key, name);
  return listener !== undefined && version.engineHosts.has(name, listener.id);
}

/** The options of a socket or of the server behind it. */
function bindKey({ listener, tls }: ListenerPlan) {
  const { address, port, protocol, engine, http2, http3, idle_timeout } = listener;
  const socket = [address, port, protocol, engine];
  // It reads everything else at each connection.
  if (engine === "sluice") return socket;
  const { client_auth, client_ca, client_crl, strict_sni, proxy_protocol } = listener;
  const { shared_engines: hasBothEngines, tls_min_version } = listener;
  return [
    [...socket, hasBothEngines, tls_min_version],
    // The full engine reads these at each connection.
    engine === "standard" ? [http2, http3, idle_timeout, tls] : tls !== null,
    client_auth === "none" ? null : [client_auth, client_ca, client_crl],
    proxy_protocol ? listener.trusted_proxies : null,
    strict_sni,
  ];
}

const http3BindKey = ({ listener: { address, port, idle_timeout }, tls }: ListenerPlan) => [
  [address, port, idle_timeout],
  tls,
];

function bindIssue({ plan: { listener }, isHttp3 }: Binding, error: unknown): Issue {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    path: "port",
    message: `cannot listen on ${listener.address} ${isHttp3 ? "UDP " : ""}port ${listener.port}: ${reason}`,
    status: 409,
  };
}
