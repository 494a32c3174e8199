// Header lists of HTTP/2 in every form that RFC 7541 has: decoded as they were, and changed bytes are decoded or refused alike.
import fc from "fast-check";
import { ConnectionError } from "../../../src/dataplane/http2/frames.ts";
import { HpackDecoder } from "../../../src/dataplane/http2/hpack-decoder.ts";
import { type EncodedField, HpackEncoder } from "../../support/hpack-encoder.ts";
import { edited, edits, type Edit } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly tableBytes: number;
  readonly blocks: readonly {
    /** Of the table, in parts of what was announced. */
    readonly sizes: readonly number[];
    readonly fields: readonly EncodedField[];
  }[];
  readonly changes: readonly Edit[];
}

const text = (characters: string, maxLength: number) =>
  fc.array(fc.constantFrom(...characters), { maxLength }).map((all) => all.join(""));
const value = fc.oneof(
  fc.constantFrom("", "GET", "/", "gzip, deflate", "200"),
  text("abcXYZ019 /;=%&~\x80\xff\t", 30),
  text("z", 5).map((some) => some.repeat(40)),
);
const field = fc.record<EncodedField>({
  name: fc.oneof(
    fc.constantFrom(":method", ":path", ":status", "cookie", "x-a", "x-b", "x-c", "content-type"),
    text("abc-", 8),
  ),
  value,
  as: fc.constantFrom("index", "index", "add", "add", "plain", "never"),
  isHuffman: fc.boolean(),
});

export const target = defineTarget<Input>({
  name: "hpack",
  share: 60,
  inputs: fc.record({
    tableBytes: fc.constantFrom(0, 32, 64, 100, 256, 4096),
    blocks: fc.array(
      fc.record({
        sizes: fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 2 }),
        fields: fc.array(field, { maxLength: 8 }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    changes: edits(2),
  }),
  check({ tableBytes, blocks, changes }) {
    const encoder = new HpackEncoder(tableBytes);
    const encoded = blocks.map(({ sizes, fields }) => {
      for (const size of sizes) encoder.resize(Math.floor((size * tableBytes) / 1000));
      return encoder.encode(fields);
    });
    const decoder = new HpackDecoder(tableBytes);
    for (const [at, { fields }] of blocks.entries())
      mustEqual(
        decoded(decoder, encoded[at] ?? Buffer.alloc(0)),
        fields.map(({ name, value: its }) => [name, its]),
        `block ${at}`,
      );
    if (changes.length === 0) return;
    const one = new HpackDecoder(tableBytes);
    const other = new HpackDecoder(tableBytes);
    for (const bytes of encoded.map((block) => edited(block, changes))) {
      const first = decoded(one, bytes);
      // Within other bytes, where it neither begins nor ends.
      const wrapped = Buffer.concat([Buffer.alloc(3, 0xff), bytes, Buffer.alloc(3, 0x82)]);
      mustEqual(decoded(other, wrapped, { start: 3, end: 3 + bytes.length }), first, "elsewhere");
      if (first === null) return;
      const size = first.reduce((sum, [name = "", its = ""]) => sum + name.length + its.length, 0);
      // A byte stands for at most one field of the table, or for eight fifths of a byte of a string.
      must(size <= bytes.length * (tableBytes + 60), "a list is longer than its block allows");
    }
  },
});

/** Null: refused. */
function decoded(
  decoder: HpackDecoder,
  bytes: Buffer,
  part = { start: 0, end: bytes.length },
): string[][] | null {
  const fields: string[][] = [];
  try {
    decoder.decode(bytes, part, (name, its) => fields.push([name, its]));
    return fields;
  } catch (error) {
    if (error instanceof ConnectionError) return null;
    throw error;
  }
}
