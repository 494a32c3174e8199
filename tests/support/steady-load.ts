// Clients that send requests to a gateway without a pause, on new or persistent connections, and record every failed request.
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface LoadOptions {
  /** Default 127.0.0.1. */
  readonly hostname?: string;
  /** Between the requests of a client. Default: none. */
  readonly pauseMs?: number;
  readonly port: number;
  /** Default: cleartext. No certificate is verified. */
  readonly tls?: boolean;
  readonly path: string;
  /** What every response must end with. */
  readonly expected: string;
  /** Clients of each kind. */
  readonly fresh: number;
  readonly kept: number;
}

export interface LoadReport {
  readonly fresh: number;
  readonly kept: number;
  /** Persistent connections that closed before a byte of the next response: any client retries (RFC 9112 section 9.3.1). */
  readonly askedAgain: number;
  /** Responses with `Connection: close`. */
  readonly sentElsewhere: number;
  readonly failures: readonly string[];
}

/** Runs until `stop`, which waits for the last responses. */
export class SteadyLoad {
  readonly #options: LoadOptions;
  readonly #clients: Promise<void>[] = [];
  readonly #count = { fresh: 0, kept: 0, askedAgain: 0, sentElsewhere: 0 };
  readonly #failures: string[] = [];
  #isOver = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    for (let i = 0; i < options.fresh; i++) this.#clients.push(this.#fresh());
    for (let i = 0; i < options.kept; i++) this.#clients.push(this.#kept());
  }

  /** Completed requests so far. */
  get answered(): number {
    return this.#count.fresh + this.#count.kept;
  }

  get failures(): readonly string[] {
    return this.#failures;
  }

  async stop(): Promise<LoadReport> {
    this.#isOver = true;
    await Promise.all(this.#clients);
    return { ...this.#count, failures: this.#failures };
  }

  async #fresh(): Promise<void> {
    while (!this.#isOver) {
      const connection = new Connection(this.#options);
      const problem = await connection.ask("close");
      connection.close();
      if (problem === null) this.#count.fresh++;
      else this.#failures.push(`new connection: ${problem.text}`);
    }
  }

  async #kept(): Promise<void> {
    let connection: Connection | null = null;
    while (!this.#isOver) {
      const isReused: boolean = connection !== null;
      connection ??= new Connection(this.#options);
      const problem = await connection.ask("keep-alive");
      if (problem === null) this.#count.kept++;
      else if (isReused && problem.isUntouched) this.#count.askedAgain++;
      else this.#failures.push(`${isReused ? "kept" : "first"} connection: ${problem.text}`);
      if (connection.isClosing) this.#count.sentElsewhere++;
      if (this.#options.pauseMs !== undefined) await Bun.sleep(this.#options.pauseMs);
      if (problem === null && !connection.isClosing) continue;
      connection.close();
      connection = null;
    }
    connection?.close();
  }
}

interface Problem {
  readonly text: string;
  /** Not a byte of a response has arrived. */
  readonly isUntouched: boolean;
}

const ANSWER_MS = 10_000;

class Connection {
  readonly #options: LoadOptions;
  readonly #socket: Socket;
  #text = "";
  #settle: ((problem: Problem | null) => void) | null = null;
  #gone: string | null = null;
  isClosing = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    const to = { host: options.hostname ?? "127.0.0.1", port: options.port, noDelay: true };
    const isTls = options.tls === true;
    this.#socket = isTls ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
    this.#socket.on("data", (chunk) => {
      this.#text += chunk.toString("latin1");
      this.#look();
    });
    this.#socket.on("error", (error: NodeJS.ErrnoException) => this.#end(error.code ?? "error"));
    this.#socket.on("close", () => this.#end("closed"));
    this.#socket.on("end", () => this.#end("closed"));
  }

  ask(kind: "close" | "keep-alive"): Promise<Problem | null> {
    this.#text = "";
    const answer = new Promise<Problem | null>((resolve) => {
      const timer = setTimeout(() => this.#end("no answer in time"), ANSWER_MS);
      this.#settle = (problem) => {
        clearTimeout(timer);
        this.#settle = null;
        resolve(problem);
      };
    });
    if (this.#gone !== null) this.#end(this.#gone);
    else
      this.#socket.write(
        `GET ${this.#options.path} HTTP/1.1\r\nHost: load.test\r\nConnection: ${kind}\r\n\r\n`,
      );
    return answer;
  }

  close(): void {
    this.#socket.destroy();
  }

  #look(): void {
    const headEnd = this.#text.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(this.#text)?.[1] ?? "0");
    if (this.#text.length < headEnd + 4 + length) return;
    this.isClosing = /\r\nconnection: close\r\n/i.test(this.#text.slice(0, headEnd + 2));
    const isGood =
      this.#text.startsWith("HTTP/1.1 200 ") && this.#text.endsWith(this.#options.expected);
    this.#settle?.(isGood ? null : { text: this.#text.slice(0, 200), isUntouched: false });
  }

  #end(why: string): void {
    this.#gone ??= why;
    this.#settle?.({
      text: `${why} after ${this.#text.length} bytes`,
      isUntouched: this.#text === "",
    });
  }
}
