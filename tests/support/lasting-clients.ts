// Clients of one gateway that stay connected: requests on persistent connections, a WebSocket and a response without an end.
import { type LoadReport, SteadyLoad } from "./steady-load.ts";

const TICK_MS = 20;

/** What they are connected to; listens on any port of `hostname`. */
export function startLastingOrigin(hostname: string) {
  return Bun.serve({
    port: 0,
    hostname,
    idleTimeout: 0,
    fetch(request, server) {
      const { pathname } = new URL(request.url);
      if (pathname === "/socket" && server.upgrade(request)) return;
      if (pathname !== "/ticks") return new Response("here");
      return new Response(
        new ReadableStream({
          async pull(controller) {
            await Bun.sleep(TICK_MS);
            controller.enqueue("tick\n");
          },
        }),
      );
    },
    websocket: { message: (socket, message) => void socket.send(message) },
  });
}

export class LastingClients {
  readonly #load: SteadyLoad;
  readonly #socket: WebSocket;
  readonly #abort = new AbortController();
  readonly #streaming: Promise<void>;
  readonly #failures: string[] = [];
  #isOver = false;
  #ticks = 0;
  #echoes = 0;

  private constructor(hostname: string, port: number) {
    const options = { hostname, port, path: "/", expected: "here", pauseMs: 5 };
    this.#load = new SteadyLoad({ ...options, fresh: 0, kept: 2 });
    this.#socket = new WebSocket(`ws://${hostname}:${port}/socket`);
    this.#streaming = this.#stream(`http://${hostname}:${port}/ticks`);
    this.#converse();
  }

  static async connect(hostname: string, port: number): Promise<LastingClients> {
    const clients = new LastingClients(hostname, port);
    await clients.progress();
    return clients;
  }

  /** Resolves when each of them has had something of the gateway from now on. */
  async progress(): Promise<void> {
    const [ticks, echoes, answered] = [this.#ticks, this.#echoes, this.#load.answered];
    const deadline = performance.now() + 10_000;
    while (
      this.#ticks <= ticks + 1 ||
      this.#echoes <= echoes + 1 ||
      this.#load.answered <= answered + 1
    ) {
      if (performance.now() > deadline)
        throw new Error(`no progress: ${[...this.#failures, ...this.#load.failures].join("; ")}`);
      await Bun.sleep(TICK_MS);
    }
  }

  /** What failed, or was not the same connection to the end. */
  async stop(): Promise<string[]> {
    this.#isOver = true;
    this.#socket.close();
    this.#abort.abort();
    await this.#streaming;
    const { failures, askedAgain, sentElsewhere }: LoadReport = await this.#load.stop();
    const closed = { "closed unasked": askedAgain, "told to reconnect": sentElsewhere };
    const said = Object.entries(closed).filter(([, count]) => count > 0);
    return [...this.#failures, ...failures, ...said.map(([what, count]) => `${what}: ${count}`)];
  }

  #converse(): void {
    const socket = this.#socket;
    socket.onopen = () => socket.send("echo");
    socket.onmessage = () => {
      this.#echoes++;
      setTimeout(() => socket.readyState === WebSocket.OPEN && socket.send("echo"), TICK_MS);
    };
    socket.onclose = ({ code }) => {
      if (!this.#isOver) this.#failures.push(`the WebSocket closed with ${code}`);
    };
  }

  async #stream(url: string): Promise<void> {
    try {
      const { body } = await fetch(url, { signal: this.#abort.signal });
      for await (const _ of body ?? []) this.#ticks++;
      if (!this.#isOver) this.#failures.push("the stream ended");
    } catch (error) {
      if (!this.#isOver) this.#failures.push(`the stream broke: ${String(error)}`);
    }
  }
}
