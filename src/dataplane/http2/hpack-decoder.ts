// Decodes header lists (RFC 7541): the dynamic table, integers, strings; knows no request.
import { CODE, ConnectionError } from "./frames.ts";
import { decodedBound, decodeHuffman } from "./huffman.ts";
import { STATIC_TABLE, type TableEntry } from "./static-table.ts";

/** RFC 7541 section 4.1. */
const ENTRY_BYTES = 32;
/** The limit that RFC 7541 section 5.1 leaves to implementations. */
const MAX_INTEGER = 0x0fffffff;
const DEFAULT_TABLE_BYTES = 4096;

/** Gets each field, latin1. `isValid`: the value (RFC 9113 section 8.2.1), looked at once for all that refer to it. */
export type FieldSink = (name: string, value: string, isValid: boolean) => void;

/** A line break would become a field of an HTTP/1.1 request. */
const NOT_A_VALUE = /[^\t -~\x80-\xff]|^[ \t]|[ \t]$/;

const failed = (): ConnectionError =>
  new ConnectionError(CODE.compression, "a header block of HTTP/2 is not valid");

const names = new Map<string, string>();
const MAX_NAMES = 1000;
const MAX_NAME_LENGTH = 64;

/** One string for equal names: what looks it up needs no hash of its own. */
function sameName(name: string): string {
  const known = names.get(name);
  if (known !== undefined) return known;
  if (name.length > MAX_NAME_LENGTH) return name;
  if (names.size >= MAX_NAMES) names.clear();
  names.set(name, name);
  return name;
}

const scratch = Buffer.allocUnsafeSlow(65_536);
const EMPTY = Buffer.alloc(0);

export class HpackDecoder {
  /** Changes with the table. */
  version = 0;
  /** Whether the last block has referred to the table, or changed its size. */
  dependsOnTable = false;
  /** Gets what blocks add to the table; null: nothing does. */
  added: TableEntry[] | null = null;
  /** A ring, newest first from `#first` on. */
  readonly #entries: (TableEntry | undefined)[];
  readonly #mask: number;
  #first = 0;
  #count = 0;
  #bytes = 0;
  #limit: number;
  readonly #maxBytes: number;
  #block: Buffer = EMPTY;
  #at = 0;
  #end = 0;

  /** `maxBytes`: SETTINGS_HEADER_TABLE_SIZE. */
  constructor(maxBytes: number = DEFAULT_TABLE_BYTES) {
    this.#maxBytes = maxBytes;
    this.#limit = maxBytes;
    let slots = 1;
    while (slots * ENTRY_BYTES <= maxBytes) slots *= 2;
    this.#entries = new Array<TableEntry | undefined>(slots);
    this.#mask = slots - 1;
  }

  /** Decodes a whole block: `bytes` from `start` to `end`. Throws ConnectionError. */
  decode(
    bytes: Buffer,
    { start, end }: { readonly start: number; readonly end: number },
    sink: FieldSink,
  ): void {
    this.#block = bytes;
    this.#at = start;
    this.#end = end;
    this.dependsOnTable = false;
    let mayResize = true;
    while (this.#at < this.#end) {
      const first = bytes[this.#at] ?? 0;
      if (first >= 0x80) {
        const { name, value, isValid } = this.#entry(this.#integer(0x7f));
        sink(name, value, isValid);
      } else if (first >= 0x40) {
        const entry = this.#literal(0x3f);
        this.added?.push(entry);
        this.add(entry);
        sink(entry.name, entry.value, entry.isValid);
      } else if (first >= 0x20) {
        // RFC 7541 section 4.2: at the beginning of a block.
        if (!mayResize) throw failed();
        this.#resize(this.#integer(0x1f));
        continue;
      } else {
        const { name, value, isValid } = this.#literal(0x0f);
        sink(name, value, isValid);
      }
      mayResize = false;
    }
    this.#block = EMPTY;
  }

  #literal(mask: number): TableEntry {
    const index = this.#integer(mask);
    const name = index === 0 ? sameName(this.#string()) : this.#entry(index).name;
    const value = this.#string();
    return { name, value, isValid: !NOT_A_VALUE.test(value) };
  }

  #entry(index: number): TableEntry {
    if (index > STATIC_TABLE.length) this.dependsOnTable = true;
    const entry =
      index <= STATIC_TABLE.length
        ? STATIC_TABLE[index - 1]
        : index - STATIC_TABLE.length <= this.#count
          ? this.#entries[(this.#first + index - STATIC_TABLE.length - 1) & this.#mask]
          : undefined;
    if (entry === undefined) throw failed();
    return entry;
  }

  #integer(mask: number): number {
    let value = (this.#block[this.#at++] ?? 0) & mask;
    if (value < mask) return value;
    for (let shift = 0; ; shift += 7) {
      if (this.#at >= this.#end) throw failed();
      const byte = this.#block[this.#at++] ?? 0;
      value += (byte & 0x7f) * 2 ** shift;
      if (value > MAX_INTEGER || shift > 28) throw failed();
      if (byte < 0x80) return value;
    }
  }

  #string(): string {
    if (this.#at >= this.#end) throw failed();
    const isCoded = (this.#block[this.#at] ?? 0) >= 0x80;
    const size = this.#integer(0x7f);
    const start = this.#at;
    this.#at += size;
    if (this.#at > this.#end) throw failed();
    if (!isCoded) return this.#block.latin1Slice(start, this.#at);
    const bound = decodedBound(size);
    const into = bound <= scratch.length ? scratch : Buffer.allocUnsafeSlow(bound);
    const decoded = decodeHuffman(this.#block, { start, end: this.#at }, into);
    if (decoded < 0) throw failed();
    return into.latin1Slice(0, decoded);
  }

  #resize(limit: number): void {
    if (limit > this.#maxBytes) throw failed();
    this.version++;
    this.dependsOnTable = true;
    this.#limit = limit;
    this.#evict(limit);
  }

  /** As a block does that was decoded before. */
  add(entry: TableEntry): void {
    const size = sizeOf(entry);
    this.version++;
    // RFC 7541 section 4.4: one that does not fit empties the table.
    this.#evict(this.#limit - size);
    if (size > this.#limit) return;
    this.#first = (this.#first - 1) & this.#mask;
    this.#entries[this.#first] = entry;
    this.#count++;
    this.#bytes += size;
  }

  #evict(toBytes: number): void {
    while (this.#count > 0 && this.#bytes > toBytes) {
      this.#count--;
      const at = (this.#first + this.#count) & this.#mask;
      const entry = this.#entries[at];
      this.#entries[at] = undefined;
      if (entry !== undefined) this.#bytes -= sizeOf(entry);
    }
  }
}

const sizeOf = ({ name, value }: TableEntry): number => name.length + value.length + ENTRY_BYTES;
