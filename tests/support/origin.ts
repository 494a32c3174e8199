// An upstream server that records the raw bytes of every connection and sends scripted responses; it repairs and hides nothing.
import type { Socket } from "bun";
import { eventually } from "./poll.ts";

/** One request as its bytes arrived. */
export interface OriginRequest {
  /** Number of the connection, from 0. */
  readonly connection: number;
  /** Number of the request on its connection, from 0. */
  readonly index: number;
  readonly method: string;
  readonly target: string;
  /** Head without the empty line, as received. */
  readonly head: string;
  /** Names in lower case, in order, duplicates kept. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** As on the wire: chunked coding is not undone. Latin-1. */
  readonly body: string;
  header(name: string): string | null;
}

/** How to respond: raw bytes; null: not at all; `close`: end the connection. */
export type Answer = string | null | "close";

/** Decides per request; it may write to the connection itself and return null, at once or later. */
export type Answerer = (
  request: OriginRequest,
  connection: OriginConnection,
) => Answer | Promise<Answer>;

export interface OriginConnection {
  readonly number: number;
  /** Everything received on it, Latin-1. */
  readonly received: string;
  readonly isClosed: boolean;
  write(bytes: string | Uint8Array): void;
  end(): void;
  /** Drops the connection with a reset. */
  reset(): void;
}

export interface OriginOptions {
  /** Default: 200 with the body `ok`. */
  answer?: Answer | Answerer;
  /** Respond as soon as the head is there, instead of after the whole request. */
  early?: boolean;
  port?: number;
  hostname?: string;
  /** Path of a socket to listen on instead of a port. */
  unix?: string;
  tls?: { cert: string; key: string };
}

export interface Origin {
  readonly port: number;
  readonly requests: OriginRequest[];
  readonly connections: OriginConnection[];
  /** Changes all later responses. */
  answer: Answer | Answerer;
  /** Resolves when `count` requests have arrived. */
  untilRequests(count: number): Promise<OriginRequest[]>;
  stop(): void;
}

/** `HTTP/1.1 200 OK` with a body of known length. */
export function reply(body = "ok", { status = "200 OK", headers = "" } = {}): string {
  const bytes = Buffer.byteLength(body, "latin1");
  return `HTTP/1.1 ${status}\r\nContent-Length: ${bytes}\r\n${headers}\r\n${body}`;
}

export function startOrigin(options: OriginOptions = {}): Origin {
  const requests: OriginRequest[] = [];
  const connections: Connection[] = [];
  const at =
    options.unix === undefined
      ? { hostname: options.hostname ?? "127.0.0.1", port: options.port ?? 0 }
      : { unix: options.unix };
  const server = Bun.listen<Connection>({
    ...(at as { hostname: string; port: number }),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    socket: {
      open(socket) {
        socket.data = new Connection(connections.length, socket);
        connections.push(socket.data);
      },
      data({ data: connection }, chunk) {
        connection.take(chunk.toString("latin1"), options.early ?? false, (request) => {
          requests.push(request);
          void respond(origin.answer, request, connection);
        });
      },
      drain: ({ data }) => data.flush(),
      close: ({ data }) => data.closed(),
      error: () => undefined,
    },
  });
  const origin: Origin = {
    port: server.port,
    requests,
    connections,
    answer: options.answer === undefined ? reply() : options.answer,
    untilRequests: async (count) => {
      await eventually(() => requests.length >= count);
      return requests;
    },
    stop: () => server.stop(true),
  };
  return origin;
}

async function respond(
  answer: Answer | Answerer,
  request: OriginRequest,
  connection: Connection,
): Promise<void> {
  const made = typeof answer === "function" ? await answer(request, connection) : answer;
  if (made === "close") connection.end();
  else if (made !== null) connection.write(made);
}

class Connection implements OriginConnection {
  readonly number: number;
  readonly #socket: Socket<Connection>;
  received = "";
  isClosed = false;
  #unparsed = "";
  #count = 0;
  #waitsForBody = false;
  #pending: Uint8Array[] = [];

  constructor(number: number, socket: Socket<Connection>) {
    this.number = number;
    this.#socket = socket;
  }

  write(bytes: string | Uint8Array): void {
    this.#pending.push(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    this.flush();
  }

  end(): void {
    this.#socket.end();
  }

  reset(): void {
    this.#socket.terminate();
  }

  flush(): void {
    for (let chunk = this.#pending[0]; chunk !== undefined; chunk = this.#pending[0]) {
      const written = this.#socket.write(chunk);
      if (written < 0) return;
      if (written < chunk.length) {
        this.#pending[0] = chunk.subarray(written);
        return;
      }
      this.#pending.shift();
    }
  }

  closed(): void {
    this.isClosed = true;
  }

  take(text: string, early: boolean, onRequest: (request: OriginRequest) => void): void {
    this.received += text;
    this.#unparsed += text;
    while (true) {
      const end = this.#unparsed.indexOf("\r\n\r\n");
      if (end === -1) return;
      const length = bodyLength(this.#unparsed, end);
      if (early && !this.#waitsForBody) {
        this.#waitsForBody = length === null;
        onRequest(toRequest(this, this.#count++, this.#unparsed.slice(0, end), ""));
        if (length === null) return;
        this.#unparsed = this.#unparsed.slice(end + 4 + length);
        continue;
      }
      if (length === null) return;
      const head = this.#unparsed.slice(0, end);
      const body = this.#unparsed.slice(end + 4, end + 4 + length);
      this.#unparsed = this.#unparsed.slice(end + 4 + length);
      if (this.#waitsForBody) this.#waitsForBody = false;
      else onRequest(toRequest(this, this.#count++, head, body));
    }
  }
}

/** Length of the body on the wire; null while it is incomplete. */
function bodyLength(text: string, headEnd: number): number | null {
  const head = `${text.slice(0, headEnd)}\r\n`;
  const rest = text.slice(headEnd + 4);
  if (/\r\ntransfer-encoding:[^\r]*chunked/i.test(head)) {
    const last = /(?:^|\r\n)0[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n/.exec(rest);
    return last === null ? null : last.index + last[0].length;
  }
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
  return rest.length >= length ? length : null;
}

function toRequest(
  connection: Connection,
  index: number,
  head: string,
  body: string,
): OriginRequest {
  const [requestLine = "", ...lines] = head.split("\r\n");
  const [method = "", target = ""] = requestLine.split(" ");
  const fields = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return {
    connection: connection.number,
    index,
    method,
    target,
    head,
    fields,
    body,
    header: (name) => fields.find(([known]) => known === name.toLowerCase())?.[1] ?? null,
  };
}
