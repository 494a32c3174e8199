// One plain Bun.listen for an address and port, whose connections our own engine serves, with TLS or without; knows no request and no
// route.
import type { Listener } from "../../model/listener.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { ClientHello } from "../../net/client-hello.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import { ACME_PROTOCOL } from "../challenges.ts";
import { type ConnectionInfo, connectionInfo } from "../listener/connection-info.ts";
import type { AcceptorContext } from "../listener/connection-server.ts";
import { idleTimeoutOf } from "../listener/listener-runtime.ts";
import {
  type ClientSocket,
  isGone,
  NO_OWNER,
  type SocketOwner,
} from "../listener/loopback-tunnel.ts";
import {
  type AcceptDecision,
  type ConnectionSlot,
  PendingConnection,
  type Preread,
} from "../listener/pending-connection.ts";
import type { HttpListener } from "./bun-server.ts";
import type { TlsSocket } from "./bun-tls.ts";
import { PeerSocket } from "./peer-socket.ts";
import { chooseProtocol, openHttp1 } from "./protocols.ts";
import type { OpenConnection, ServedConnection } from "./served-connection.ts";
import { TlsContexts } from "./tls-contexts.ts";
import { TlsHandshake, type TlsHandshakeOptions } from "./tls-handshake.ts";

const TICK_MS = 1000;
/** Time in which what was sent to clients reaches the kernel when everything is closed. */
const FLUSH_MS = 1000;

type Trusts = (address: string) => boolean;

interface Accepted extends ClientSocket {
  data: SocketOwner;
  setNoDelay(on: boolean): void;
  setKeepAlive(on: boolean, delayMs: number): void;
}

/** A connection that no protocol serves yet, or any more. */
interface Waiting {
  /** Called about once a second. */
  tick(now: number): void;
  /** Closes at once. */
  close(): void;
}

/** After a minute of silence, to notice clients that have vanished. */
const KEEP_ALIVE_MS = 60_000;

/** RFC 8446 section 6: a fatal alert, before any key is there. */
const alert = (code: number) => Buffer.from([21, 3, 3, 0, 2, 2, code]);
const UNRECOGNIZED_NAME = alert(112);
const NO_APPLICATION_PROTOCOL = alert(120);

/** How the TLS of a connection ends. */
type Termination = Pick<TlsHandshakeOptions, "context" | "clientAuth" | "protocol" | "accepted">;

export class SocketListener implements HttpListener {
  readonly plan: ListenerPlan;
  readonly hasAcceptor = true;
  readonly #context: AcceptorContext;
  readonly #server: { stop(force: boolean): void };
  readonly #waiting = new Set<Waiting>();
  readonly #connections = new Set<ServedConnection>();
  readonly #contexts = new TlsContexts();
  /** Of the version that was activated last. */
  #plans: readonly ListenerPlan[] = [];
  #timer: Timer | null = null;
  #onEmpty: (() => void) | null = null;
  #isGoingAway = false;
  #trusted: { readonly listener: Listener; readonly trusts: Trusts } | null = null;

  /** Binds with SO_REUSEPORT beside the other workers. Throws the system's error. */
  constructor(plan: ListenerPlan, context: AcceptorContext) {
    this.plan = plan;
    this.#context = context;
    this.#server = Bun.listen({
      hostname: plan.listener.address,
      port: plan.listener.port,
      reusePort: true,
      // A client may send FIN behind its request and wait for the response.
      allowHalfOpen: true,
      socket: this.#handlers(),
    } as unknown as Parameters<typeof Bun.listen<SocketOwner>>[0]);
  }

  /** Requests and WebSockets in progress. */
  get pending(): number {
    let requests = 0;
    for (const { pending } of this.#connections) requests += pending;
    return requests;
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

  stop(): Promise<void> {
    this.#server.stop(false);
    this.goAway();
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.#stopIfEmpty();
    });
  }

  goAway(): void {
    this.#isGoingAway = true;
    for (const connection of this.#connections) connection.goAway();
  }

  async close(): Promise<void> {
    this.#server.stop(false);
    const end = performance.now() + FLUSH_MS;
    const isServed = () => [...this.#connections].every((connection) => connection.isServed);
    while (!isServed() && performance.now() < end) await Bun.sleep(5);
    for (const connection of [...this.#waiting, ...this.#connections]) connection.close();
  }

  #accept(socket: Accepted): void {
    socket.data = NO_OWNER;
    if (isGone(socket)) return void socket.terminate();
    const { admit, prereadTimeout, refused, livePlan } = this.#context;
    const slot = admit();
    if (typeof slot === "string") {
      refused(slot, socket.remoteAddress);
      socket.terminate();
      return;
    }
    const { listener, tls } = livePlan();
    const connection = new PendingConnection(socket, slot, {
      now: () => performance.now(),
      timeoutMs: prereadTimeout(),
      trusts: listener.proxy_protocol ? this.#trusts(listener) : null,
      readsHello: tls !== null,
      decide: (preread) => this.#decide(socket, preread),
      refused,
      done: (done) => this.#over(done),
    });
    socket.data = connection;
    this.#wait(connection);
    connection.begin();
  }

  /** Of the live version: compiled once for each. */
  #trusts(listener: Listener): Trusts {
    if (this.#trusted?.listener !== listener)
      this.#trusted = { listener, trusts: compileCidrs(listener.trusted_proxies) };
    return this.#trusted.trusts;
  }

  #decide(socket: Accepted, preread: Preread): AcceptDecision {
    const { hello, buffered } = preread;
    if (hello !== null) return this.#decideTls(socket, preread, hello);
    prepareForRequests(socket);
    const info = connectionInfo(preread);
    const connection = this.#connect(socket, { slot: preread.slot, info, open: openHttp1 });
    // `begin` after the socket has its new owner.
    queueMicrotask(() => connection.begin(buffered));
    return { owner: connection.socket, ownsSlot: true };
  }

  /** Nothing was sent to the client yet: the connection can become everything that begins with a ClientHello. */
  #decideTls(socket: Accepted, preread: Preread, hello: ClientHello): AcceptDecision {
    const { challenges, adopt, liveCertificates, planFor, livePlans } = this.#context;
    const { serverName, protocols } = hello;
    const challenge = challenges.certificateFor(serverName, protocols);
    if (challenge !== null) {
      const context = this.#contexts.forChallenge(challenge);
      const accepted = (secured: TlsSocket) => this.#linger(secured, preread.slot);
      const protocol = ACME_PROTOCOL;
      return this.#secure(socket, preread, { context, clientAuth: null, protocol, accepted });
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
    prepareForRequests(socket);
    return this.#secure(socket, preread, {
      context: rules.contextOf(certificate ?? tls),
      clientAuth: rules.clientAuth,
      protocol: protocol.name,
      accepted: (secured, info) => {
        const { open } = protocol;
        secured.data = this.#connect(secured, { slot: preread.slot, info, open }).socket;
      },
    });
  }

  #secure(socket: Accepted, preread: Preread, termination: Termination): AcceptDecision {
    const { refused, onHandshake, prereadTimeout } = this.#context;
    const { slot, buffered } = preread;
    const info = connectionInfo(preread);
    const handshake = new TlsHandshake({
      ...termination,
      info,
      deadline: performance.now() + prereadTimeout(),
      ended: (isDone) => {
        onHandshake(isDone);
        this.#over(handshake);
      },
      refused: (reason) => {
        refused(reason, info.address);
        slot.release();
      },
    });
    this.#wait(handshake);
    return { owner: handshake.begin(socket, buffered), ownsSlot: true };
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

  /** Closes the connection of a CA, which has seen all that it wants. */
  #linger(secured: TlsSocket, slot: ConnectionSlot): void {
    const socket = new PeerSocket(secured, {
      received() {},
      drained() {},
      ended() {},
      closed: () => {
        slot.release();
        this.#over(lingering);
      },
    });
    const lingering: Waiting = {
      tick: (now) => socket.tick(now),
      close: () => socket.destroy(),
    };
    this.#wait(lingering);
    secured.data = socket;
    socket.finish(performance.now());
  }

  #bounds(listener: Listener) {
    const { headTimeoutMs, responseWriteTimeout } = this.#context;
    return {
      headTimeout: headTimeoutMs(),
      idleTimeout: idleTimeoutOf(listener) * 1000,
      writeTimeout: responseWriteTimeout(),
    };
  }

  /** Nothing that a handler throws may reach Bun, which would leave the socket open. */
  #handlers() {
    return {
      open: (socket: Accepted) => {
        try {
          this.#accept(socket);
        } catch {
          // What was counted for it must be so no more.
          socket.data.clientClosed(true);
          socket.terminate();
        }
      },
      data: (socket: Accepted, chunk: Buffer) => socket.data.clientSent(chunk),
      drain: (socket: Accepted) => socket.data.clientDrained(),
      end: (socket: Accepted) => socket.data.clientEnded(),
      close: (socket: Accepted, error: unknown) => socket.data.clientClosed(error instanceof Error),
      error: (socket: Accepted) => socket.data.clientClosed(true),
    };
  }

  #startTimer(): void {
    this.#timer ??= setInterval(() => {
      const now = performance.now();
      for (const connection of this.#waiting) connection.tick(now);
      for (const connection of this.#connections) connection.tick(now);
    }, TICK_MS);
  }

  #wait(waiting: Waiting): void {
    this.#waiting.add(waiting);
    this.#startTimer();
  }

  #over(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    this.#stopIfEmpty();
  }

  #stopIfEmpty(): void {
    if (this.#waiting.size + this.#connections.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#onEmpty?.();
  }
}

function prepareForRequests(socket: Accepted): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
}
