// DER values, written by the gateway and read back by an independent parser.
import fc from "fast-check";
import * as der from "../../../src/crypto/der.ts";
import { defineTarget, mustEqual } from "../target.ts";

/** Tag and either bytes or nested values. */
type Value = readonly [number, string | readonly Value[]];

interface Input {
  readonly depth: number;
  readonly bytes: Uint8Array;
  readonly length: number;
  readonly objectId: readonly number[];
  /** Seconds. */
  readonly time: number;
}

export const target = defineTarget<Input>({
  name: "der",
  share: 40,
  inputs: fc.record({
    depth: fc.nat(4),
    bytes: fc.uint8Array({ maxLength: 8 }),
    length: fc.oneof(fc.nat(300), fc.constantFrom(127, 128, 255, 256, 65_535, 65_536)),
    objectId: fc
      .tuple(fc.nat(2), fc.nat(39), fc.array(fc.nat(2 ** 31 - 1), { maxLength: 5 }))
      .map(([first, second, rest]) => [first, second, ...rest]),
    time: fc.integer({ min: 0, max: 253_402_300_799 }),
  }),
  check({ depth, bytes, length, objectId, time }) {
    const long = Buffer.alloc(length, 5);
    let written = der.sequence(
      ...[der.octets(long), der.integer(bytes), der.bits(bytes, 3), der.booleanTrue()],
      ...[der.objectId(objectId.join(".")), der.timestamp(time * 1000), der.implicitTag(2, bytes)],
    );
    for (let at = 0; at < depth; at++) written = der.contextTag(at, der.set(written));
    let read = valuesOf(written)[0]!;
    for (let at = depth - 1; at >= 0; at--) {
      const [tag, inside] = read;
      mustEqual(tag, 0xa0 + at, "number");
      read = ((inside as Value[])[0]![1] as Value[])[0]!;
    }
    const hex = Buffer.from(bytes).toString("hex");
    const [octets, integer, bits, yes, id, when, plain] = read[1] as [
      Value,
      Value,
      Value,
      Value,
      Value,
      Value,
      Value,
    ];
    mustEqual(
      [octets, integer, bits, yes, plain],
      [
        [4, long.toString("hex")],
        [2, hex],
        [3, `03${hex}`],
        [1, "ff"],
        [0x82, hex],
      ],
      "values",
    );
    mustEqual(idOf(id[1] as string), objectId, "object identifier");
    mustEqual(timeOf(when), time, "time");
  },
});

function valuesOf(bytes: Buffer): Value[] {
  const values: Value[] = [];
  let at = 0;
  while (at < bytes.length) {
    const tag = bytes[at]!;
    const first = bytes[at + 1]!;
    const size = first < 0x80 ? 0 : first - 0x80;
    const length = size === 0 ? first : bytes.readUIntBE(at + 2, size);
    // X.690 section 10.1: the shortest form.
    if (size > 0 && length < (size === 1 ? 0x80 : 256 ** (size - 1)))
      throw new Error("a length that is too long");
    const content = bytes.subarray(at + 2 + size, at + 2 + size + length);
    if (content.length !== length) throw new Error("a value that is cut off");
    values.push([tag, (tag & 0x20) === 0 ? content.toString("hex") : valuesOf(content)]);
    at += 2 + size + length;
  }
  return values;
}

function idOf(hex: string): number[] {
  const numbers: number[] = [];
  let value = 0;
  for (const byte of Buffer.from(hex, "hex")) {
    value = value * 128 + (byte & 127);
    if (byte >= 128) continue;
    numbers.push(value);
    value = 0;
  }
  const [both = 0, ...rest] = numbers;
  const first = Math.min(Math.floor(both / 40), 2);
  return [first, both - first * 40, ...rest];
}

/** RFC 5280 section 4.1.2.5.1: two digits from 50 on are of the last century. */
function timeOf([tag, hex]: Value): number {
  const digits = Buffer.from(hex as string, "hex").toString();
  const year = tag === 0x18 ? digits : `${Number(digits.slice(0, 2)) < 50 ? "20" : "19"}${digits}`;
  const text = year.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
  return Date.parse(text) / 1000;
}
