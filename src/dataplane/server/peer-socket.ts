// A peer's socket with the traps of Bun's sockets closed: the only way in which our engine reads, writes and closes; knows no protocol.
//
// - There is no `end`. Under TLS Bun's socket could not be ended afterwards until the peer leaves, and `end(data)` drops what the
//   kernel does not take. Closing is: write, FIN (`finish`), read and drop, a time limit of our own, `destroy`.
// - `terminate` resets, and a reset destroys what the peer has not read yet, also behind FIN: there it is `close`.
// - A string is written as latin1: Bun's `write(text)` sends UTF-8, and header fields hold bytes above 0x7f.
// - A large read ends the turn of its socket: Bun reads up to 5.7 MB of one socket while the others wait.
// - What a handler throws closes the connection: Bun reports it to `error` and leaves the socket open.
// - A paused socket never sees FIN; `destroy` within a handler reports `closed` before the handler returns.
import {
  BEHIND_BYTES,
  boundReceiveBuffer,
  roundTripOf,
  unsentBytes,
} from "../../system/receive-buffer.ts";
import type { SocketOwner } from "../listener/client-socket.ts";

/** Of Bun's socket what is safe to use. */
export interface RawSocket {
  /** All of the bytes, or `length` of them from `offset`. */
  write(bytes: Uint8Array, offset?: number, length?: number): number;
  pause(): void;
  resume(): void;
  shutdown(): void;
  /** Closes; the system goes on sending what it has taken. */
  close(): void;
  /** Closes with a reset, which destroys what the peer has not read. */
  terminate(): void;
}

/** What handles the events of a socket. */
export interface SocketUser {
  received(chunk: Buffer): void;
  /** All that was written has reached the kernel. */
  drained(): void;
  /** The peer has sent FIN; what is written may still reach it. */
  ended(): void;
  /** The last call. `isReset`: the connection broke. */
  closed(isReset: boolean): void;
}

/** A read of this size ends the turn of its socket. Bun reads at most twice as much at once. */
const TURN_BYTES = 262_144;
/** Time for the peer to close after FIN, in milliseconds, and as long as it still sends. */
const LINGER_MS = 2000;
const MAX_LINGER_MS = 30_000;

/** One buffer for all short messages: a turn's only user, because writes copy what the kernel does not take. */
const scratch = Buffer.allocUnsafeSlow(65_536);

const NO_USER: SocketUser = { received() {}, drained() {}, ended() {}, closed() {} };

const NO_PIECES: readonly Uint8Array[] = [];

export class PeerSocket implements SocketOwner {
  // Fields, because each request reads them; only this class sets them.

  /** Bytes that the kernel has not taken. */
  heldBytes = 0;
  /** Whether the peer has sent FIN. */
  hasEnded = false;
  isClosed = false;
  /** Whether `finish` was called. */
  isFinished = false;
  readonly #socket: RawSocket;
  #user: SocketUser;
  /** What the kernel has not taken; null: nothing. */
  #held: Uint8Array[] | null = null;
  #isPaused = false;
  /** Until the next turn. */
  #isResting = false;
  #isBounded = false;
  /** FIN follows, or was sent. */
  #endsWriting = false;
  #finishedAt = 0;
  #readAt = 0;

  /** Without a user: `handOver` must follow at once. */
  constructor(socket: RawSocket, user: SocketUser = NO_USER) {
    this.#socket = socket;
    this.#user = user;
  }

  /** The events that follow are another one's. */
  handOver(user: SocketUser): void {
    this.#user = user;
  }

  /** Whether `heldBytes` is 0: else wait for `drained`. The caller must not change the bytes afterwards. */
  write(bytes: Uint8Array): boolean {
    if (this.#endsWriting || this.isClosed || bytes.byteLength === 0) return true;
    if (this.#held !== null) return this.#hold(bytes);
    const written = this.#socket.write(bytes);
    // Below 0: closed, and the event follows.
    if (written === bytes.byteLength || written < 0) return true;
    return this.#hold(bytes.subarray(written));
  }

  /** Writes latin1 text and what follows it, in one system call as far as it is short. As `write`. */
  writeText(text: string, pieces: readonly Uint8Array[] = NO_PIECES): boolean {
    if (text.length > scratch.length)
      return this.#writeEach([Buffer.from(text, "latin1"), ...pieces]);
    let end = scratch.latin1Write(text, 0, text.length);
    let at = 0;
    for (; at < pieces.length; at++) {
      const piece = pieces[at];
      if (piece === undefined || piece.byteLength > scratch.length - end) break;
      scratch.set(piece, end);
      end += piece.byteLength;
    }
    const isSent = this.writeCopy(scratch, end);
    return at < pieces.length ? this.#writeEach(pieces.slice(at)) : isSent;
  }

  #writeEach(pieces: readonly Uint8Array[]): boolean {
    for (const piece of pieces) this.write(piece);
    return this.#held === null;
  }

  /** Writes the first bytes of a buffer that the caller uses again. As `write`. */
  writeCopy(bytes: Buffer, size: number): boolean {
    if (this.#endsWriting || this.isClosed) return true;
    const written = this.#held === null ? this.#socket.write(bytes, 0, size) : 0;
    if (written < 0 || written === size) return true;
    return this.#hold(Buffer.from(bytes.subarray(written, size)));
  }

  #hold(bytes: Uint8Array): false {
    this.#held ??= [];
    this.#held.push(bytes);
    this.heldBytes += bytes.byteLength;
    return false;
  }

  /** Whether the peer does not keep up with what is written. Asks the system: only for long pieces. */
  get isBehind(): boolean {
    return this.#held !== null || unsentBytes(this.#socket) > BEHIND_BYTES;
  }

  /** To the peer and back, in microseconds; 0: not known. */
  get roundTrip(): number {
    return roundTripOf(this.#socket) ?? 0;
  }

  /** The peer is about to send much: bounds what one read brings. */
  boundReads(): void {
    if (this.#isBounded || this.isClosed) return;
    this.#isBounded = true;
    boundReceiveBuffer(this.#socket);
  }

  /** Stops reading. The peer's FIN is noticed once it reads again. */
  pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    if (!this.#isResting && !this.isClosed) this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (!this.#isResting && !this.isClosed) this.#socket.resume();
  }

  /** Sends FIN after all that was written, and reads on. */
  endWriting(): void {
    if (this.#endsWriting || this.isClosed) return;
    this.#endsWriting = true;
    if (this.#held === null) this.#socket.shutdown();
  }

  /** Sends FIN after all that was written. What still arrives is dropped, so that a reset does not destroy what was sent. */
  finish(now: number): void {
    if (this.isFinished || this.isClosed) return;
    this.isFinished = true;
    this.#finishedAt = now;
    this.#readAt = now;
    this.endWriting();
    this.resume();
  }

  /** Closes at once: behind FIN the peer still gets all that was written, else it gets a reset. */
  destroy(): void {
    if (!this.isClosed) {
      if (this.isFinished && this.#held === null) this.#socket.close();
      else this.#socket.terminate();
    }
    this.#close(true);
  }

  /** Ends the time of a peer that does not close. Call it about once a second. */
  tick(now: number): void {
    if (!this.isFinished || this.#held !== null) return;
    const isSilent = now - this.#readAt >= LINGER_MS;
    if (isSilent || now - this.#finishedAt >= MAX_LINGER_MS) this.destroy();
  }

  #close(isReset: boolean): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#held = null;
    this.heldBytes = 0;
    this.#user.closed(isReset);
  }

  /** Whatever a user throws must close the connection: nothing else would. */
  #guard(call: () => void): void {
    try {
      call();
    } catch {
      this.destroy();
    }
  }

  // Events of Bun's socket.

  clientSent(chunk: Buffer): void {
    if (this.isFinished) {
      this.#readAt = performance.now();
      return;
    }
    if (chunk.length >= TURN_BYTES) this.#rest();
    try {
      this.#user.received(chunk);
    } catch {
      this.destroy();
    }
  }

  /** Lets the other sockets have a turn. */
  #rest(): void {
    if (this.#isResting) return;
    this.#isResting = true;
    this.#socket.pause();
    setImmediate(() => {
      this.#isResting = false;
      if (!this.#isPaused && !this.isClosed) this.#socket.resume();
    });
  }

  clientDrained(): void {
    const held = this.#held;
    if (held === null || this.isClosed) return;
    while (held.length > 0) {
      const [bytes] = held;
      if (bytes === undefined) break;
      const written = this.#socket.write(bytes);
      if (written < 0) return;
      this.heldBytes -= written;
      this.#readAt = performance.now();
      if (written < bytes.byteLength) {
        held[0] = bytes.subarray(written);
        return;
      }
      held.shift();
    }
    this.#held = null;
    if (this.#endsWriting) this.#socket.shutdown();
    if (!this.isFinished) this.#guard(() => this.#user.drained());
  }

  clientEnded(): void {
    this.hasEnded = true;
    if (!this.isFinished) this.#guard(() => this.#user.ended());
  }

  clientClosed(isReset: boolean): void {
    this.#guard(() => this.#close(isReset));
  }
}
