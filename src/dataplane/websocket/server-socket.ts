// A client's WebSocket on any duplex stream, for engines without one of their own (RFC 6455); knows no handshake and no session.
import type { Duplex } from "node:stream";
import type { ServerWebSocket, WebSocketHandler } from "bun";
import {
  BINARY,
  closeCodes,
  FrameError,
  MAX_MESSAGE_BYTES,
  PING,
  PONG,
  serverClose,
  serverFrame,
  TEXT,
} from "./frame.ts";
import { FrameDecoder } from "./frame-decoder.ts";

const NOTHING = Buffer.alloc(0);

/** Milliseconds in which the client must close its side after the last Close frame. */
const CLOSING_MS = 5000;

/** Offers what sessions use of Bun's ServerWebSocket, and calls the same handler. */
export class ServerSocket {
  readonly data: object;
  readonly #stream: Duplex;
  readonly #handler: WebSocketHandler<object>;
  readonly #decoder: FrameDecoder;
  /** Bytes wait for the client; the handler's `drain` follows. */
  #isWaiting = false;
  /** Nothing is sent or reported any more. */
  #isOver = false;
  #timer: Timer | null = null;

  /** Opens at once. `rest`: what arrived behind the handshake. */
  constructor(
    stream: Duplex,
    handler: WebSocketHandler<never>,
    { session, rest }: { readonly session: object; readonly rest: Buffer },
  ) {
    this.data = session;
    this.#stream = stream;
    this.#handler = handler as unknown as WebSocketHandler<object>;
    this.#decoder = new FrameDecoder(this.#sink(), MAX_MESSAGE_BYTES, true);
    this.#handler.open?.(this.#client);
    // The response of the handshake may wait: a session that sees it pauses its target until the client has it.
    this.#isWaiting = stream.writableLength > 0;
    if (this.#isWaiting) stream.write(NOTHING, () => this.#written());
    if (rest.length > 0) stream.unshift(rest);
    stream.on("data", (chunk: Buffer) => this.#received(chunk));
    stream.on("end", () => this.#ended());
    stream.on("error", () => this.terminate());
    stream.on("close", () => this.#closed());
    stream.resume();
  }

  /** Handlers use no more of it than is here. */
  get #client(): ServerWebSocket<object> {
    return this as unknown as ServerWebSocket<object>;
  }

  get isPaused(): boolean {
    return this.#stream.isPaused();
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  getBufferedAmount(): number {
    return this.#stream.writableLength;
  }

  /** One write for all frames of the callback. */
  cork(write: () => void): void {
    this.#stream.cork();
    try {
      write();
    } finally {
      this.#stream.uncork();
    }
  }

  sendText(message: string): void {
    this.#send(serverFrame(TEXT, message));
  }

  sendBinary(message: Uint8Array): void {
    this.#send(serverFrame(BINARY, message));
  }

  ping(data: Uint8Array): void {
    this.#send(serverFrame(PING, data));
  }

  pong(data: Uint8Array): void {
    this.#send(serverFrame(PONG, data));
  }

  /** Sends Close and ends the connection. The handler's `close` runs at once, as with Bun. */
  close(code: number = closeCodes.none, reason = ""): void {
    if (this.#isOver) return;
    this.#sendClose(code, reason);
    this.#report(code, reason);
  }

  /** Closes the connection without a Close frame. */
  terminate(): void {
    this.#stream.destroy();
    this.#report(closeCodes.abnormal, "");
  }

  #send(frame: Buffer): void {
    const stream = this.#stream;
    if (this.#isOver || !stream.writable) return;
    stream.write(frame, () => this.#written());
    if (stream.writableLength === 0) return;
    this.#isWaiting = true;
    if (stream.writableLength > (this.#handler.backpressureLimit ?? MAX_MESSAGE_BYTES))
      this.terminate();
  }

  #written(): void {
    if (!this.#isWaiting || this.#isOver || this.#stream.writableLength > 0) return;
    this.#isWaiting = false;
    this.#handler.drain?.(this.#client);
  }

  #received(chunk: Buffer): void {
    if (this.#isOver) return;
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      const code = error instanceof FrameError ? error.code : closeCodes.internalError;
      this.#sendClose(code, "");
      // The client has sent no Close frame that the target could get.
      this.#report(closeCodes.abnormal, "");
    }
  }

  #sink() {
    return {
      text: (message: string) => this.#handler.message?.(this.#client, message),
      binary: (message: Buffer) =>
        this.#handler.message?.(this.#client, message as Buffer<ArrayBuffer>),
      ping: (data: Buffer) => {
        this.pong(data);
        this.#handler.ping?.(this.#client, data as Buffer<ArrayBuffer>);
      },
      pong: (data: Buffer) => this.#handler.pong?.(this.#client, data as Buffer<ArrayBuffer>),
      closed: (code: number, reason: string) => {
        // Both sides have closed: nothing can follow.
        this.#stream.once("finish", () => this.#stream.destroy());
        this.close(code, reason);
      },
    };
  }

  /** The stream may hold messages that the client has not read: they go out before the Close frame. */
  #sendClose(code: number, reason: string): void {
    const stream = this.#stream;
    stream.end(serverClose(code, reason));
    // Reads and drops the rest, so that a reset does not destroy the Close frame on its way.
    stream.resume();
    let waiting = stream.writableLength;
    this.#timer = setInterval(() => {
      // A slow reader has time for as long as it reads.
      if (stream.writableLength === 0 || stream.writableLength === waiting) stream.destroy();
      waiting = stream.writableLength;
    }, CLOSING_MS);
  }

  /** The client sends nothing more; without its Close frame that is an abnormal end. */
  #ended(): void {
    if (this.#isOver) this.#stream.end();
    else this.terminate();
  }

  #closed(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#report(closeCodes.abnormal, "");
  }

  #report(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.close?.(this.#client, code, reason);
  }
}
