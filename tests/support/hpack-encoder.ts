// An encoder of header lists (RFC 7541) that uses all that there is: both tables, Huffman code, changes of the size; the caller chooses.
import { CODE_LENGTHS } from "../../src/dataplane/http2/huffman.ts";
import { STATIC_TABLE } from "../../src/dataplane/http2/static-table.ts";

export interface EncodedField {
  readonly name: string;
  readonly value: string;
  /** Index it where possible; else a literal that the table gets, one that it does not get, or one that it must not get. */
  readonly as: "index" | "add" | "plain" | "never";
  readonly isHuffman: boolean;
}

/** Bits of each byte, as text. */
const codes: string[] = [];
{
  let code = 0;
  for (let bits = 1; bits <= 30; bits++) {
    code *= 2;
    for (const [symbol, length] of CODE_LENGTHS.entries()) {
      if (length !== bits) continue;
      codes[symbol] = code.toString(2).padStart(bits, "0");
      code++;
    }
  }
}

export class HpackEncoder {
  readonly #entries: { readonly name: string; readonly value: string }[] = [];
  #limit: number;
  #changes: number[] = [];

  constructor(limit = 4096) {
    this.#limit = limit;
  }

  /** Changes the size of the table at the beginning of the next block. */
  resize(limit: number): void {
    this.#changes.push(limit);
    this.#limit = limit;
    this.#evict();
  }

  encode(fields: readonly EncodedField[]): Buffer {
    const parts = this.#changes.map((limit) => integer(0x20, 5, limit));
    this.#changes = [];
    for (const field of fields) parts.push(...this.#field(field));
    return Buffer.concat(parts);
  }

  #field({ name, value, as, isHuffman }: EncodedField): Buffer[] {
    const all = [...STATIC_TABLE, ...this.#entries];
    const whole = all.findIndex((entry) => entry.name === name && entry.value === value) + 1;
    if (as === "index" && whole > 0) return [integer(0x80, 7, whole)];
    const index = all.findIndex((entry) => entry.name === name) + 1;
    const [first, bits] =
      as === "never" ? [0x10, 4] : as === "plain" ? [0, 4] : ([0x40, 6] as const);
    const parts = [integer(first, bits, index)];
    if (index === 0) parts.push(string(name, isHuffman));
    parts.push(string(value, isHuffman));
    if (first === 0x40) {
      this.#entries.unshift({ name, value });
      this.#evict();
    }
    return parts;
  }

  #evict(): void {
    const sizes = this.#entries.map(({ name, value }) => name.length + value.length + 32);
    let size = sizes.reduce((sum, one) => sum + one, 0);
    while (size > this.#limit) {
      size -= sizes.pop() ?? size;
      this.#entries.pop();
    }
  }
}

export function integer(first: number, bits: number, value: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.from([first | value]);
  const bytes = [first | most];
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/** Latin-1. */
export function string(text: string, isHuffman: boolean): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (!isHuffman) return Buffer.concat([integer(0, 7, bytes.length), bytes]);
  const bits = [...bytes].map((byte) => codes[byte]).join("");
  const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  const coded = Buffer.from((padded.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  return Buffer.concat([integer(0x80, 7, coded.length), coded]);
}
