// A WebSocket over HTTP/2 (RFC 8441) that looks like a socket of HTTP/1.1: the head that a test writes becomes an extended CONNECT.
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/** What the handshake of HTTP/1.1 has and the one of HTTP/2 has not. */
const NOT_SENT = new Set(["host", "connection", "upgrade", "sec-websocket-key"]);

class H2Socket extends Duplex {
  readonly #session: ClientHttp2Session;
  #head = "";
  #stream: ClientHttp2Stream | null = null;

  constructor(session: ClientHttp2Session, allowHalfOpen: boolean) {
    super({ allowHalfOpen, autoDestroy: true });
    this.#session = session;
    session.on("error", (error) => this.destroy(error));
    session.on("close", () => this.destroy());
  }

  setNoDelay(): this {
    return this;
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#stream !== null) {
      this.#stream.write(chunk, done);
      return;
    }
    this.#head += chunk.toString("latin1");
    const end = this.#head.indexOf("\r\n\r\n");
    if (end >= 0) this.#begin(this.#head.slice(0, end), this.#head.slice(end + 4));
    done();
  }

  #begin(head: string, rest: string): void {
    const [line = "", ...lines] = head.split("\r\n");
    const fields: Record<string, string> = {
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":scheme": "http",
      ":authority": "app.test",
      ":path": line.split(" ")[1] ?? "/",
    };
    for (const text of lines) {
      const name = text.slice(0, text.indexOf(":")).toLowerCase();
      if (!NOT_SENT.has(name)) fields[name] = text.slice(name.length + 1).trim();
    }
    const stream = this.#session.request(fields, { endStream: false });
    this.#stream = stream;
    stream.on("response", (headers) => {
      const status = headers[":status"] === 200 ? 101 : headers[":status"];
      const names = Object.keys(headers).filter((name) => !name.startsWith(":"));
      const text = names.map((name) => `${name}: ${String(headers[name])}\r\n`).join("");
      this.push(Buffer.from(`HTTP/1.1 ${status} \r\n${text}\r\n`, "latin1"));
      stream.on("data", (data: Buffer) => {
        if (!this.push(data)) stream.pause();
      });
    });
    stream.on("end", () => this.push(null));
    stream.on("error", () => this.destroy());
    stream.on("close", () => this.destroy());
    if (rest !== "") stream.write(Buffer.from(rest, "latin1"));
  }

  override _read(): void {
    this.#stream?.resume();
  }

  override _final(done: () => void): void {
    this.#stream?.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#session.destroy();
    done(error);
  }
}

/** Resolves once the server allows extended CONNECT. */
export async function connectH2Socket(port: number, allowHalfOpen: boolean): Promise<Socket> {
  const session = connect(`http://127.0.0.1:${port}`);
  await new Promise((resolve, reject) => {
    session.once("remoteSettings", resolve);
    session.once("error", reject);
  });
  return new H2Socket(session, allowHalfOpen) as unknown as Socket;
}
