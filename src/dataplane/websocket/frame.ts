// WebSocket frames as clients and servers write them (RFC 6455 section 5), and close codes; knows no socket.

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

/** Close codes that the gateway itself sends or reports (RFC 6455 section 7.4.1). */
export const closeCodes = {
  goingAway: 1001,
  protocolError: 1002,
  /** Stands for a Close frame without a code; never on the wire. */
  none: 1005,
  /** Stands for a connection that ended without a Close frame; never on the wire. */
  abnormal: 1006,
  invalidText: 1007,
  tooBig: 1009,
  internalError: 1011,
} as const;

/** Longest message in either direction. The gateway forwards whole messages, so one must fit in memory. */
export const MAX_MESSAGE_BYTES = 67_108_864;

/** A protocol error of the peer, with the close code for it. */
export class FrameError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Whether a peer may send the code (RFC 6455 section 7.4): registered ones, those of libraries and of applications. */
export function isCloseCode(code: number): boolean {
  if (code >= 3000) return code <= 4999;
  return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}

const KEY_POOL_BYTES = 4096;
/** Payload bytes from which masking by words outweighs the aligned buffer that it needs. */
const MASK_BY_WORDS_FROM = 64;

/** Encodes whole messages as a client's frames, each masked with its own key. */
export class FrameEncoder {
  /** Masking keys must be unpredictable (RFC 6455 section 10.3); a pool, because random bytes are slow four at a time. */
  readonly #keys = Buffer.alloc(KEY_POOL_BYTES);
  #nextKey = KEY_POOL_BYTES;

  encode(opcode: number, payload: string | Uint8Array): Buffer {
    const isText = typeof payload === "string";
    const length = isText ? Buffer.byteLength(payload) : payload.byteLength;
    const start = length < 126 ? 6 : length < 65_536 ? 8 : 14;
    const byWords = length >= MASK_BY_WORDS_FROM;
    // The payload must be aligned, not the header.
    const slack = byWords ? -start & 3 : 0;
    const memory = byWords
      ? Buffer.allocUnsafeSlow(slack + start + length)
      : Buffer.allocUnsafe(start + length);
    const frame = slack === 0 ? memory : memory.subarray(slack);
    writeHeader(frame, opcode, length);
    frame[1] = (frame[1] ?? 0) | MASKED;
    if (isText) frame.write(payload, start, "utf8");
    else frame.set(payload, start);
    const key = this.#key();
    frame.set(key, start - 4);
    if (byWords) maskWords(frame, start, key);
    else maskBytes(frame, start, key);
    return frame;
  }

  /** A Close frame; without a payload for `closeCodes.none`. */
  encodeClose(code: number, reason: string): Buffer {
    return this.encode(CLOSE, closePayload(code, reason));
  }

  #key(): Buffer {
    if (this.#nextKey === KEY_POOL_BYTES) {
      crypto.getRandomValues(this.#keys);
      this.#nextKey = 0;
    }
    this.#nextKey += 4;
    return this.#keys.subarray(this.#nextKey - 4, this.#nextKey);
  }
}

const NO_BYTES = new Uint8Array(0);

function closePayload(code: number, reason: string): Uint8Array {
  if (code === closeCodes.none) return NO_BYTES;
  const text = Buffer.from(reason);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(code);
  payload.set(text, 2);
  return payload;
}

/** A whole message as a server's frame, which is not masked. */
export function serverFrame(opcode: number, payload: string | Uint8Array): Buffer {
  const isText = typeof payload === "string";
  const length = isText ? Buffer.byteLength(payload) : payload.byteLength;
  const start = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(start + length);
  writeHeader(frame, opcode, length);
  if (isText) frame.write(payload, start, "utf8");
  else frame.set(payload, start);
  return frame;
}

/** A server's Close frame; without a payload for `closeCodes.none`. */
export const serverClose = (code: number, reason: string): Buffer =>
  serverFrame(CLOSE, closePayload(code, reason));

const MASKED = 0x80;

function writeHeader(frame: Buffer, opcode: number, length: number): void {
  frame[0] = 0x80 | opcode;
  if (length < 126) {
    frame[1] = length;
  } else if (length < 65_536) {
    frame[1] = 126;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = 127;
    frame.writeUInt32BE(0, 2);
    frame.writeUInt32BE(length, 6);
  }
}

function maskBytes(frame: Buffer, start: number, key: Buffer): void {
  for (let at = start; at < frame.length; at++)
    frame[at] = (frame[at] ?? 0) ^ (key[(at - start) & 3] ?? 0);
}

function maskWords(frame: Buffer, start: number, key: Buffer): void {
  const count = (frame.length - start) >>> 2;
  const words = new Uint32Array(frame.buffer, frame.byteOffset + start, count);
  const keyWord = key.readUInt32LE();
  for (let at = 0; at < count; at++) words[at] = (words[at] ?? 0) ^ keyWord;
  for (let at = start + count * 4; at < frame.length; at++)
    frame[at] = (frame[at] ?? 0) ^ (key[(at - start) & 3] ?? 0);
}

/** Masks or unmasks the part of a payload that begins at `offset` (RFC 6455 section 5.3) into `to`, of the same length. */
export function maskInto(
  to: Buffer,
  part: Buffer,
  { key, offset }: { readonly key: Buffer; readonly offset: number },
): void {
  if (part.length < MASK_BY_WORDS_FROM) {
    for (let at = 0; at < part.length; at++)
      to[at] = (part[at] ?? 0) ^ (key[(offset + at) & 3] ?? 0);
    return;
  }
  const turned = Buffer.from([0, 1, 2, 3].map((at) => key[(offset + at) & 3] ?? 0));
  to.set(part);
  maskWords(to, 0, turned);
}
