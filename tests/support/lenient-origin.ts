// An upstream server that accepts nearly any bytes as requests and records them, so that a smuggled request becomes visible.
import { eventually } from "./poll.ts";

/** One request as the most generous server understands it. */
export interface ExecutedRequest {
  readonly connection: number;
  readonly method: string;
  readonly target: string;
  /** Lower-case names with `_` read as `-`, in order, duplicates kept. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** As received, Latin-1. */
  readonly head: string;
  /** Without chunked coding. */
  readonly body: string;
  header(name: string): string | null;
}

/** How a server parses input that others reject. */
interface Reading {
  /** A bare LF, or a bare CR, ends a line too. */
  readonly bareLines: boolean;
  readonly first: "length" | "coding";
  /** Of two Content-Lengths. */
  readonly length: "first" | "last";
}

const READINGS: readonly Reading[] = [true, false].flatMap((bareLines) =>
  (["coding", "length"] as const).flatMap((first) =>
    (["first", "last"] as const).map((length) => ({ bareLines, first, length })),
  ),
);

const LOOSEST: Reading = { bareLines: true, first: "coding", length: "last" };

export interface LenientOrigin {
  readonly port: number;
  /** Requests that the most lenient parser executes. */
  readonly executed: readonly ExecutedRequest[];
  /** All bytes of each connection, Latin-1. */
  readonly received: readonly string[];
  /** Method and target of executed requests, in order. */
  readonly lines: readonly string[];
  /** Connections that two parsers read differently: each could hide a request. */
  readonly ambiguous: readonly string[];
  readonly openConnections: number;
  /** Clears the recorded requests; connections stay open. */
  forget(): void;
  untilExecuted(count: number): Promise<readonly ExecutedRequest[]>;
  stop(): void;
}

class Connection {
  received = "";
  /** Bytes that the current test sent. */
  from = 0;
  done = 0;
  isOpen = true;
  readonly number: number;

  constructor(number: number) {
    this.number = number;
  }
}

/** `answer` replaces the usual 200, whose body is the target. */
export function startLenientOrigin(
  answer: (request: ExecutedRequest) => string = usualAnswer,
): LenientOrigin {
  const connections: Connection[] = [];
  let executed: ExecutedRequest[] = [];
  const server = Bun.listen<Connection>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = new Connection(connections.length);
        connections.push(socket.data);
      },
      data(socket, chunk) {
        const connection = socket.data;
        connection.received += chunk.toString("latin1");
        const text = connection.received.slice(connection.done);
        const { requests, used } = readAll(text, LOOSEST, connection.number);
        connection.done += used;
        for (const request of requests) {
          executed.push(request);
          socket.write(Buffer.from(answer(request), "latin1"));
        }
      },
      close(socket) {
        socket.data.isOpen = false;
      },
      error: () => undefined,
    },
  });
  return {
    port: server.port,
    get executed() {
      return executed;
    },
    get received() {
      return connections.map(({ received, from }) => received.slice(from));
    },
    get lines() {
      return executed.map(({ method, target }) => `${method} ${target}`);
    },
    get ambiguous() {
      return connections.map(({ received, from }) => received.slice(from)).filter(isAmbiguous);
    },
    get openConnections() {
      return connections.filter(({ isOpen }) => isOpen).length;
    },
    forget() {
      executed = [];
      for (const connection of connections) connection.from = connection.received.length;
    },
    untilExecuted: async (count) => {
      await eventually(() => executed.length >= count);
      return executed;
    },
    stop: () => server.stop(true),
  };
}

function usualAnswer(request: ExecutedRequest): string {
  const body = request.method === "HEAD" ? "" : request.target;
  return `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${request.target.length}\r\n\r\n${body}`;
}

/** Whether two servers could parse the bytes as different requests. */
function isAmbiguous(received: string): boolean {
  const seen = READINGS.map((reading) => {
    const { requests, used } = readAll(received, reading, 0);
    return JSON.stringify([requests.map(({ head, body }) => [head, body]), used]);
  });
  return new Set(seen).size > 1;
}

function readAll(text: string, reading: Reading, connection: number) {
  const requests: ExecutedRequest[] = [];
  let used = 0;
  for (;;) {
    const next = readOne(text.slice(used), reading, connection);
    if (next === null) return { requests, used };
    requests.push(next.request);
    used += next.length;
  }
}

function readOne(text: string, reading: Reading, connection: number) {
  const line = reading.bareLines ? /\r\n|\n|\r(?!$)/ : /\r\n/;
  const gap = reading.bareLines ? /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))/ : /\r\n\r\n/;
  const blank = /^(?:\r\n|\n)*/.exec(text)?.[0].length ?? 0;
  const end = gap.exec(text.slice(blank));
  if (end === null) return null;
  const head = text.slice(blank, blank + end.index);
  const bodyStart = blank + end.index + end[0].length;
  const [requestLine = "", ...lines] = head.split(line);
  const fields = lines.map((each) => {
    const colon = each.indexOf(":");
    const name = each.slice(0, colon < 0 ? each.length : colon);
    const value = colon < 0 ? "" : each.slice(colon + 1);
    return [
      name
        .trim()
        .toLowerCase()
        .replace(/[^0-9a-z]/g, "-"),
      value.trim(),
    ] as const;
  });
  const body = readBody(text.slice(bodyStart), fields, reading);
  if (body === null) return null;
  const [method = "", target = ""] = requestLine.trim().split(/\s+/);
  const header = (name: string) =>
    fields.find(([known]) => known === name.toLowerCase())?.[1] ?? null;
  const request: ExecutedRequest = {
    connection,
    method,
    target,
    fields,
    head,
    body: body.content,
    header,
  };
  return { request, length: bodyStart + body.length };
}

/** Null while it is incomplete. */
function readBody(text: string, fields: ExecutedRequest["fields"], reading: Reading) {
  const isChunked = fields.some(
    ([name, value]) => name === "transfer-encoding" && /chunked/i.test(value),
  );
  const lengths = fields.filter(([name]) => name === "content-length").map(([, value]) => value);
  const chosen = reading.length === "first" ? lengths[0] : lengths.at(-1);
  const length = Number.parseInt(chosen ?? "", 10);
  const byLength = Number.isInteger(length) && length >= 0;
  if (isChunked && !(byLength && reading.first === "length"))
    return readChunks(text, reading.bareLines);
  if (!byLength) return { content: "", length: 0 };
  return text.length < length ? null : { content: text.slice(0, length), length };
}

function readChunks(text: string, bareLines: boolean) {
  const lineEnd = bareLines ? /\r?\n/ : /\r\n/;
  let at = 0;
  let content = "";
  for (;;) {
    const end = lineEnd.exec(text.slice(at));
    if (end === null) return null;
    const size = Number.parseInt(text.slice(at, at + end.index).trim(), 16) || 0;
    at += end.index + end[0].length;
    if (size === 0) break;
    if (text.length < at + size) return null;
    content += text.slice(at, at + size);
    at += size;
    const after = lineEnd.exec(text.slice(at));
    if (after === null) return null;
    if (after.index === 0) at += after[0].length;
  }
  for (;;) {
    const end = lineEnd.exec(text.slice(at));
    if (end === null) return null;
    at += end.index + end[0].length;
    if (end.index === 0) return { content, length: at };
  }
}
