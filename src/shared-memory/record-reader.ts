// Finds records of one version by key in memory that another thread appends to; knows nothing of what records mean.

/** A handle on one version of a table of records. */
export interface RecordTable {
  /** Positions of records are stable within an epoch, whatever the buffer. */
  readonly epoch: number;
  readonly version: number;
  /**
   * Null: the buffer of the version before. The engine counts a buffer as new memory of each thread that gets it, also when the
   * thread has it already: with 100,000 routes each change would make every worker collect its garbage.
   */
  readonly buffer: SharedArrayBuffer | null;
}

/** Words of the buffer before the slots. */
export const header = { slots: 0, length: 4 } as const;

/**
 * A record is these words, then its links, then its text. It is visible in versions from `from` until before `until`; 0: no
 * end. Positions of records and links are words from the start of the heap, which follows the slots; 0 is none.
 */
export const record = { from: 0, until: 1, bytes: 2, links: 3, length: 4 } as const;

/** A link connects a key with a record. Links with the same hash form a chain, newest first; a slot holds its head. */
export const link = { hash: 0, next: 1, record: 2, length: 3 } as const;

/** The key of a record: a text, or a text of a kind, which saves concatenating the two. */
export type RecordKey = string | readonly [kind: number, text: string];

/** Two keys may have the same hash: the reader compares the record. */
export const hashOf = (key: RecordKey): number =>
  (typeof key === "string" ? Bun.hash.xxHash32(key) : Bun.hash.xxHash32(key[1], key[0])) | 0;

/** The slot with the chain of a hash, else the empty one for it. */
export function slotOf(
  words: Int32Array,
  { slots, heap }: { readonly slots: number; readonly heap: number },
  hash: number,
): number {
  const mask = slots - 1;
  // Mixed, because the low bits of similar hashes would be adjacent.
  for (let slot = (hash ^ (hash >>> 15)) & mask; ; slot = (slot + 1) & mask) {
    const head = Atomics.load(words, header.length + slot);
    if (head === 0 || words[heap + head + link.hash] === hash) return header.length + slot;
  }
}

/** Reads without a lock: records that are being added have a later version. */
export class RecordReader {
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  readonly #layout: { readonly slots: number; readonly heap: number };

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
    this.#bytes = Buffer.from(buffer);
    const slots = this.#words[header.slots] ?? 0;
    this.#layout = { slots, heap: header.length + slots };
  }

  /** The newest record of the version under the key for which `matches` holds; 0: none. */
  find(key: RecordKey, version: number, matches: (record: number) => boolean): number {
    const words = this.#words;
    const { heap } = this.#layout;
    const hash = hashOf(key);
    let at = Atomics.load(words, slotOf(words, this.#layout, hash));
    while (at !== 0) {
      const found = words[heap + at + link.record] ?? 0;
      if (this.isVisible(found, version) && matches(found)) return found;
      at = words[heap + at + link.next] ?? 0;
    }
    return 0;
  }

  /** The text of a record. */
  text(found: number): string {
    const start = this.#layout.heap + found;
    const links = this.#words[start + record.links] ?? 0;
    const from = (start + record.length + links * link.length) * 4;
    return this.#bytes.toString("utf8", from, from + (this.#words[start + record.bytes] ?? 0));
  }

  /** Whether the record is visible in the version. */
  isVisible(found: number, version: number): boolean {
    const start = this.#layout.heap + found;
    // Readers never use the version of a change that was undone.
    if ((this.#words[start + record.from] ?? 0) > version) return false;
    const until = Atomics.load(this.#words, start + record.until);
    return until === 0 || until > version;
  }
}

/** The reader of a table; `previous`: that of the version before. */
export function readerOf(table: RecordTable, previous: RecordReader | null): RecordReader {
  if (table.buffer !== null) return new RecordReader(table.buffer);
  if (previous === null) throw new Error("records arrived without their buffer");
  return previous;
}
