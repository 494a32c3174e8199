// One HTTP/2 connection of our own engine without a socket: what a client sends goes in, and each write comes out as frames.
import { connectionInfo } from "../../src/dataplane/listener/connection-info.ts";
import type { ClientStream } from "../../src/dataplane/server/client-stream.ts";
import { Http2Connection } from "../../src/dataplane/server/http2/connection.ts";
import { PeerSocket } from "../../src/dataplane/server/peer-socket.ts";
import type { Http2End } from "../../src/dataplane/server/served-connection.ts";
import { decode } from "../../src/model/decode.ts";
import { type Listener, type ListenerInput, listenerInput } from "../../src/model/listener.ts";
import { encode, type Field, type Frame } from "./h2-client.ts";

const end = { address: "192.0.2.1", port: 1 };
const INFO = connectionInfo({ ends: { source: end, destination: end }, hello: null });

export const GET: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":authority", "a.test"],
  [":path", "/"],
];
export const POST: readonly Field[] = [[":method", "POST"], ...GET.slice(1)];

export const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

export class H2Wire {
  readonly streams: ClientStream[] = [];
  /** Frames of each write. */
  readonly writes: Frame[][] = [];
  readonly refusals: string[] = [];
  readonly ends: Http2End[] = [];
  readonly connection: Http2Connection;
  isPaused = false;
  hasEnded = false;
  /** To the client and back, in microseconds. */
  roundTrip = 0;
  /** Bytes that the kernel takes. */
  room = Number.POSITIVE_INFINITY;
  readonly #peer: PeerSocket;
  #bytes = Buffer.alloc(0);
  #nextStream = 1;

  constructor(
    serve: (stream: ClientStream) => void = () => {},
    listener: Partial<ListenerInput> = {},
  ) {
    const live: Listener = {
      ...decode(listenerInput, { name: "wire", port: 1, ...listener }),
      id: "wire",
      created_at: "",
      updated_at: "",
    };
    this.#peer = new PeerSocket({
      write: (bytes, offset = 0, length = bytes.byteLength) => {
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
      shutdown: () => {
        this.hasEnded = true;
      },
      close() {},
      terminate() {},
    });
    Object.defineProperty(this.#peer, "roundTrip", { get: () => this.roundTrip });
    this.connection = new Http2Connection(this.#peer, {
      info: INFO,
      serve: (stream) => {
        this.streams.push(stream);
        serve(stream);
      },
      listener: () => live,
      bounds: () => ({ headTimeout: 15_000, idleTimeout: 75_000, writeTimeout: 60_000 }),
      refused: (reason) => void this.refusals.push(reason),
      onHttp2End: (reason) => void this.ends.push(reason),
      replaced() {},
      closed() {},
    });
    this.send(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, Buffer.alloc(0)));
  }

  /** All in one read. */
  send(...parts: readonly Uint8Array[]): void {
    this.#peer.clientSent(Buffer.concat(parts));
  }

  /** The bytes of a request; `isLast` without a body. */
  request(fields: readonly Field[] = GET, isLast = true): Buffer {
    const id = this.#nextStream;
    this.#nextStream += 2;
    return frame(1, isLast ? 5 : 4, id, encode(fields));
  }

  /** The end of a turn of the event loop. */
  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** The kernel takes more. */
  drain(room = Number.POSITIVE_INFINITY): void {
    this.room = room;
    this.#peer.clientDrained();
  }

  get frames(): readonly Frame[] {
    return this.writes.flat();
  }

  /** Forgets what was written so far. */
  forget(): void {
    this.writes.length = 0;
  }

  /** The code of the last GOAWAY; null: there is none. */
  get goAway(): number | null {
    return this.frames.findLast(({ type }) => type === 7)?.payload.readUInt32BE(4) ?? null;
  }

  /** Codes of RST_STREAM on a stream. */
  resetsOf(id: number): number[] {
    return this.frames
      .filter(({ type, stream }) => type === 3 && stream === id)
      .map(({ payload }) => payload.readUInt32BE(0));
  }

  /** Bytes of DATA on a stream. */
  sizeOf(id: number): number {
    return this.frames
      .filter(({ type, stream }) => type === 0 && stream === id)
      .reduce((sum, { payload }) => sum + payload.length, 0);
  }

  #wrote(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
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
}

export function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}
