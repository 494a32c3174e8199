// Finds records by key in memory that another thread appends to, as of one version; knows nothing of what records mean.

/** What a thread needs to read one version of a table of records. */
export interface RecordTable {
  /** Where a record is stays the same within an epoch, whatever the buffer. */
  readonly epoch: number;
  readonly version: number;
  readonly buffer: SharedArrayBuffer;
}

/** Words of the buffer before the slots. */
export const header = { slots: 0, length: 4 } as const;

/**
 * A record is these words, then its links, then its text. It is there for versions from `from` until before `until`; 0: no
 * end. Positions of records and links are words from the start of the heap, which follows the slots; 0 is nowhere.
 */
export const record = { from: 0, until: 1, bytes: 2, links: 3, length: 4 } as const;

/** A link hangs a record on a key. Links with one hash are a chain, the newest first; a slot holds where it begins. */
export const link = { hash: 0, next: 1, record: 2, length: 3 } as const;

/** What a record is found by: a text, or one of several kinds of them, which spares joining the two. */
export type RecordKey = string | readonly [kind: number, text: string];

/** One hash for each key. That two keys share one is for the reader to notice. */
export const hashOf = (key: RecordKey): number =>
  (typeof key === "string" ? Bun.hash.xxHash32(key) : Bun.hash.xxHash32(key[1], key[0])) | 0;

/** The slot of a hash: the one with its chain, else the empty one where its chain would begin. */
export function slotOf(
  words: Int32Array,
  { slots, heap }: { readonly slots: number; readonly heap: number },
  hash: number,
): number {
  const mask = slots - 1;
  // The low bits of neighbours would lie side by side.
  for (let slot = (hash ^ (hash >>> 15)) & mask; ; slot = (slot + 1) & mask) {
    const head = Atomics.load(words, header.length + slot);
    if (head === 0 || words[heap + head + link.hash] === hash) return header.length + slot;
  }
}

/** Reads without a lock: what it sees of records that are being added is that they are of a later version. */
export class RecordReader {
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  readonly #place: { readonly slots: number; readonly heap: number };

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
    this.#bytes = Buffer.from(buffer);
    const slots = this.#words[header.slots] ?? 0;
    this.#place = { slots, heap: header.length + slots };
  }

  /** The newest record of the version under the key for which `matches` holds; 0: there is none. */
  find(key: RecordKey, version: number, matches: (record: number) => boolean): number {
    const words = this.#words;
    const { heap } = this.#place;
    const hash = hashOf(key);
    let at = Atomics.load(words, slotOf(words, this.#place, hash));
    while (at !== 0) {
      const found = words[heap + at + link.record] ?? 0;
      if (this.isThere(found, version) && matches(found)) return found;
      at = words[heap + at + link.next] ?? 0;
    }
    return 0;
  }

  /** What was added as this record. */
  text(found: number): string {
    const start = this.#place.heap + found;
    const links = this.#words[start + record.links] ?? 0;
    const from = (start + record.length + links * link.length) * 4;
    return this.#bytes.toString("utf8", from, from + (this.#words[start + record.bytes] ?? 0));
  }

  /** Whether the record is one of the version. */
  isThere(found: number, version: number): boolean {
    const start = this.#place.heap + found;
    // A version of a change that was taken back is never asked for.
    if ((this.#words[start + record.from] ?? 0) > version) return false;
    const until = Atomics.load(this.#words, start + record.until);
    return until === 0 || until > version;
  }
}
