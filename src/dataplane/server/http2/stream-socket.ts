// A stream of HTTP/2 that has become a tunnel (RFC 8441), as the socket of its client; knows no handshake and no frame of its own.
import type { SwitchedClient, SwitchedSocket } from "../client-stream.ts";
import { CODE } from "../../http2/frames.ts";
import type { ResponseConnection, ResponseStream } from "./response-body.ts";

/** The stream of a tunnel. */
export interface TunnelStream extends ResponseStream {
  /** The client has read of what has arrived. */
  bytesRead(): void;
  /** Waits no longer for the client's end. */
  finish(): void;
}

export class StreamSocket implements SwitchedSocket {
  isClosed = false;
  isFinished = false;
  /** The client has ended its side. */
  hasEnded = false;
  isPaused = false;
  readonly #stream: TunnelStream;
  readonly #connection: ResponseConnection;
  #user: SwitchedClient | null = null;
  /** What has arrived before there was a tunnel. */
  #early: Buffer[] = [];
  /** More was written than the windows allow. */
  #isFull = false;
  #endsWriting = false;

  constructor(stream: TunnelStream, connection: ResponseConnection) {
    this.#stream = stream;
    this.#connection = connection;
  }

  /** The tunnel begins. */
  attach(user: SwitchedClient): void {
    this.#user = user;
    const early = Buffer.concat(this.#early);
    this.#early = [];
    user.switched(this, early);
    this.#stream.bytesRead();
  }

  /** Bytes that the client's windows do not allow yet. */
  get heldBytes(): number {
    return this.#stream.queue.size;
  }

  get isBehind(): boolean {
    return this.heldBytes > 0 || this.#connection.isBehind;
  }

  /** The window bounds them. */
  boundReads(): void {}

  /** Bytes that have arrived and hold the window. `all`: since it was given last. */
  unread(all: number): number {
    return this.#user === null || this.isPaused ? all : 0;
  }

  write(bytes: Uint8Array): boolean {
    if (this.isClosed || this.#endsWriting || bytes.byteLength === 0) return true;
    const { queue } = this.#stream;
    queue.push(bytes, true);
    this.#stream.ready();
    // The caller may use the bytes again unless they are held.
    this.#connection.sendReady();
    this.#isFull = queue.size > 0;
    return !this.#isFull;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.#stream.bytesRead();
  }

  endWriting(): void {
    if (this.#endsWriting || this.isClosed) return;
    this.#endsWriting = true;
    this.#stream.endBody();
  }

  finish(): void {
    if (this.isFinished || this.isClosed) return;
    this.isFinished = true;
    this.endWriting();
    this.resume();
    this.#stream.finish();
  }

  destroy(): void {
    if (this.isClosed) return;
    // RFC 8441 section 5: as a reset of TCP.
    this.#stream.reset(CODE.cancel);
    this.closed();
  }

  // Called by the stream.

  received(bytes: Buffer): void {
    if (this.isFinished) return;
    if (this.#user === null) this.#early.push(bytes);
    else this.#user.received(bytes);
  }

  /** All that was written is sent. */
  drained(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    if (!this.isFinished) this.#user?.drained();
  }

  /** The client has ended its side. */
  ended(): void {
    this.hasEnded = true;
    if (!this.isFinished) this.#user?.ended();
  }

  closed(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#user?.closed(true);
  }
}
