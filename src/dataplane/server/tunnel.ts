// A connection after 101: the bytes of both ends pass as they are, with back-pressure; of WebSockets the frames are followed. Knows no
// handshake and no configuration.
import type { ConnectionHandler, UpstreamConnection } from "../upstream/connection.ts";
import { type FrameEncoder, PING, serverClose, serverFrame } from "../websocket/frame.ts";
import type { ReservedBits } from "../websocket/frame-follower.ts";
import { PeerWatch, type SessionTimeouts } from "../websocket/peer-watch.ts";
import type { SessionPath } from "../websocket/session.ts";
import type { SwitchedClient, SwitchedSocket } from "./client-stream.ts";
import { type End, Flow } from "./flow.ts";

export interface TunnelOptions {
  readonly path: SessionPath;
  readonly connection: UpstreamConnection;
  readonly encoder: FrameEncoder;
  /** The reserved bits of a WebSocket's frames; null: another protocol. */
  readonly frames: ReservedBits | null;
  /** Milliseconds without progress after which a peer that does not read is cut off; 0: no limit. */
  readonly writeTimeout: number;
  /** Payload of the gateway's own pings. */
  readonly pingPayload: Buffer<ArrayBuffer>;
  readonly now: number;
  /** Runs once, when both ends have closed. */
  readonly onEnd: (tunnel: Tunnel) => void;
}

export class Tunnel implements SwitchedClient {
  readonly path: SessionPath;
  readonly #options: TunnelOptions;
  readonly #target: UpstreamConnection;
  #client: SwitchedSocket | null = null;
  /** What the client has sent behind its request. */
  #early: Buffer | null = null;
  #up: Flow | null = null;
  #down: Flow | null = null;
  #isClientClosed = false;
  #isTargetClosed = false;
  #isClosing = false;
  #isOver = false;
  #closingWatch: PeerWatch | null = null;

  constructor(options: TunnelOptions) {
    this.path = options.path;
    this.#options = options;
    this.#target = options.connection;
  }

  /** Bytes to the target and from it, headers of frames included. */
  get bytesIn(): number {
    return this.#up?.bytes ?? 0;
  }

  get bytesOut(): number {
    return this.#down?.bytes ?? 0;
  }

  switched(client: SwitchedSocket, early: Buffer): void {
    this.#client = client;
    this.#early = early;
  }

  /** Call it once the client was switched. `rest`: what the target has sent behind its 101. */
  begin(rest: Buffer): void {
    const client = this.#client;
    if (client === null) return;
    const target = this.#target;
    const { frames: reserved, pingPayload, encoder, now } = this.#options;
    const follower = (isMasked: boolean) => (reserved === null ? null : { isMasked, reserved });
    const up = new Flow({
      from: client,
      to: target,
      own: {
        ping: () => encoder.encode(PING, pingPayload),
        close: ({ code, reason }) => encoder.encodeClose(code, reason),
      },
      pingPayload,
      follower: follower(true),
      now,
    });
    const down = new Flow({
      from: target,
      to: client,
      own: {
        ping: () => serverFrame(PING, pingPayload),
        close: ({ code, reason }) => serverClose(code, reason),
      },
      pingPayload,
      follower: follower(false),
      now,
    });
    up.back = down;
    down.back = up;
    this.#up = up;
    this.#down = down;
    target.handler = this.#targetHandler(up, down);
    client.resume();
    // The 101 itself may wait for the client.
    if (client.heldBytes > 0) down.pause();
    if (rest.length > 0) down.received(rest);
    if (this.#early !== null && this.#early.length > 0) up.received(this.#early);
    this.#early = null;
    if (client.isClosed) this.closed();
    else if (client.hasEnded) this.ended();
    this.#settle();
  }

  // Events of the client's socket.

  received(chunk: Buffer): void {
    this.#up?.received(chunk);
    this.#settle();
  }

  drained(): void {
    this.#down?.resume();
  }

  ended(): void {
    this.#up?.sourceEnded();
    this.#settle();
  }

  closed(): void {
    this.#isClientClosed = true;
    this.#up?.sourceEnded();
    this.#down?.end();
    this.#settle();
  }

  // Events of the connection to the target.

  #targetHandler(up: Flow, down: Flow): ConnectionHandler {
    return {
      connected() {},
      received: (chunk) => {
        down.received(chunk);
        this.#settle();
      },
      drained: () => up.resume(),
      halfEnded: () => {
        down.sourceEnded();
        this.#settle();
      },
      ended: () => this.#targetClosed(),
    };
  }

  #targetClosed(): void {
    this.#isTargetClosed = true;
    this.#down?.sourceEnded();
    this.#up?.end();
    this.#settle();
  }

  /** Ends the connections to which nothing more is sent, and from which nothing more is wanted. */
  #settle(): void {
    const [client, up, down] = [this.#client, this.#up, this.#down];
    if (client === null || up === null || down === null || this.#isOver) return;
    if (down.isOver && (up.hasEnded || this.#isTargetClosed)) client.finish(performance.now());
    if (up.isOver && (down.hasEnded || this.#isClientClosed)) this.#target.endWriting();
    const isClientDone = this.#isClientClosed || (client.isFinished && client.heldBytes === 0);
    if (!isClientDone || !this.#isTargetClosed) return;
    this.#isOver = true;
    this.#options.onEnd(this);
  }

  // Called by the set of sessions.

  /** Called periodically while the tunnel lasts. */
  tick(now: number, timeouts: SessionTimeouts): void {
    this.#settle();
    const [client, up, down] = [this.#client, this.#up, this.#down];
    if (client === null || up === null || down === null || this.#isOver) return;
    if (this.#endsSoon(up, down)) return this.#watchEnd(now, timeouts.closing, { up, down });
    if (this.#isLost(now, timeouts.idle, { end: client, from: up, to: down })) client.destroy();
    else if (this.#isLost(now, timeouts.idle, { end: this.#target, from: down, to: up })) {
      this.#target.destroy();
      this.#targetClosed();
    }
  }

  /** Of other protocols than WebSocket one direction may go on without the other. */
  #endsSoon(up: Flow, down: Flow): boolean {
    if (this.#isClosing || this.#isClientClosed || this.#isTargetClosed) return true;
    const [isOver, isOverToo] = [up.isOver || up.hasEnded, down.isOver || down.hasEnded];
    return this.#options.frames === null ? isOver && isOverToo : isOver || isOverToo;
  }

  /**
   * Otherwise a peer that does not read, or does not close, would hold the tunnel open for ever. What it sends after the other one's
   * Close counts for nothing: a message that is on its way when the Close arrives fits into the time, and one without end does not
   * (RFC 6455 sections 5.5.1 and 7.1.1).
   */
  #watchEnd(now: number, closing: number, { up, down }: { up: Flow; down: Flow }): void {
    this.#closingWatch ??= new PeerWatch(now);
    // Bytes that wait behind the end of their direction become less only.
    const toTarget = up.isOver ? this.#target.heldBytes : 0;
    const toClient = down.isOver ? (this.#client?.heldBytes ?? 0) : 0;
    if (this.#closingWatch.stalledFor(now, 1 + toTarget + toClient) < closing) return;
    // A peer that broke the protocol learns why, also when the other one does not reply.
    for (const flow of [up, down]) if (flow.closure !== null && !flow.isOver) flow.sourceEnded();
    this.terminate();
  }

  /** Whether an end does not read what is sent to it, or no longer answers. `from`: the direction of its own bytes. */
  #isLost(
    now: number,
    idle: number,
    { end, from, to }: { readonly end: End; readonly from: Flow; readonly to: Flow },
  ): boolean {
    const { writeTimeout, frames } = this.#options;
    const stalledFor = from.watch.stalledFor(now, end.heldBytes);
    if (writeTimeout > 0 && stalledFor >= writeTimeout) return true;
    if (frames === null) return false;
    const silence = from.watch.silence(now, idle, from.isPaused || !to.takesPing);
    // A ping of the other end does as well, and its pong cannot be mistaken.
    if (silence === "ping" && !to.hasOpenPing) to.ping();
    return silence === "dead";
  }

  /** Sends Close to both ends; of other protocols than WebSocket, FIN. */
  close(code: number, reason: string): void {
    this.#isClosing = true;
    this.#up?.close({ code, reason });
    this.#down?.close({ code, reason });
    this.#settle();
  }

  /** Closes both connections at once. */
  terminate(): void {
    this.#target.destroy();
    this.#isTargetClosed = true;
    this.#client?.destroy();
    this.#settle();
  }
}
