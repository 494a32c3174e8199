// UDP peers of a test: a target that replies, and a client that waits for replies.
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface UdpTarget {
  readonly port: number;
  /** `address:port` of every sender. */
  readonly peers: Set<string>;
  received: number;
  close(): void;
}

/** Replies to each datagram with the result of `answer`; null sends no reply, and the default echoes. */
export async function udpTarget(
  answer: (datagram: Buffer) => string | Buffer | null = (datagram) => datagram,
  port = 0,
): Promise<UdpTarget> {
  const peers = new Set<string>();
  const socket = await Bun.udpSocket({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(from, datagram, peerPort, address) {
        target.received++;
        peers.add(`${address}:${peerPort}`);
        const reply = answer(Buffer.from(datagram));
        if (reply !== null) from.send(reply, peerPort, address);
      },
    },
  });
  const target = { port: socket.port, peers, received: 0, close: () => socket.close() };
  return target;
}

export class UdpClient {
  readonly answers: Buffer[] = [];
  readonly #socket: Bun.udp.Socket<"buffer">;

  private constructor(socket: Bun.udp.Socket<"buffer">) {
    this.#socket = socket;
  }

  static async open(): Promise<UdpClient> {
    const socket = await Bun.udpSocket({
      hostname: "127.0.0.1",
      socket: {
        data: (_, datagram) => void client.answers.push(Buffer.from(datagram)),
        error: () => undefined,
      },
    });
    const client = new UdpClient(socket);
    return client;
  }

  get port(): number {
    return this.#socket.port;
  }

  send(port: number, datagram: string | Buffer): void {
    this.#socket.send(datagram, port, "127.0.0.1");
  }

  /** Sends once and resolves with the next reply; null when there is none in time. */
  async ask(port: number, datagram: string | Buffer, deadlineMs = 2000): Promise<Buffer | null> {
    const before = this.answers.length;
    this.send(port, datagram);
    const came = () => this.answers.length > before;
    await eventually(came, { deadlineMs, intervalMs: 2 }).catch(() => false);
    return this.answers[before] ?? null;
  }

  close(): void {
    this.#socket.close();
  }
}

/** The first of so many free ports of 127.0.0.1, outside the ephemeral range. */
export async function freeUdpPort(count = 1): Promise<number> {
  while (true) {
    const first = quietPort();
    if (await areFree(first, count)) return first;
  }
}

async function areFree(first: number, count: number): Promise<boolean> {
  try {
    for (let port = first; port < first + count; port++)
      (await Bun.udpSocket({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false;
  }
}
