// The listeners of one worker: bound for a version, swapped when it is served, closed when their last request has ended; knows no route.
import type { WebSocketHandler } from "bun";
import type { Issue } from "../../model/error.ts";
import type { Settings } from "../../model/settings.ts";
import type { CertificatePlan, ListenerPlan } from "../../snapshot/snapshot.ts";
import type { Arrival } from "./arriving-connection.ts";
import type { SocketOwner } from "./carried-connection.ts";
import type { OpenChallenges } from "../challenges.ts";
import type { ConnectionLimits } from "./connection-limits.ts";
import { needsFront, openFrontedListener } from "./fronted-listener.ts";
import { type HttpListener, openHttpListener } from "../server/bun-server.ts";
import type { StreamHandler } from "../server/bun-stream.ts";
import { listenersByPort, portKey } from "./shared-port.ts";

/** What listeners are bound for: one version of the configuration. */
export interface ListenerVersion {
  readonly listeners: ReadonlyMap<string, ListenerPlan>;
  readonly certificates: ReadonlyMap<string, CertificatePlan>;
  /** Ports, as `portKey`, at which stream routes take TLS names. */
  readonly passthroughPorts: ReadonlySet<string>;
  readonly settings: Settings;
}

export interface ListenersOptions {
  /** `key` as `portKey`: the listener with this id binds the port, and others may share it. */
  serveOn(listenerId: string, key: string): StreamHandler;
  readonly websocket: WebSocketHandler<never>;
  readonly limits: ConnectionLimits;
  /** The stream route at the port that takes the name; null when none does. */
  adopt(portKey: string, arrival: Arrival): SocketOwner | null;
  refused(listener: string, reason: string, address: string): void;
  /** A TLS handshake on the listener with this id was done, or failed, where that is known. */
  shaken(listenerId: string, isDone: boolean): void;
  readonly challenges: OpenChallenges;
  /** A listener could not be bound anew beside a version. */
  failed(issue: Issue): void;
}

/** Listeners bound for a version that is not served yet, by id. */
export type OpenedListeners = Map<string, HttpListener>;

export class Listeners {
  readonly #options: ListenersOptions;
  readonly #bound = new Map<string, HttpListener>();
  /** Those that no longer accept and wait for their last request. */
  readonly #closing = new Set<HttpListener>();
  #live: ListenerVersion | null = null;
  /** Nothing is accepted, because too little is left to accept it with. */
  #isPaused = false;
  #isStopped = false;
  /** Those that could not be bound after a pause, by id. */
  readonly #missing = new Set<string>();

  constructor(options: ListenersOptions) {
    this.#options = options;
  }

  /** Binds what the version needs and is not bound yet; `discard` what was opened when the version is not served. */
  prepare(version: ListenerVersion): {
    readonly opened: OpenedListeners;
    readonly issues: Issue[];
  } {
    const opened: OpenedListeners = new Map();
    const issues: Issue[] = [];
    for (const plan of boundBy(version)) {
      if (!this.#mustBind(plan, version)) continue;
      try {
        opened.set(plan.id, this.#open(plan, version));
      } catch (error) {
        issues.push(bindIssue(plan, error));
      }
    }
    return { opened, issues };
  }

  /** Serves a version for which `prepare` has bound the listeners; those before it go on with the connections that they have. */
  activate(version: ListenerVersion, opened: OpenedListeners): void {
    this.#live = version;
    for (const [id, listener] of opened) {
      this.#retire(id);
      this.#bound.set(id, listener);
    }
    const wanted = new Set(boundBy(version).map(({ id }) => id));
    for (const id of [...this.#bound.keys()]) if (!wanted.has(id)) this.#retire(id);
    this.reconcile();
    if (this.#isPaused) this.#retireAll();
  }

  /** Closes what `prepare` has bound. Clients that came in there meanwhile were served by the live version, and are to the end. */
  discard(opened: OpenedListeners): void {
    for (const listener of opened.values()) this.#leave(listener);
    opened.clear();
  }

  /** Accepts nothing while `isPaused`; listens again afterwards. To be called again and again: what cannot be bound is tried again. */
  pauseWhile(isPaused: boolean): void {
    if (isPaused && this.#isPaused) this.#closeSilent();
    if (isPaused === this.#isPaused && (isPaused || this.#missing.size === 0)) return;
    const wasPaused = this.#isPaused;
    this.#isPaused = isPaused;
    if (isPaused) this.#retireAll();
    else this.#bindMissing(wasPaused);
  }

  /** Connections that never asked for anything would stay until they have been idle for too long. */
  #closeSilent(): void {
    for (const listener of this.#closing) if (listener.pending === 0) void listener.close();
  }

  /** `isFirst`: what fails is told once, not at each attempt. */
  #bindMissing(isFirst: boolean): void {
    const live = this.#live;
    this.#missing.clear();
    if (live === null || this.#isStopped) return;
    for (const plan of boundBy(live)) {
      if (this.#bound.has(plan.id)) continue;
      try {
        this.#bound.set(plan.id, this.#open(plan, live));
      } catch (error) {
        this.#missing.add(plan.id);
        if (isFirst) this.#options.failed(bindIssue(plan, error));
      }
    }
  }

  /**
   * Puts https listeners behind a front while authorities may want to see a certificate there, and takes them away from it
   * afterwards. One that cannot be bound anew stays as it is.
   */
  reconcile(): void {
    const live = this.#live;
    if (live === null) return;
    const wrong = [...live.listeners.values()].filter((plan) => {
      const bound = this.#bound.get(plan.id);
      return bound !== undefined && bound.isFronted !== this.#isFronted(plan, live);
    });
    for (const plan of wrong) {
      try {
        const opened = this.#open(plan, live);
        this.#retire(plan.id);
        this.#bound.set(plan.id, opened);
      } catch (error) {
        this.#options.failed(bindIssue(plan, error));
      }
    }
  }

  /** Accepts no more; whoever is connected is sent away after the present request. */
  stopAccepting(): void {
    this.#isStopped = true;
    this.#retireAll();
  }

  #retireAll(): void {
    for (const id of [...this.#bound.keys()]) this.#retire(id);
    for (const listener of this.#closing) listener.goAway();
  }

  /** Closes what still waits for a last request. */
  async close(): Promise<void> {
    await closeListeners(this.#closing);
  }

  /** A listener is bound anew only when what its socket was given has changed; everything else is read at each request. */
  #mustBind(plan: ListenerPlan, version: ListenerVersion): boolean {
    const bound = this.#bound.get(plan.id);
    if (bound === undefined) return true;
    if (bound.isFronted !== this.#isFronted(plan, version)) return true;
    if (plan.tls !== null && this.#live?.certificates !== version.certificates) return true;
    if (bound.plan === plan) return false;
    return JSON.stringify(bindKey(bound.plan)) !== JSON.stringify(bindKey(plan));
  }

  #open(plan: ListenerPlan, version: ListenerVersion): HttpListener {
    const { serveOn, websocket, limits, adopt, refused, challenges, shaken } = this.#options;
    const { id, listener } = plan;
    const key = portKey(listener.address, listener.port);
    const context = { serve: serveOn(id, key), websocket, certificates: version.certificates };
    if (!this.#isFronted(plan, version)) return openHttpListener(plan, context);
    return openFrontedListener(plan, {
      ...context,
      challenges,
      // As they are now, because a change of limits alone binds nothing anew.
      admit: () => limits.admit(this.#live?.listeners.get(id)?.listener ?? listener),
      headTimeoutMs: () => (this.#live ?? version).settings.limits.head_read_timeout,
      prereadTimeout: () => (this.#live ?? version).settings.limits.preread_timeout,
      adopt: (arrival) => adopt(key, arrival),
      refused: (reason, address) => refused(listener.name, reason, address),
      shaken: (isDone) => shaken(id, isDone),
    });
  }

  #isFronted(plan: ListenerPlan, { passthroughPorts }: ListenerVersion): boolean {
    const { listener } = plan;
    const isShared = passthroughPorts.has(portKey(listener.address, listener.port));
    return (
      (plan.tls !== null && this.#options.challenges.hasNames) || needsFront(listener, isShared)
    );
  }

  #retire(id: string): void {
    const listener = this.#bound.get(id);
    if (listener === undefined) return;
    this.#bound.delete(id);
    this.#leave(listener);
  }

  #leave(listener: HttpListener): void {
    this.#closing.add(listener);
    void listener.stop().finally(() => this.#closing.delete(listener));
  }
}

/** Of listeners that share a port, one has the socket. */
const boundBy = ({ listeners }: ListenerVersion): readonly ListenerPlan[] =>
  [...listenersByPort(listeners.values()).values()].flatMap((group) => group.slice(0, 1));

/** Closes everything at once. */
export async function closeListeners(listeners: Iterable<HttpListener>): Promise<void> {
  await Promise.all([...listeners].map((listener) => listener.close()));
}

/** What a socket, or the server behind it, was given. */
function bindKey({ listener, tls }: ListenerPlan) {
  const { address, port, protocol, http2, http3, tls_min_version, idle_timeout } = listener;
  const { client_auth, client_ca, client_crl, strict_sni, proxy_protocol } = listener;
  return [
    [address, port, protocol, http2, http3, tls_min_version, idle_timeout, tls],
    client_auth === "none" ? null : [client_auth, client_ca, client_crl],
    proxy_protocol ? listener.trusted_proxies : null,
    strict_sni,
  ];
}

function bindIssue({ listener }: ListenerPlan, error: unknown): Issue {
  const reason = error instanceof Error ? error.message : String(error);
  return {
    path: "port",
    message: `cannot listen on ${listener.address} port ${listener.port}: ${reason}`,
    status: 409,
  };
}
