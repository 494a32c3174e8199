// Carries a client's bytes to a server of this worker on 127.0.0.1 and back; knows neither TLS nor HTTP.
import type { Socket, TCPSocketConnectOptions } from "bun";
import { Pipe, type Side } from "../stream/pipe.ts";
import type { ConnectionFacts, KnownConnections } from "./connection-facts.ts";
import { type HeadWatch, headTimeout } from "./head-watch.ts";

/** A client's socket as its owners see it. */
export type ClientSocket = Side &
  Pick<Socket<unknown>, "remoteAddress" | "remotePort" | "localPort" | "localAddress" | "end">;

/** Who hears what a client's socket does; it may pass from one to the next. */
export interface SocketOwner {
  clientSent(chunk: Buffer): void;
  clientDrained(): void;
  /** The client sends no more. */
  clientEnded(): void;
  /** `isReset`: the connection broke instead of being closed. */
  clientClosed(isReset: boolean): void;
}

/** A server on 127.0.0.1 and the connections that it takes. */
export interface Destination {
  readonly port: number;
  readonly known: KnownConnections;
}

/** Bytes of a client that may wait until the server is there. */
const MAX_EARLY_BYTES = 65_536;
/** Time that a client gets to close after everything was sent to it. */
const LINGER_MS = 5000;

export interface CarryOptions {
  readonly destination: Destination;
  readonly facts: ConnectionFacts;
  readonly now: () => number;
  /** The client is refused, and why. */
  readonly refused: (reason: string) => void;
  /** Runs once, when both sockets are gone or going. */
  readonly closed: (connection: CarriedConnection) => void;
}

export class CarriedConnection implements SocketOwner {
  readonly #client: ClientSocket;
  readonly #options: CarryOptions;
  #early: Buffer[] = [];
  #earlyBytes = 0;
  #server: Socket<CarriedConnection> | null = null;
  #sourcePort = 0;
  #pipe: Pipe | null = null;
  #clientHasEnded = false;
  /** The client got 408 for its head: the gateway drops what it still sends. */
  #isRefused = false;
  #isClosed = false;
  /** When to close without having heard from the client. */
  #deadline = Number.POSITIVE_INFINITY;

  /** Connects at once, or when the head of the first request is there. */
  constructor(client: ClientSocket, early: Buffer, options: CarryOptions) {
    this.#client = client;
    this.#options = options;
    if (options.facts.heads === null) this.#connect();
    if (early.length > 0) this.clientSent(early);
  }

  #connect(): void {
    const { destination } = this.#options;
    const connecting = {
      hostname: "127.0.0.1",
      port: destination.port,
      allowHalfOpen: true,
      data: this,
      socket: serverHandlers,
    } as unknown as TCPSocketConnectOptions<CarriedConnection>;
    // The handler hears of a failure too.
    Bun.connect(connecting).catch(() => this.close());
  }

  clientSent(chunk: Buffer): void {
    const { heads } = this.#options.facts;
    if (heads === null) this.#pass(chunk);
    else if (!this.#isRefused) this.#watch(heads, chunk);
  }

  #watch(heads: HeadWatch, chunk: Buffer): void {
    const wasHolding = heads.isHolding;
    const bytes = heads.pass(chunk, this.#options.now());
    if (bytes === null) return;
    if (wasHolding) this.#connect();
    this.#pass(bytes);
  }

  #pass(chunk: Buffer): void {
    if (this.#pipe !== null) return this.#pipe.clientSent(chunk);
    this.#early.push(chunk);
    this.#earlyBytes += chunk.length;
    if (this.#earlyBytes > MAX_EARLY_BYTES) this.#client.pause();
  }

  clientDrained(): void {
    this.#pipe?.clientDrained();
    this.#closeIfOver();
  }

  clientEnded(): void {
    this.#clientHasEnded = true;
    // Half a head is no request, and nothing more of it will come.
    if (this.#isRefused || this.#isHolding) return this.close();
    this.#pipe?.clientEnded();
    this.#closeIfOver();
  }

  clientClosed(): void {
    // A server that still works for this client must learn that nobody listens any more.
    this.close();
  }

  serverOpened(socket: Socket<CarriedConnection>): void {
    if (this.#isClosed) {
      socket.terminate();
      return;
    }
    const { destination, facts, now } = this.#options;
    this.#server = socket;
    this.#sourcePort = socket.localPort;
    // Before the first byte: whoever is not known by then is turned away.
    destination.known.add(this.#sourcePort, facts);
    const pipe = new Pipe(this.#client, socket, now());
    this.#pipe = pipe;
    const early = this.#early;
    this.#early = [];
    this.#client.resume();
    for (const chunk of early) pipe.clientSent(chunk);
    if (this.#clientHasEnded) pipe.clientEnded();
  }

  serverSent(chunk: Buffer): void {
    if (!this.#isRefused) this.#pipe?.targetSent(chunk);
  }

  serverDrained(): void {
    this.#pipe?.targetDrained();
    this.#closeIfOver();
  }

  /** A server ends a connection only when it is done with it: no half of it has a use any more. */
  serverEnded(): void {
    if (this.#isRefused) return;
    this.#pipe?.targetEnded();
    this.#deadline = this.#options.now() + LINGER_MS;
    this.#closeIfOver();
  }

  serverClosed(isReset: boolean): void {
    if (this.#isRefused) return;
    if (isReset || this.#pipe === null) this.close();
    else this.serverEnded();
  }

  /** Whether the server has ended it and the system has all that it sent. */
  get isServed(): boolean {
    return this.#isRefused || this.#isHolding || this.#isAnswered;
  }

  get #isAnswered(): boolean {
    return this.#deadline < Number.POSITIVE_INFINITY && this.#pipe?.heldDown === 0;
  }

  /** Called about once a second. */
  tick(now: number): void {
    const overdue = this.#isRefused ? null : this.#options.facts.heads?.overdue(now);
    if (overdue === "silent") return this.close();
    if (overdue === "partial") return this.#refuse(now);
    // A client that still takes bytes has more time.
    if (this.#deadline <= now && (this.#pipe?.quietFor(now) ?? LINGER_MS) >= LINGER_MS)
      this.close();
  }

  get #isHolding(): boolean {
    return this.#options.facts.heads?.isHolding === true;
  }

  /** The head of a request has not arrived in time. */
  #refuse(now: number): void {
    this.#options.refused("the head of a request did not arrive in time");
    // Behind an answer that the client does not read, 408 would be taken for a part of it.
    if ((this.#pipe?.heldDown ?? 0) > 0) return this.close();
    this.#isRefused = true;
    this.#client.write(headTimeout());
    this.#client.shutdown();
    this.#server?.terminate();
    this.#deadline = now + LINGER_MS;
  }

  #closeIfOver(): void {
    if (this.#pipe?.isOver === true) this.close();
  }

  /** Ends both sides now; what is already with the system is still sent after a regular end. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#early = [];
    if (this.#sourcePort !== 0) this.#options.destination.known.delete(this.#sourcePort);
    if (this.#pipe?.isOver === true || this.#isAnswered) {
      this.#client.end();
      this.#server?.end();
    } else {
      this.#client.terminate();
      this.#server?.terminate();
    }
    this.#options.closed(this);
  }
}

const serverHandlers = {
  open: (socket: Socket<CarriedConnection>) => socket.data.serverOpened(socket),
  data: (socket: Socket<CarriedConnection>, chunk: Buffer) => socket.data.serverSent(chunk),
  drain: (socket: Socket<CarriedConnection>) => socket.data.serverDrained(),
  end: (socket: Socket<CarriedConnection>) => socket.data.serverEnded(),
  close: (socket: Socket<CarriedConnection>, error: unknown) =>
    socket.data.serverClosed(error instanceof Error),
  error: (socket: Socket<CarriedConnection>) => socket.data.serverClosed(true),
  connectError: (socket: Socket<CarriedConnection>) => socket.data.close(),
};
