// An HTTP/2 client that sends frames, or parts of them, as they are, and answers nothing.
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Frame } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const GOAWAY = 7;

export class RawClient {
  readonly frames: Frame[] = [];
  readonly began = performance.now();
  isClosed = false;
  received = 0;
  readonly #socket: Socket;
  #rest = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.isClosed = true;
    });
  }

  static async connect(port: number, isTls = false): Promise<RawClient> {
    const place = { port, host: "127.0.0.1", noDelay: true };
    const socket = isTls
      ? connectTls({
          ...place,
          rejectUnauthorized: false,
          servername: "localhost",
          ALPNProtocols: ["h2"],
        })
      : connect(place);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once(isTls ? "secureConnect" : "connect", () => resolve());
    socket.once("error", reject);
    await promise;
    return new RawClient(socket);
  }

  preface({ hasSettings = true, settings = Buffer.alloc(0) } = {}): void {
    this.write(PREFACE);
    if (hasSettings) this.frame(4, 0, 0, settings);
  }

  frame(type: number, flags: number, stream: number, payload: Buffer): void {
    this.write(frameOf(type, flags, stream, payload));
  }

  /** The first bytes of a frame. */
  part(type: number, flags: number, stream: number, payload: Buffer, bytes: number): void {
    this.write(frameOf(type, flags, stream, payload).subarray(0, bytes));
  }

  /** Sends up to `count` frames, until the connection ends. */
  async flood(type: number, stream: number, payload: Buffer, count: number): Promise<void> {
    const block = Buffer.concat(
      Array.from({ length: 500 }, () => frameOf(type, 0, stream, payload)),
    );
    for (let sent = 0; sent < count && !this.isClosed; sent += 500) {
      this.write(block);
      await this.breathe();
    }
    await this.untilClosed();
  }

  write(bytes: Uint8Array): void {
    if (!this.#socket.destroyed) this.#socket.write(bytes);
  }

  /** Stops reading. */
  pause(): void {
    this.#socket.pause();
  }

  breathe(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  async untilClosed(): Promise<void> {
    await eventually(() => this.isClosed);
  }

  /** Error code of the last GOAWAY; null: there was none. */
  get goAway(): number | null {
    return this.frames.findLast(({ type }) => type === GOAWAY)?.payload.readUInt32BE(4) ?? null;
  }

  /** Answers to PING. */
  get acks(): number {
    return this.frames.filter(({ type, flags }) => type === 6 && flags === 1).length;
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.received += chunk.length;
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 9) {
      const length = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < 9 + length) return;
      const [type = 0, flags = 0] = [this.#rest[3], this.#rest[4]];
      const stream = this.#rest.readUInt32BE(5) & 0x7fffffff;
      this.frames.push({ type, flags, stream, payload: this.#rest.subarray(9, 9 + length) });
      this.#rest = this.#rest.subarray(9 + length);
    }
  }
}

function frameOf(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}
