// One attempt to connect to one address of a target, and the events of its socket; knows no connection and no HTTP.
import type { Socket, SocketHandler, TCPSocketConnectOptions, UnixSocketOptions } from "bun";
import { failures, type ProxyError } from "../error.ts";
import type { Address } from "../names/addresses.ts";
import type { Endpoint } from "./endpoint.ts";

/** What handles the events of a socket. */
export interface SocketOwner {
  onHandshake(isAuthorized: boolean, error: Error | null): void;
  received(chunk: Buffer): void;
  /** The socket is writable again. */
  flush(): void;
  /** The system or TLS reports an error; `ended` may follow. */
  broken(error: Error): void;
  ended(isReset: boolean): void;
  /** The peer has sent FIN; `ended` follows, unless the socket stays open for writing. */
  halfEnded(): void;
}

/** The owner of a dial. */
export interface DialOwner extends SocketOwner {
  /** The address has accepted. False: the owner does not need the socket any more. */
  onDialed(socket: Socket<SocketOwner>, address: Address): boolean;
  onDialFailed(address: Address, error: ProxyError): void;
}

interface DialOptions {
  readonly port: number;
  readonly tls: Endpoint["tls"];
  readonly allowHalfOpen: boolean;
  /** They pass events on to `data` of the socket. */
  readonly handlers: SocketHandler<SocketOwner>;
}

/** One connection attempt to one address; owns the socket until the address accepts. */
export class Dial implements SocketOwner {
  readonly #address: Address;
  readonly #owner: DialOwner;
  #isOver = false;

  constructor(address: Address, owner: DialOwner) {
    this.#address = address;
    this.#owner = owner;
  }

  /** Reports the outcome to the owner, never before this call has returned. */
  begin({ port, tls, allowHalfOpen, handlers }: DialOptions): void {
    const { host, unix } = this.#address;
    const common = {
      data: this as SocketOwner,
      socket: handlers,
      allowHalfOpen,
      ...(tls === null ? {} : { tls: socketTls(tls) }),
    };
    try {
      const opening =
        unix === null
          ? Bun.connect<SocketOwner>({ hostname: host, port, ...common })
          : Bun.connect<SocketOwner>({ unix, ...common } as UnixSocketOptions<SocketOwner>);
      opening.catch((error: unknown) => this.#fail(failures.refused(error)));
    } catch (error) {
      // TLS settings that Bun rejects, such as an invalid CA bundle.
      queueMicrotask(() => this.#fail(failures.tlsSettings(error)));
    }
  }

  #fail(error: ProxyError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#owner.onDialFailed(this.#address, error);
  }

  opened(socket: Socket<SocketOwner>): void {
    this.#isOver = true;
    socket.data = this.#owner;
    socket.setNoDelay(true);
    if (this.#owner.onDialed(socket, this.#address)) return;
    socket.data = this;
    socket.terminate();
  }

  // Events of an unneeded socket.

  onHandshake(): void {}

  received(): void {}

  flush(): void {}

  broken(): void {}

  ended(): void {}

  halfEnded(): void {}
}

/** The options of Bun.connect. It takes the list of ALPN in the form of the wire (RFC 7301 section 3.1). */
function socketTls({ alpn, ...tls }: NonNullable<Endpoint["tls"]>): SocketTls {
  if (alpn === undefined) return tls as SocketTls;
  const list = Buffer.from(`${String.fromCharCode(alpn.length)}${alpn}`, "latin1");
  return { ...tls, ALPNProtocols: list } as unknown as SocketTls;
}

type SocketTls = NonNullable<TCPSocketConnectOptions["tls"]>;
