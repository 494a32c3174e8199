// Decodes the frames of a WebSocket peer, strictly (RFC 6455 section 5); knows no socket.
import {
  BINARY,
  CLOSE,
  closeCodes,
  FrameError,
  isCloseCode,
  maskInto,
  PING,
  PONG,
  TEXT,
} from "./frame.ts";

/** Receives whole messages, and control frames also between the fragments of a message. */
export interface FrameSink {
  text(message: string): void;
  binary(message: Buffer): void;
  ping(data: Buffer): void;
  pong(data: Buffer): void;
  /** The last call. A Close frame without a code is reported as `closeCodes.none`. */
  closed(code: number, reason: string): void;
}

const CONTINUATION = 0;
const NOTHING = Buffer.alloc(0);
/** `ignoreBOM`: a byte order mark is part of the message. */
const newTextDecoder = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const UTF8 = newTextDecoder();

const broken = (message: string) => new FrameError(closeCodes.protocolError, message);

/** Accepts bytes in any pieces. Drops everything after an error or a Close frame. */
export class FrameDecoder {
  readonly #sink: FrameSink;
  readonly #maxBytes: number;
  /** Whether the peer is a client, whose frames are masked. */
  readonly #isMasked: boolean;
  /** The masking key of the current frame, and how many bytes of its payload have been read. */
  #key: Buffer = NOTHING;
  #unmasked = 0;
  #isDone = false;
  /** An incomplete frame header. */
  #pending: Buffer = NOTHING;
  /** Bytes of the current frame that are still to come; -1 between frames. */
  #remaining = -1;
  #opcode = 0;
  #isFinal = false;
  #controlParts: Buffer[] = [];
  /** Opcode of the message in progress, 0 when there is none. */
  #messageOpcode = 0;
  #messageParts: Buffer[] = [];
  #messageBytes = 0;
  /** The decoded part of a text message in several pieces; null while there is none. */
  #text: string | null = null;
  /** For text messages in several pieces: carries a character that two pieces share. */
  #textPieces: TextDecoder | null = null;

  constructor(sink: FrameSink, maxBytes: number, isMasked = false) {
    this.#sink = sink;
    this.#maxBytes = maxBytes;
    this.#isMasked = isMasked;
  }

  /** Decodes a chunk. Throws FrameError, after reporting everything before the error. */
  push(chunk: Buffer): void {
    if (this.#isDone) return;
    try {
      this.#read(this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]));
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  #read(bytes: Buffer): void {
    let at = 0;
    this.#pending = NOTHING;
    while (!this.#isDone) {
      if (this.#remaining < 0) {
        const size = this.#readHeader(bytes, at);
        if (size === 0) {
          this.#pending = at === bytes.length ? NOTHING : bytes.subarray(at);
          return;
        }
        at += size;
      }
      const take = Math.min(this.#remaining, bytes.length - at);
      if (take > 0) this.#addPart(this.#unmask(bytes.subarray(at, at + take)));
      at += take;
      this.#remaining -= take;
      if (this.#remaining > 0) return;
      this.#remaining = -1;
      this.#frameIsComplete();
    }
  }

  /** A copy, because the caller owns the chunk. */
  #unmask(part: Buffer): Buffer {
    if (!this.#isMasked) return part;
    const plain = Buffer.allocUnsafeSlow(part.length);
    maskInto(plain, part, { key: this.#key, offset: this.#unmasked });
    this.#unmasked += part.length;
    return plain;
  }

  #addPart(part: Buffer): void {
    if (this.#opcode >= CLOSE) this.#controlParts.push(part);
    else if (this.#messageOpcode === TEXT && !this.#isWholeMessage(part)) this.#addText(part);
    else this.#messageParts.push(part);
  }

  #isWholeMessage(part: Buffer): boolean {
    return this.#isFinal && this.#text === null && part.length === this.#messageBytes;
  }

  /** Invalid UTF-8 fails the connection at once, not at the end of the message (RFC 6455 section 8.1). */
  #addText(part: Buffer): void {
    this.#textPieces ??= newTextDecoder();
    this.#text = (this.#text ?? "") + decodeText(part, this.#textPieces, { stream: true });
  }

  /** Length of the header at `at`; 0: incomplete. */
  #readHeader(bytes: Buffer, at: number): number {
    if (bytes.length - at < 2) return 0;
    const first = bytes[at] ?? 0;
    const second = bytes[at + 1] ?? 0;
    const short = second & 0x7f;
    this.#opcode = first & 0x0f;
    this.#isFinal = (first & 0x80) !== 0;
    this.#checkFirstBytes(first, second);
    const lengthEnd = short < 126 ? 2 : short === 126 ? 4 : 10;
    const size = this.#isMasked ? lengthEnd + 4 : lengthEnd;
    if (bytes.length - at < size) return 0;
    if (this.#isMasked) this.#key = Buffer.from(bytes.subarray(at + lengthEnd, at + size));
    this.#unmasked = 0;
    this.#remaining = short < 126 ? short : longLength(bytes, at, short);
    if (this.#opcode < CLOSE) this.#beginData();
    return size;
  }

  #checkFirstBytes(first: number, second: number): void {
    if ((first & 0x70) !== 0) throw broken("a reserved bit is set");
    if (((second & 0x80) !== 0) !== this.#isMasked)
      throw broken(
        `a frame ${this.#isMasked ? "from a client is not" : "from a server is"} masked`,
      );
    const isMessage = this.#opcode === TEXT || this.#opcode === BINARY;
    const isControl = this.#opcode >= CLOSE && this.#opcode <= PONG;
    if (!isMessage && !isControl && this.#opcode !== CONTINUATION)
      throw broken("the opcode is not known");
    if (isControl && !this.#isFinal) throw broken("a control frame is fragmented");
    if (isControl && (second & 0x7f) > 125) throw broken("a control frame is too long");
    if (isMessage && this.#messageOpcode !== 0) throw broken("a message begins inside another one");
    if (this.#opcode === CONTINUATION && this.#messageOpcode === 0)
      throw broken("a message goes on that has not begun");
  }

  #beginData(): void {
    if (this.#opcode !== CONTINUATION) this.#messageOpcode = this.#opcode;
    this.#messageBytes += this.#remaining;
    if (this.#messageBytes > this.#maxBytes)
      throw new FrameError(closeCodes.tooBig, "the message is too long");
  }

  #frameIsComplete(): void {
    if (this.#opcode >= CLOSE) {
      const data = joined(this.#controlParts);
      this.#controlParts = [];
      if (this.#opcode === PING) this.#sink.ping(data);
      else if (this.#opcode === PONG) this.#sink.pong(data);
      else this.#closeFrame(data);
      return;
    }
    if (!this.#isFinal) return;
    const message = joined(this.#messageParts);
    const opcode = this.#messageOpcode;
    const text = this.#text;
    this.#messageParts = [];
    this.#messageBytes = 0;
    this.#messageOpcode = 0;
    this.#text = null;
    if (opcode === BINARY) this.#sink.binary(message);
    else if (text === null) this.#sink.text(decodeText(message));
    else this.#sink.text(text + decodeText(NOTHING, this.#textPieces ?? UTF8));
  }

  #closeFrame(data: Buffer): void {
    if (data.length === 1) throw broken("a close code is one byte long");
    const code = data.length === 0 ? closeCodes.none : data.readUInt16BE();
    if (data.length > 0 && !isCloseCode(code)) throw broken("the close code is not valid");
    const reason = decodeText(data.subarray(2));
    this.#end();
    this.#sink.closed(code, reason);
  }

  #end(): void {
    this.#isDone = true;
    this.#messageParts = [];
    this.#controlParts = [];
    this.#pending = NOTHING;
    this.#text = null;
    this.#textPieces = null;
  }
}

/** RFC 6455 section 5.2: the shortest form must be used, and the highest bit of the long one is 0. */
function longLength(bytes: Buffer, at: number, form: number): number {
  if (form === 126) {
    const length = bytes.readUInt16BE(at + 2);
    if (length < 126) throw broken("a length is not in its shortest form");
    return length;
  }
  const high = bytes.readUInt32BE(at + 2);
  if (high >= 0x8000_0000) throw broken("a length has its highest bit set");
  const length = high * 0x1_0000_0000 + bytes.readUInt32BE(at + 6);
  if (length < 65_536) throw broken("a length is not in its shortest form");
  return length;
}

function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  if (first === undefined) return NOTHING;
  return parts.length === 1 ? first : Buffer.concat(parts);
}

function decodeText(bytes: Buffer, decoder = UTF8, options: TextDecodeOptions = {}): string {
  try {
    return decoder.decode(bytes, options);
  } catch (cause) {
    throw new FrameError(closeCodes.invalidText, `text is not UTF-8: ${String(cause)}`);
  }
}
