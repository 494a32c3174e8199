// An HTTP/2 client that sends any field and frame, valid or not; of responses it reads status and body only.
import type { Socket } from "bun";
import { DEADLINE_MS, eventually } from "./poll.ts";

export type Field = readonly [name: string, value: string];

/** The result of one stream. */
export interface StreamResult {
  /** Null without a response. */
  readonly status: number | null;
  readonly body: string;
  /** Whether the response ended with END_STREAM. */
  readonly isComplete: boolean;
  /** Error code of RST_STREAM. */
  readonly reset: number | null;
  /** Error code of GOAWAY. */
  readonly goAway: number | null;
  readonly isClosed: boolean;
  /** Status, `reset`, `goaway` or `closed`. */
  readonly outcome: string;
}

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

interface Stream {
  status: number | null;
  body: string;
  isComplete: boolean;
  reset: number | null;
}

/** In the form of the wire: Bun takes no list of names. */
const H2 = Buffer.from("\x02h2") as unknown as string;

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;
/** SETTINGS_MAX_FRAME_SIZE of a server that says nothing. */
const MAX_FRAME = 16_384;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;

/** One connection. Text is Latin-1, one character a byte. */
export class H2Client {
  readonly #streams = new Map<number, Stream>();
  #socket: Socket | null = null;
  #received = Buffer.alloc(0);
  #pending = Buffer.alloc(0);
  #nextStream = 1;
  goAway: number | null = null;
  isClosed = false;
  /** Whether it opens its windows again by what arrives. */
  givesBack = true;
  /** Type of the first frame, null before it. */
  first: number | null = null;
  /** Payloads of acknowledged pings. */
  readonly pongs: string[] = [];
  /** How many SETTINGS frames the server has acknowledged. */
  acknowledged = 0;
  /** All that it has received. */
  readonly frames: Frame[] = [];

  /** `isRaw`: without preface and SETTINGS. */
  static async connect({
    port,
    tls = false,
    isRaw = false,
  }: {
    port: number;
    tls?: boolean;
    isRaw?: boolean;
  }): Promise<H2Client> {
    const client = new H2Client();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    client.#socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      ...(tls
        ? { tls: { rejectUnauthorized: false, serverName: "localhost", ALPNProtocols: H2 } }
        : {}),
      socket: {
        open: () => (tls ? undefined : resolve()),
        handshake: (_socket, isDone) => (isDone || tls ? resolve() : reject(new Error("no TLS"))),
        data: (_, chunk) => client.#take(chunk),
        drain: () => client.#flush(),
        close: () => {
          client.isClosed = true;
        },
        error: () => undefined,
      },
    });
    await promise;
    if (isRaw) return client;
    client.write(Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1"));
    // A header table of size 0: responses then never refer to earlier fields, which this client does not store.
    client.frame(SETTINGS, 0, 0, Buffer.from([0, 1, 0, 0, 0, 0]));
    return client;
  }

  write(bytes: Uint8Array): void {
    this.#pending = Buffer.concat([this.#pending, bytes]);
    this.#flush();
  }

  frame(type: number, flags: number, stream: number, payload: Uint8Array): void {
    const head = Buffer.alloc(9);
    head.writeUIntBE(payload.byteLength, 0, 3);
    head[3] = type;
    head[4] = flags;
    head.writeUInt32BE(stream, 5);
    this.write(Buffer.concat([head, payload]));
  }

  /** Opens a stream with these fields exactly; `isLast` without a body. */
  headers(fields: readonly Field[], { isLast = true } = {}): number {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    this.trailers(stream, fields, { isLast });
    return stream;
  }

  /** A further block of fields on a stream. */
  trailers(stream: number, fields: readonly Field[], { isLast = true } = {}): void {
    const block = encode(fields);
    const end = isLast ? END_STREAM : 0;
    for (let at = 0; at === 0 || at < block.length; at += MAX_FRAME) {
      const flags = (at === 0 ? end : 0) | (at + MAX_FRAME < block.length ? 0 : END_HEADERS);
      this.frame(
        at === 0 ? HEADERS : CONTINUATION,
        flags,
        stream,
        block.subarray(at, at + MAX_FRAME),
      );
    }
  }

  data(stream: number, text: string, { isLast = true } = {}): void {
    this.frame(DATA, isLast ? END_STREAM : 0, stream, Buffer.from(text, "latin1"));
  }

  resetStream(stream: number, code = 8): void {
    this.frame(RST_STREAM, 0, stream, Buffer.from([0, 0, 0, code]));
  }

  /** Resolves when the stream has ended, however it did. */
  async result(stream: number, deadlineMs = DEADLINE_MS): Promise<StreamResult> {
    const isOver = () => {
      const state = this.#streams.get(stream);
      return (
        state?.isComplete ||
        (state?.reset ?? null) !== null ||
        this.goAway !== null ||
        this.isClosed
      );
    };
    await eventually(isOver, { deadlineMs, intervalMs: 1 });
    return this.seen(stream);
  }

  /** Resolves when so much of the body is there. */
  async untilBody(stream: number, text: string): Promise<void> {
    await eventually(() => this.seen(stream).body.includes(text), { intervalMs: 1 });
  }

  /** Its result so far. */
  seen(stream: number): StreamResult {
    const state = this.#streams.get(stream) ?? {
      status: null,
      body: "",
      isComplete: false,
      reset: null,
    };
    const ended = this.goAway === null ? "closed" : "goaway";
    // RFC 9113 section 8.1: a reset without error after a complete response only stops the request body.
    const isReset = state.reset !== null && !(state.reset === 0 && state.isComplete);
    const outcome = isReset ? "reset" : state.isComplete ? String(state.status) : ended;
    return { ...state, goAway: this.goAway, isClosed: this.isClosed, outcome };
  }

  close(): void {
    this.#socket?.terminate();
  }

  #flush(): void {
    const written = this.#socket?.write(this.#pending) ?? 0;
    if (written > 0) this.#pending = this.#pending.subarray(written);
  }

  #take(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= 9) {
      const length = this.#received.readUIntBE(0, 3);
      if (this.#received.length < 9 + length) return;
      const [type = 0, flags = 0] = [this.#received[3], this.#received[4]];
      const stream = this.#received.readUInt32BE(5) & 0x7fffffff;
      const payload = this.#received.subarray(9, 9 + length);
      this.#received = this.#received.subarray(9 + length);
      this.#frame(type, flags, stream, payload);
    }
  }

  #frame(type: number, flags: number, id: number, payload: Buffer): void {
    this.frames.push({ type, flags, stream: id, payload });
    if (type === SETTINGS && (flags & ACK) === 0) this.frame(SETTINGS, ACK, 0, Buffer.alloc(0));
    if (type === PING && (flags & ACK) === 0) this.frame(PING, ACK, 0, payload);
    if (type === PING && (flags & ACK) !== 0) this.pongs.push(payload.toString("latin1"));
    if (type === SETTINGS && (flags & ACK) !== 0) this.acknowledged += 1;
    this.first ??= type;
    // Bun sends a second one with INTERNAL_ERROR behind that with the reason.
    if (type === GOAWAY) this.goAway ??= payload.readUInt32BE(4);
    if (id === 0) return;
    const stream = this.#streams.get(id) ?? {
      status: null,
      body: "",
      isComplete: false,
      reset: null,
    };
    this.#streams.set(id, stream);
    if (type === RST_STREAM) stream.reset = payload.readUInt32BE(0);
    // Interim responses are skipped.
    if (type === HEADERS && stream.status === null) {
      const status = statusOf(payload);
      if (status >= 200) stream.status = status;
    }
    if (type === DATA) {
      stream.body += payload.toString("latin1");
      if (payload.length > 0 && this.givesBack) this.#giveBack(id, payload.length);
    }
    if ((type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0) stream.isComplete = true;
  }

  #giveBack(stream: number, bytes: number): void {
    const increment = Buffer.alloc(4);
    increment.writeUInt32BE(bytes, 0);
    this.frame(WINDOW_UPDATE, 0, 0, increment);
    this.frame(WINDOW_UPDATE, 0, stream, increment);
  }
}

/** Literal fields, never indexed, without Huffman coding (RFC 7541 section 6.2.3): the peer gets the very bytes. */
export function encode(fields: readonly Field[]): Buffer {
  const parts = fields.flatMap(([name, value]) => [Buffer.from([0x10]), text(name), text(value)]);
  return Buffer.concat(parts);
}

function text(characters: string): Buffer {
  const bytes = Buffer.from(characters, "latin1");
  return Buffer.concat([integer(bytes.length), bytes]);
}

/** RFC 7541 section 5.1 with a prefix of 7 bits. */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const bytes = [127];
  let rest = value - 127;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** Statuses of the static table, from index 8 on (RFC 7541 appendix A). */
const STATIC_STATUSES = [200, 204, 206, 304, 400, 404, 500];

/** The status is the first field of a response: an entry of the static table, or its name with three digits. */
function statusOf(block: Buffer): number {
  let at = 0;
  // Changes of the table's size come first.
  while (((block[at] ?? 0) & 0xe0) === 0x20) at++;
  const first = block[at] ?? 0;
  const known = STATIC_STATUSES[first - 0x88];
  if (known !== undefined) return known;
  const length = block[at + 1] ?? 0;
  const value = block.subarray(at + 2, at + 2 + (length & 127));
  return Number((length & 128) === 0 ? value.toString("latin1") : digits(value));
}

/** Digits in Huffman code (RFC 7541 appendix B): 0 to 2 have five bits, the others six. */
function digits(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  let out = "";
  for (let at = 0; out.length < 3;) {
    const five = Number.parseInt(bits.slice(at, at + 5), 2);
    if (five <= 2) {
      out += String(five);
      at += 5;
    } else {
      out += String(Number.parseInt(bits.slice(at, at + 6), 2) - 0b011001 + 3);
      at += 6;
    }
  }
  return out;
}
