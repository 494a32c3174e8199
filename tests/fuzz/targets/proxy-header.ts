// PROXY headers of both versions: they round-trip with any split, and any other bytes are a valid header or an error.
import { isIP } from "node:net";
import fc from "fast-check";
import { readProxyHeader, writeProxyHeader } from "../../../src/net/proxy-protocol.ts";
import { edited, edits, type Edit, mustSettle } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface End {
  readonly address: string;
  readonly port: number;
}

interface Input {
  readonly version: "v1" | "v2";
  readonly ends: { readonly source: End; readonly destination: End } | null;
  readonly changes: readonly Edit[];
  /** Bytes of the client after it. */
  readonly rest: Uint8Array;
}

const end = fc.record<End>({
  address: fc.oneof(fc.ipV4(), fc.ipV6()),
  port: fc.integer({ min: 0, max: 65_535 }),
});
const text = fc.constantFrom(
  "\r",
  "\n",
  " ",
  "0",
  "-1",
  "65536",
  "::",
  "UNKNOWN",
  "TCP4",
  "%eth0",
  ".",
);

export const target = defineTarget<Input>({
  name: "proxy-header",
  share: 70,
  inputs: fc.record({
    version: fc.constantFrom("v1", "v2"),
    ends: fc.option(fc.record({ source: end, destination: end })),
    changes: edits(
      3,
      fc.oneof(
        fc.uint8Array({ maxLength: 3 }),
        text.map((word) => new Uint8Array(Buffer.from(word))),
      ),
    ),
    rest: fc.uint8Array({ maxLength: 8 }),
  }),
  check({ version, ends, changes, rest }) {
    const header = writeProxyHeader(version, ends);
    const bytes = edited(Buffer.concat([header, rest]), changes);
    const read = mustSettle(bytes, readProxyHeader, ({ kind }) => kind === "incomplete");
    if (read.kind === "header") {
      must(read.bytes <= bytes.length, "a header longer than what is there");
      for (const { address, port } of Object.values(read.ends ?? {}) as End[])
        must(isIP(address) > 0 && port >= 0 && port <= 65_535, `${address}:${port} is no end`);
    }
    if (changes.length > 0) return;
    mustEqual(read.kind === "header" && read.bytes, header.length, "length of the header");
    if (read.kind !== "header" || ends === null || read.ends === null)
      return mustEqual(read.kind === "header" && read.ends, ends, "ends");
    for (const side of ["source", "destination"] as const) {
      mustEqual(read.ends[side].port, ends[side].port, `port of the ${side}`);
      mustEqual(groupsOf(read.ends[side].address), groupsOf(ends[side].address), side);
    }
  },
});

/** The eight groups of an address, an IPv4 address as mapped. */
function groupsOf(address: string): number[] {
  const mapped = isIP(address) === 4 ? `::ffff:${address}` : address;
  const plain = mapped.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(0, 4).map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [start = [], end = []] = plain
    .split("::")
    .map((half) => half.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: 8 - start.length - end.length }, () => "0");
  return [...start, ...zeros, ...end].map((group) => Number.parseInt(group, 16));
}
