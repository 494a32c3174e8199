// A UDP port of one worker: receives and sends datagrams; knows no session and no route.
import { createSocket, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import { normalizeAddress } from "../../net/address.ts";
import type { ClientEndpoint } from "./udp-session.ts";

export class UdpPort {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Binds with SO_REUSEPORT: the kernel sends each client's datagrams to one worker. Rejects with the system's error. */
  static open(
    at: { readonly address: string; readonly port: number },
    received: (datagram: Buffer, client: ClientEndpoint) => void,
  ): Promise<UdpPort> {
    // Bun.udpSocket has no reusePort.
    const socket = createSocket({ type: isIPv6(at.address) ? "udp6" : "udp4", reusePort: true });
    const { promise, resolve, reject } = Promise.withResolvers<UdpPort>();
    socket.once("error", reject);
    socket.bind({ address: at.address, port: at.port, exclusive: true }, () => {
      socket.off("error", reject);
      // ICMP errors of clients that are gone: their sessions time out.
      socket.on("error", () => {});
      socket.on("message", (datagram, { address, port }) => received(datagram, { address, port }));
      resolve(new UdpPort(socket));
    });
    return promise;
  }

  send(datagram: Buffer, { address, port }: ClientEndpoint): void {
    // A datagram that cannot be sent is lost.
    this.#socket.send(datagram, port, address, () => {});
  }

  close(): void {
    this.#socket.close();
  }
}

/** An IPv6 socket shows IPv4 clients in IPv6 notation. */
export const plainAddress = (address: string): string =>
  address.includes(":") ? (normalizeAddress(address) ?? address) : address;
