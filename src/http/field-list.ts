// The fields of a response on its way to the client, names as written; `Headers` only once something asks for them; knows no status.
import { CONNECTION_FIELDS } from "./hop-by-hop.ts";
import { isFieldValue, isToken } from "./fields.ts";
import { conventional } from "./usual-case.ts";

/** What `new Headers` takes. */
export type FieldsInit = Headers | Iterable<readonly string[]> | Readonly<Record<string, string>>;

/** In order; a name may repeat. */
export class FieldList {
  #names: string[] = [];
  #values: string[] = [];
  /** Hold the fields once something has asked for them, in the place of the two lists. */
  #headers: Headers | null = null;
  /** The lines before that. */
  #spelling = "";

  /** Names of Headers get their usual case. Throws the TypeError of `new Headers` where a field is not valid. */
  constructor(init?: FieldsInit) {
    if (init === undefined) return;
    const pairs: Iterable<readonly string[]> =
      Symbol.iterator in init ? (init as Iterable<readonly string[]>) : Object.entries(init);
    const isLower = init instanceof Headers;
    for (const [name = "", value = ""] of pairs)
      this.append(isLower ? conventional(name) : name, String(value));
  }

  /** Of valid lines, each with CRLF. */
  static ofLines(lines: string): FieldList {
    const list = new FieldList();
    for (let at = 0; at < lines.length;) {
      const end = lines.indexOf("\r\n", at);
      const colon = lines.indexOf(":", at);
      list.#names.push(lines.slice(at, colon));
      list.#values.push(lines.slice(colon + 1, end).trim());
      at = end + 2;
    }
    return list;
  }

  /** `spelling`: lines with the order and the case of names. Takes the headers over. */
  static ofHeaders(headers: Headers, spelling = ""): FieldList {
    const list = new FieldList();
    list.#headers = headers;
    list.#spelling = spelling;
    return list;
  }

  /** Repeated fields are joined; null: absent. */
  get(name: string): string | null {
    if (this.#headers !== null) return this.#headers.get(name);
    let found: string | null = null;
    for (let at = 0; at < this.#names.length; at++) {
      if (!isSame(this.#names[at], name)) continue;
      const value = this.#values[at] ?? "";
      found = found === null ? value : `${found}, ${value}`;
    }
    return found;
  }

  has(name: string): boolean {
    if (this.#headers !== null) return this.#headers.has(name);
    return this.#names.some((known) => isSame(known, name));
  }

  /** Whether it is there, and not empty. */
  hasValue(name: string): boolean {
    if (this.#headers !== null) return (this.#headers.get(name) ?? "") !== "";
    return this.#names.some((known, at) => isSame(known, name) && this.#values[at] !== "");
  }

  /** In the place of the first field of this name. */
  set(name: string, value: string): void {
    if (this.#headers !== null) {
      this.#headers.set(name, value);
      return;
    }
    const at = this.#names.findIndex((known) => isSame(known, name));
    if (at < 0) return this.append(name, value);
    const valid = validValue(name, value);
    for (let last = this.#names.length - 1; last > at; last--)
      if (isSame(this.#names[last], name)) this.#remove(last);
    this.#names[at] = name;
    this.#values[at] = valid;
  }

  append(name: string, value: string): void {
    if (this.#headers !== null) {
      this.#headers.append(name, value);
      return;
    }
    const valid = validValue(name, value);
    this.#names.push(name);
    this.#values.push(valid);
  }

  delete(name: string): void {
    this.#headers?.delete(name);
    for (let at = this.#names.length - 1; at >= 0; at--)
      if (isSame(this.#names[at], name)) this.#remove(at);
  }

  #remove(at: number): void {
    this.#names.splice(at, 1);
    this.#values.splice(at, 1);
  }

  copy(): FieldList {
    if (this.#headers !== null)
      return FieldList.ofHeaders(new Headers(this.#headers), this.#spelling);
    const copy = new FieldList();
    copy.#names = [...this.#names];
    copy.#values = [...this.#values];
    return copy;
  }

  /** A change of them is one of this list, from then on. */
  get headers(): Headers {
    if (this.#headers === null) {
      this.#spelling = this.#ownLines();
      this.#headers = new Headers(this.pairs);
      this.#names = [];
      this.#values = [];
    }
    return this.#headers;
  }

  /** Null: nothing has asked for them. */
  get madeHeaders(): Headers | null {
    return this.#headers;
  }

  get pairs(): [string, string][] {
    if (this.#headers !== null) return [...this.#headers];
    return this.#names.map((name, at) => [name, this.#values[at] ?? ""]);
  }

  /** A line each, with CRLF, without those of a connection. */
  get lines(): string {
    return this.#headers === null ? this.#ownLines() : spelledLines(this.#headers, this.#spelling);
  }

  #ownLines(): string {
    let lines = "";
    for (let at = 0; at < this.#names.length; at++) {
      const name = this.#names[at] ?? "";
      if (!CONNECTION_FIELDS.has(name.toLowerCase()))
        lines = `${lines}${name}: ${this.#values[at] ?? ""}\r\n`;
    }
    return lines;
  }

  /** Whether the connection shall end with this response (RFC 9112 section 9.6). */
  get closes(): boolean {
    return this.get("connection") === "close";
  }
}

/** The headers as lines, in the order and with the names of `spelling` as far as they are there; then the others. */
export function spelledLines(headers: Headers, spelling: string): string {
  const left = Map.groupBy(headers, ([name]) => name);
  let lines = "";
  const add = (lower: string, name: string): void => {
    for (const [, value] of left.get(lower) ?? [])
      if (!CONNECTION_FIELDS.has(lower)) lines += `${name}: ${value}\r\n`;
    left.delete(lower);
  };
  for (let at = 0; at < spelling.length; at = spelling.indexOf("\r\n", at) + 2) {
    const name = spelling.slice(at, spelling.indexOf(":", at));
    add(name.toLowerCase(), name);
  }
  for (const lower of [...left.keys()]) add(lower, conventional(lower));
  return lines;
}

const isSame = (name: string | undefined, other: string): boolean =>
  name !== undefined &&
  name.length === other.length &&
  (name === other || name.toLowerCase() === other.toLowerCase());

function validValue(name: string, value: string): string {
  if (isToken(name) && isFieldValue(value)) return value;
  // With white space at its ends, or as no field can hold it, which throws.
  return new Headers([[name, value]]).get(name) ?? "";
}
