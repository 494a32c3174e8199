// One plain Bun.listen for an address and port, whose connections our own engine serves; knows no request and no route.
import type { Listener } from "../../model/listener.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";
import { connectionInfo } from "../listener/connection-info.ts";
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
  PendingConnection,
  type Preread,
} from "../listener/pending-connection.ts";
import type { HttpListener } from "./bun-server.ts";
import { Http1Connection } from "./http1/connection.ts";

const TICK_MS = 1000;
/** Time in which what was sent to clients reaches the kernel when everything is closed. */
const FLUSH_MS = 1000;

type Trusts = (address: string) => boolean;

interface Accepted extends ClientSocket {
  data: SocketOwner;
  setNoDelay(on: boolean): void;
  setKeepAlive(on: boolean, delayMs: number): void;
}

/** After a minute of silence, to notice clients that have vanished. */
const KEEP_ALIVE_MS = 60_000;

export class SocketListener implements HttpListener {
  readonly plan: ListenerPlan;
  readonly hasAcceptor = true;
  readonly #context: AcceptorContext;
  readonly #server: { stop(force: boolean): void };
  readonly #pending = new Set<PendingConnection>();
  readonly #connections = new Set<Http1Connection>();
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
    let pending = 0;
    for (const { isBusy } of this.#connections) if (isBusy) pending++;
    return pending;
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
    for (const connection of [...this.#pending, ...this.#connections]) connection.close();
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
    const { listener } = livePlan();
    const connection = new PendingConnection(socket, slot, {
      now: () => performance.now(),
      timeoutMs: prereadTimeout(),
      trusts: listener.proxy_protocol ? this.#trusts(listener) : null,
      readsHello: false,
      decide: (preread) => this.#serve(socket, preread),
      refused,
      done: (done) => {
        this.#pending.delete(done);
        this.#stopIfEmpty();
      },
    });
    socket.data = connection;
    this.#pending.add(connection);
    this.#startTimer();
    connection.begin();
  }

  /** Of the live version: compiled once for each. */
  #trusts(listener: Listener): Trusts {
    if (this.#trusted?.listener !== listener)
      this.#trusted = { listener, trusts: compileCidrs(listener.trusted_proxies) };
    return this.#trusted.trusts;
  }

  #serve(socket: Accepted, preread: Preread): AcceptDecision {
    const { buffered, slot } = preread;
    const { serve, refused, livePlan } = this.#context;
    const info = connectionInfo(preread);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    const connection: Http1Connection = new Http1Connection(socket, {
      info,
      serve,
      maxHeadBytes: () => livePlan().listener.max_header_bytes,
      bounds: () => this.#bounds(),
      refused: (reason) => refused(reason, info.address),
      closed: () => {
        this.#connections.delete(connection);
        slot.release();
        this.#stopIfEmpty();
      },
    });
    this.#connections.add(connection);
    if (this.#isGoingAway) connection.isGoingAway = true;
    // `begin` after the socket has its new owner.
    queueMicrotask(() => connection.begin(buffered));
    return { owner: connection.socket, ownsSlot: true };
  }

  #bounds() {
    const { headTimeoutMs, responseWriteTimeout, livePlan } = this.#context;
    const { listener } = livePlan();
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
      for (const connection of this.#pending) connection.tick(now);
      for (const connection of this.#connections) connection.tick(now);
    }, TICK_MS);
  }

  #stopIfEmpty(): void {
    if (this.#pending.size + this.#connections.size > 0) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#onEmpty?.();
  }
}
