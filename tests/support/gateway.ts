// Runs the gateway as a separate process, on free ports and an empty data directory.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { outputOf } from "./child-output.ts";
import { testedEngine } from "./engines.ts";
import { type Reporter, reportNoMore, reportWith } from "./failure-report.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";
import { RecentCalls } from "./recent-calls.ts";
import { runEnd } from "./run-end.ts";

export interface GatewayOptions {
  /** Default 2. */
  workers?: number;
  /** More arguments after `serve`; a flag given here replaces the default one. */
  args?: string[];
  env?: Record<string, string>;
  /** Arguments before the program, of a program that starts it: `prlimit --nofile=128`. */
  wrap?: string[];
  /** Path of a compiled executable; default: $SLUICE_TEST_BINARY, else the sources. */
  binary?: string;
  /** Path of other sources to run instead: `/tmp/tree/src/main.ts`. */
  main?: string;
  /** An existing data directory, which is kept; default: a new one, removed by `stop`. */
  dataDir?: string;
  /** How long the start may take. */
  deadlineMs?: number;
}

/** One line of the gateway's log. */
export interface LogEvent {
  time: string;
  level: string;
  message: string;
  [field: string]: unknown;
}

/** HOME is where Bun caches transpiled sources. */
const plainEnvironment = {
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? tmpdir(),
};

/** A listener. */
type Found = {
  readonly id: string;
  readonly name: string;
  readonly port: number;
  readonly engine: string;
};

/** The management API uses a self-signed certificate for TLS. */
const tls = { rejectUnauthorized: false };

const main = resolve(import.meta.dir, "../../src/main.ts");

/** The command that starts the program: the compiled executable when there is one, else the sources. */
export function program(binary = process.env["SLUICE_TEST_BINARY"]): string[] {
  return binary ? [resolve(binary)] : [process.execPath, main];
}

/** Resolves when the gateway is ready; throws with its output when it ended or was not ready in time. */
export async function startGateway(options: GatewayOptions = {}): Promise<Gateway> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "sluice-test-"));
  const gateway = new Gateway(options, dataDir);
  try {
    await gateway.start();
  } catch (error) {
    await gateway.stop();
    throw error;
  }
  return gateway;
}

export class Gateway implements Reporter {
  readonly dataDir: string;
  /** URL of the management API, without a slash at the end. */
  admin = "";
  httpPort = 0;
  httpsPort = 0;
  readonly #options: GatewayOptions;
  readonly #ports: Record<"admin" | "http" | "https", string>;
  #process: Bun.Subprocess<"ignore", "pipe", "pipe"> | null = null;
  /** How the last process is or was, for reports. */
  #last: Bun.Subprocess | null = null;
  #output: Promise<unknown> = Promise.resolve();
  /** All output since the first start. */
  stdout = "";
  stderr = "";
  /** Where the output of the present process begins in `stderr`. */
  #mark = 0;
  #command: readonly string[] = [];
  readonly #calls = new RecentCalls();

  constructor(options: GatewayOptions, dataDir: string) {
    this.#options = options;
    this.dataDir = dataDir;
    runEnd.callbacks?.push(() => this.#endLeftBehind());
    // While it is stopped or killed, no connection of another test may get one of its ports.
    const listener = () => `127.0.0.1:${quietPort()}`;
    this.#ports = { admin: "127.0.0.1:0", http: listener(), https: listener() };
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** The log as events, without lines that are not JSON. */
  get log(): LogEvent[] {
    return parseLog(this.stderr);
  }

  get logSize(): number {
    return this.stderr.length;
  }

  logBetween(from: number, to: number): string {
    return this.stderr.slice(from, to);
  }

  state(): string[] {
    const { pid, exitCode = null, signalCode } = this.#last ?? {};
    const end = signalCode ?? (exitCode === null ? null : `exit code ${exitCode}`);
    const serving = this.log.findLast(({ message }) => message === "serving");
    const version = serving === undefined ? "never served" : `version ${serving["version"]}`;
    return [
      `gateway: ${this.#command.join(" ")}`,
      `  ${version}, pid ${pid}, ${end === null ? "runs" : `ended: ${end}`}`,
    ];
  }

  requests(): Promise<string[]> {
    return this.#calls.list(this.admin);
  }

  /** Calls the management API. A body that is no string is sent as JSON. */
  api(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const url = `${this.admin}${path}`;
    const init =
      body === undefined
        ? { method, headers, tls }
        : {
            tls,
            method,
            headers: { "content-type": "application/json", ...headers },
            body: typeof body === "string" ? body : JSON.stringify(body),
          };
    return this.#calls.note({ method, path, headers }, fetch(url, init));
  }

  /** Like `api`, but throws unless the response is 200, and returns the JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests name the fields that they expect
  async ok(method: string, path: string, body?: unknown): Promise<any> {
    const response = await this.api(method, path, body);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  async start(args = this.#options.args ?? []): Promise<void> {
    const defaults = {
      "data-dir": this.dataDir,
      ...this.#ports,
      workers: this.#options.workers ?? 2,
    };
    const words = Object.entries(defaults)
      .filter(
        ([flag]) => !args.some((word) => word === `--${flag}` || word.startsWith(`--${flag}=`)),
      )
      .flatMap(([flag, value]) => [`--${flag}`, String(value)]);
    this.#mark = this.stderr.length;
    this.#command = this.#commandOf(["serve", ...words, ...args]);
    reportWith(this);
    const child = Bun.spawn([...this.#command], {
      // Neither the directory nor the environment of the tests may matter.
      cwd: this.dataDir,
      env: { ...plainEnvironment, ...this.#options.env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#process = child;
    this.#last = child;
    this.#output = Promise.all([
      collect(child.stdout, (text) => (this.stdout += text)),
      collect(child.stderr, (text) => (this.stderr += text)),
    ]);
    await this.#becomesReady(child);
  }

  #commandOf(words: readonly string[]): string[] {
    const { wrap = [], binary, main: other } = this.#options;
    const command = other === undefined ? program(binary) : [process.execPath, other];
    return [...wrap, ...command, ...words];
  }

  /** Asks the gateway to stop, waits until it has, and returns the exit code. */
  async stop(): Promise<number> {
    const code = await this.#end("SIGTERM");
    if (this.#options.dataDir === undefined) rmSync(this.dataDir, { recursive: true, force: true });
    return code;
  }

  /** Ends the gateway as a crash would; the data directory stays. */
  async kill9(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Asks the gateway to stop, and waits until it has; the data directory stays. */
  terminate(): Promise<number> {
    return this.#end("SIGTERM");
  }

  /** Sends a signal without waiting. */
  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** The exit code, once the process has ended by itself. */
  async exited(): Promise<number> {
    const code = (await this.#process?.exited) ?? 0;
    await this.#output;
    return code;
  }

  /** Stops the gateway if it runs, and starts it on the same data directory, with other arguments if given. */
  async restart(args?: string[]): Promise<void> {
    await this.#end("SIGTERM");
    await this.start(args);
  }

  /** What started it has failed before it could have it stopped. */
  async #endLeftBehind(): Promise<void> {
    if (this.#process === null) return;
    console.error(`left behind by its test: ${this.state().join(";")}`);
    await this.kill9();
    if (this.#options.dataDir === undefined) rmSync(this.dataDir, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<number> {
    const child = this.#process;
    if (child === null) return 0;
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    const code = await this.exited();
    reportNoMore(this);
    this.#process = null;
    return code;
  }

  async #becomesReady(child: Bun.Subprocess): Promise<void> {
    const { deadlineMs = 300_000 } = this.#options;
    await eventually(
      async () => {
        if (child.exitCode !== null) return true;
        const serving = parseLog(this.stderr.slice(this.#mark)).find(
          (event) => event.message === "serving",
        );
        if (serving === undefined) return false;
        this.admin = String(serving["management"]);
        const ready = await fetch(`${this.admin}/readyz`, { tls });
        // A node of a fleet that drains serves, and so does a gateway without one of its ports.
        return ready.status === 200 || /draining:|does not listen/.test(await ready.text());
      },
      { deadlineMs },
    ).catch((error) => {
      throw new Error(`the gateway is not ready after ${deadlineMs} ms:\n${this.stderr}`, {
        cause: error,
      });
    });
    if (child.exitCode !== null) {
      await this.#output;
      throw new Error(`the gateway ended with code ${child.exitCode}:\n${this.stderr}`);
    }
    await this.#readPorts();
  }

  /** All listeners have the engine that is tested, unless a file has the configuration. */
  async #useEngine(listeners: readonly Found[]): Promise<void> {
    for (const { id, engine } of listeners) {
      if (engine === testedEngine) continue;
      const path = `/api/v1/listeners/${id}`;
      // The largest head has another default.
      const change = { engine: testedEngine, max_header_bytes: null };
      const { status } = await this.api("PATCH", path, change);
      if (status === 409) return;
      if (status !== 200) throw new Error(`PATCH ${path}: ${status}`);
    }
  }

  async #readPorts(): Promise<void> {
    const response = await this.api("GET", "/api/v1/listeners");
    // With authentication enabled the ports are those of the first start.
    if (response.status !== 200) return;
    const listeners = (await response.json()) as Found[];
    if (testedEngine !== "") await this.#useEngine(listeners);
    this.httpPort = listeners.find(({ name }) => name === "http")?.port ?? 0;
    this.httpsPort = listeners.find(({ name }) => name === "https")?.port ?? 0;
  }
}

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void) {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}

function parseLog(text: string): LogEvent[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("{") && line.endsWith("}"))
    .map((line) => JSON.parse(line) as LogEvent);
}

/** Runs a command to its end. */
export async function runCommand(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; binary?: string; input?: string } = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([...program(options.binary), ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: { ...plainEnvironment, ...options.env },
    stdin: options.input === undefined ? "ignore" : new Blob([options.input]),
    stdout: "pipe",
    stderr: "pipe",
  });
  return await outputOf(child);
}
