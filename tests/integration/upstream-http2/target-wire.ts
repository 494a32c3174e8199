// A session to a target without a network: what the target sends goes in, and each write comes out as frames.
import type { Addresses } from "../../../src/dataplane/names/addresses.ts";
import { UpstreamConnection } from "../../../src/dataplane/upstream/connection.ts";
import { Http2Exchange } from "../../../src/dataplane/upstream/http2-exchange.ts";
import {
  type SessionOwner,
  UpstreamSession,
} from "../../../src/dataplane/upstream/http2-session.ts";
import type { SessionUser } from "../../../src/dataplane/upstream/http2-user.ts";
import { HeadCache } from "../../../src/dataplane/upstream/response-head.ts";
import { parseResponseHead } from "../../../src/dataplane/upstream/response-parser.ts";
import type {
  ExchangeOwner,
  UpstreamTransport,
} from "../../../src/dataplane/upstream/transport.ts";
import { encode, type Field, type Frame } from "../../support/h2-client.ts";
import { frame } from "../../support/h2-wire.ts";
import { type ExchangeSketch, RecordedExchange } from "./recorded-exchange.ts";

/** A name that is never resolved: the test connects. */
const UNRESOLVED: Addresses = {
  size: 0,
  version: 0,
  isFixed: true,
  has: () => true,
  next: () => null,
  failed() {},
  whenFound: () => () => {},
  sweep() {},
  renew() {},
  close() {},
  toJSON: () => "unresolved",
};

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

export class TargetWire implements SessionOwner, UpstreamTransport {
  readonly endpoint = { hostname: "own.test", port: 1, addresses: UNRESOLVED, tls: null };
  /** Frames of each write. */
  readonly writes: Frame[][] = [];
  readonly sessions: UpstreamSession[] = [];
  isClosed = false;
  isPaused = false;
  /** Bytes that the kernel takes. */
  room = Number.POSITIVE_INFINITY;
  /** In milliseconds. */
  time = 1000;
  readonly #heads = new HeadCache(parseResponseHead);
  #connection: UpstreamConnection | null = null;
  #bytes = Buffer.alloc(0);
  #hasPreface = false;

  open(owner: ExchangeOwner, isFresh: boolean): Http2Exchange {
    return new Http2Exchange({ pool: this, owner, heads: this.#heads, isFresh });
  }

  /** Begins a request; the session is there once `connect` was called. */
  request(sketch: Omit<ExchangeSketch, "transport"> = {}): RecordedExchange {
    return new RecordedExchange({ transport: this, ...sketch });
  }

  /** The target accepts, and sends its SETTINGS. */
  connect(settings: Uint8Array = Buffer.alloc(0)): this {
    const socket = {
      write: (bytes: Uint8Array, offset = 0, length = bytes.byteLength) => {
        if (this.isClosed) return -1;
        const taken = Math.min(length, this.room);
        this.room -= taken;
        this.#wrote(bytes.subarray(offset, offset + taken));
        return taken;
      },
      pause: () => {
        this.isPaused = true;
      },
      resume: () => {
        this.isPaused = false;
      },
      terminate: () => {
        this.isClosed = true;
      },
    };
    this.#connection?.onDialed(socket as never, { host: "192.0.2.1", port: 1, unix: null });
    this.send(frame(4, 0, 0, settings));
    return this;
  }

  /** All in one read. */
  send(...parts: readonly Uint8Array[]): void {
    this.#connection?.received(Buffer.concat(parts));
  }

  /** The target closes the connection. */
  end(): void {
    this.#connection?.ended(false);
  }

  /** The kernel takes more. */
  drain(room = Number.POSITIVE_INFINITY): void {
    this.room = room;
    this.#connection?.flush();
  }

  /** The end of a few turns of the event loop: each piece of a body is sent at the end of one. */
  async turn(): Promise<void> {
    for (let at = 0; at < 4; at++) await new Promise((resolve) => setImmediate(resolve));
  }

  get frames(): readonly Frame[] {
    return this.writes.flat();
  }

  of(type: number, stream: number): Frame[] {
    return this.frames.filter((one) => one.type === type && one.stream === stream);
  }

  /** Codes of RST_STREAM. */
  get resets(): number[] {
    return this.frames
      .filter(({ type }) => type === 3)
      .map(({ payload }) => payload.readUInt32BE(0));
  }

  /** The code of GOAWAY; null: there is none. */
  get goAway(): number | null {
    return this.frames.findLast(({ type }) => type === 7)?.payload.readUInt32BE(4) ?? null;
  }

  #wrote(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    if (!this.#hasPreface) {
      if (this.#bytes.length < PREFACE.length) return;
      if (this.#bytes.latin1Slice(0, PREFACE.length) !== PREFACE) throw new Error("no preface");
      this.#bytes = this.#bytes.subarray(PREFACE.length);
      this.#hasPreface = true;
    }
    const frames: Frame[] = [];
    while (this.#bytes.length >= 9) {
      const length = this.#bytes.readUIntBE(0, 3);
      if (this.#bytes.length < 9 + length) break;
      const [type = 0, flags = 0] = [this.#bytes[3], this.#bytes[4]];
      const stream = this.#bytes.readUInt32BE(5);
      frames.push({ type, flags, stream, payload: this.#bytes.subarray(9, 9 + length) });
      this.#bytes = this.#bytes.subarray(9 + length);
    }
    this.writes.push(frames);
  }

  // The owner of the sessions.

  acquire(user: SessionUser): UpstreamSession {
    let session = this.sessions.at(-1);
    if (session === undefined || !session.hasCapacity) {
      session = new UpstreamSession(this);
      this.sessions.push(session);
    }
    session.join(user);
    return session;
  }

  now(): number {
    return this.time;
  }

  /** Only the first one connects. */
  dial(session: UpstreamSession): UpstreamConnection {
    const made = new UpstreamConnection(this.endpoint, session);
    this.#connection ??= made;
    return made;
  }

  sessionRetired(): void {}

  sessionIdle(): void {}
}

/** A header block in one frame. */
export const headers = (id: number, fields: readonly Field[], flags = 4): Buffer =>
  frame(1, flags, id, encode(fields));

/** Content; `flags` 1: the last. */
export const data = (id: number, text: string, flags = 0): Buffer =>
  frame(0, flags, id, Buffer.from(text, "latin1"));
