// One open WebSocket: messages both ways, back-pressure, the end of either side; knows no handshake and no configuration.
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
import { PeerWatch, type SessionTimes } from "./peer-watch.ts";

/** What a session goes through; ids of the configuration that it was opened with. */
export interface SessionPath {
  readonly routeId: string;
  readonly serviceId: string;
  readonly targetId: string;
}

export type ClientSocket = ServerWebSocket<WebSocketSession>;

/** The end of one side: a Close frame, or null for a connection that just ends, as the other one did. */
interface Ending {
  readonly code: number;
  readonly reason: string;
}

/** Pings of the client whose answer may still come. */
const MAX_OPEN_PINGS = 16;

/**
 * Bun speaks with the client, our own frames with the target. Each side is paused while the other does not take what is
 * there, so a session holds one message and what the system hands over in one read.
 */
export class WebSocketSession implements ConnectionHandler, FrameSink {
  readonly path: SessionPath;
  /** Bytes of frames, to the target and from it: what both sides say, with the few bytes in front of each message. */
  bytesIn = 0;
  bytesOut = 0;
  readonly #connection: UpstreamConnection;
  readonly #encoder: FrameEncoder;
  readonly #onEnd: (session: WebSocketSession) => void;
  readonly #decoder = new FrameDecoder(this, MAX_MESSAGE_BYTES);
  #client: ClientSocket | null = null;
  /** `flushing`: the target has ended, and the client has not taken everything yet. */
  #clientState: "open" | "flushing" | "closed" = "open";
  #clientEnding: Ending | null = null;
  #targetState: "open" | "ending" | "closed" = "open";
  #targetEnding: Ending | null = null;
  /** Frames for a target that is slow to take them: joined once, when there is room. */
  #queue: Buffer[] = [];
  #queuedBytes = 0;
  #endsWriting = false;
  #isTargetPaused = false;
  #owesReading = false;
  #openPings: string[] = [];
  readonly #probe: Buffer<ArrayBuffer>;
  /** 0 for no limit. */
  readonly #writeTimeout: number;
  readonly #clientWatch: PeerWatch;
  readonly #targetWatch: PeerWatch;
  #closingWatch: PeerWatch | null = null;
  #isOver = false;

  /** Takes over a connection on which the target has switched protocols. */
  constructor(options: {
    path: SessionPath;
    connection: UpstreamConnection;
    encoder: FrameEncoder;
    /** Milliseconds in which something of what waits for a peer must go out; 0 for no limit. */
    writeTimeout: number;
    /** What the gateway's own pings carry; nobody else's do. */
    probe: Buffer<ArrayBuffer>;
    now: number;
    /** Runs once, when both sides have ended. */
    onEnd: (session: WebSocketSession) => void;
  }) {
    this.path = options.path;
    this.#connection = options.connection;
    this.#encoder = options.encoder;
    this.#writeTimeout = options.writeTimeout;
    this.#probe = options.probe;
    this.#clientWatch = new PeerWatch(options.now);
    this.#targetWatch = new PeerWatch(options.now);
    this.#onEnd = options.onEnd;
    options.connection.attach(this);
  }

  // What the client does.

  clientOpened(client: ClientSocket): void {
    this.#client = client;
  }

  clientSent(message: string | Buffer): void {
    this.#clientWatch.spoke();
    this.#toTarget(typeof message === "string" ? TEXT : BINARY, message);
  }

  /** Bun has answered it already; the target sees it too, since it may count on pings. */
  clientPinged(data: Buffer): void {
    this.#clientWatch.spoke();
    this.#pingTarget(data);
    const client = this.#client;
    // Bun's pongs wait in memory too: who does not read them may not ask for more.
    if (client !== null && client.getBufferedAmount() > 0) {
      this.#owesReading = true;
      client.pause();
    }
  }

  clientPonged(data: Buffer): void {
    this.#clientWatch.spoke();
    if (!data.equals(this.#probe)) this.#toTarget(PONG, data);
  }

  /** There is room again. */
  clientDrained(): void {
    const client = this.#client;
    if (client === null || client.getBufferedAmount() > 0) return;
    if (this.#clientState === "flushing") {
      this.#closeClient(client);
      return;
    }
    if (this.#isTargetPaused) this.#connection.resume();
    this.#isTargetPaused = false;
    this.#owesReading = false;
    this.#resumeClient();
  }

  clientClosed(code: number, reason: string): void {
    if (this.#clientState === "closed") return;
    this.#clientState = "closed";
    // A client that vanished, or broke the protocol, said no goodbye that could be passed on.
    if (code === closeCodes.abnormal) this.#endTarget(null);
    else this.#endTarget({ code, reason });
    this.#endIfDone();
  }

  // What the connection to the target tells.

  connected(): void {}

  received(chunk: Buffer): void {
    const client = this.#client;
    if (client === null) return;
    this.bytesOut += chunk.length;
    this.#targetWatch.spoke();
    // One system call for all the messages of one read.
    client.cork(() => this.#decode(chunk));
    if (this.#targetEnding !== null) {
      this.#endTarget(this.#targetEnding);
      this.#endWriting();
      this.#endClient(this.#clientEnding);
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
      this.#targetEnding = { code, reason: "" };
      this.#clientEnding = {
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
    // Vanished without a Close frame: the client sees the same.
    this.#endClient(null);
    this.#endIfDone();
  }

  // What the frames of the target say.

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
    const answered = this.#openPings.indexOf(data.toString("latin1"));
    // One pong may answer all pings before it (RFC 6455 section 5.5.3), and the client has had its pongs.
    if (answered >= 0) this.#openPings.splice(0, answered + 1);
    else if (this.#clientState === "open") this.#client?.pong(data as Buffer<ArrayBuffer>);
  }

  closed(code: number, reason: string): void {
    this.#targetEnding = { code, reason };
    this.#clientEnding = this.#targetEnding;
  }

  // From outside.

  /** Called again and again while the session lasts. */
  tick(now: number, times: SessionTimes): void {
    if (this.#clientState !== "open" || this.#targetState !== "open") {
      // A peer that neither takes what is left nor ends would hold the session for ever.
      this.#closingWatch ??= new PeerWatch(now);
      // Counted from 1: also when nothing is left, the peers must end.
      const stuck = this.#closingWatch.stuckFor(now, 1 + this.#pendingBytes());
      if (stuck >= times.closing) this.cut();
      return;
    }
    this.#lookAtClient(now, times.idle);
    if (this.#targetState === "open") this.#lookAtTarget(now, times.idle);
  }

  #lookAtClient(now: number, idle: number): void {
    const client = this.#client;
    if (client === null) return;
    const waiting = client.getBufferedAmount();
    const isStuck = this.#isTooLong(this.#clientWatch.stuckFor(now, waiting));
    // Behind what waits a ping says nothing, and who is paused is not heard.
    const silence = this.#clientWatch.silence(now, idle, waiting > 0 || client.isPaused);
    // Bun then reports the end as that of a client that vanished.
    if (isStuck || silence === "gone") client.terminate();
    else if (silence === "ask") client.ping(this.#probe);
  }

  #lookAtTarget(now: number, idle: number): void {
    const waiting = this.#connection.heldBytes;
    const isStuck = this.#isTooLong(this.#targetWatch.stuckFor(now, waiting));
    const silence = this.#targetWatch.silence(now, idle, waiting > 0 || this.#isTargetPaused);
    if (isStuck || silence === "gone") {
      this.#connection.destroy();
      this.ended();
    } else if (silence === "ask") this.#pingTarget(this.#probe);
  }

  #isTooLong(stuckFor: number): boolean {
    return this.#writeTimeout > 0 && stuckFor >= this.#writeTimeout;
  }

  /** Says goodbye to both sides. */
  close(code: number, reason: string): void {
    this.#endTarget({ code, reason });
    this.#endClient({ code, reason });
  }

  /** Ends both connections now. */
  cut(): void {
    this.#connection.destroy();
    this.#targetState = "closed";
    if (this.#clientState !== "closed") {
      this.#clientState = "closed";
      this.#client?.terminate();
    }
    this.#endIfDone();
  }

  /** The client must not get the answer: it has had it from Bun, or has not asked. */
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
    if (!this.#owesReading && !this.#connection.isHolding) client.resume();
  }

  /** Sends Close behind the frames that wait; the target then answers it and ends the connection (RFC 6455 section 7.1.1). */
  #endTarget(ending: Ending | null): void {
    if (this.#targetState !== "open") return;
    this.#targetState = "ending";
    if (ending === null) this.#endWriting();
    else this.#write(this.#encoder.encodeClose(ending.code, ending.reason));
    // Its end has to be read.
    if (this.#isTargetPaused) this.#connection.resume();
    this.#isTargetPaused = false;
  }

  /** Nothing follows: Close has been sent and received, or there is none to send. */
  #endWriting(): void {
    this.#endsWriting = true;
    if (this.#queue.length === 0) this.#connection.endWriting();
  }

  /** The messages in front of it still go out: Bun drops them when a connection is terminated, and soon after a close. */
  #endClient(ending: Ending | null): void {
    const client = this.#client;
    if (this.#clientState !== "open" || client === null) return;
    this.#clientState = "flushing";
    this.#clientEnding = ending;
    if (client.getBufferedAmount() === 0) {
      this.#closeClient(client);
      return;
    }
    if (client.isPaused) client.resume();
  }

  #closeClient(client: ClientSocket): void {
    this.#clientState = "closed";
    const ending = this.#clientEnding;
    if (ending === null) client.terminate();
    else client.close(ending.code, ending.reason);
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
