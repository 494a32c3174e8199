// A name server over UDP that asks another one, and keeps queries back while a test wants it to.

export class HeldResolver {
  /** `address:port`. */
  readonly address: string;
  readonly #close: () => void;
  #gate: PromiseWithResolvers<void> | null = null;
  /** Number of queries that wait. */
  waiting = 0;

  private constructor(address: string, close: () => void) {
    this.address = address;
    this.#close = close;
  }

  static async create(target: string): Promise<HeldResolver> {
    const { hostname, port } = new URL(`udp://${target}`);
    const server = await Bun.udpSocket({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data: (_, query, clientPort, client) => void relay(query, clientPort, client),
        // A client that has ended.
        error() {},
      },
    });
    const resolver = new HeldResolver(`127.0.0.1:${server.port}`, () => server.close());
    const relay = async (query: Buffer, clientPort: number, client: string) => {
      const copy = Buffer.from(query);
      await resolver.#held();
      const upstream = await Bun.udpSocket({
        hostname: "127.0.0.1",
        socket: {
          data(socket, response) {
            server.send(response, clientPort, client);
            socket.close();
          },
          error() {},
        },
      });
      upstream.send(copy, Number(port), hostname);
    };
    return resolver;
  }

  async #held(): Promise<void> {
    if (this.#gate === null) return;
    this.waiting++;
    await this.#gate.promise;
    this.waiting--;
  }

  hold(): void {
    this.#gate ??= Promise.withResolvers();
  }

  release(): void {
    this.#gate?.resolve();
    this.#gate = null;
  }

  close(): void {
    this.release();
    this.#close();
  }
}
