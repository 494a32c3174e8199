// One try to reach one address, and the socket that comes of it; knows neither requests nor which address is next.
import type { Socket, SocketHandler, TCPSocketConnectOptions, UnixSocketOptions } from "bun";
import { failures, type ProxyError } from "../error.ts";
import type { Address } from "../names/addresses.ts";
import type { Endpoint } from "./endpoint.ts";

/** Who hears what happens on a socket. */
export interface SocketUser {
  handshaken(isAuthorized: boolean, error: Error | null): void;
  received(chunk: Buffer): void;
  /** There is room for what is held back. */
  flush(): void;
  /** The system or TLS reports an error; `ended` may follow. */
  broken(error: Error): void;
  ended(isReset: boolean): void;
}

/** Who wants a socket. */
export interface DialOwner extends SocketUser {
  /** The address has accepted. False: the socket is not wanted any more. */
  dialled(socket: Socket<SocketUser>, address: Address): boolean;
  dialFailed(address: Address, error: ProxyError): void;
}

/** Stands in for the owner until the address has accepted. */
export class Dial implements SocketUser {
  readonly #address: Address;
  readonly #owner: DialOwner;
  #isOver = false;

  constructor(address: Address, owner: DialOwner) {
    this.#address = address;
    this.#owner = owner;
  }

  /** Tells the owner the outcome, never before this call has returned. */
  begin({ port, tls }: { readonly port: number; readonly tls: Endpoint["tls"] }): void {
    const { host, unix } = this.#address;
    const common = {
      data: this as SocketUser,
      socket: tls === null ? plainHandlers : tlsHandlers,
      ...(tls === null ? {} : { tls: tls as NonNullable<TCPSocketConnectOptions["tls"]> }),
    };
    try {
      const opening =
        unix === null
          ? Bun.connect<SocketUser>({ hostname: host, port, ...common })
          : Bun.connect<SocketUser>({ unix, ...common } as UnixSocketOptions<SocketUser>);
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

  opened(socket: Socket<SocketUser>): void {
    this.#isOver = true;
    socket.data = this.#owner;
    socket.setNoDelay(true);
    if (this.#owner.dialled(socket, this.#address)) return;
    socket.data = this;
    socket.terminate();
  }

  // A socket that nobody wants any more.

  handshaken(): void {}

  received(): void {}

  flush(): void {}

  broken(): void {}

  ended(): void {}
}

const plainHandlers: SocketHandler<SocketUser> = {
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

const tlsHandlers: SocketHandler<SocketUser> = {
  ...plainHandlers,
  handshake(socket, isAuthorized, error) {
    socket.data.handshaken(isAuthorized, error);
  },
};
