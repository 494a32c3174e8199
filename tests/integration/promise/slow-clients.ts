// Clients that take their time, over HTTP/1.1 and HTTP/2; they know no gateway.
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";

export interface SlowRequest {
  readonly path: string;
  /** Sent as a POST of known length, chunk by chunk. */
  readonly upload?: { readonly bytes: number; readonly chunks: AsyncIterable<Uint8Array> };
  /** Called with all that has come of the body, whenever there is more. */
  readonly onBody?: (text: string) => void;
}

export interface SlowAnswer {
  readonly status: number;
  /** Over HTTP/1.1 as on the wire: chunked coding is not undone. */
  readonly body: string;
}

/** One connection for requests that follow one another. */
export interface SlowConnection {
  /** Rejects when the connection is closed before the answer is complete. */
  ask(request: SlowRequest): Promise<SlowAnswer>;
  /** Resolves when the connection was closed, by whomever. */
  readonly closed: Promise<void>;
  close(): void;
}

export interface SlowClient {
  readonly name: string;
  readonly tls: boolean;
  open(port: number): SlowConnection;
}

export const slowClients: readonly SlowClient[] = [
  { name: "HTTP/1.1", tls: false, open: (port) => new Http1Connection(port) },
  { name: "HTTP/2", tls: true, open: openHttp2 },
];

class Http1Connection implements SlowConnection {
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  #received = "";
  #onData: () => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  constructor(port: number) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#socket = connect({ port, host: "127.0.0.1" });
    this.#socket.on("data", (chunk) => {
      this.#received += chunk.toString("latin1");
      this.#onData();
    });
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("close", () => {
      this.#fail(new Error("the connection was closed"));
      resolve();
    });
  }

  async ask({ path, upload, onBody }: SlowRequest): Promise<SlowAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<SlowAnswer>();
    this.#received = "";
    this.#fail = reject;
    this.#onData = () => {
      const end = this.#received.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = this.#received.slice(0, end);
      const body = this.#received.slice(end + 4);
      onBody?.(body);
      const length = /content-length: *(\d+)/i.exec(head)?.[1];
      if (length === undefined ? body.endsWith("\r\n0\r\n\r\n") : body.length >= Number(length))
        resolve({ status: Number(head.slice(9, 12)), body });
    };
    const line = `${upload === undefined ? "GET" : "POST"} ${path} HTTP/1.1\r\n`;
    const fields = upload === undefined ? "" : `Content-Length: ${upload.bytes}\r\n`;
    this.#socket.write(`${line}Host: slow.test\r\n${fields}\r\n`);
    for await (const chunk of upload?.chunks ?? []) this.#socket.write(chunk);
    return promise;
  }

  close(): void {
    this.#socket.destroy();
  }
}

function openHttp2(port: number): SlowConnection {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  // The caller that awaits the response gets the error.
  session.on("error", () => undefined);
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  session.on("close", () => close());
  return {
    closed,
    close: () => session.destroy(),
    async ask({ path, upload, onBody }) {
      const { promise, resolve, reject } = Promise.withResolvers<SlowAnswer>();
      const method = upload === undefined ? "GET" : "POST";
      const stream = session.request(
        { ":method": method, ":path": path, ":authority": "slow.test" },
        { endStream: upload === undefined },
      );
      let [status, body] = [0, ""];
      stream.on("response", (fields) => {
        status = Number(fields[":status"]);
      });
      stream.on("data", (chunk: Buffer) => {
        body += chunk.toString("latin1");
        onBody?.(body);
      });
      stream.on("end", () => resolve({ status, body }));
      stream.on("error", reject);
      stream.on("close", () => reject(new Error("the stream was closed")));
      for await (const chunk of upload?.chunks ?? []) stream.write(chunk);
      if (upload !== undefined) stream.end();
      return promise;
    },
  };
}
