// The header fields of a request in their order, with names as received; knows no connection and no particular field.
import { type FieldName, fieldName } from "./field-name.ts";

const NO_NAMES: FieldName[] = [];

export class HeaderBlock {
  /** Of each field, in order; a name may repeat. */
  readonly names: readonly FieldName[];
  readonly values: readonly string[];
  #record: Record<string, string> | null = null;

  /** Takes the arrays over. */
  constructor(names: readonly FieldName[], values: readonly string[]) {
    this.names = names;
    this.values = values;
  }

  /** `record`: lower-case names; repeated fields are joined already. */
  static of(record: Record<string, string>): HeaderBlock {
    const names: FieldName[] = [];
    const values: string[] = [];
    for (const name in record) {
      names.push(fieldName(name));
      values.push(record[name] ?? "");
    }
    const block = new HeaderBlock(names, values);
    block.#record = record;
    return block;
  }

  /** `lower`: the name in lower case. Repeated fields are joined (RFC 9110 section 5.3); null: absent. */
  get(lower: string): string | null {
    const { names, values } = this;
    let found: string | null = null;
    for (let at = 0; at < names.length; at++) {
      if (names[at]?.lower !== lower) continue;
      const value = values[at] ?? "";
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
    const { names, values } = this;
    for (let at = 0; at < names.length; at++) {
      const { lower } = names[at] ?? { lower: "" };
      const value = values[at] ?? "";
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
      values.push(isMeant ? (value ?? "") : (this.values[at] ?? ""));
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
