// HPACK as the npm package hpack.js has it, which shares nothing with ours or with Bun's and Node's; knows no connection.
// @ts-expect-error It has no types.
import library from "hpack.js";

export interface HpackField {
  readonly name: string;
  readonly value: string;
  /** Default: true. */
  readonly incremental?: boolean;
  readonly huffman?: boolean;
  readonly neverIndex?: boolean;
}

interface Compressor {
  /** A block that begins with the table's size: 0, then its own. */
  reset(): void;
  write(fields: readonly HpackField[]): void;
  read(): Buffer | null;
}

interface Decompressor {
  write(block: Buffer): void;
  execute(): void;
  read(): HpackField | null;
}

interface Library {
  readonly compressor: { create(options: { table: { maxSize: number } }): Compressor };
  readonly decompressor: { create(options: { table: { maxSize: number } }): Decompressor };
}

const { compressor, decompressor } = library as Library;

export class HpackJsEncoder {
  readonly #compressor: Compressor;

  /** `tableBytes`: at most what the peer allows. */
  constructor(tableBytes: number) {
    this.#compressor = compressor.create({ table: { maxSize: tableBytes } });
  }

  /** `resets`: the block begins with an empty table. The first one must. */
  encode(fields: readonly HpackField[], resets: boolean): Buffer {
    if (resets) this.#compressor.reset();
    this.#compressor.write(fields);
    const parts: Buffer[] = [];
    for (let part = this.#compressor.read(); part !== null; part = this.#compressor.read())
      parts.push(part);
    return Buffer.concat(parts);
  }
}

export class HpackJsDecoder {
  readonly #decompressor = decompressor.create({ table: { maxSize: 4096 } });

  decode(block: Buffer): [name: string, value: string][] {
    this.#decompressor.write(block);
    this.#decompressor.execute();
    const fields: [string, string][] = [];
    for (let one = this.#decompressor.read(); one !== null; one = this.#decompressor.read())
      fields.push([one.name, one.value]);
    return fields;
  }
}
