// One direction of a tunnel: passes bytes with back-pressure and follows the frames of a WebSocket; knows no handshake.
import { bufferRelease } from "../buffer-release.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import { closeCodes, PING } from "../websocket/frame.ts";
import {
  type FollowerSink,
  FrameFollower,
  type ReservedBits,
} from "../websocket/frame-follower.ts";
import { PeerWatch } from "../websocket/peer-watch.ts";
import type { PeerSocket } from "./peer-socket.ts";

interface Closure {
  readonly code: number;
  readonly reason: string;
}

const PROTOCOL_ERROR: Closure = { code: closeCodes.protocolError, reason: "" };

/** Shorter reads are not worth a look at how much the other end has read. */
const LONG_BYTES = 65_536;

/** What a direction needs of an end. */
export type End = Pick<
  PeerSocket & UpstreamConnection,
  "heldBytes" | "isBehind" | "boundReads" | "write" | "pause" | "resume" | "endWriting"
>;

/** How the gateway writes frames of its own to one end. */
interface OwnFrames {
  ping(): Buffer;
  close(closure: Closure): Buffer;
}

interface FlowOptions {
  readonly from: End;
  readonly to: End;
  readonly own: OwnFrames;
  readonly pingPayload: Buffer;
  readonly follower: { readonly isMasked: boolean; readonly reserved: ReservedBits } | null;
  readonly now: number;
}

/** One direction of a tunnel. */
export class Flow implements FollowerSink {
  /** Passed on, with the gateway's own frames. */
  bytes = 0;
  /** Nothing more is passed on: a Close, FIN or both were sent, or the end that they would go to has closed. */
  isOver = false;
  /** The source has sent its Close or FIN, or has broken the protocol: what follows is dropped. */
  hasEnded = false;
  isPaused = false;
  /** What this direction ends with, whatever the source ends with. */
  closure: Closure | null = null;
  /** The source has sent a ping to which there is no pong yet. */
  hasOpenPing = false;
  /** Of the source. */
  readonly watch: PeerWatch;
  readonly follower: FrameFollower | null;
  /** The other direction. */
  back: Flow = this;
  readonly #options: FlowOptions;

  constructor(options: FlowOptions) {
    this.#options = options;
    this.watch = new PeerWatch(options.now);
    this.follower = options.follower === null ? null : new FrameFollower(this, options.follower);
  }

  received(chunk: Buffer): void {
    this.watch.onActivity();
    if (this.hasEnded) return;
    if (this.follower === null) this.pass(chunk);
    else this.follower.push(chunk);
    if (chunk.length >= LONG_BYTES && this.#options.to.isBehind) this.#options.from.boundReads();
    if (this.#options.to.heldBytes === 0) bufferRelease.releaseNow(chunk);
    else if (!this.isOver) this.pause();
  }

  pause(): void {
    this.isPaused = true;
    this.#options.from.pause();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#options.from.resume();
  }

  pass(bytes: Buffer): void {
    if (this.isOver) return;
    this.bytes += bytes.length;
    this.#options.to.write(bytes);
  }

  control(opcode: number, payload: Buffer): boolean {
    if (opcode === PING) {
      this.hasOpenPing = true;
      return true;
    }
    if (payload.equals(this.#options.pingPayload)) return false;
    this.back.hasOpenPing = false;
    return true;
  }

  between(): void {
    if (this.closure !== null) this.#close(this.closure);
  }

  closed(frame: Buffer): void {
    this.hasEnded = true;
    if (this.closure === null) this.pass(frame);
    else this.#close(this.closure);
    this.end();
  }

  broken(): void {
    this.hasEnded = true;
    this.#close(this.closure ?? PROTOCOL_ERROR);
    // The replies to what came before are still on their way, and end with the Close of the other end.
    this.back.closure ??= PROTOCOL_ERROR;
  }

  /** The source has sent FIN, or has closed. */
  sourceEnded(): void {
    this.hasEnded = true;
    if (this.isOver) return;
    if (this.closure !== null) this.#close(this.closure);
    this.end();
    this.#options.to.endWriting();
  }

  /** Sends the gateway's own Close, as soon as no frame is incomplete; other protocols end with FIN. */
  close(closure: Closure): void {
    if (this.isOver) return;
    if (this.follower === null) {
      this.end();
      this.#options.to.endWriting();
      return;
    }
    this.closure ??= closure;
    if (this.follower.isBetween) this.#close(this.closure);
    else this.follower.notifyBetween();
  }

  #close(closure: Closure): void {
    // After half a frame the end would take it for a part of that.
    if (this.follower?.isBetween === true) this.pass(this.#options.own.close(closure));
    this.end();
  }

  /** Passes nothing more on, and reads on for the Close or FIN of the source. */
  end(): void {
    this.isOver = true;
    this.resume();
  }

  /** Whether a ping may go to the end that the bytes go to. */
  get takesPing(): boolean {
    return !this.isOver && this.follower?.isBetween === true && this.#options.to.heldBytes === 0;
  }

  ping(): void {
    this.pass(this.#options.own.ping());
  }
}
