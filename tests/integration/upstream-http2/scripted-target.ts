// A target that sends HTTP/2 frames by hand, valid or not.
import type { Socket } from "bun";

export type Field = readonly [name: string, value: string];

export const frames = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
} as const;
const END_STREAM = 1;
export const END_HEADERS = 4;
const PREFACE_BYTES = 24;

/** One connection of the gateway. */
export class ScriptedConnection {
  /** Types of the frames that the gateway has sent, with their streams. */
  readonly frames: { readonly type: number; readonly stream: number; readonly payload: Buffer }[] =
    [];
  isClosed = false;
  readonly #socket: Socket<ScriptedConnection>;
  readonly #onFrame: (connection: ScriptedConnection, type: number, stream: number) => void;
  #received = Buffer.alloc(0);
  #hasPreface = false;

  constructor(
    socket: Socket<ScriptedConnection>,
    onFrame: (connection: ScriptedConnection, type: number, stream: number) => void,
  ) {
    this.#socket = socket;
    this.#onFrame = onFrame;
  }

  write(bytes: Uint8Array | string): void {
    this.#socket.write(bytes);
    this.#socket.flush();
  }

  frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): void {
    this.write(frameBytes(type, flags, stream, payload));
  }

  headers(stream: number, fields: readonly Field[], isLast = false): void {
    this.frame(
      frames.headers,
      END_HEADERS | (isLast ? END_STREAM : 0),
      stream,
      encodeFields(fields),
    );
  }

  data(stream: number, text: string, isLast = false): void {
    this.frame(frames.data, isLast ? END_STREAM : 0, stream, Buffer.from(text, "latin1"));
  }

  /** A whole response with a body. */
  respond(stream: number, text: string): void {
    this.headers(stream, [[":status", "200"]]);
    this.data(stream, text, true);
  }

  reset(stream: number, code: number): void {
    this.frame(frames.reset, 0, stream, Buffer.from([0, 0, 0, code]));
  }

  goaway(lastStream: number, code = 0): void {
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(lastStream, 0);
    payload.writeUInt32BE(code, 4);
    this.frame(frames.goaway, 0, 0, payload);
  }

  close(): void {
    this.#socket.end();
  }

  take(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    if (!this.#hasPreface) {
      if (this.#received.length < PREFACE_BYTES) return;
      this.#received = this.#received.subarray(PREFACE_BYTES);
      this.#hasPreface = true;
    }
    while (this.#received.length >= 9) {
      const size = this.#received.readUIntBE(0, 3);
      if (this.#received.length < 9 + size) return;
      const type = this.#received[3]!;
      const stream = this.#received.readUInt32BE(5);
      this.frames.push({ type, stream, payload: this.#received.subarray(9, 9 + size) });
      this.#received = this.#received.subarray(9 + size);
      this.#onFrame(this, type, stream);
    }
  }
}

function frameBytes(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export const encodeFields = (fields: readonly Field[]): Buffer =>
  Buffer.concat(fields.map(encodeField));

/** A literal field without indexing (RFC 7541 section 6.2.2), in Latin-1. */
function encodeField([name, value]: Field): Buffer {
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "latin1");
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}

export interface ScriptedTarget {
  readonly port: number;
  readonly connections: readonly ScriptedConnection[];
  stop(): void;
}

export interface Script {
  /** A request head has arrived. `index` counts the requests of all connections, from 0. */
  onRequest?(connection: ScriptedConnection, stream: number, index: number): void;
  onFrame?(connection: ScriptedConnection, type: number, stream: number): void;
  /** Sent at once instead of an empty SETTINGS frame. */
  readonly opening?: Uint8Array | string;
}

export function startScriptedTarget(script: Script): ScriptedTarget {
  const connections: ScriptedConnection[] = [];
  let requests = 0;
  const server = Bun.listen<ScriptedConnection>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.setNoDelay(true);
        socket.data = new ScriptedConnection(socket, (connection, type, stream) => {
          script.onFrame?.(connection, type, stream);
          const isNew =
            type === frames.headers &&
            connection.frames.filter((one) => one.type === type && one.stream === stream).length ===
              1;
          if (isNew) script.onRequest?.(connection, stream, requests++);
        });
        connections.push(socket.data);
        socket.data.write(script.opening ?? frameBytes(frames.settings, 0, 0, Buffer.alloc(0)));
      },
      data: (socket, chunk) => socket.data.take(chunk),
      close: (socket) => {
        socket.data.isClosed = true;
      },
      error: () => {},
    },
  });
  return { port: server.port, connections, stop: () => server.stop(true) };
}
