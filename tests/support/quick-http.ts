// A client so cheap that thousands of connections a minute cost a test little; reads only responses with a Content-Length.
import type { Socket } from "bun";

export interface QuickReply {
  readonly status: number;
  /** Status line and fields, Latin-1. */
  readonly head: string;
  readonly body: string;
  header(name: string): string | null;
}

interface Waiting {
  readonly resolve: (reply: QuickReply) => void;
  readonly reject: (error: Error) => void;
}

/** In seconds, after which a waiting connection times out. */
const PATIENCE_S = 120;

/** One connection for consecutive requests. An unexpected close is an error of the request, or of the next one. */
export class QuickConnection {
  #socket: Socket<QuickConnection> | null = null;
  #received = "";
  #waiting: Waiting | null = null;
  #closed: Error | null = null;

  static async open(port: number, { tls = false } = {}): Promise<QuickConnection> {
    const connection = new QuickConnection();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    connection.#waiting = { resolve: () => resolve(), reject };
    Bun.connect<QuickConnection>({
      hostname: "127.0.0.1",
      port,
      data: connection,
      socket: tls ? tlsHandlers : handlers,
      ...(tls ? { tls: { rejectUnauthorized: false, serverName: "localhost" } } : {}),
    }).catch((error) => connection.failed(error));
    await promise;
    return connection;
  }

  get isClosed(): boolean {
    return this.#closed !== null;
  }

  get(path: string, host = "any.test", fields = ""): Promise<QuickReply> {
    return this.send(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n`);
  }

  /** Sends the bytes of one request (Latin-1) and reads its response. */
  send(request: string): Promise<QuickReply> {
    if (this.#closed !== null) return Promise.reject(this.#closed);
    const { promise, resolve, reject } = Promise.withResolvers<QuickReply>();
    this.#waiting = { resolve, reject };
    this.#socket?.timeout(PATIENCE_S);
    this.#socket?.write(request);
    return promise;
  }

  close(): void {
    this.#closed ??= new Error("closed by the test");
    this.#socket?.end();
  }

  // The socket handlers below call the following methods.

  opened(socket: Socket<QuickConnection>): void {
    this.#socket = socket;
    this.#settle()?.resolve(NO_REPLY);
  }

  failed(error: Error): void {
    this.#closed ??= error;
    this.#settle()?.reject(error);
  }

  received(chunk: Buffer): void {
    this.#received += chunk.toString("latin1");
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.#received.slice(0, end);
    const length = fieldOf(head, "content-length");
    if (length === null) {
      this.failed(new Error(`an answer without Content-Length:\n${head}`));
      return;
    }
    const total = end + 4 + Number(length);
    if (this.#received.length < total) return;
    const body = this.#received.slice(end + 4, total);
    this.#received = this.#received.slice(total);
    this.#settle()?.resolve({
      status: Number(head.slice(9, 12)),
      head,
      body,
      header: (name) => fieldOf(head, name),
    });
  }

  #settle(): Waiting | null {
    const waiting = this.#waiting;
    this.#waiting = null;
    return waiting;
  }
}

const NO_REPLY: QuickReply = { status: 0, head: "", body: "", header: () => null };

/** One request on its own connection. */
export async function quickGet(
  port: number,
  { path = "/", host = "any.test", tls = false } = {},
): Promise<QuickReply> {
  const connection = await QuickConnection.open(port, { tls });
  try {
    return await connection.get(path, host);
  } finally {
    connection.close();
  }
}

function fieldOf(head: string, name: string): string | null {
  const at = head.toLowerCase().indexOf(`\r\n${name.toLowerCase()}:`);
  if (at < 0) return null;
  const end = head.indexOf("\r\n", at + 2);
  return head.slice(at + name.length + 3, end < 0 ? head.length : end).trim();
}

type Handlers = Bun.SocketHandler<QuickConnection>;

const handlers: Handlers = {
  open: (socket) => socket.data.opened(socket),
  data: (socket, chunk) => socket.data.received(chunk),
  close: (socket) => socket.data.failed(new Error("the connection was closed")),
  error: (socket, error) => socket.data.failed(error),
  timeout(socket) {
    socket.data.failed(new Error(`no answer within ${PATIENCE_S} s`));
    socket.terminate();
  },
  connectError: (socket, error) => socket.data.failed(error),
};

const tlsHandlers: Handlers = {
  ...handlers,
  open: () => undefined,
  handshake: (socket) => socket.data.opened(socket),
};
