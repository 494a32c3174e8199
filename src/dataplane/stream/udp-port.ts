// A UDP port of one worker: datagrams come in with their senders and go out to them; knows no session and no route.
import { createSocket, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import { normalizeAddress } from "../../net/address.ts";
import type { ClientEnd } from "./udp-session.ts";

export class UdpPort {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Binds beside the other workers: the system sends each client's datagrams to one of them. Rejects with its error. */
  static open(
    at: { readonly address: string; readonly port: number },
    received: (datagram: Buffer, client: ClientEnd) => void,
  ): Promise<UdpPort> {
    // Bun.udpSocket takes no reusePort.
    const socket = createSocket({ type: isIPv6(at.address) ? "udp6" : "udp4", reusePort: true });
    const { promise, resolve, reject } = Promise.withResolvers<UdpPort>();
    socket.once("error", reject);
    socket.bind({ address: at.address, port: at.port, exclusive: true }, () => {
      socket.off("error", reject);
      // Reports of clients that are gone: their sessions end by themselves.
      socket.on("error", () => {});
      socket.on("message", (datagram, { address, port }) => received(datagram, { address, port }));
      resolve(new UdpPort(socket));
    });
    return promise;
  }

  send(datagram: Buffer, { address, port }: ClientEnd): void {
    // What cannot be sent is lost, as datagrams are.
    this.#socket.send(datagram, port, address, () => {});
  }

  close(): void {
    this.#socket.close();
  }
}

/** The client's address as rules know it: an IPv4 client of an IPv6 socket by its own. */
export const plainAddress = (address: string): string =>
  address.includes(":") ? (normalizeAddress(address) ?? address) : address;
