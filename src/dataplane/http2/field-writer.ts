// Writes fields as header blocks of HTTP/2 (RFC 7541), without a dynamic table: nothing of one message stays for the next; knows no message.
import type { FieldPairs } from "../../http/fields.ts";
import { isToken } from "../../http/fields.ts";
import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";
import { STATIC_NAMES } from "./static-table.ts";

/** Blanks at the ends pass: a `grpc-message` may have them. */
const NOT_A_VALUE = /[^\t -~\x80-\xff]/;

/** A changed size of the table: 0, which the table then always has (RFC 7541 section 6.3). */
const NO_TABLE = 0x20;

/** Names that a writer treats in its own way. */
const KINDS = ["date", "content-length", "alt-svc", "host", "te", "content-type"] as const;

/** A name of a field. */
export interface WrittenName {
  /** The beginning of a literal without indexing; empty for a field that HTTP/2 does not have. */
  readonly prefix: Uint8Array;
  readonly kind: (typeof KINDS)[number] | "connection" | "other" | "invalid";
}

const NONE = new Uint8Array(0);
const names = new Map<string, WrittenName>();
const MAX_NAMES = 1000;
const MAX_NAME_LENGTH = 64;

/** `sent`: in any case. */
function nameOf(sent: string): WrittenName {
  const known = names.get(sent);
  if (known !== undefined) return known;
  const lower = sent.toLowerCase();
  const kind = kindOf(lower);
  const hasPrefix = kind !== "connection" && kind !== "invalid";
  const name: WrittenName = { prefix: hasPrefix ? literal(lower) : NONE, kind };
  if (names.size >= MAX_NAMES) names.clear();
  if (sent.length <= MAX_NAME_LENGTH) names.set(sent, name);
  return name;
}

function kindOf(lower: string): WrittenName["kind"] {
  if (CONNECTION_FIELDS.has(lower)) return "connection";
  return KINDS.find((kind) => kind === lower) ?? (isToken(lower) ? "other" : "invalid");
}

/** The beginning of a literal without indexing of this name, in lower case. */
export function literal(name: string): Uint8Array {
  const index = STATIC_NAMES.get(name);
  const bytes: number[] = [];
  if (index !== undefined) pushInteger(bytes, index, 15);
  else {
    bytes.push(0);
    pushInteger(bytes, name.length, 127);
    bytes.push(...Buffer.from(name, "latin1"));
  }
  return Uint8Array.from(bytes);
}

/** RFC 7541 section 5.1; the bits above the prefix are 0. */
function pushInteger(bytes: number[], value: number, mask: number): void {
  if (value < mask) {
    bytes.push(value);
    return;
  }
  bytes.push(mask);
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  bytes.push(rest);
}

/** Of an integer. */
const MAX_INTEGER_BYTES = 6;

const CR = 13;
const LF = 10;
const COLON = 58;
const SPACE = 32;
const TAB = 9;

/** The last names by a hash of their bytes, so that no string of a name is made to look it up. */
const SLOTS = 1024;
const slots: (WrittenName | undefined)[] = new Array<WrittenName | undefined>(SLOTS).fill(
  undefined,
);
const slotBytes: Uint8Array[] = new Array<Uint8Array>(SLOTS).fill(NONE);

/** The name in `bytes` from `start` to `end`. `hash`: of its bytes. */
function nameAt(
  bytes: Buffer,
  { start, end, hash }: { readonly start: number; readonly end: number; readonly hash: number },
): WrittenName {
  const slot = hash & (SLOTS - 1);
  const known = slots[slot];
  const sent = slotBytes[slot] ?? NONE;
  let isSame = known !== undefined && sent.length === end - start;
  for (let at = 0; isSame && at < sent.length; at++) isSame = sent[at] === bytes[start + at];
  if (isSame && known !== undefined) return known;
  const name = nameOf(bytes.latin1Slice(start, end));
  if (end - start <= MAX_NAME_LENGTH) {
    slots[slot] = name;
    slotBytes[slot] = Uint8Array.prototype.slice.call(bytes, start, end);
  }
  return name;
}

/** From this size on a copy by the system is faster. */
const LONG_VALUE = 64;
const scratch = Buffer.allocUnsafeSlow(65_536);

/** One for each thread: a block is sent before the next one is written. */
export class FieldWriter {
  #bytes = Buffer.allocUnsafeSlow(16_384);
  #size = 0;

  /** The block; valid until the next one begins. */
  get block(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  /** `isFirst`: of the connection. */
  begin(isFirst: boolean): void {
    this.#size = 0;
    if (isFirst) this.indexed(NO_TABLE);
  }

  /** A byte that stands for a whole field. */
  indexed(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#size++] = byte;
  }

  /** Those of any origin: what is not valid, which no head may hold, is left out. */
  pairs(pairs: FieldPairs): void {
    for (const [name, value] of pairs) {
      const { prefix } = nameOf(name);
      if (prefix.length > 0 && !NOT_A_VALUE.test(value)) this.field(prefix, value);
    }
  }

  /**
   * Lines as of HTTP/1.1, each with CRLF, without those that `takes` refuses. Returns whether all of them are fields: a line break or
   * NUL within a value ends the list.
   */
  protected lines(text: string): boolean {
    const size = text.length;
    const from = size <= scratch.length ? scratch : Buffer.allocUnsafeSlow(size);
    from.latin1Write(text, 0, size);
    // A field needs no more than its line: but for integers, which the line breaks make up for, and long ones.
    this.#reserve(2 * size);
    let at = 0;
    while (at >= 0 && at < size) at = this.#line(from, at, size);
    return at === size;
  }

  /** Returns where the next line begins; -1: it is no field. */
  #line(from: Buffer, begin: number, size: number): number {
    let hash = 0;
    let colon = begin;
    while (colon < size && from[colon] !== COLON) {
      hash = (hash * 31 + (from[colon] ?? 0)) | 0;
      colon++;
    }
    const name = nameAt(from, { start: begin, end: colon, hash });
    let start = colon + 1;
    while (from[start] === SPACE || from[start] === TAB) start++;
    let end = start;
    let byte = from[end] ?? 0;
    while (end < size && byte !== CR && byte !== LF && byte !== 0) {
      end++;
      byte = from[end] ?? 0;
    }
    if (end >= size || byte !== CR || from[end + 1] !== LF) return -1;
    const next = end + 2;
    while (end > start && (from[end - 1] === SPACE || from[end - 1] === TAB)) end--;
    if (this.takes(name, from, { start, end })) this.#copied(name.prefix, from, { start, end });
    return next;
  }

  /** Whether a field of `lines` is written. */
  protected takes(
    _name: WrittenName,
    _from: Buffer,
    _place: { readonly start: number; readonly end: number },
  ): boolean {
    return true;
  }

  /** The bytes are reserved. */
  #copied(
    prefix: Uint8Array,
    from: Buffer,
    { start, end }: { readonly start: number; readonly end: number },
  ): void {
    const bytes = this.#bytes;
    let at = this.#size;
    for (let index = 0; index < prefix.length; index++) bytes[at++] = prefix[index] ?? 0;
    this.#size = at;
    this.#length(end - start);
    at = this.#size;
    if (end - start > LONG_VALUE) from.copy(bytes, at, start, end);
    else for (let index = start; index < end; index++) bytes[at + index - start] = from[index] ?? 0;
    this.#size = at + end - start;
  }

  field(prefix: Uint8Array, value: string): void {
    this.#reserve(prefix.length + MAX_INTEGER_BYTES + value.length);
    const bytes = this.#bytes;
    let at = this.#size;
    for (let index = 0; index < prefix.length; index++) bytes[at++] = prefix[index] ?? 0;
    this.#size = at;
    this.#string(value);
  }

  /** The caller has reserved the bytes. */
  #string(text: string): void {
    this.#length(text.length);
    this.#size += this.#bytes.latin1Write(text, this.#size, text.length);
  }

  #length(length: number): void {
    const bytes = this.#bytes;
    if (length < 127) {
      bytes[this.#size++] = length;
      return;
    }
    bytes[this.#size++] = 127;
    let rest = length - 127;
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[this.#size++] = (rest % 128) | 128;
    bytes[this.#size++] = rest;
  }

  #reserve(size: number): void {
    const needed = this.#size + size;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#size);
    this.#bytes = grown;
  }
}
