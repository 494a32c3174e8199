// A client that sends exactly the given bytes and records every received byte; only `parseResponse` parses HTTP.
import type { Socket } from "bun";
import { DEADLINE_MS } from "./poll.ts";

export interface RawOptions {
  port: number;
  hostname?: string;
  tls?: boolean;
}

/** Sends `bytes` and returns all that comes back until the peer closes; throws when it has not by the deadline. */
export async function sendRaw(bytes: string | Uint8Array, options: RawOptions): Promise<string> {
  const connection = await connectRaw(options);
  connection.write(bytes);
  return connection.untilClosed();
}

export async function connectRaw(options: RawOptions): Promise<RawConnection> {
  const connection = new RawConnection();
  await connection.open(options);
  return connection;
}

/** One connection; text is Latin-1, so that every byte is one character. */
export class RawConnection {
  #socket: Socket | null = null;
  #pending: Uint8Array[] = [];
  #waiters = new Set<() => void>();
  /** Everything received so far. */
  received = "";
  isClosed = false;

  async open({ port, hostname = "127.0.0.1", tls = false }: RawOptions): Promise<void> {
    const opening = Bun.connect({
      hostname,
      port,
      ...(tls ? { tls: { rejectUnauthorized: false, serverName: "localhost" } } : {}),
      socket: {
        data: (_, chunk) => {
          this.received += chunk.toString("latin1");
          this.#wake();
        },
        drain: () => this.#flush(),
        close: () => this.#close(),
        error: () => this.#close(),
      },
    });
    try {
      this.#socket = await opening;
    } catch (error) {
      // On a busy machine the peer accepts the connection and resets it before this thread sees it established.
      if ((error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
      this.#close();
    }
  }

  write(bytes: string | Uint8Array): void {
    this.#pending.push(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    this.#flush();
  }

  /** Half-closes the connection; the peer may still respond. */
  end(): void {
    this.#socket?.shutdown();
  }

  /** Drops the connection with a reset. */
  reset(): void {
    this.#socket?.terminate();
  }

  close(): void {
    this.#socket?.end();
  }

  /** Reads nothing more, so that what the peer sends piles up. */
  pause(): void {
    this.#socket?.pause();
  }

  /** Reads again after `pause`. */
  resume(): void {
    this.#socket?.resume();
  }

  /** Resolves with all that was received when it contains `text`, or when the function says so. */
  async until(text: string | RegExp | ((received: string) => boolean)): Promise<string> {
    const has = () => {
      if (typeof text === "function") return text(this.received);
      return typeof text === "string" ? this.received.includes(text) : text.test(this.received);
    };
    await this.#wait(() => has() || this.isClosed, `for ${text}`);
    if (!has())
      throw new Error(`closed before ${text}; received: ${JSON.stringify(this.received)}`);
    return this.received;
  }

  async untilClosed(): Promise<string> {
    await this.#wait(() => this.isClosed, "for the peer to close");
    return this.received;
  }

  #flush(): void {
    for (let chunk = this.#pending[0]; chunk !== undefined; chunk = this.#pending[0]) {
      const written = this.#socket?.write(chunk) ?? -1;
      if (written < 0) return;
      if (written < chunk.length) {
        this.#pending[0] = chunk.subarray(written);
        return;
      }
      this.#pending.shift();
    }
  }

  #close(): void {
    this.isClosed = true;
    this.#wake();
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
  }

  async #wait(isDone: () => boolean, what: string): Promise<void> {
    if (isDone()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = () => isDone() && resolve();
    const timer = setTimeout(
      () =>
        reject(
          new Error(`waited ${DEADLINE_MS} ms ${what}; received: ${JSON.stringify(this.received)}`),
        ),
      DEADLINE_MS,
    );
    this.#waiters.add(waiter);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#waiters.delete(waiter);
    }
  }
}

export interface ParsedResponse {
  status: number;
  reason: string;
  /** Names in lower case, in order, duplicates kept. */
  fields: [name: string, value: string][];
  /** As on the wire: chunked coding is not undone. */
  body: string;
  header(name: string): string | null;
}

/** Parses the first response in `text` without validation. */
export function parseResponse(text: string): ParsedResponse {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1) throw new Error(`no whole response head in ${JSON.stringify(text)}`);
  const [statusLine = "", ...lines] = text.slice(0, end).split("\r\n");
  const [, status = "", reason = ""] = /^HTTP\/1\.[01] (\d{3}) ?(.*)$/.exec(statusLine) ?? [];
  if (status === "") throw new Error(`no status line: ${JSON.stringify(statusLine)}`);
  const fields = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    status: Number(status),
    reason,
    fields,
    body: text.slice(end + 4),
    header: (name) => fields.find(([known]) => known === name.toLowerCase())?.[1] ?? null,
  };
}
