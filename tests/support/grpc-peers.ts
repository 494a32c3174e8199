// Starts clients and servers of @grpc/grpc-js in Node, as any gRPC program would be: another runtime, another HTTP/2 implementation.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quietPort } from "./quiet-port.ts";
import type {
  CallCommand,
  CallResult,
  ClientCommand,
  HeldResult,
  LoadResult,
} from "./grpc/protocol.ts";

type NodeProcess = Bun.Subprocess<"pipe", "pipe", "inherit">;

let built: Promise<string> | null = null;

/** The folder of both programs as JavaScript that Node reads. */
function build(): Promise<string> {
  built ??= (async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-grpc-"));
    const sources = ["client", "server"].map((name) => join(import.meta.dir, "grpc", `${name}.ts`));
    const { success, logs } = await Bun.build({
      entrypoints: sources,
      target: "node",
      format: "esm",
      outdir: folder,
      naming: "[name].mjs",
    });
    if (!success) throw new Error(logs.join("\n"));
    return folder;
  })();
  return built;
}

async function startNode(program: string, words: readonly string[] = []): Promise<NodeProcess> {
  const script = join(await build(), `${program}.mjs`);
  return Bun.spawn(["node", script, ...words], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
}

async function* linesOf(child: NodeProcess): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of child.stdout) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}

export class GrpcServer {
  /** Kept over a restart. */
  readonly port = quietPort();
  readonly #words: readonly string[];
  #process: NodeProcess | null = null;
  #lines: AsyncGenerator<string> | null = null;

  private constructor(words: readonly string[]) {
    this.#words = words;
  }

  /** Resolves when it listens. */
  static async start(tls?: { readonly cert: string; readonly key: string }): Promise<GrpcServer> {
    const words: string[] = [];
    if (tls !== undefined) {
      const folder = mkdtempSync(join(tmpdir(), "sluice-grpc-"));
      words.push(join(folder, "key.pem"), join(folder, "cert.pem"));
      writeFileSync(words[0] ?? "", tls.key);
      writeFileSync(words[1] ?? "", tls.cert);
    }
    const server = new GrpcServer(words);
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    this.#process = await startNode("server", [String(this.port), ...this.#words]);
    this.#lines = linesOf(this.#process);
    const first = await this.#lines.next();
    if (first.done) throw new Error("the gRPC server ended");
  }

  /** What its health service answers from here on. */
  async setServing(isServing: boolean): Promise<void> {
    this.#process?.stdin.write(isServing ? "serving\n" : "not serving\n");
    await this.#process?.stdin.flush();
    await this.#lines?.next();
  }

  /** Ends it at once, with all its connections. */
  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#process?.exited;
    this.#process = null;
  }
}

export class GrpcClient {
  readonly #process: NodeProcess;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #next = 0;

  private constructor(child: NodeProcess) {
    this.#process = child;
    void this.#read();
  }

  static async start(): Promise<GrpcClient> {
    return new GrpcClient(await startNode("client"));
  }

  call(command: Omit<CallCommand, "op">): Promise<CallResult> {
    return this.#ask({ op: "call", ...command });
  }

  /** The same call several times at once. */
  calls(times: number, command: Omit<CallCommand, "op">): Promise<CallResult[]> {
    return this.#ask({ op: "calls", times, call: { op: "call", ...command } });
  }

  /** Opens streams that exchange numbers until `release`. */
  async hold(command: Omit<Extract<ClientCommand, { op: "hold" }>, "op">): Promise<void> {
    await this.#ask({ op: "hold", ...command });
  }

  held(): Promise<HeldResult> {
    return this.#ask({ op: "held" });
  }

  /** The streams end after the message that is under way. */
  async release(): Promise<void> {
    await this.#ask({ op: "release" });
  }

  async startLoad(lanes: number, command: Omit<CallCommand, "op">): Promise<void> {
    await this.#ask({ op: "load", lanes, call: { op: "call", ...command } });
  }

  stopLoad(): Promise<LoadResult> {
    return this.#ask({ op: "unload" });
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    await this.#ask({ op: "close" });
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
  }

  #ask<T>(command: ClientCommand): Promise<T> {
    const id = this.#next++;
    this.#process.stdin.write(`${JSON.stringify({ id, command })}\n`);
    void this.#process.stdin.flush();
    return new Promise((resolve) => this.#waiting.set(id, resolve as (result: unknown) => void));
  }

  async #read(): Promise<void> {
    for await (const line of linesOf(this.#process)) {
      const { id, result, error } = JSON.parse(line) as {
        id: number;
        result?: unknown;
        error?: string;
      };
      if (error !== undefined) throw new Error(`the gRPC client: ${error}`);
      this.#waiting.get(id)?.(result);
      this.#waiting.delete(id);
    }
  }
}
