// One plain Bun.listen for an address and port, whose connections our own engine serves, with TLS or without; knows no request and no
// route.
import { type ProxyLists, withProxyNetworks } from "../../net/known-proxies.ts";
import type { Listener } from "../../model/listener.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { ClientHello } from "../../net/client-hello.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import { ACME_PROTOCOL } from "../challenges.ts";
import { Acceptor, type Termination } from "../listener/acceptor.ts";
import type { AcceptedSocket, ClientSocket } from "../listener/client-socket.ts";
import { type ConnectionInfo, connectionInfo } from "../listener/connection-info.ts";
import { idleTimeoutOf } from "../listener/listener-runtime.ts";
import type { AcceptDecision, ConnectionSlot, Preread } from "../listener/pending-connection.ts";
import type { SocketContext } from "../listener/socket-context.ts";
import type { ClientCounts, HttpListener } from "./bun-server.ts";
import { chooseProtocol, openHttp1 } from "./protocols.ts";
import type { OpenConnection, ServedConnection } from "./served-connection.ts";
import { TlsContexts } from "./tls-contexts.ts";

const TICK_MS = 1000;
/** Time in which what was sent to clients reaches the kernel when everything is closed. */
const FLUSH_MS = 1000;

type Trusts = (address: string) => boolean;

/** After a minute of silence, to notice clients that have vanished. */
const KEEP_ALIVE_MS = 60_000;

/** RFC 8446 section 6: a fatal alert, before any key is there. */
const alert = (code: number) => Buffer.from([21, 3, 3, 0, 2, 2, code]);
const UNRECOGNIZED_NAME = alert(112);
const NO_APPLICATION_PROTOCOL = alert(120);

export class SocketListener implements HttpListener {
  readonly plan: ListenerPlan;
  readonly #context: SocketContext;
  readonly #acceptor: Acceptor;
  readonly #connections = new Set<ServedConnection>();
  readonly #contexts = new TlsContexts();
  /** Of the version that was activated last. */
  #plans: readonly ListenerPlan[] = [];
  #timer: Timer | null = null;
  #onEmpty: (() => void) | null = null;
  #isGoingAway = false;
  #trusted: {
    readonly listener: Listener;
    readonly lists: ProxyLists;
    readonly trusts: Trusts;
  } | null = null;

  /** Binds with SO_REUSEPORT beside the other workers. Throws the system's error. */
  constructor(plan: ListenerPlan, context: SocketContext) {
    this.plan = plan;
    this.#context = context;
    const { admit, prereadTimeout, refused, onHandshake, livePlan } = context;
    this.#acceptor = new Acceptor({
      address: plan.listener.address,
      port: plan.listener.port,
      trusts: () => this.#trusts(livePlan().listener),
      readsHello: () => livePlan().tls !== null,
      prereadTimeout,
      admit,
      decide: (preread) => this.#decide(preread),
      refused,
      onHandshake,
    });
  }

  /** Requests and WebSockets in progress. */
  get pending(): number {
    let requests = 0;
    for (const { pending } of this.#connections) requests += pending;
    return requests;
  }

  countClients(counts: ClientCounts): void {
    for (const { isHttp2, pending } of this.#connections) {
      if (isHttp2) {
        counts.http2++;
        counts.streams += pending;
      } else counts.http1++;
    }
  }

  /** Connections whose client certificate was verified with other settings end with their current requests. */
  update(): void {
    const { livePlans, planFor } = this.#context;
    const plans = livePlans();
    if (plans.length === this.#plans.length && plans.every((plan, at) => plan === this.#plans[at]))
      return;
    this.#plans = plans;
    for (const connection of this.#connections) {
      const { serverName, clientAuthKey, tlsVersion } = connection.info;
      if (tlsVersion === null) continue;
      const { clientAuth } = this.#contexts.rulesOf(planFor(serverName).listener, livePlans);
      if (clientAuthKey !== (clientAuth?.key ?? null)) connection.goAway();
    }
  }

  async stop(): Promise<void> {
    const accepted = this.#acceptor.stop();
    this.goAway();
    await accepted;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      this.#stopIfEmpty();
    });
  }

  goAway(): void {
    this.#isGoingAway = true;
    for (const connection of this.#connections) connection.goAway();
  }

  async close(): Promise<void> {
    this.#acceptor.close();
    const end = performance.now() + FLUSH_MS;
    const isServed = () => [...this.#connections].every((connection) => connection.isServed);
    while (!isServed() && performance.now() < end) await Bun.sleep(5);
    for (const connection of [...this.#connections]) connection.close();
  }

  /** Of the live version: compiled once for each. */
  #trusts(listener: Listener): Trusts | null {
    if (!listener.proxy_protocol) return null;
    const lists = this.#context.proxyLists();
    if (this.#trusted?.listener !== listener || this.#trusted.lists !== lists) {
      const networks = withProxyNetworks(listener.trusted_proxies, lists);
      this.#trusted = { listener, lists, trusts: compileCidrs(networks) };
    }
    return this.#trusted.trusts;
  }

  #decide(preread: Preread): AcceptDecision {
    const { socket, hello, buffered } = preread;
    if (hello !== null) return this.#decideTls(preread, hello);
    prepareForRequests(socket);
    const info = connectionInfo(preread);
    const connection = this.#connect(socket, { slot: preread.slot, info, open: openHttp1 });
    // `begin` after the socket has its new owner.
    queueMicrotask(() => connection.begin(buffered));
    return { owner: connection.socket, ownsSlot: true };
  }

  /** Nothing was sent to the client yet: the connection can become everything that begins with a ClientHello. */
  #decideTls(preread: Preread, hello: ClientHello): AcceptDecision {
    const { challenges, adopt, liveCertificates, planFor, livePlans } = this.#context;
    const { serverName, protocols } = hello;
    const challenge = challenges.certificateFor(serverName, protocols);
    if (challenge !== null) {
      const context = this.#contexts.withoutRules(challenge);
      const accepted: Termination["accepted"] = (secured) =>
        this.#acceptor.linger(secured, preread.slot);
      const protocol = ACME_PROTOCOL;
      return this.#acceptor.secure(preread, { context, clientAuth: null, protocol, accepted });
    }
    const stream = adopt(preread);
    if (stream !== null) return { owner: stream, ownsSlot: false };
    const { listener, tls } = planFor(serverName);
    const certificate = liveCertificates().find(serverName);
    if (certificate === null) challenges.missing(serverName);
    if (tls === null || (certificate === null && listener.strict_sni))
      return {
        refusal: "no certificate matches the TLS server name",
        alert: UNRECOGNIZED_NAME,
      };
    const protocol = chooseProtocol(protocols, listener);
    if (protocol === null)
      return {
        refusal: "the client offers no protocol of the listener",
        alert: NO_APPLICATION_PROTOCOL,
      };
    const rules = this.#contexts.rulesOf(listener, livePlans);
    prepareForRequests(preread.socket);
    return this.#acceptor.secure(preread, {
      context: rules.contextOf(certificate ?? tls),
      clientAuth: rules.clientAuth,
      protocol: protocol.name,
      accepted: (secured, info) => {
        const { open } = protocol;
        secured.data = this.#connect(secured, { slot: preread.slot, info, open }).socket;
      },
    });
  }

  #connect(
    socket: ClientSocket,
    {
      slot,
      info,
      open,
    }: {
      readonly slot: ConnectionSlot;
      readonly info: ConnectionInfo;
      readonly open: OpenConnection;
    },
  ): ServedConnection {
    const { serve, refused, planFor } = this.#context;
    const listener = () => planFor(info.serverName).listener;
    let connection = open(socket, {
      info,
      serve,
      listener,
      bounds: () => this.#bounds(listener()),
      refused: (reason) => refused(reason, info.address),
      onHttp2End: this.#context.onHttp2End,
      replaced: (by) => {
        this.#connections.delete(connection);
        connection = by;
        this.#connected(by);
      },
      closed: () => {
        this.#connections.delete(connection);
        slot.release();
        this.#stopIfEmpty();
      },
    });
    this.#connected(connection);
    return connection;
  }

  #connected(connection: ServedConnection): void {
    this.#connections.add(connection);
    this.#startTimer();
    if (this.#isGoingAway) connection.isGoingAway = true;
  }

  #bounds(listener: Listener) {
    const { headTimeoutMs, responseWriteTimeout } = this.#context;
    return {
      headTimeout: headTimeoutMs(),
      idleTimeout: idleTimeoutOf(listener) * 1000,
      writeTimeout: responseWriteTimeout(),
    };
  }

  #startTimer(): void {
    this.#timer ??= setInterval(() => {
      const now = performance.now();
      for (const connection of this.#connections) connection.tick(now);
    }, TICK_MS);
  }

  #stopIfEmpty(): void {
    if (this.#connections.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#onEmpty?.();
  }
}

function prepareForRequests(socket: AcceptedSocket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
}
