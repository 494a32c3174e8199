// The file of a stored response: its body in blocks with checksums, then a record; knows no store and no request.
import { constants, fstatSync, readSync, openSync, closeSync } from "node:fs";

/** What a file says of its response. */
export interface FileRecord {
  readonly key: string;
  readonly variant: string;
  readonly resource: string;
  readonly tags: readonly string[];
  /** As in the store. */
  readonly head: Uint8Array;
  /** Milliseconds since 1970: the monotonic clock of the head does not survive a restart. */
  readonly storedAt: number;
}

/** Bytes of the body before each checksum. */
export const BLOCK_BYTES = 65_536;
export const SUM_BYTES = 8;

const MAGIC = "sluicech";
/** Of this layout and of the head: files of other versions are dropped. */
const FILE_VERSION = 1;
const FOOTER_BYTES = 40;
/** Longer records are broken. */
const MAX_RECORD_BYTES = 4_194_304;
/** Most records are shorter, and need one read. */
const FIRST_READ_BYTES = 8192;

/** A client cannot choose it: a random name, and the epoch of the store when the request went upstream. */
const NAME = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-(\d{1,16})$/;

/** Names sort by their time. */
export const fileName = (epoch: number): string => `${Bun.randomUUIDv7()}-${epoch}`;

/** The epoch in the name of a complete file; null: the name is not one. */
export function epochOf(name: string): number | null {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** Ends of other names: of a file being written, and of one being removed. */
export const TEMPORARY = ".tmp";
export const GONE = ".gone";

/** Files are opened like this, so that neither a link nor a pipe in their place is followed or waited for. */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Bytes of a body with its checksums. */
export const bodySpan = (bodyLength: number): number =>
  bodyLength + SUM_BYTES * Math.ceil(bodyLength / BLOCK_BYTES);

export const sumOf = (bytes: Uint8Array): bigint => Bun.hash.xxHash3(bytes);

/** What follows the body. */
export function encodeRecord(record: FileRecord, bodyLength: number): Buffer {
  const { key, variant, resource, tags, head, storedAt } = record;
  const meta = Buffer.from(JSON.stringify({ key, variant, resource, tags, storedAt }));
  const footer = Buffer.alloc(FOOTER_BYTES);
  footer.write(MAGIC, "latin1");
  footer.writeUInt32LE(FILE_VERSION, 8);
  footer.writeUInt32LE(meta.byteLength, 12);
  footer.writeUInt32LE(head.byteLength, 16);
  footer.writeBigUInt64LE(BigInt(bodyLength), 24);
  const all = Buffer.concat([meta, head, footer]);
  const end = all.byteLength - SUM_BYTES;
  all.writeBigUInt64LE(sumOf(all.subarray(0, end)), end);
  return all;
}

export interface FoundFile {
  readonly record: FileRecord;
  readonly bodyLength: number;
  /** Of the whole file. */
  readonly bytes: number;
}

/** Reads the record of a file; null: it is broken, of another version, or no file. Does not read the body. */
export function readRecord(path: string): FoundFile | null {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(path, READ_FLAGS);
    const stat = fstatSync(descriptor);
    return stat.isFile() ? readFrom(descriptor, stat.size) : null;
  } catch {
    return null;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

function readFrom(descriptor: number, bytes: number): FoundFile | null {
  const tail = readTail(descriptor, bytes, Math.min(bytes, FIRST_READ_BYTES));
  const lengths = tail === null ? null : lengthsOf(tail);
  if (tail === null || lengths === null) return null;
  const { meta, head, body } = lengths;
  const length = meta + head + FOOTER_BYTES;
  if (length > MAX_RECORD_BYTES || bytes !== bodySpan(body) + length) return null;
  const all =
    length > tail.byteLength
      ? readTail(descriptor, bytes, length)
      : tail.subarray(tail.byteLength - length);
  if (all === null) return null;
  const end = length - SUM_BYTES;
  if (all.readBigUInt64LE(end) !== sumOf(all.subarray(0, end))) return null;
  const fields = JSON.parse(all.toString("utf8", 0, meta)) as Omit<FileRecord, "head">;
  const record = { ...fields, head: new Uint8Array(all.subarray(meta, meta + head)) };
  return { record, bodyLength: body, bytes };
}

function readTail(descriptor: number, bytes: number, length: number): Buffer | null {
  const tail = Buffer.allocUnsafeSlow(length);
  return readSync(descriptor, tail, 0, length, bytes - length) === length ? tail : null;
}

function lengthsOf(tail: Buffer): { meta: number; head: number; body: number } | null {
  const at = tail.byteLength - FOOTER_BYTES;
  if (at < 0 || tail.toString("latin1", at, at + 8) !== MAGIC) return null;
  if (tail.readUInt32LE(at + 8) !== FILE_VERSION) return null;
  const body = tail.readBigUInt64LE(at + 24);
  if (body > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  return {
    meta: tail.readUInt32LE(at + 12),
    head: tail.readUInt32LE(at + 16),
    body: Number(body),
  };
}
