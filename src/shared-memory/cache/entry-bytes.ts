// The bytes of an entry before its body: lengths, key, variant, resource, tags, head; knows no memory.

/** What they are made of. */
interface Texts {
  readonly key: string;
  readonly variant: string;
  readonly resource: string;
  readonly tags: readonly string[];
  readonly head: Uint8Array;
}

const PARTS = { key: 0, variant: 1, resource: 2, tags: 3 } as const;
/** Four lengths of texts in bytes. */
const LENGTHS_BYTES = 16;
/** Of all parts together; longer ones are not stored. */
export const MAX_PREFIX_BYTES = 1_048_576;
/** Not in any tag, because it is not in any header. */
const TAG_SEPARATOR = "\n";

/** Null: too long. */
export function encodePrefix({ key, variant, resource, tags, head }: Texts): Buffer | null {
  const texts = [key, variant, resource, tags.join(TAG_SEPARATOR)];
  const lengths = texts.map((text) => Buffer.byteLength(text));
  let at = LENGTHS_BYTES;
  const total = lengths.reduce((sum, length) => sum + length, at + head.byteLength);
  if (total > MAX_PREFIX_BYTES) return null;
  const bytes = Buffer.allocUnsafe(total);
  for (const [part, text] of texts.entries()) {
    bytes.writeUInt32LE(lengths[part] ?? 0, part * 4);
    at += bytes.write(text, at);
  }
  bytes.set(head, at);
  return bytes;
}

/** Reads such bytes; texts of bytes that a writer has changed meanwhile are arbitrary. */
export class PrefixReader {
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get byteLength(): number {
    return this.#bytes.byteLength;
  }

  get key(): string {
    return this.#text(PARTS.key);
  }

  get variant(): string {
    return this.#text(PARTS.variant);
  }

  get resource(): string {
    return this.#text(PARTS.resource);
  }

  get tags(): string[] {
    const text = this.#text(PARTS.tags);
    return text === "" ? [] : text.split(TAG_SEPARATOR);
  }

  get head(): Uint8Array {
    return this.#bytes.subarray(this.#end(PARTS.tags));
  }

  #text(part: number): string {
    return this.#bytes.toString("utf8", this.#end(part - 1), this.#end(part));
  }

  /** Where a part ends; -1: where the first one begins. */
  #end(part: number): number {
    let end = LENGTHS_BYTES;
    for (let n = 0; n <= part; n++) end += this.#bytes.readUInt32LE(n * 4);
    return Math.min(end, this.#bytes.byteLength);
  }
}
