// Sends an exact number of requests to a gateway in a separate process and reads their cost; callers set the bounds.
import { BROWSER_HEADERS } from "../../bench/load.ts";
import type { Engine } from "../engines.ts";

/** Counts by the keys that the gateway prints. */
type Counts = Readonly<Record<string, number>>;

/** What requests meet; the gateway's own responses are the last four. */
export type CostPath =
  "plain" | "plugins" | "cached hit" | "error page" | "redirect" | "sticky cookie";

const STATUSES: Partial<Record<CostPath, number>> = { "error page": 404, redirect: 308 };

export interface CostOptions {
  /** `objects`: made; `kept`: left after a collection. */
  readonly mode: "objects" | "kept" | "files";
  readonly path: CostPath;
  readonly engine: Engine;
  readonly requests: number;
}

/** Settings of JavaScriptCore under which counts are exact. */
const OF_BUN = {
  // Nothing is collected.
  objects: { BUN_JSC_useGC: "0", BUN_GC_TIMER_DISABLE: "1" },
  kept: {},
  // Optimized code does not count its calls.
  files: { BUN_JSC_useJIT: "0" },
};

/** A whole head. */
const RESPONSE = /^[\s\S]*?\r\ncontent-length: (\d+)[\s\S]*?\r\n\r\n/i;

const CONNECTIONS = 8;
const BODY = "a".repeat(64);

/** Counts of so many GETs of a browser; a target responds with 64 bytes. */
export async function measureCost(options: CostOptions): Promise<Counts> {
  const { mode, path, engine, requests } = options;
  using origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      new Response(BODY, {
        headers: {
          "content-type": "text/plain",
          ...(path === "cached hit" ? { "cache-control": "max-age=3600, public" } : {}),
        },
      }),
  });
  const script = new URL("./gateway.ts", import.meta.url).pathname;
  const child = Bun.spawn([process.execPath, script, String(origin.port), mode, path], {
    env: { ...process.env, SLUICE_TEST_ENGINE: engine, ...OF_BUN[mode] },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  try {
    const lines = linesOf(child.stdout);
    const port = Number(await lines());
    // Compiles the code and opens connections before counting.
    const status = STATUSES[path] ?? 200;
    await send(port, Math.ceil(requests / 4), status);
    await command(child, "start");
    await lines();
    await send(port, requests, status);
    await command(child, "end");
    return JSON.parse(await lines()) as Counts;
  } finally {
    child.kill();
  }
}

async function command(
  child: Bun.Subprocess<"pipe", "pipe", "inherit">,
  line: string,
): Promise<void> {
  child.stdin.write(`${line}\n`);
  await child.stdin.flush();
}

function linesOf(stream: ReadableStream<Uint8Array>): () => Promise<string> {
  const reader = stream
    .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let text = "";
  return async () => {
    while (!text.includes("\n")) {
      const { done, value } = await reader.read();
      if (done) throw new Error("the gateway ended");
      text += value;
    }
    const line = text.slice(0, text.indexOf("\n"));
    text = text.slice(line.length + 1);
    return line;
  };
}

/** Sends them over a few persistent connections, one at a time on each. */
async function send(port: number, requests: number, status: number): Promise<void> {
  const each = Math.ceil(requests / CONNECTIONS);
  await Promise.all(Array.from({ length: CONNECTIONS }, () => sendOver(port, each, status)));
}

async function sendOver(port: number, requests: number, status: number): Promise<void> {
  const fields = Object.entries(BROWSER_HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `GET /64B HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields.join("")}\r\n`;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let left = requests;
  let received = "";
  await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => void socket.write(head),
      data(socket, chunk) {
        received += chunk.toString("latin1");
        const [begin = "", length] = RESPONSE.exec(received) ?? [];
        if (length === undefined || received.length < begin.length + Number(length)) return;
        if (!received.startsWith(`HTTP/1.1 ${status} `)) reject(new Error(received));
        received = "";
        left--;
        if (left > 0) socket.write(head);
        else {
          socket.end();
          resolve();
        }
      },
      error: (_socket, error) => reject(error),
    },
  });
  await promise;
}
