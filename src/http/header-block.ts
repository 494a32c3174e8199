// The header fields of a request in their order, with names as received; knows no connection and no particular field.
import { type FieldName, fieldName, usualName, type KnownFields } from "./field-name.ts";

const NO_NAMES: FieldName[] = [];
const NO_PLACES: FieldPlaces = { text: "", offsets: [], plainFrom: -1 };

/** Where fields stand in the text of their message, latin1. */
export interface FieldPlaces {
  readonly text: string;
  /** Of each value, without white space around it: its begin and its end. */
  readonly offsets: readonly number[];
  /** Begin of the first line, when each line is a name, a colon, one space and the value; else -1. */
  readonly plainFrom: number;
}

export class HeaderBlock implements KnownFields {
  /** Of each field, in order; a name may repeat. */
  readonly names: readonly FieldName[];
  /** Null: the fields are parts of a text. */
  readonly #values: readonly string[] | null;
  readonly #places: FieldPlaces;
  #record: Record<string, string> | null = null;
  /** Whether those below are set: by the parser, or by `readKnownFields`. */
  isRead = false;
  hostField: string | null = null;
  connectionField: string | null = null;
  transferEncoding: string | null = null;
  contentLength: string | null = null;
  upgrade: string | null = null;
  cookie: string | null = null;
  via: string | null = null;
  cdnLoop: string | null = null;
  userAgent: string | null = null;
  expect: string | null = null;
  te: string | null = null;
  /** Fields of that name, where the parser has set the others. */
  cookies = 0;
  /** Whether several requests have this very block. */
  isShared = false;
  /** What a writer made of a shared block last; null: nothing yet. */
  written: object | null = null;

  /** Takes the arrays over. */
  constructor(names: readonly FieldName[], values: readonly string[] | FieldPlaces) {
    this.names = names;
    const isText = "text" in values;
    this.#values = isText ? null : values;
    this.#places = isText ? values : NO_PLACES;
  }

  /** `at`: of the field, from 0. */
  valueAt(at: number): string {
    if (this.#values !== null) return this.#values[at] ?? "";
    const { text, offsets } = this.#places;
    return text.slice(offsets[2 * at], offsets[2 * at + 1]);
  }

  /** The lines of fields as for HTTP/1.1, each after a line break. */
  lines(from: number, to: number): string {
    const { text, offsets, plainFrom } = this.#places;
    if (plainFrom >= 0) {
      const begin = from === 0 ? plainFrom - 2 : offsets[2 * from - 1];
      return text.slice(begin, offsets[2 * to - 1]);
    }
    let lines = "";
    for (let at = from; at < to; at++)
      lines = `${lines}${this.names[at]?.prefix ?? ""}${this.valueAt(at)}`;
    return lines;
  }

  /** Bytes of all lines. */
  get size(): number {
    const { names } = this;
    const { offsets, plainFrom } = this.#places;
    if (plainFrom >= 0) return (offsets[2 * names.length - 1] ?? 0) + 2 - plainFrom;
    let size = 0;
    for (let at = 0; at < names.length; at++)
      size += (names[at]?.lower.length ?? 0) + this.valueAt(at).length + 4;
    return size;
  }

  /** `record`: lower-case names, which targets get in their usual case; repeated fields are joined already. */
  static of(record: Record<string, string>): HeaderBlock {
    const names: FieldName[] = [];
    const values: string[] = [];
    for (const name in record) {
      names.push(usualName(name));
      values.push(record[name] ?? "");
    }
    const block = new HeaderBlock(names, values);
    block.#record = record;
    return block;
  }

  /** `lower`: the name in lower case. Repeated fields are joined (RFC 9110 section 5.3); null: absent. */
  get(lower: string): string | null {
    const { names } = this;
    let found: string | null = null;
    for (let at = 0; at < names.length; at++) {
      if (names[at]?.lower !== lower) continue;
      const value = this.valueAt(at);
      found = found === null ? value : joined(lower, found, value);
    }
    return found;
  }

  /** By lower-case name, repeated fields joined. Made on first use; must not be changed. */
  get record(): Readonly<Record<string, string>> {
    this.#record ??= this.#toRecord();
    return this.#record;
  }

  #toRecord(): Record<string, string> {
    // Without a prototype: clients name fields as they like.
    const record = Object.create(null) as Record<string, string>;
    const { names } = this;
    for (let at = 0; at < names.length; at++) {
      const { lower } = names[at] ?? { lower: "" };
      const value = this.valueAt(at);
      const known = record[lower];
      record[lower] = known === undefined ? value : joined(lower, known, value);
    }
    return record;
  }

  /** The same with one field of this lower-case name, in the place of the first; `value` null: with none. */
  with(lower: string, value: string | null): HeaderBlock {
    const names: FieldName[] = [];
    const values: string[] = [];
    let isMissing = value !== null;
    for (let at = 0; at < this.names.length; at++) {
      const name = this.names[at];
      if (name === undefined) continue;
      const isMeant = name.lower === lower;
      if (isMeant && !isMissing) continue;
      names.push(name);
      values.push(isMeant ? (value ?? "") : this.valueAt(at));
      if (isMeant) isMissing = false;
    }
    if (isMissing) {
      names.push(fieldName(lower));
      values.push(value ?? "");
    }
    return new HeaderBlock(names, values);
  }
}

export const EMPTY_BLOCK = new HeaderBlock(NO_NAMES, []);

/** RFC 9110 section 5.3; RFC 6265 section 5.4 for cookies, which HTTP/2 splits. */
export const joined = (lower: string, before: string, value: string): string =>
  `${before}${lower === "cookie" ? "; " : ", "}${value}`;
