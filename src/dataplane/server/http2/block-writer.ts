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

/** A name of a field. */
interface FieldName {
  /** The beginning of a literal without indexing; empty for a field that HTTP/2 does not have. */
  readonly prefix: Uint8Array;
  readonly kind: "date" | "length" | "alt-svc" | "other";
}

const NONE = new Uint8Array(0);
const names = new Map<string, FieldName>();
const MAX_NAMES = 1000;
const MAX_NAME_LENGTH = 64;

/** `sent`: in any case. */
function nameOf(sent: string): FieldName {
  const known = names.get(sent);
  if (known !== undefined) return known;
  const lower = sent.toLowerCase();
  const kind =
    lower === "content-length"
      ? "length"
      : lower === "date" || lower === "alt-svc"
        ? lower
        : "other";
  const name: FieldName = { prefix: prefixOf(lower), kind };
  if (names.size >= MAX_NAMES) names.clear();
  if (sent.length <= MAX_NAME_LENGTH) names.set(sent, name);
  return name;
}

function prefixOf(name: string): Uint8Array {
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

  /**
   * A head with its fields. `length`: an additional Content-Length, -1: none. `altSvc`: a line in the place of what the target
   * announces; empty: there is none.
   */
  head(head: OutgoingHead, length: number, altSvc: string): void {
    const { status, lines = null } = head;
    this.status(status);
    const hasAltSvc = altSvc !== "";
    // RFC 9110 section 8.6: no length with 204.
    const hasDate =
      lines !== null && status !== 204
        ? this.#lines(lines, hasAltSvc)
        : this.#headers(head.headers, { hasAltSvc, dropsLength: status === 204 });
    if (hasAltSvc) this.#lines(altSvc, false);
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

  /** Of valid fields. Returns whether a Date was there. */
  #lines(lines: string, hasAltSvc: boolean): boolean {
    let hasDate = false;
    for (let at = 0; at < lines.length;) {
      const end = lines.indexOf("\r\n", at);
      const colon = lines.indexOf(":", at);
      const { prefix, kind } = nameOf(lines.slice(at, colon));
      if (kind === "date") hasDate = true;
      const isSent = prefix.length > 0 && !(hasAltSvc && kind === "alt-svc");
      if (isSent) this.#field(prefix, valueBetween(lines, colon + 1, end));
      at = end + 2;
    }
    return hasDate;
  }

  #headers(
    headers: Headers,
    { hasAltSvc, dropsLength }: { readonly hasAltSvc: boolean; readonly dropsLength: boolean },
  ): boolean {
    let hasDate = false;
    for (const [name, value] of headers) {
      const { prefix, kind } = nameOf(name);
      if (kind === "date") hasDate = true;
      const isDropped = (dropsLength && kind === "length") || (hasAltSvc && kind === "alt-svc");
      if (prefix.length > 0 && !isDropped) this.#field(prefix, value);
    }
    return hasDate;
  }

  /** Those of any origin: what is not valid, which no head may hold, is left out. */
  pairs(pairs: FieldPairs): void {
    for (const [name, value] of pairs) {
      const { prefix } = nameOf(name);
      if (prefix.length > 0 && !NOT_A_VALUE.test(value)) this.#field(prefix, value);
    }
  }

  #field(prefix: Uint8Array, value: string): void {
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
