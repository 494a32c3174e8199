// The least that a proxy on Bun.serve and Bun.connect does: what Bun itself costs, for `make bench ARGS="--proxies nginx,bare,sluice"`.
//
// It has no routes, no timeouts, no retries, no health, no counts and no checks, sends neither bodies nor names of its own
// upstream, and knows no answer but one with a Content-Length. What Sluice costs beyond it is Sluice's; what it costs
// beyond nginx is the price of Bun.
import { readFileSync } from "node:fs";

interface Answer {
  readonly fields: Headers;
  readonly length: number;
}

/** A kept connection, with the request that it serves. */
interface Connection {
  socket: Bun.Socket<Connection> | null;
  resolve: (response: Response) => void;
  answer: Answer | null;
  missing: number;
  parts: Buffer[];
}

const [originPort = "", httpPort = "", httpsPort = "", certificateFile = "", keyFile = ""] =
  process.argv.slice(2);

const idle: Connection[] = [];
/** Heads of answers that were read before: as in Sluice, most are equal. */
const known = new Map<string, Answer>();
let usualBytes = 2048;

/** From here on a body goes as a direct stream, in one call of the system. */
const DIRECT_FROM_BYTES = 15_000;

function answerOf(text: string): Answer {
  const found = known.get(text);
  if (found !== undefined) return found;
  const fields = new Headers();
  for (const line of text.trimEnd().split("\r\n").slice(1)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    if (name.toLowerCase() !== "connection") fields.set(name, line.slice(colon + 1).trim());
  }
  const answer = { fields, length: Number(fields.get("content-length") ?? 0) };
  if (known.size > 32) known.clear();
  known.set(text, answer);
  return answer;
}

/** Gives the memory of what was copied out back at once. */
function free(parts: readonly Buffer[]): void {
  for (const { buffer, byteLength } of parts)
    if (byteLength > 4096 && buffer instanceof ArrayBuffer && !buffer.detached) buffer.transfer(0);
}

function responseOf({ fields, length }: Answer, parts: readonly Buffer[]): Response {
  if (length < DIRECT_FROM_BYTES) {
    const [first] = parts;
    const body = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
    const response = new Response(body as BodyInit, { status: 200, headers: fields });
    free(parts);
    return response;
  }
  const source: Bun.DirectUnderlyingSource<Uint8Array> = {
    type: "direct",
    pull(controller) {
      for (const part of parts) controller.write(part);
      free(parts);
      controller.end();
    },
  };
  const stream = new ReadableStream(source as unknown as UnderlyingSource<Uint8Array>, {
    highWaterMark: length + 1,
  });
  return new Response(stream, { status: 200, headers: fields });
}

const handlers: Bun.SocketHandler<Connection> = {
  // The origin ends connections that are idle for long.
  close({ data: connection }) {
    const at = idle.indexOf(connection);
    if (at >= 0) idle.splice(at, 1);
  },
  data({ data: connection }, chunk) {
    let body = chunk;
    if (connection.answer === null) {
      let text = chunk.toString("latin1", 0, usualBytes);
      let end = text.indexOf("\r\n\r\n");
      if (end < 0) {
        text = chunk.toString("latin1");
        end = text.indexOf("\r\n\r\n");
      }
      usualBytes = end + 4;
      connection.answer = answerOf(text.length === usualBytes ? text : text.slice(0, usualBytes));
      connection.missing = connection.answer.length;
      body = chunk.subarray(usualBytes);
    }
    if (body.length > 0) connection.parts.push(body);
    connection.missing -= body.length;
    if (connection.missing > 0) return;
    const { answer, parts, resolve } = connection;
    connection.answer = null;
    connection.parts = [];
    idle.push(connection);
    resolve(responseOf(answer, parts));
  },
};

async function connect(head: string, resolve: (response: Response) => void): Promise<void> {
  const connection: Connection = { socket: null, resolve, answer: null, missing: 0, parts: [] };
  const [hostname, port] = ["127.0.0.1", Number(originPort)];
  const socket = await Bun.connect({ hostname, port, socket: handlers, data: connection });
  connection.socket = socket;
  socket.write(head);
}

function pass(request: Request, server: Bun.Server<unknown>): Promise<Response> {
  const fields = (request.headers as unknown as { toJSON(): Record<string, string> }).toJSON();
  const { url } = request;
  let head = `GET ${url.slice(url.indexOf("/", 8))} HTTP/1.1\r\n`;
  for (const name in fields) if (name !== "connection") head += `${name}: ${fields[name]}\r\n`;
  head += `x-forwarded-for: ${server.requestIP(request)?.address}\r\n\r\n`;
  return new Promise((resolve) => {
    const connection = idle.pop();
    if (connection === undefined) void connect(head, resolve);
    else {
      connection.resolve = resolve;
      connection.socket?.write(head);
    }
  });
}

const shared = { hostname: "127.0.0.1", development: false, idleTimeout: 0, fetch: pass } as const;
Bun.serve({ ...shared, port: Number(httpPort) });
const [cert, key] = [readFileSync(certificateFile, "utf8"), readFileSync(keyFile, "utf8")];
const secured = { ...shared, port: Number(httpsPort), tls: { cert, key }, http2: true };
Bun.serve(secured as unknown as Parameters<typeof Bun.serve>[0]);
