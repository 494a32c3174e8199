// A TCP connection that a test can delay, hold or cut, between clients and one server; reads no byte.
import { connect, createServer, type Server, type Socket } from "node:net";

export interface WireOptions {
  readonly target: number;
  /** Default 127.0.0.1. */
  readonly hostname?: string;
}

/** From clients to the server, or from the server to clients. */
export type Way = "to server" | "to clients";

const BOTH: readonly Way[] = ["to server", "to clients"];

/** Bytes of one direction, in order, each with the time at which it arrives. */
interface Direction {
  readonly way: Way;
  readonly to: Socket;
  readonly queue: { readonly piece: Uint8Array | "end"; readonly due: number }[];
  timer: Timer | null;
}

export class Wire {
  /** Port of the server that new connections reach. */
  target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #directions = new Set<Direction>();
  #held: readonly Way[] = [];
  #isCut = false;
  /** Milliseconds that each piece takes. */
  delayMs = 0;
  port = 0;

  private constructor(target: number) {
    this.target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async open({ target, hostname = "127.0.0.1" }: WireOptions): Promise<Wire> {
    const wire = new Wire(target);
    const { promise, resolve } = Promise.withResolvers<void>();
    wire.#server.listen(0, hostname, resolve);
    await promise;
    wire.port = (wire.#server.address() as { port: number }).port;
    return wire;
  }

  /**
   * Nothing arrives any more in either direction, or in one, and no end is told of it, as when a switch drops all packets. Both
   * ends send again what was not acknowledged: `heal` delivers it.
   */
  hold(...ways: Way[]): void {
    this.#held = ways.length === 0 ? BOTH : ways;
  }

  /** Ends all connections; new ones end at once. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Ends `hold` and `cut`. */
  heal(): void {
    this.#held = [];
    this.#isCut = false;
    for (const direction of this.#directions) this.#deliver(direction);
  }

  async close(): Promise<void> {
    this.cut();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    await promise;
  }

  #accept(client: Socket): void {
    if (this.#isCut) {
      client.destroy();
      return;
    }
    const server = connect({ port: this.target, host: "127.0.0.1", noDelay: true });
    client.setNoDelay(true);
    this.#join(client, server, "to server");
    this.#join(server, client, "to clients");
  }

  #join(from: Socket, to: Socket, way: Way): void {
    const direction: Direction = { way, to, queue: [], timer: null };
    this.#directions.add(direction);
    this.#sockets.add(from);
    from.on("data", (piece) => this.#send(direction, piece));
    from.on("error", () => undefined);
    from.on("close", () => {
      this.#sockets.delete(from);
      this.#send(direction, "end");
    });
    to.on("close", () => {
      this.#directions.delete(direction);
      if (direction.timer !== null) clearTimeout(direction.timer);
    });
  }

  #send(direction: Direction, piece: Uint8Array | "end"): void {
    direction.queue.push({ piece, due: performance.now() + this.delayMs });
    this.#deliver(direction);
  }

  /** What is behind a delayed piece waits for it, also when it has no delay of its own: bytes of a connection stay in order. */
  #deliver(direction: Direction): void {
    const { queue, to, way } = direction;
    if (this.#held.includes(way)) return;
    while (queue[0] !== undefined && queue[0].due <= performance.now())
      pass(to, queue.shift()?.piece ?? "end");
    const [next] = queue;
    if (next === undefined || direction.timer !== null) return;
    direction.timer = setTimeout(
      () => {
        direction.timer = null;
        this.#deliver(direction);
      },
      Math.max(1, Math.ceil(next.due - performance.now())),
    );
  }
}

function pass(to: Socket, piece: Uint8Array | "end"): void {
  if (piece === "end") to.end();
  else to.write(piece);
}
