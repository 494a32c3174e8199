// Measures the memory of a gateway that thousands of clients keep connections to; knows no report.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { residentBytes, waitFor } from "./processes.ts";
import { type RunningSluice, startSluice } from "./sluice.ts";

export interface ConnectionsInput {
  readonly scratch: string;
  readonly command: readonly string[];
  readonly connections: number;
}

export interface ConnectionsResult {
  /** With all of them open and idle, each after two requests. */
  readonly bytes: number;
}

/** Opened at a time: more would overflow the queue of the listener. */
const WAVE = 100;
const SETTLE_MS = 3_000;
const DEADLINE_MS = 60_000;
/** Descriptors beside those of the connections. */
const OTHERS = 500;

export async function measureConnections(input: ConnectionsInput): Promise<ConnectionsResult> {
  requireDescriptors(input.connections + OTHERS);
  const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
  const dataDir = join(input.scratch, "connections");
  const start = { command: input.command, dataDir, workers: 2, core: undefined };
  const sluice = await startSluice(start);
  try {
    await sluice.api.createService("origin", origin.port ?? 0);
    const route = { name: "all", service_id: "origin", paths: ["/"] };
    await sluice.api.send("POST", "/api/v1/routes", route);
    return { bytes: await holdOpen(sluice, input.connections) };
  } finally {
    await sluice.program.stop();
    await origin.stop(true);
  }
}

async function holdOpen(sluice: RunningSluice, count: number): Promise<number> {
  const clients = new Clients();
  try {
    for (let open = 0; open < count; open += WAVE)
      await clients.open(sluice.ports.http, Math.min(WAVE, count - open));
    await clients.askAll();
    await Bun.sleep(SETTLE_MS);
    if (clients.closed > 0) throw new Error(`${clients.closed} connections were closed`);
    return residentBytes(sluice.program.pid);
  } finally {
    clients.close();
  }
}

const REQUEST = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n";

/** Connections that ask and then wait, as light as can be. */
class Clients {
  closed = 0;
  #answers = 0;
  readonly #sockets: Bun.Socket<undefined>[] = [];

  /** Resolves when each of the new ones has had an answer. */
  async open(port: number, count: number): Promise<void> {
    const opened = await Promise.all(Array.from({ length: count }, () => this.#connect(port)));
    this.#sockets.push(...opened);
    await this.#ask(opened);
  }

  /** One more request on each, a wave at a time. */
  async askAll(): Promise<void> {
    for (let at = 0; at < this.#sockets.length; at += WAVE)
      await this.#ask(this.#sockets.slice(at, at + WAVE));
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  async #ask(sockets: readonly Bun.Socket<undefined>[]): Promise<void> {
    const wanted = this.#answers + sockets.length;
    for (const socket of sockets) socket.write(REQUEST);
    await waitFor("an answer on each connection", DEADLINE_MS, async () =>
      this.#answers >= wanted || this.closed > 0 ? true : undefined,
    );
  }

  #connect(port: number): Promise<Bun.Socket<undefined>> {
    return Bun.connect({
      hostname: "127.0.0.1",
      port,
      data: undefined,
      socket: {
        data: (_, bytes) => {
          // A short answer comes in one piece.
          if (bytes.subarray(0, 12).toString("latin1") === "HTTP/1.1 200") this.#answers++;
        },
        close: () => {
          this.closed++;
        },
        error: () => undefined,
      },
    });
  }
}

/** Both sides need one for each connection; children have the limit of this process. */
function requireDescriptors(wanted: number): void {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const [, soft = "0"] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  if (Number(soft) < wanted)
    throw new Error(
      `${wanted} descriptors are needed, ${soft} are allowed: try ulimit -n ${wanted}`,
    );
}
