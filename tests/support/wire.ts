// A TCP connection that a test can delay, hold or cut, between clients and one server; reads no byte.
import { connect, createServer, type Server, type Socket } from "node:net";

export interface WireOptions {
  readonly target: number;
  /** Default 127.0.0.1. */
  readonly hostname?: string;
}

/** Bytes of one direction, in order. */
interface Direction {
  readonly to: Socket;
  readonly held: (Uint8Array | "end")[];
}

export class Wire {
  readonly #target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #directions = new Set<Direction>();
  #isHolding = false;
  #isCut = false;
  /** Milliseconds that each piece takes. */
  delayMs = 0;
  port = 0;

  private constructor(target: number) {
    this.#target = target;
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
   * Nothing arrives any more in either direction, and no end is told of it, as when a switch drops all packets. Both ends send
   * again what was not acknowledged: `heal` delivers it.
   */
  hold(): void {
    this.#isHolding = true;
  }

  /** Ends all connections; new ones end at once. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Ends `hold` and `cut`. */
  heal(): void {
    this.#isHolding = false;
    this.#isCut = false;
    for (const direction of this.#directions) {
      for (const piece of direction.held.splice(0)) pass(direction.to, piece);
    }
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
    const server = connect({ port: this.#target, host: "127.0.0.1", noDelay: true });
    client.setNoDelay(true);
    this.#join(client, server);
    this.#join(server, client);
  }

  #join(from: Socket, to: Socket): void {
    const direction: Direction = { to, held: [] };
    this.#directions.add(direction);
    this.#sockets.add(from);
    from.on("data", (piece) => this.#send(direction, piece));
    from.on("error", () => undefined);
    from.on("close", () => {
      this.#sockets.delete(from);
      this.#send(direction, "end");
    });
    to.on("close", () => this.#directions.delete(direction));
  }

  #send(direction: Direction, piece: Uint8Array | "end"): void {
    if (this.#isHolding || direction.held.length > 0) direction.held.push(piece);
    else if (this.delayMs > 0) setTimeout(() => pass(direction.to, piece), this.delayMs);
    else pass(direction.to, piece);
  }
}

function pass(to: Socket, piece: Uint8Array | "end"): void {
  if (piece === "end") to.end();
  else to.write(piece);
}
