// Clients of an unchanged route: they send requests continuously, and note every error.
import { QuickConnection, quickGet, type QuickReply } from "../../support/quick-http.ts";

export interface UnrelatedClients {
  /** Answers, messages and events that came. */
  readonly counts: { readonly answers: number; readonly messages: number; readonly events: number };
  /** Everything that went wrong, in words. */
  readonly failures: readonly string[];
  /** Lets every request in flight end. */
  stop(): Promise<void>;
}

interface Ports {
  readonly http: number;
  readonly https: number;
}

const host = "steady.test";
const at = { path: "/steady/page", host };
const PAGE = "steady page";
const FAILURES_TO_SHOW = 20;

/** A server for them: a page, an endless event stream, WebSockets that echo. */
export function startSteadyOrigin() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request, server) {
      const { pathname } = new URL(request.url);
      if (pathname === "/steady/page") return new Response(PAGE);
      if (pathname === "/steady/events") return new Response(events(), { headers: eventStream });
      return server.upgrade(request) ? undefined : new Response("no upgrade", { status: 400 });
    },
    websocket: { message: (socket, message) => void socket.send(message) },
  });
}

const eventStream = { "content-type": "text/event-stream" };

function events(): ReadableStream {
  let count = 0;
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(20);
      controller.enqueue(`data: ${count++}\n\n`);
    },
  });
}

/** Kept and fresh connections, plain and TLS, two WebSockets and an event stream. */
export async function startUnrelatedClients(ports: Ports): Promise<UnrelatedClients> {
  const clients = new Clients(ports);
  await clients.start();
  return clients;
}

class Clients implements UnrelatedClients {
  readonly counts = { answers: 0, messages: 0, events: 0 };
  readonly failures: string[] = [];
  readonly #ports: Ports;
  #isRunning = true;
  #running: Promise<unknown> = Promise.resolve();

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  async start(): Promise<void> {
    const { http, https } = this.#ports;
    const sockets = await Promise.all([
      openWebSocket(`ws://127.0.0.1:${http}/steady/socket`),
      openWebSocket(`wss://127.0.0.1:${https}/steady/socket`),
    ]);
    const events = await fetch(`http://127.0.0.1:${http}/steady/events`, { headers: { host } });
    this.#running = Promise.all([
      this.#kept("kept connection", http, false),
      this.#kept("second kept connection", http, false),
      this.#kept("kept TLS connection", https, true),
      this.#repeat("fresh connection", () => quickGet(http, at)),
      this.#repeat("fresh TLS connection", () => quickGet(https, { ...at, tls: true })),
      ...sockets.map((socket, index) => this.#converse(`WebSocket ${index + 1}`, socket)),
      this.#listen("event stream", events),
    ]);
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#running;
  }

  #failed(who: string, why: string): void {
    if (this.failures.length < FAILURES_TO_SHOW) this.failures.push(`${who}: ${why}`);
  }

  async #repeat(who: string, ask: () => Promise<QuickReply>): Promise<void> {
    while (this.#isRunning && this.failures.length < FAILURES_TO_SHOW) {
      try {
        const { status, body } = await ask();
        this.counts.answers++;
        if (status !== 200 || body !== PAGE) this.#failed(who, `${status} ${body.slice(0, 200)}`);
      } catch (error) {
        this.#failed(who, String(error));
      }
    }
  }

  async #kept(who: string, port: number, tls: boolean): Promise<void> {
    const connection = await QuickConnection.open(port, { tls });
    await this.#repeat(who, () => connection.get(at.path, at.host));
    connection.close();
  }

  /** Sends a message whenever the echo of the last one is there. */
  #converse(who: string, socket: WebSocket): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    let sent = 0;
    const say = () => socket.send(`message ${++sent}`);
    socket.addEventListener("message", ({ data }) => {
      this.counts.messages++;
      if (data !== `message ${sent}`) this.#failed(who, `${data} instead of message ${sent}`);
      if (this.#isRunning) setTimeout(say, 5);
      else socket.close();
    });
    socket.addEventListener("close", ({ code }) => {
      if (this.#isRunning) this.#failed(who, `was closed with code ${code}`);
      resolve();
    });
    say();
    return promise;
  }

  async #listen(who: string, response: Response): Promise<void> {
    const reader = response.body!.getReader();
    let text = "";
    try {
      while (this.#isRunning) {
        const { done, value } = await reader.read();
        if (done) return this.#failed(who, "has ended");
        text += Buffer.from(value).toString();
        const complete = text.split("\n\n");
        text = complete.pop() ?? "";
        for (const event of complete)
          if (event !== `data: ${this.counts.events++}`)
            this.#failed(who, `lost an event: ${event}`);
      }
      await reader.cancel();
    } catch (error) {
      this.#failed(who, String(error));
    }
  }
}

async function openWebSocket(url: string): Promise<WebSocket> {
  const options = { headers: { host }, tls: { rejectUnauthorized: false } };
  const socket = new WebSocket(url, options as unknown as string[]);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.addEventListener("open", () => resolve(), { once: true });
  socket.addEventListener("close", ({ code }) => reject(new Error(`${url}: closed ${code}`)), {
    once: true,
  });
  await promise;
  return socket;
}
