// Pipes bytes between two sockets in both directions, with back-pressure and half-closes; knows no target and no route.
import { bufferRelease } from "../buffer-release.ts";
import type { Socket } from "bun";

/** The part of Bun's socket that a pipe needs. */
export type Side = Pick<
  Socket<unknown>,
  "write" | "pause" | "resume" | "shutdown" | "terminate" | "flush"
> & {
  /** Which Bun's types name and do not declare. */
  close(): void;
};

/** One direction. Buffers only what the kernel did not accept of the last read. */
class Direction {
  bytes = 0;
  #held: Buffer | null = null;
  /** The piece that `#held` is the rest of. */
  #piece: Buffer | null = null;
  #isEnded = false;
  #isShut = false;
  readonly #from: Side;
  readonly #to: Side;

  constructor(from: Side, to: Side) {
    this.#from = from;
    this.#to = to;
  }

  get isShut(): boolean {
    return this.#isShut;
  }

  /** Bytes that the kernel has not accepted yet. */
  get heldBytes(): number {
    return this.#held?.length ?? 0;
  }

  received(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.#held !== null) {
      // Arrived before the pause took effect.
      this.#held = Buffer.concat([this.#held, chunk]);
      this.#freePiece();
      this.#piece = this.#held;
      bufferRelease.releaseNow(chunk);
      return;
    }
    const written = this.#to.write(chunk);
    if (written === chunk.length) return bufferRelease.releaseNow(chunk);
    if (written < 0) return;
    this.#piece = chunk;
    this.#held = chunk.subarray(written);
    this.#from.pause();
  }

  /** The receiving socket is writable again. */
  drained(): void {
    const held = this.#held;
    if (held === null) return;
    const written = this.#to.write(held);
    if (written < 0) return;
    if (written < held.length) {
      this.#held = held.subarray(written);
      return;
    }
    this.#held = null;
    this.#freePiece();
    if (this.#isEnded) this.#shut();
    else this.#from.resume();
  }

  /** The sender has sent FIN; the receiver gets one after the last byte. */
  ended(): void {
    this.#isEnded = true;
    if (this.#held === null) this.#shut();
  }

  #freePiece(): void {
    if (this.#piece !== null) bufferRelease.releaseNow(this.#piece);
    this.#piece = null;
  }

  #shut(): void {
    if (this.#isShut) return;
    this.#isShut = true;
    this.#to.shutdown();
  }
}

/** Lives as long as both sockets. */
export class Pipe {
  readonly #up: Direction;
  readonly #down: Direction;
  #lastBytes = 0;
  #idleSince: number;

  constructor(client: Side, target: Side, now: number) {
    this.#up = new Direction(client, target);
    this.#down = new Direction(target, client);
    this.#idleSince = now;
  }

  /** Bytes from the client to the target. */
  get bytesUp(): number {
    return this.#up.bytes;
  }

  get bytesDown(): number {
    return this.#down.bytes;
  }

  /** Bytes for the client that the kernel has not accepted yet. */
  get heldDown(): number {
    return this.#down.heldBytes;
  }

  /** Bytes for the target that the kernel has not accepted yet. */
  get heldUp(): number {
    return this.#up.heldBytes;
  }

  /** Whether both directions are shut down. */
  get isOver(): boolean {
    return this.#up.isShut && this.#down.isShut;
  }

  clientSent(chunk: Buffer): void {
    this.#up.received(chunk);
  }

  targetSent(chunk: Buffer): void {
    this.#down.received(chunk);
  }

  clientEnded(): void {
    this.#up.ended();
  }

  targetEnded(): void {
    this.#down.ended();
  }

  clientDrained(): void {
    this.#down.drained();
  }

  targetDrained(): void {
    this.#up.drained();
  }

  /** Milliseconds without progress, as of the owner's calls. */
  idleFor(now: number): number {
    // Without buffered bytes: a peer that does not read makes no progress either.
    const bytes = this.#up.bytes + this.#down.bytes - this.#up.heldBytes - this.#down.heldBytes;
    if (bytes !== this.#lastBytes) {
      this.#lastBytes = bytes;
      this.#idleSince = now;
    }
    return now - this.#idleSince;
  }
}
