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
export function nameOf(sent: string): WrittenName {
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
    const bytes = this.#bytes;
    if (text.length < 127) bytes[this.#size++] = text.length;
    else {
      bytes[this.#size++] = 127;
      let rest = text.length - 127;
      for (; rest >= 128; rest = Math.floor(rest / 128)) bytes[this.#size++] = (rest % 128) | 128;
      bytes[this.#size++] = rest;
    }
    this.#size += bytes.write(text, this.#size, "latin1");
  }

  #reserve(size: number): void {
    const needed = this.#size + size;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#size);
    this.#bytes = grown;
  }
}
