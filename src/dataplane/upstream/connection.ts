// One connection to a target: connecting, writing with back-pressure, pausing; knows no HTTP.
import type { Socket, SocketHandler, TCPSocketConnectOptions, UnixSocketOptions } from "bun";
import { isIP } from "node:net";
import { failures, type ProxyError } from "../error.ts";
import type { Address } from "../names/addresses.ts";
import type { Endpoint } from "./endpoint.ts";
import { tlsBroken, tlsFailure } from "./tls-failure.ts";

/** What handles the events of a connection. */
export interface ConnectionHandler {
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

/** Where a connection comes from and goes back to. */
export interface ConnectionOwner {
  /** Its user is done with it, and it is in working order. */
  release(connection: UpstreamConnection): void;
  /** It has ended, whenever and however. Called once. */
  closed(connection: UpstreamConnection): void;
}

type State = "connecting" | "open" | "closed";

/** An address that has not accepted after so long is not waited for alone. */
const SLOW_MS = 1000;

/** A socket with one user at a time. Writes never block: what the system does not take is kept and sent on `drain`. */
export class UpstreamConnection implements DialOwner, SocketOwner {
  /** Requests that were begun on this connection. */
  requests = 0;
  /** When it was last given back, in the worker's milliseconds. */
  idleSince = 0;
  #state: State = "connecting";
  #socket: Socket<SocketOwner> | null = null;
  #user: ConnectionHandler | null = null;
  #held: Buffer | null = null;
  #endsWhenWritten = false;
  /** Where it leads to; null until it got there. */
  #address: Address | null = null;
  /** Addresses that were tried. */
  #tried: Set<Address> | null = null;
  /** How many of those have not failed yet. */
  #dials = 0;
  #slowTimer: Timer | null = null;
  /** Takes back the wait for the first address. */
  #stopWaiting: (() => void) | null = null;
  readonly #endpoint: Endpoint;
  readonly #owner: ConnectionOwner;

  /** Starts to connect; attach a user in the same turn to hear the outcome.  */
  constructor(endpoint: Endpoint, owner: ConnectionOwner) {
    this.#endpoint = endpoint;
    this.#owner = owner;
    const { addresses } = endpoint;
    if (this.#dial()) return;
    this.#stopWaiting = addresses.whenFound(() => {
      if (this.#state === "connecting" && !this.#dial()) this.failed(failures.dns());
    });
    // Nobody is attached yet.
    if (this.#stopWaiting === null) queueMicrotask(() => this.failed(failures.dns()));
  }

  /** Tries the next address; false when there is none that was not tried. */
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
        this.#slowTimer = setTimeout(() => this.#tooSlow(address), SLOW_MS);
    }
    dial.begin({
      port: port === 0 ? address.port : port,
      tls: tls === null || tls.serverName !== undefined ? tls : withName(tls, hostname),
    });
    return true;
  }

  /** Others may be faster; should this one answer first after all, it is taken. */
  #tooSlow(address: Address): void {
    this.#endpoint.addresses.failed(address);
    this.#dial();
  }

  /** Where it leads to; null until it got there. */
  get address(): Address | null {
    return this.#address;
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
  attach(user: ConnectionHandler): void {
    this.#user = user;
  }

  /** Returns it to where it came from, for the next request. */
  giveBack(): void {
    this.#user = null;
    this.#owner.release(this);
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

  #endDialling(): void {
    if (this.#slowTimer !== null) clearTimeout(this.#slowTimer);
    this.#slowTimer = null;
    this.#stopWaiting?.();
    this.#stopWaiting = null;
  }

  #hold(bytes: Buffer): false {
    this.#held = this.#held === null ? bytes : Buffer.concat([this.#held, bytes]);
    return false;
  }

  #close(): ConnectionHandler | null {
    const user = this.#user;
    this.#endDialling();
    this.#state = "closed";
    this.#user = null;
    this.#held = null;
    this.#owner.closed(this);
    return user;
  }

  // What a dial tells.

  dialled(socket: Socket<SocketOwner>, address: Address): boolean {
    if (this.#state !== "connecting" || this.#socket !== null) return false;
    this.#endDialling();
    this.#socket = socket;
    this.#address = address;
    if (this.#endpoint.tls === null) this.#ready();
    return true;
  }

  dialFailed(address: Address, error: ProxyError): void {
    this.#dials--;
    this.#endpoint.addresses.failed(address);
    if (this.#state !== "connecting" || this.#socket !== null) return;
    if (this.#slowTimer !== null) clearTimeout(this.#slowTimer);
    this.#slowTimer = null;
    if (this.#tried !== null && this.#dial()) return;
    // An address that is slow may still accept.
    if (this.#dials === 0) this.failed(error);
  }

  // What the socket tells.

  handshaken(isAuthorized: boolean, error: Error | null): void {
    const failure = isAuthorized ? null : tlsFailure(error);
    const isVerified = this.#endpoint.tls?.rejectUnauthorized !== false;
    if (failure === null || (failure.token === "tls_certificate_error" && !isVerified))
      this.#ready();
    else this.failed(failure);
  }

  #ready(): void {
    this.#state = "open";
    this.#user?.connected();
  }

  broken(error: Error): void {
    this.failed(this.#endpoint.tls === null ? null : tlsBroken(error), true);
  }

  ended(isReset: boolean): void {
    this.failed(null, isReset);
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

/** What handles the events of a socket. */
interface SocketOwner {
  handshaken(isAuthorized: boolean, error: Error | null): void;
  received(chunk: Buffer): void;
  /** There is room for what is held back. */
  flush(): void;
  /** The system or TLS reports an error; `ended` may follow. */
  broken(error: Error): void;
  ended(isReset: boolean): void;
}

/** What a socket is dialled for. */
interface DialOwner extends SocketOwner {
  /** The address has accepted. False: the socket is not wanted any more. */
  dialled(socket: Socket<SocketOwner>, address: Address): boolean;
  dialFailed(address: Address, error: ProxyError): void;
}

/** One try to reach one address. Stands in for the owner until the address has accepted. */
class Dial implements SocketOwner {
  readonly #address: Address;
  readonly #owner: DialOwner;
  #isOver = false;

  constructor(address: Address, owner: DialOwner) {
    this.#address = address;
    this.#owner = owner;
  }

  /** Reports the outcome to the owner, never before this call has returned. */
  begin({ port, tls }: { readonly port: number; readonly tls: Endpoint["tls"] }): void {
    const { host, unix } = this.#address;
    const common = {
      data: this as SocketOwner,
      socket: tls === null ? plainHandlers : tlsHandlers,
      ...(tls === null ? {} : { tls: tls as NonNullable<TCPSocketConnectOptions["tls"]> }),
    };
    try {
      const opening =
        unix === null
          ? Bun.connect<SocketOwner>({ hostname: host, port, ...common })
          : Bun.connect<SocketOwner>({ unix, ...common } as UnixSocketOptions<SocketOwner>);
      opening.catch((error: unknown) => this.#fail(failures.refused(error)));
    } catch (error) {
      // Settings that TLS does not take, such as certificates to trust that are none.
      queueMicrotask(() => this.#fail(failures.tlsSettings(error)));
    }
  }

  #fail(error: ProxyError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#owner.dialFailed(this.#address, error);
  }

  opened(socket: Socket<SocketOwner>): void {
    this.#isOver = true;
    socket.data = this.#owner;
    socket.setNoDelay(true);
    if (this.#owner.dialled(socket, this.#address)) return;
    socket.data = this;
    socket.terminate();
  }

  // A socket that is not wanted any more.

  handshaken(): void {}

  received(): void {}

  flush(): void {}

  broken(): void {}

  ended(): void {}
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
    socket.data.handshaken(isAuthorized, error);
  },
};

/** The name that is asked for and verified; an address is verified as one. */
function withName(tls: NonNullable<Endpoint["tls"]>, hostname: string): Endpoint["tls"] {
  return isIP(hostname) === 0 ? { ...tls, serverName: hostname } : tls;
}
