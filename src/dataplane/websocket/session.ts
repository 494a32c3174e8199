// One open WebSocket: messages in both directions, back-pressure, the close of either side; knows no handshake and no configuration.
import type { ServerWebSocket } from "bun";
import type { ConnectionHandler, UpstreamConnection } from "../upstream/connection.ts";
import {
  BINARY,
  closeCodes,
  type FrameEncoder,
  FrameError,
  MAX_MESSAGE_BYTES,
  PING,
  PONG,
  TEXT,
} from "./frame.ts";
import { FrameDecoder, type FrameSink } from "./frame-decoder.ts";
import { PeerWatch, type SessionTimeouts } from "./peer-watch.ts";

/** Ids of the route, service and target that a session was opened with. */
export interface SessionPath {
  readonly routeId: string;
  readonly serviceId: string;
  readonly targetId: string;
}

export type ClientSocket = ServerWebSocket<WebSocketSession>;

/** The Close frame for one side; null where the connection ends without one. */
interface Closure {
  readonly code: number;
  readonly reason: string;
}

/** Pings to the target without a pong yet. */
const MAX_OPEN_PINGS = 16;

/**
 * Bun handles the client's frames, the gateway those of the target. Each side is paused while the other does not
 * read, so a session buffers one message and what one read brings.
 */
export class WebSocketSession implements ConnectionHandler, FrameSink {
  readonly path: SessionPath;
  /** Bytes of frames to the target and from it, headers included. */
  bytesIn = 0;
  bytesOut = 0;
  readonly #connection: UpstreamConnection;
  readonly #encoder: FrameEncoder;
  readonly #onEnd: (session: WebSocketSession) => void;
  readonly #decoder = new FrameDecoder(this, MAX_MESSAGE_BYTES);
  #client: ClientSocket | null = null;
  /** `flushing`: the target has ended, and the client has not read everything yet. */
  #clientState: "open" | "flushing" | "closed" = "open";
  #clientClosure: Closure | null = null;
  #targetState: "open" | "closure" | "closed" = "open";
  #targetClosure: Closure | null = null;
  /** Frames for a target that reads slowly: joined once, when there is room. */
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #endsWriting = false;
  #isTargetPaused = false;
  #hasUnreadPongs = false;
  #openPings: string[] = [];
  readonly #pingPayload: Buffer<ArrayBuffer>;
  /** 0 for no limit. */
  readonly #writeTimeout: number;
  readonly #clientWatch: PeerWatch;
  readonly #targetWatch: PeerWatch;
  #closingWatch: PeerWatch | null = null;
  #isOver = false;

  /** Takes over a connection after the target's 101. */
  constructor(options: {
    path: SessionPath;
    connection: UpstreamConnection;
    encoder: FrameEncoder;
    /** Milliseconds without progress after which a peer that does not read is cut off; 0: no limit. */
    writeTimeout: number;
    /** Payload of the gateway's own pings. */
    pingPayload: Buffer<ArrayBuffer>;
    now: number;
    /** Runs once, when both sides have ended. */
    onEnd: (session: WebSocketSession) => void;
  }) {
    this.path = options.path;
    this.#connection = options.connection;
    this.#encoder = options.encoder;
    this.#writeTimeout = options.writeTimeout;
    this.#pingPayload = options.pingPayload;
    this.#clientWatch = new PeerWatch(options.now);
    this.#targetWatch = new PeerWatch(options.now);
    this.#onEnd = options.onEnd;
    options.connection.handler = this;
  }

  /** `rest`: what the target has sent behind its 101. */
  begin(rest: Buffer): void {
    if (rest.length > 0) this.received(rest);
  }

  // Events of the client.

  clientOpened(client: ClientSocket): void {
    this.#client = client;
  }

  clientSent(message: string | Buffer): void {
    this.#clientWatch.onActivity();
    this.#toTarget(typeof message === "string" ? TEXT : BINARY, message);
  }

  /** Bun has sent the pong already; the target gets the ping too, because it may rely on pings. */
  clientPinged(data: Buffer): void {
    this.#clientWatch.onActivity();
    this.#pingTarget(data);
    const client = this.#client;
    // Bun's pongs wait in memory too: a client that does not read them is paused.
    if (client !== null && client.getBufferedAmount() > 0) {
      this.#hasUnreadPongs = true;
      client.pause();
    }
  }

  clientPonged(data: Buffer): void {
    this.#clientWatch.onActivity();
    if (!data.equals(this.#pingPayload)) this.#toTarget(PONG, data);
  }

  clientDrained(): void {
    const client = this.#client;
    if (client === null || client.getBufferedAmount() > 0) return;
    if (this.#clientState === "flushing") {
      this.#closeClient(client);
      return;
    }
    if (this.#isTargetPaused) this.#connection.resume();
    this.#isTargetPaused = false;
    this.#hasUnreadPongs = false;
    this.#resumeClient();
  }

  clientClosed(code: number, reason: string): void {
    if (this.#clientState === "closed") return;
    this.#clientState = "closed";
    // A client that vanished or broke the protocol sent no Close frame to forward.
    if (code === closeCodes.abnormal) this.#endTarget(null);
    else this.#endTarget({ code, reason });
    this.#endIfDone();
  }

  // Events of the connection to the target.

  connected(): void {}

  received(chunk: Buffer): void {
    const client = this.#client;
    if (client === null) return;
    this.bytesOut += chunk.length;
    this.#targetWatch.onActivity();
    // One system call for all the messages of one read.
    client.cork(() => this.#decode(chunk));
    if (this.#targetClosure !== null) {
      this.#endTarget(this.#targetClosure);
      this.#endWriting();
      this.#endClient(this.#clientClosure);
    } else if (this.#clientState === "open" && client.getBufferedAmount() > 0) {
      this.#isTargetPaused = true;
      this.#connection.pause();
    }
  }

  #decode(chunk: Buffer): void {
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      const code = error instanceof FrameError ? error.code : closeCodes.internalError;
      this.#targetClosure = { code, reason: "" };
      this.#clientClosure = {
        code: closeCodes.internalError,
        reason: "the target broke the WebSocket protocol",
      };
    }
  }

  drained(): void {
    const frames = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    if (frames.length > 0) this.#connection.write(Buffer.concat(frames));
    if (this.#endsWriting) this.#connection.endWriting();
    this.#resumeClient();
  }

  ended(): void {
    this.#targetState = "closed";
    this.#queue = [];
    this.#queuedBytes = 0;
    // Without a Close frame from the target the client gets none either.
    this.#endClient(null);
    this.#endIfDone();
  }

  // Frames of the target.

  text(message: string): void {
    if (this.#clientState === "open") this.#client?.sendText(message);
  }

  binary(message: Buffer): void {
    if (this.#clientState === "open") this.#client?.sendBinary(message as Buffer<ArrayBuffer>);
  }

  ping(data: Buffer): void {
    if (this.#clientState === "open") this.#client?.ping(data as Buffer<ArrayBuffer>);
  }

  pong(data: Buffer): void {
    const matched = this.#openPings.indexOf(data.toString("latin1"));
    // One pong may stand for all pings before it (RFC 6455 section 5.5.3), and Bun has sent the client its pongs.
    if (matched >= 0) this.#openPings.splice(0, matched + 1);
    else if (this.#clientState === "open") this.#client?.pong(data as Buffer<ArrayBuffer>);
  }

  closed(code: number, reason: string): void {
    this.#targetClosure = { code, reason };
    this.#clientClosure = this.#targetClosure;
  }

  // Called by the session set.

  /** Called periodically while the session lasts. */
  tick(now: number, timeouts: SessionTimeouts): void {
    if (this.#clientState !== "open" || this.#targetState !== "open") {
      // Otherwise a peer that neither reads nor closes would hold the session open for ever.
      this.#closingWatch ??= new PeerWatch(now);
      // 1 +: the peers must close even when nothing is left to send.
      const stalledMs = this.#closingWatch.stalledFor(now, 1 + this.#pendingBytes());
      if (stalledMs >= timeouts.closing) this.terminate();
      return;
    }
    this.#checkClient(now, timeouts.idle);
    if (this.#targetState === "open") this.#checkTarget(now, timeouts.idle);
  }

  #checkClient(now: number, idle: number): void {
    const client = this.#client;
    if (client === null) return;
    const waiting = client.getBufferedAmount();
    const isStalled = this.#isStalled(this.#clientWatch.stalledFor(now, waiting));
    // A ping would wait behind buffered bytes, and from a paused client the gateway reads nothing.
    const silence = this.#clientWatch.silence(now, idle, waiting > 0 || client.isPaused);
    // Bun then calls `clientClosed` with 1006.
    if (isStalled || silence === "dead") client.terminate();
    else if (silence === "ping") client.ping(this.#pingPayload);
  }

  #checkTarget(now: number, idle: number): void {
    const waiting = this.#connection.heldBytes;
    const isStalled = this.#isStalled(this.#targetWatch.stalledFor(now, waiting));
    const silence = this.#targetWatch.silence(now, idle, waiting > 0 || this.#isTargetPaused);
    if (isStalled || silence === "dead") {
      this.#connection.destroy();
      this.ended();
    } else if (silence === "ping") this.#pingTarget(this.#pingPayload);
  }

  #isStalled(stalledFor: number): boolean {
    return this.#writeTimeout > 0 && stalledFor >= this.#writeTimeout;
  }

  /** Sends Close to both sides. */
  close(code: number, reason: string): void {
    this.#endTarget({ code, reason });
    this.#endClient({ code, reason });
  }

  /** Closes both connections without a Close frame. */
  terminate(): void {
    this.#connection.destroy();
    this.#targetState = "closed";
    if (this.#clientState !== "closed") {
      this.#clientState = "closed";
      this.#client?.terminate();
    }
    this.#endIfDone();
  }

  /** The pong stops here: the client has Bun's, or has sent no ping. */
  #pingTarget(data: Buffer): void {
    if (this.#openPings.length === MAX_OPEN_PINGS) this.#openPings.shift();
    this.#openPings.push(data.toString("latin1"));
    this.#toTarget(PING, data);
  }

  #toTarget(opcode: number, payload: string | Buffer): void {
    if (this.#targetState === "open") this.#write(this.#encoder.encode(opcode, payload));
  }

  #write(frame: Buffer): void {
    this.bytesIn += frame.length;
    if (this.#queue.length > 0 || this.#connection.isHolding) {
      this.#queue.push(frame);
      this.#queuedBytes += frame.length;
    } else if (!this.#connection.write(frame)) {
      this.#client?.pause();
    }
  }

  #resumeClient(): void {
    const client = this.#client;
    if (client === null || !client.isPaused) return;
    if (!this.#hasUnreadPongs && !this.#connection.isHolding) client.resume();
  }

  /** Sends Close behind the queued frames; the target then replies and closes the connection (RFC 6455 section 7.1.1). */
  #endTarget(closure: Closure | null): void {
    if (this.#targetState !== "open") return;
    this.#targetState = "closure";
    if (closure === null) this.#endWriting();
    else this.#write(this.#encoder.encodeClose(closure.code, closure.reason));
    // To receive its Close frame.
    if (this.#isTargetPaused) this.#connection.resume();
    this.#isTargetPaused = false;
  }

  /** Nothing follows: Close was sent and received, or there is none to send. */
  #endWriting(): void {
    this.#endsWriting = true;
    if (this.#queue.length === 0) this.#connection.endWriting();
  }

  /** Flushes buffered messages first: Bun drops them when a connection is terminated, and soon after a close. */
  #endClient(closure: Closure | null): void {
    const client = this.#client;
    if (this.#clientState !== "open" || client === null) return;
    this.#clientState = "flushing";
    this.#clientClosure = closure;
    if (client.getBufferedAmount() === 0) {
      this.#closeClient(client);
      return;
    }
    if (client.isPaused) client.resume();
  }

  #closeClient(client: ClientSocket): void {
    this.#clientState = "closed";
    const closure = this.#clientClosure;
    if (closure === null) client.terminate();
    else client.close(closure.code, closure.reason);
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (this.#isOver || this.#clientState !== "closed" || this.#targetState !== "closed") return;
    this.#isOver = true;
    this.#onEnd(this);
  }

  #pendingBytes(): number {
    const toClient = this.#clientState === "flushing" ? this.#client?.getBufferedAmount() : 0;
    return (toClient ?? 0) + this.#queuedBytes + this.#connection.heldBytes;
  }
}
