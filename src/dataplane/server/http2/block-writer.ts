// Writes header blocks of HTTP/2 (RFC 7541), without a dynamic table: nothing of one response stays for the next; knows no stream.
import { CONNECTION_FIELDS } from "../../../http/hop-by-hop.ts";
import { isToken } from "../../../http/fields.ts";
import type { FieldPairs } from "../../../http/fields.ts";
import { valueBetween } from "../../upstream/response-head.ts";
import type { OutgoingHead } from "../client-stream.ts";
import { dateValue } from "../response-date.ts";
import { STATIC_NAMES, STATIC_TABLE } from "./static-table.ts";

/** Blanks at the ends pass: a `grpc-message` may have them. */
const NOT_A_VALUE = /[^\t -~\x80-\xff]/;

/** A changed size of the table: 0, which the table then always has (RFC 7541 section 6.3). */
const NO_TABLE = 0x20;
const STATUS_NAME = 8;

const statuses = new Map(
  STATIC_TABLE.flatMap(({ name, value }, at) =>
    name === ":status" ? [[Number(value), 0x81 + at] as const] : [],
  ),
);

/** A name as the beginning of a literal without indexing; empty for a field that HTTP/2 does not have. */
type NamePrefix = Uint8Array;

const NONE = new Uint8Array(0);
const prefixes = new Map<string, NamePrefix>();
const MAX_PREFIXES = 1000;
const MAX_NAME_LENGTH = 64;

/** `sent`: in any case. */
function prefixOf(sent: string): NamePrefix {
  const known = prefixes.get(sent);
  if (known !== undefined) return known;
  const prefix = makePrefix(sent.toLowerCase());
  if (prefixes.size >= MAX_PREFIXES) prefixes.clear();
  if (sent.length <= MAX_NAME_LENGTH) prefixes.set(sent, prefix);
  return prefix;
}

function makePrefix(name: string): NamePrefix {
  if (CONNECTION_FIELDS.has(name) || !isToken(name)) return NONE;
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

const DATE = prefixOf("date");
const LENGTH = prefixOf("content-length");
/** Of an integer. */
const MAX_INTEGER_BYTES = 6;

/** One for each thread: a block is sent before the next one is written. */
export class BlockWriter {
  #bytes = Buffer.allocUnsafeSlow(16_384);
  #size = 0;

  /** The block; valid until the next one begins. */
  get block(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  /** `isFirst`: of the connection. */
  begin(isFirst: boolean): void {
    this.#size = 0;
    if (isFirst) this.#bytes[this.#size++] = NO_TABLE;
  }

  /** A head with its fields; `length`: an additional Content-Length, -1: none. */
  head(head: OutgoingHead, length: number): void {
    const { status, lines = null } = head;
    this.status(status);
    // RFC 9110 section 8.6: no length with 204.
    const hasDate =
      lines !== null && status !== 204
        ? this.#lines(lines) || head.hasDate === true
        : this.#headers(head.headers, status === 204);
    if (!hasDate) this.#field(DATE, dateValue());
    if (length >= 0) this.#field(LENGTH, String(length));
  }

  status(status: number): void {
    this.#reserve(8);
    const known = statuses.get(status);
    if (known !== undefined) {
      this.#bytes[this.#size++] = known;
      return;
    }
    this.#bytes[this.#size++] = STATUS_NAME;
    this.#string(String(status));
  }

  /** Of valid fields; returns whether a Date was there, as far as that was looked at. */
  #lines(lines: string): boolean {
    for (let at = 0; at < lines.length;) {
      const end = lines.indexOf("\r\n", at);
      const colon = lines.indexOf(":", at);
      const prefix = prefixOf(lines.slice(at, colon));
      if (prefix.length > 0) this.#field(prefix, valueBetween(lines, colon + 1, end));
      at = end + 2;
    }
    return false;
  }

  #headers(headers: Headers, dropsLength: boolean): boolean {
    let hasDate = false;
    for (const [name, value] of headers) {
      const prefix = prefixOf(name);
      if (prefix === DATE) hasDate = true;
      if (prefix.length > 0 && !(dropsLength && prefix === LENGTH)) this.#field(prefix, value);
    }
    return hasDate;
  }

  /** Those of any origin: what is not valid, which no head may hold, is left out. */
  pairs(pairs: FieldPairs): void {
    for (const [name, value] of pairs) {
      const prefix = prefixOf(name);
      if (prefix.length > 0 && !NOT_A_VALUE.test(value)) this.#field(prefix, value);
    }
  }

  #field(prefix: NamePrefix, value: string): void {
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
