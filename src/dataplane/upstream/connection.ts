// One connection to a target: connecting, writing with back-pressure, pausing; knows no HTTP.
import type { Socket, SocketHandler } from "bun";
import { isIP } from "node:net";
import {
  BEHIND_BYTES,
  boundReceiveBuffer,
  hasInput,
  freeReceiveBuffer,
  isNear,
  unsentBytes,
} from "../../system/receive-buffer.ts";
import { failures, type ProxyError } from "../error.ts";
import type { Address } from "../names/addresses.ts";
import { Dial, type DialOwner, type SocketOwner } from "./dial.ts";
import type { Endpoint } from "./endpoint.ts";
import { tlsBroken, tlsFailure } from "./tls-failure.ts";

/** What handles the events of a connection. */
export interface ConnectionHandler {
  connected(): void;
  received(chunk: Buffer): void;
  /** All buffered bytes have been written. */
  drained(): void;
  /**
   * The peer closed, or the connection failed. Called once; nothing follows. `isReset`: it was reset, so
   * bytes may be missing.
   */
  ended(error: ProxyError | null, isReset: boolean): void;
  /** The peer sends nothing more, and still reads; only on connections with `allowHalfOpen`. Without it: `ended`. */
  halfEnded?(): void;
}

/** The pool of a connection. */
export interface ConnectionOwner {
  /** The handler is done with it and was removed; it can be reused. `now`: the worker's milliseconds. */
  release(connection: UpstreamConnection, now: number): void;
  /** The connection has closed. Called once. */
  closed(connection: UpstreamConnection): void;
  /** The target has sent bytes that belong to no response. */
  onSurplus?(): void;
}

/** The client that a connection belongs to. */
export interface ConnectionHolder {
  /** Takes it over instead of its pool. */
  hold(connection: UpstreamConnection): void;
}

/** For connections that serve one exchange. */
export const NO_POOL: ConnectionOwner = {
  release: (connection) => connection.destroy(),
  closed() {},
};

/** Devices that send a body where there is none, or more than they declare, send it at once. */
const REST_MS = 100;

/** After this time without a connection the next address is dialed as well. */
const NEXT_DIAL_MS = 1000;

/** A socket with one handler at a time. Writes never block: bytes that the kernel does not accept are buffered until `drain`. */
export class UpstreamConnection implements DialOwner, SocketOwner {
  /** Requests started on this connection. */
  requests = 0;
  /** When it was last released, in the worker's milliseconds. */
  idleSince = 0;
  /** In `performance.now()`: it serves no request before, so that what the target sends behind its response is there. */
  restsUntil = 0;
  /** In `performance.now()`: when the target will close it. */
  endsAt = Number.POSITIVE_INFINITY;
  /** Bytes of the present exchange that the system has taken. */
  sentBytes = 0;
  /** Whether the target's FIN acknowledges no byte of the exchange: it had closed before the request arrived. */
  isUnread = false;
  /** Whether it has connected and not closed. */
  isOpen = false;
  /** Null: any byte that arrives closes the connection. */
  handler: ConnectionHandler | null = null;
  /** The connected address; null while connecting. */
  address: Address | null = null;
  /** Its pool. */
  readonly owner: ConnectionOwner;
  /** Whose it is once a client has authenticated on it; undefined: any client may use it; null: it ends with the exchange. */
  boundTo: ConnectionHolder | null | undefined = undefined;
  #isClosed = false;
  #socket: Socket<SocketOwner> | null = null;
  /** What the kernel has not taken. */
  #held: Buffer | null = null;
  /** Whether bytes are buffered. */
  isHolding = false;
  /** Whether `boundReads` was called for this exchange. */
  isBounded = false;
  #endsWhenWritten = false;
  /** Addresses that were tried. */
  #tried: Set<Address> | null = null;
  /** Dials that have not failed yet. */
  #dials = 0;
  #slowTimer: Timer | null = null;
  /** Cancels the wait for name resolution. */
  #stopWaiting: (() => void) | null = null;
  readonly #endpoint: Endpoint;
  readonly #allowsHalfOpen: boolean;

  /**
   * Starts to connect; attach a handler in the same turn to get the outcome. `allowHalfOpen`: after the peer's FIN the handler may
   * still write (default: the connection ends).
   */
  constructor(endpoint: Endpoint, owner: ConnectionOwner, allowHalfOpen = false) {
    this.#endpoint = endpoint;
    this.owner = owner;
    this.#allowsHalfOpen = allowHalfOpen;
    const { addresses } = endpoint;
    if (this.#dial()) return;
    this.#stopWaiting = addresses.whenFound(() => {
      if (this.#isConnecting && !this.#dial()) this.failed(failures.dns());
    });
    // Deferred, because no handler is attached yet.
    if (this.#stopWaiting === null) queueMicrotask(() => this.failed(failures.dns()));
  }

  /** Dials the next address; false when all were tried. */
  #dial(): boolean {
    const { addresses, hostname, port, tls } = this.#endpoint;
    const address = addresses.next(this.#tried);
    if (address === null) return false;
    this.#dials++;
    const dial = new Dial(address, this);
    if (addresses.size > 1) {
      this.#tried ??= new Set();
      this.#tried.add(address);
      if (addresses.size > this.#tried.size)
        this.#slowTimer = setTimeout(() => this.#tooSlow(address), NEXT_DIAL_MS);
    }
    dial.begin({
      port: port === 0 ? address.port : port,
      tls: tls === null || tls.serverName !== undefined ? tls : withName(tls, hostname),
      allowHalfOpen: this.#allowsHalfOpen,
      handlers: tls === null ? plainHandlers : tlsHandlers,
    });
    return true;
  }

  /** Dials the next address too; the first one to accept wins. */
  #tooSlow(address: Address): void {
    this.#endpoint.addresses.failed(address);
    this.#dial();
  }

  get #isConnecting(): boolean {
    return !this.isOpen && !this.#isClosed;
  }

  /** Buffered bytes. */
  get heldBytes(): number {
    return this.#held?.length ?? 0;
  }

  /** Writes latin1 text. False: some of it is buffered, wait for `drained`. */
  writeText(text: string): boolean {
    const socket = this.#socket;
    if (socket === null || this.#held !== null) return this.#hold(Buffer.from(text, "latin1"));
    const written = (
      socket as unknown as { write(data: string, encoding: "latin1"): number }
    ).write(text, "latin1");
    this.sentBytes += Math.max(0, written);
    if (written === text.length) return true;
    if (written < 0) return false;
    return this.#hold(Buffer.from(text.slice(written), "latin1"));
  }

  /** Writes bytes. False: some are buffered, wait for `drained`. The caller must not change them afterwards. */
  write(bytes: Uint8Array): boolean {
    const socket = this.#socket;
    if (socket === null || this.#held !== null)
      return this.#hold(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    const written = socket.write(bytes);
    this.sentBytes += Math.max(0, written);
    if (written === bytes.byteLength) return true;
    if (written < 0) return false;
    return this.#hold(
      Buffer.from(bytes.buffer, bytes.byteOffset + written, bytes.byteLength - written),
    );
  }

  /** Writes the first bytes of a buffer that the caller uses again. As `write`. */
  writeCopy(bytes: Buffer, size: number): boolean {
    const socket = this.#socket;
    const written = socket === null || this.#held !== null ? 0 : socket.write(bytes, 0, size);
    this.sentBytes += Math.max(0, written);
    if (written === size) return true;
    if (written < 0) return false;
    return this.#hold(Buffer.from(bytes.subarray(written, size)));
  }

  /** Whether the target has sent something, or closed the connection, that no event has reported yet. */
  get hasInput(): boolean {
    return this.#socket !== null && hasInput(this.#socket);
  }

  /** Whether the target is within a few milliseconds. */
  get isNear(): boolean {
    return this.#socket === null || isNear(this.#socket);
  }

  /** Whether the target does not keep up with what is written. Asks the system: only for long pieces. */
  get isBehind(): boolean {
    return (
      this.#held !== null || (this.#socket !== null && unsentBytes(this.#socket) > BEHIND_BYTES)
    );
  }

  /** What is read has to wait: bounds what one read brings. */
  boundReads(): void {
    if (this.isBounded || this.#socket === null) return;
    this.isBounded = true;
    boundReceiveBuffer(this.#socket);
  }

  /** Awaits what the target may send behind its response. */
  rest(): void {
    this.restsUntil = performance.now() + REST_MS;
  }

  /** Another exchange follows, whose client may read faster. */
  freeReads(): void {
    this.isBounded = false;
    if (this.#socket === null) return;
    freeReceiveBuffer(this.#socket);
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  /** Sends FIN after all written bytes; the read side stays open. */
  endWriting(): void {
    if (this.#endsWhenWritten) return;
    this.#endsWhenWritten = true;
    if (this.#held === null) this.#socket?.shutdown();
  }

  /** Closes the connection without calling the handler. */
  destroy(): void {
    if (this.#isClosed) return;
    this.#close();
    this.#socket?.terminate();
  }

  #stopDialing(): void {
    if (this.#slowTimer !== null) clearTimeout(this.#slowTimer);
    this.#slowTimer = null;
    this.#stopWaiting?.();
    this.#stopWaiting = null;
  }

  #hold(bytes: Buffer): false {
    this.#held = this.#held === null ? bytes : Buffer.concat([this.#held, bytes]);
    this.isHolding = true;
    return false;
  }

  #close(): ConnectionHandler | null {
    const { handler } = this;
    this.#stopDialing();
    this.isOpen = false;
    this.#isClosed = true;
    this.handler = null;
    this.#held = null;
    this.isHolding = false;
    this.owner.closed(this);
    return handler;
  }

  // Events of a dial.

  onDialed(socket: Socket<SocketOwner>, address: Address): boolean {
    if (!this.#isConnecting || this.#socket !== null) return false;
    this.#stopDialing();
    this.#socket = socket;
    this.address = address;
    if (this.#endpoint.tls === null) this.#ready();
    return true;
  }

  onDialFailed(address: Address, error: ProxyError): void {
    this.#dials--;
    this.#endpoint.addresses.failed(address);
    if (!this.#isConnecting || this.#socket !== null) return;
    if (this.#slowTimer !== null) clearTimeout(this.#slowTimer);
    this.#slowTimer = null;
    if (this.#tried !== null && this.#dial()) return;
    // Another dial may still succeed.
    if (this.#dials === 0) this.failed(error);
  }

  // Events of the socket.

  onHandshake(isAuthorized: boolean, error: Error | null): void {
    const failure = isAuthorized ? null : tlsFailure(error);
    const isVerified = this.#endpoint.tls?.rejectUnauthorized !== false;
    if (failure !== null && (failure.token !== "tls_certificate_error" || isVerified))
      this.failed(failure);
    else if (this.#endpoint.tls?.alpn === undefined || this.#hasAlpn(this.#endpoint.tls.alpn))
      this.#ready();
    else
      this.failed(
        failures.tlsProtocol("the target does not speak HTTP/2", new Error("no ALPN h2")),
      );
  }

  #hasAlpn(protocol: string): boolean {
    return (
      (this.#socket as unknown as { alpnProtocol?: string | false } | null)?.alpnProtocol ===
      protocol
    );
  }

  #ready(): void {
    this.isOpen = true;
    this.handler?.connected();
  }

  broken(error: Error): void {
    this.failed(this.#endpoint.tls === null ? null : tlsBroken(error), true);
  }

  ended(isReset: boolean): void {
    this.failed(null, isReset);
  }

  halfEnded(): void {
    const { handler } = this;
    if (handler !== null && this.#socket !== null)
      this.isUnread = unsentBytes(this.#socket) >= this.sentBytes;
    if (handler?.halfEnded === undefined) this.failed(null);
    else handler.halfEnded();
  }

  failed(error: ProxyError | null, isReset = false): void {
    if (this.#isClosed) return;
    this.#close()?.ended(error, isReset);
    this.#socket?.terminate();
  }

  received(chunk: Buffer): void {
    if (this.#isClosed) return;
    // Bytes without a request: an idle connection on which the target speaks first must not be reused.
    if (this.handler !== null) return this.handler.received(chunk);
    this.owner.onSurplus?.();
    this.destroy();
  }

  flush(): void {
    const held = this.#held;
    if (held === null || this.#socket === null) return;
    this.#held = null;
    this.isHolding = false;
    if (!this.write(held)) return;
    if (this.#endsWhenWritten) this.#socket.shutdown();
    this.handler?.drained();
  }
}

/** Sets SNI and the name to verify; an IP address is verified as such. */
function withName(tls: NonNullable<Endpoint["tls"]>, hostname: string): Endpoint["tls"] {
  return isIP(hostname) === 0 ? { ...tls, serverName: hostname } : tls;
}

const plainHandlers: SocketHandler<SocketOwner> = {
  open(socket) {
    if (socket.data instanceof Dial) socket.data.opened(socket);
  },
  data(socket, chunk) {
    socket.data.received(chunk);
  },
  drain(socket) {
    socket.data.flush();
  },
  end(socket) {
    socket.data.halfEnded();
  },
  close(socket, error) {
    socket.data.ended(error instanceof Error);
  },
  error(socket, error) {
    socket.data.broken(error);
  },
};

const tlsHandlers: SocketHandler<SocketOwner> = {
  ...plainHandlers,
  handshake(socket, isAuthorized, error) {
    socket.data.onHandshake(isAuthorized, error);
  },
};
