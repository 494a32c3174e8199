// One connection to a target: connecting, writing with back-pressure, pausing; knows no HTTP.
import type { Socket, TCPSocketConnectOptions } from "bun";
import { failures, type ProxyError } from "../error.ts";

/** Where a connection leads. */
export interface Endpoint {
  readonly hostname: string;
  readonly port: number;
  /** Null for plain TCP. */
  readonly tls: {
    readonly rejectUnauthorized: boolean;
    readonly ca?: string;
    readonly serverName?: string;
    readonly minVersion: number;
  } | null;
}

/** Who is told what happens on a connection. */
export interface ConnectionUser {
  connected(): void;
  received(chunk: Buffer): void;
  /** All that was held back has been written. */
  drained(): void;
  /**
   * The peer closed, or the connection failed. Called once; nothing follows. `isReset`: it broke instead of being closed, so
   * what has arrived may not be all that was sent.
   */
  ended(error: ProxyError | null, isReset: boolean): void;
}

/** Who lends a connection out. */
export interface ConnectionHome {
  /** Its user is done with it, and it is in working order. */
  takeBack(connection: UpstreamConnection): void;
  /** It has ended, whenever and however. Called once. */
  closed(connection: UpstreamConnection): void;
}

type State = "connecting" | "open" | "closed";

/** A socket with one user at a time. Writes never block: what the system does not take is kept and sent on `drain`. */
export class UpstreamConnection {
  /** Requests that were begun on this connection. */
  requests = 0;
  /** When it was last given back, in the worker's milliseconds. */
  idleSince = 0;
  #state: State = "connecting";
  #socket: Socket<UpstreamConnection> | null = null;
  #user: ConnectionUser | null = null;
  #held: Buffer | null = null;
  #endsWhenWritten = false;
  /** Whether a target whose certificate does not verify is refused. */
  readonly verifies: boolean;
  readonly #home: ConnectionHome;

  /** Starts to connect; attach a user in the same turn to hear the outcome.  */
  constructor(endpoint: Endpoint, home: ConnectionHome) {
    this.#home = home;
    this.verifies = endpoint.tls?.rejectUnauthorized ?? false;
    const options: TCPSocketConnectOptions<UpstreamConnection> = {
      hostname: endpoint.hostname,
      port: endpoint.port,
      data: this,
      socket: endpoint.tls === null ? plainHandlers : tlsHandlers,
    };
    if (endpoint.tls !== null)
      options.tls = endpoint.tls as NonNullable<TCPSocketConnectOptions<UpstreamConnection>["tls"]>;
    // The outcome arrives through the handlers too; both lead to the same place, which acts once.
    Bun.connect(options).catch((error: unknown) => this.failed(connectError(error)));
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** True while bytes wait for the system to take them. */
  get isHolding(): boolean {
    return this.#held !== null;
  }

  /** Bytes that wait for the system to take them. */
  get heldBytes(): number {
    return this.#held?.length ?? 0;
  }

  /** Gives the connection to its next user. */
  attach(user: ConnectionUser): void {
    this.#user = user;
  }

  /** Returns it to where it came from, for the next request. */
  giveBack(): void {
    this.#user = null;
    this.#home.takeBack(this);
  }

  /** Leaves the connection without a user: anything that arrives then ends it. */
  detach(): void {
    this.#user = null;
  }

  /** Writes text whose characters are bytes (latin1). False: some of it is held back, wait for `drained`. */
  writeText(text: string): boolean {
    const socket = this.#socket;
    if (socket === null || this.#held !== null) return this.#hold(Buffer.from(text, "latin1"));
    const written = (
      socket as unknown as { write(data: string, encoding: "latin1"): number }
    ).write(text, "latin1");
    if (written === text.length) return true;
    if (written < 0) return false;
    return this.#hold(Buffer.from(text.slice(written), "latin1"));
  }

  /** Writes bytes. False: some are held back, wait for `drained`. The caller must not change them afterwards. */
  write(bytes: Uint8Array): boolean {
    const socket = this.#socket;
    if (socket === null || this.#held !== null)
      return this.#hold(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    const written = socket.write(bytes);
    if (written === bytes.byteLength) return true;
    if (written < 0) return false;
    return this.#hold(
      Buffer.from(bytes.buffer, bytes.byteOffset + written, bytes.byteLength - written),
    );
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  /** Tells the peer, after all that was written, that nothing more follows; what it still sends is received. */
  endWriting(): void {
    if (this.#endsWhenWritten) return;
    this.#endsWhenWritten = true;
    if (this.#held === null) this.#socket?.shutdown();
  }

  /** Ends it now; the user hears nothing of it. */
  destroy(): void {
    if (this.#state === "closed") return;
    this.#close();
    this.#socket?.terminate();
  }

  #hold(bytes: Buffer): false {
    this.#held = this.#held === null ? bytes : Buffer.concat([this.#held, bytes]);
    return false;
  }

  #close(): ConnectionUser | null {
    const user = this.#user;
    this.#state = "closed";
    this.#user = null;
    this.#held = null;
    this.#home.closed(this);
    return user;
  }

  // What follows is called by the socket handlers below.

  opened(socket: Socket<UpstreamConnection>): void {
    this.#socket = socket;
  }

  ready(): void {
    if (this.#state !== "connecting") {
      this.#socket?.terminate();
      return;
    }
    this.#state = "open";
    this.#user?.connected();
  }

  failed(error: ProxyError | null, isReset = false): void {
    if (this.#state === "closed") return;
    this.#close()?.ended(error, isReset);
    this.#socket?.terminate();
  }

  received(chunk: Buffer): void {
    if (this.#state === "closed") return;
    // Nobody asked: a kept connection on which the target speaks first cannot be trusted with a request.
    if (this.#user === null) this.destroy();
    else this.#user.received(chunk);
  }

  flush(): void {
    const held = this.#held;
    if (held === null || this.#socket === null) return;
    this.#held = null;
    if (!this.write(held)) return;
    if (this.#endsWhenWritten) this.#socket.shutdown();
    this.#user?.drained();
  }
}

const plainHandlers: NonNullable<TCPSocketConnectOptions<UpstreamConnection>["socket"]> = {
  open(socket) {
    socket.data.opened(socket);
    socket.setNoDelay(true);
    socket.data.ready();
  },
  data(socket, chunk) {
    socket.data.received(chunk);
  },
  drain(socket) {
    socket.data.flush();
  },
  close(socket, error) {
    socket.data.failed(null, error instanceof Error);
  },
  error(socket) {
    socket.data.failed(null, true);
  },
  connectError(socket, error) {
    socket.data.failed(connectError(error));
  },
};

const tlsHandlers: NonNullable<TCPSocketConnectOptions<UpstreamConnection>["socket"]> = {
  ...plainHandlers,
  open(socket) {
    socket.data.opened(socket);
  },
  handshake(socket, isAuthorized, error) {
    const connection = socket.data;
    if (isAuthorized || !connection.verifies) connection.ready();
    else
      connection.failed(
        isCertificateError(error) ? failures.tlsCertificate(error) : failures.tlsProtocol(error),
      );
  },
};

/** Verification failures carry OpenSSL's names or Node's; everything else is the protocol. */
function isCertificateError(error: Error | null): boolean {
  const code = (error as { code?: string } | null)?.code ?? "";
  return /CERT|ISSUER|SIGNATURE|CHAIN|CRL|ALTNAME/.test(code);
}

function connectError(error: unknown): ProxyError {
  const code = (error as { code?: string } | null)?.code;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "ENODATA")
    return failures.dns(error);
  return failures.refused(error);
}
