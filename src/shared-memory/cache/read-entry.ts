// An entry of a shared cache as one worker has read it; knows no memory.
import type { CacheEntry } from "../../pdk/cache-store.ts";

interface BodyReader<Head> {
  bodyOf(read: ReadEntry<Head>): Uint8Array | null;
}

/** An entry that this worker has read, of one state of its block. Lookups share it. */
export class ReadEntry<Head> implements CacheEntry<Head> {
  readonly block: number;
  readonly sequence: number;
  readonly key: string;
  readonly head: Head;
  readonly bodyLength: number;
  readonly isSoftPurged: boolean;
  /** A copy that was made for an earlier request. */
  shortBody: Uint8Array | null = null;
  readonly #reader: BodyReader<Head>;

  constructor(
    reader: BodyReader<Head>,
    read: Pick<ReadEntry<Head>, "block" | "sequence" | "key" | "head" | "bodyLength">,
    isSoftPurged = false,
  ) {
    this.#reader = reader;
    this.block = read.block;
    this.sequence = read.sequence;
    this.key = read.key;
    this.head = read.head;
    this.bodyLength = read.bodyLength;
    this.isSoftPurged = isSoftPurged;
  }

  /** Another one, because lookups of other requests may still hold this. */
  softPurged(): ReadEntry<Head> {
    const soft = new ReadEntry(this.#reader, this, true);
    soft.shortBody = this.shortBody;
    return soft;
  }

  body(): Uint8Array | null {
    return this.#reader.bodyOf(this);
  }
}
