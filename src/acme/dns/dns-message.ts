// Encodes and decodes the DNS messages (RFC 1035) that updates (RFC 2136) need; opens no socket.
import { DnsError } from "./failure.ts";

export const recordTypes = { SOA: 6, TXT: 16, TSIG: 250 } as const;
export const classes = { IN: 1, NONE: 254, ANY: 255 } as const;

/** RFC 1035 section 4.1.1, RFC 2136 section 2.2. */
const OPCODE_UPDATE = 5;
const RECURSION_DESIRED = 0x0100;
const HEADER_BYTES = 12;
/** RFC 1035 section 2.3.4, with the root label. */
const MAX_NAME_BYTES = 255;

const u16 = (value: number) => Buffer.of((value >> 8) & 0xff, value & 0xff);

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Length and bytes of each label, and the root label. */
export function nameBytes(name: string): Buffer {
  const labels = name
    .replace(/\.$/, "")
    .split(".")
    .filter((label) => label !== "")
    .map((label) => Buffer.from(label, "latin1"));
  const isTooLong = labels.some(({ length }) => length > 63);
  const bytes = Buffer.concat([
    ...labels.flatMap((label) => [Buffer.of(label.length), label]),
    Buffer.of(0),
  ]);
  if (isTooLong || bytes.length > MAX_NAME_BYTES)
    throw new DnsError(`${name} is too long for a DNS name`);
  return bytes;
}

/** RFC 1035 section 3.3.14: texts of at most 255 bytes each. */
export function txtBytes(value: string): Buffer {
  const bytes = Buffer.from(value, "utf8");
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += 255) {
    const part = bytes.subarray(at, at + 255);
    parts.push(Buffer.of(part.length), part);
  }
  return Buffer.concat(parts);
}

export interface RecordParts {
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  readonly data: Uint8Array;
}

export const recordBytes = (record: RecordParts): Buffer =>
  Buffer.concat([
    nameBytes(record.name),
    u16(record.type),
    u16(record.class),
    u32(record.ttl),
    u16(record.data.length),
    record.data,
  ]);

interface Head {
  readonly id: number;
  readonly flags: number;
  readonly question: Uint8Array;
  readonly updates: readonly Uint8Array[];
}

const assemble = ({ id, flags, question, updates }: Head) =>
  Buffer.concat([...[id, flags, 1, 0, updates.length, 0].map(u16), question, ...updates]);

const questionBytes = (name: string, type: number) =>
  Buffer.concat([nameBytes(name), u16(type), u16(classes.IN)]);

/** A query for one record type. */
export const queryMessage = (id: number, name: string, type: number): Buffer =>
  assemble({ id, flags: RECURSION_DESIRED, question: questionBytes(name, type), updates: [] });

/** RFC 2136: changes in one zone, all or none. */
export const updateMessage = (id: number, zone: string, updates: readonly RecordParts[]): Buffer =>
  assemble({
    id,
    flags: OPCODE_UPDATE << 11,
    question: questionBytes(zone, recordTypes.SOA),
    updates: updates.map(recordBytes),
  });

export interface ReadRecord {
  /** Lower case, without a final dot. */
  readonly name: string;
  readonly type: number;
  readonly data: Buffer;
  /** Offsets of the record and its data in the message. */
  readonly start: number;
  readonly dataStart: number;
}

export interface ReadMessage {
  readonly id: number;
  readonly isReply: boolean;
  readonly code: number;
  readonly answers: readonly ReadRecord[];
  readonly additional: readonly ReadRecord[];
}

/** Throws a DnsError for an invalid message. */
export function readMessage(bytes: Buffer): ReadMessage {
  try {
    return read(bytes);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new DnsError("the response of the name server is malformed");
  }
}

function read(bytes: Buffer): ReadMessage {
  const count = (at: number) => bytes.readUInt16BE(at);
  let at = HEADER_BYTES;
  for (let left = count(4); left > 0; left--) at = readName(bytes, at).end + 4;
  const section = (length: number): ReadRecord[] => {
    const records: ReadRecord[] = [];
    for (let left = length; left > 0; left--) {
      const { name, end } = readName(bytes, at);
      const dataStart = end + 10;
      const next = dataStart + bytes.readUInt16BE(end + 8);
      if (next > bytes.length) throw new RangeError("truncated");
      const data = bytes.subarray(dataStart, next);
      records.push({ name, type: bytes.readUInt16BE(end), data, start: at, dataStart });
      at = next;
    }
    return records;
  };
  const flags = bytes.readUInt16BE(2);
  const answers = section(count(6));
  section(count(8));
  const additional = section(count(10));
  return { id: count(0), isReply: flags >= 0x8000, code: flags & 0x0f, answers, additional };
}

/** RFC 1035 section 4.1.4. Pointers must point backwards, which prevents loops. */
export function readName(
  bytes: Buffer,
  start: number,
): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = start;
  let end = -1;
  let limit = start;
  let room = MAX_NAME_BYTES;
  for (;;) {
    const length = bytes.readUInt8(at);
    if (length >= 0xc0) {
      const target = bytes.readUInt16BE(at) & 0x3fff;
      if (end < 0) end = at + 2;
      if (target >= limit) throw new RangeError("a pointer that points forward");
      limit = target;
      at = target;
      continue;
    }
    if (length > 63) throw new RangeError("a label of an unknown type");
    if (length === 0) break;
    // Pointers could expand a short message to names of thousands of bytes.
    room -= 1 + length;
    if (room < 1) throw new RangeError("a name that is too long");
    labels.push(bytes.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), end: end < 0 ? at + 1 : end };
}
