// A gRPC client and a gRPC server on node:http2, whose messages are plain bytes; knows no gateway.
import http2 from "node:http2";
import type { AddressInfo, Socket } from "node:net";

/** A message with its prefix. */
export function framed(text: string | Uint8Array): Buffer {
  const bytes = Buffer.from(text as string);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** The complete messages in a body. */
function messagesIn(body: Buffer): string[] {
  const found: string[] = [];
  for (let at = 0; at + 5 <= body.length;) {
    const length = body.readUInt32BE(at + 1);
    if (at + 5 + length > body.length) break;
    found.push(body.toString("latin1", at + 5, at + 5 + length));
    at += 5 + length;
  }
  return found;
}

/** A call of a client. */
export class Call {
  readonly stream: http2.ClientHttp2Stream;
  headers: http2.IncomingHttpHeaders = {};
  trailers: http2.IncomingHttpHeaders = {};
  /** Settles when the stream is closed. */
  readonly ended: Promise<this>;
  #body = Buffer.alloc(0);
  #isWhole = false;

  constructor(stream: http2.ClientHttp2Stream) {
    this.stream = stream;
    const { promise, resolve } = Promise.withResolvers<this>();
    this.ended = promise;
    stream.on("response", (headers) => {
      this.headers = headers;
    });
    stream.on("trailers", (trailers) => {
      this.trailers = trailers;
    });
    stream.on("data", (chunk: Buffer) => {
      this.#body = Buffer.concat([this.#body, chunk]);
    });
    stream.on("end", () => {
      this.#isWhole = true;
    });
    stream.on("error", () => {});
    stream.on("close", () => resolve(this));
  }

  send(text: string | Uint8Array): this {
    this.stream.write(framed(text));
    return this;
  }

  get messages(): string[] {
    return messagesIn(this.#body);
  }

  /** The status that a gRPC client would report; null: none arrived. */
  get status(): number | null {
    const value = this.trailers["grpc-status"] ?? this.headers["grpc-status"];
    return value === undefined || !this.#isWhole ? null : Number(value);
  }

  /** Decoded. */
  get message(): string {
    const value = this.trailers["grpc-message"] ?? this.headers["grpc-message"] ?? "";
    return decodeURIComponent(String(value));
  }
}

export class GrpcClient {
  readonly #session: http2.ClientHttp2Session;
  isClosed = false;

  private constructor(session: http2.ClientHttp2Session) {
    this.#session = session;
    session.on("error", () => {});
    session.on("close", () => {
      this.isClosed = true;
    });
  }

  /** Over TLS, without checking the certificate; `authority`: also the server name. */
  static connect(port: number, authority = "localhost"): GrpcClient {
    return new GrpcClient(
      http2.connect(`https://${authority}:${port}`, {
        rejectUnauthorized: false,
        lookup: (_name, options, done) => {
          if (options.all === true) done(null, [{ address: "127.0.0.1", family: 4 }]);
          else done(null, "127.0.0.1", 4);
        },
      } as http2.SecureClientSessionOptions),
    );
  }

  /** In cleartext, with prior knowledge. */
  static connectPlain(port: number): GrpcClient {
    return new GrpcClient(http2.connect(`http://127.0.0.1:${port}`));
  }

  /** A call that stays open for more messages. */
  open(path: string, headers: Readonly<Record<string, string>> = {}): Call {
    return new Call(
      this.#session.request({
        ":method": "POST",
        ":path": path,
        "content-type": "application/grpc",
        te: "trailers",
        ...headers,
      }),
    );
  }

  /** A unary call; settles at its end. */
  async unary(
    path: string,
    text: string | Uint8Array = "",
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Call> {
    const call = this.open(path, headers);
    call.stream.end(framed(text));
    return await call.ended;
  }

  close(): void {
    this.#session.destroy();
  }
}

export interface ReceivedCall {
  readonly stream: http2.ServerHttp2Stream;
  readonly headers: http2.IncomingHttpHeaders;
  /** The complete messages so far. */
  readonly messages: () => string[];
  /** Settles when the client has sent everything. */
  readonly received: Promise<string[]>;
  /** The error code of a reset; null: none. */
  readonly reset: () => number | null;
}

export interface GrpcServer {
  readonly port: number;
  readonly calls: readonly ReceivedCall[];
  /** Closes all connections, as if the process had died. */
  breakOff(): void;
  stop(): Promise<void>;
}

/** Cleartext, with prior knowledge. */
export async function startGrpcServer(handle: (call: ReceivedCall) => void): Promise<GrpcServer> {
  const calls: ReceivedCall[] = [];
  const sockets = new Set<Socket>();
  const server = http2.createServer();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("stream", (stream, headers) => {
    let body = Buffer.alloc(0);
    let code: number | null = null;
    const { promise, resolve } = Promise.withResolvers<string[]>();
    stream.on("data", (chunk: Buffer) => {
      body = Buffer.concat([body, chunk]);
    });
    stream.on("end", () => resolve(messagesIn(body)));
    stream.on("error", () => {});
    stream.on("close", () => {
      if (stream.rstCode !== 0) code = stream.rstCode ?? null;
    });
    const call: ReceivedCall = {
      stream,
      headers,
      messages: () => messagesIn(body),
      received: promise,
      reset: () => code,
    };
    calls.push(call);
    handle(call);
  });
  await new Promise<void>((listening) => {
    server.listen(0, "127.0.0.1", listening);
  });
  const breakOff = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    calls,
    breakOff,
    async stop() {
      breakOff();
      await new Promise((closed) => {
        server.close(closed);
      });
    },
  };
}

const HEAD = { ":status": 200, "content-type": "application/grpc" };

/** Responds with these messages and a status in trailers. */
export function answer(
  { stream }: ReceivedCall,
  messages: readonly (string | Uint8Array)[],
  trailers: Readonly<Record<string, string>> = { "grpc-status": "0" },
): void {
  if (stream.destroyed) return;
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  for (const message of messages) stream.write(framed(message));
  stream.end();
}

/** Responds with a status alone. */
export function answerTrailersOnly({ stream }: ReceivedCall, status: number): void {
  if (!stream.destroyed)
    stream.respond({ ...HEAD, "grpc-status": String(status) }, { endStream: true });
}

/** Begins a response that stays open. */
export function answerOpen({ stream }: ReceivedCall, text: string): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.write(framed(text));
}
