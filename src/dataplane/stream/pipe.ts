// Carries bytes between two sockets, both ways, with back-pressure and half-closes; knows no target and no route.
import { passedOn } from "../buffer-release.ts";
import type { Socket } from "bun";

/** What the pipe needs of a socket; Bun's own has it. */
export type Side = Pick<
  Socket<unknown>,
  "write" | "pause" | "resume" | "shutdown" | "terminate" | "flush"
>;

/** One direction: from one socket to the other. Nothing is buffered but what one read brought and the system did not take. */
class Direction {
  bytes = 0;
  #held: Buffer | null = null;
  /** The piece that what is held is the rest of. */
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

  /** Bytes that wait for the system to take them. */
  get heldBytes(): number {
    return this.#held?.length ?? 0;
  }

  received(chunk: Buffer): void {
    this.bytes += chunk.length;
    if (this.#held !== null) {
      // Read before the pause took effect.
      this.#held = Buffer.concat([this.#held, chunk]);
      this.#freePiece();
      this.#piece = this.#held;
      passedOn.free(chunk);
      return;
    }
    const written = this.#to.write(chunk);
    if (written === chunk.length) return passedOn.free(chunk);
    if (written < 0) return;
    this.#piece = chunk;
    this.#held = chunk.subarray(written);
    this.#from.pause();
  }

  /** The receiving socket takes bytes again. */
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

  /** The sender sends no more; the receiver learns it after the last byte. */
  ended(): void {
    this.#isEnded = true;
    if (this.#held === null) this.#shut();
  }

  #freePiece(): void {
    if (this.#piece !== null) passedOn.free(this.#piece);
    this.#piece = null;
  }

  #shut(): void {
    if (this.#isShut) return;
    this.#isShut = true;
    this.#to.shutdown();
  }
}

/** Lives while both sockets do. The owner's clock calls `isIdleSince`. */
export class Pipe {
  readonly #up: Direction;
  readonly #down: Direction;
  #lastBytes = 0;
  #quietSince: number;

  constructor(client: Side, target: Side, now: number) {
    this.#up = new Direction(client, target);
    this.#down = new Direction(target, client);
    this.#quietSince = now;
  }

  /** Bytes from the client to the target. */
  get bytesUp(): number {
    return this.#up.bytes;
  }

  get bytesDown(): number {
    return this.#down.bytes;
  }

  /** Bytes for the client that it has not taken yet. */
  get heldDown(): number {
    return this.#down.heldBytes;
  }

  /** Bytes for the target that it has not taken yet. */
  get heldUp(): number {
    return this.#up.heldBytes;
  }

  /** Whether both sides have said that they send no more. */
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

  /** Milliseconds without a byte, as far as the owner has looked. */
  quietFor(now: number): number {
    // What waits to be taken counts too: a reader that takes nothing is as silent as a sender.
    const bytes = this.#up.bytes + this.#down.bytes - this.#up.heldBytes - this.#down.heldBytes;
    if (bytes !== this.#lastBytes) {
      this.#lastBytes = bytes;
      this.#quietSince = now;
    }
    return now - this.#quietSince;
  }
}
