// Random header lists between our HPACK and that of hpack.js, with tables of any size and blocks in any pieces, both ways.
import { expect, test } from "bun:test";
import { BlockWriter } from "../../../src/dataplane/server/http2/block-writer.ts";
import { frame, H2Wire } from "../../support/h2-wire.ts";
import { type HpackField, HpackJsDecoder, HpackJsEncoder } from "../../support/hpack-js.ts";
import { conventional } from "../../../src/http/usual-case.ts";
import { Random, seedOfRun } from "../../support/random.ts";

const random = new Random(seedOfRun());
const CONNECTIONS = 20;
const BLOCKS = 50;
const CHARACTERS = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCXYZ[]^_`abcxyz{|}~\x80\xe9\xff";
const [HEADERS, CONTINUATION, END_STREAM, END_HEADERS] = [1, 9, 1, 4];

function text(longest: number): string {
  const characters = Array.from({ length: random.between(0, longest) }, () =>
    random.pick([...CHARACTERS]),
  );
  return `v${characters.join("")}v`;
}

/** Few of them, so that tables are of use. */
const names = Array.from(
  { length: 20 },
  (_, at) => `x-${at}${"n".repeat(random.between(0, 30))}`,
).concat("accept", "user-agent", "cache-control");
const values = Array.from({ length: 20 }, () => text(random.chance(0.1) ? 3000 : 50));

const field = (): HpackField => ({
  name: random.pick(names),
  value: random.chance(0.3) ? text(80) : random.pick(values),
  incremental: random.chance(0.7),
  huffman: random.chance(0.5),
  neverIndex: random.chance(0.1),
});
const fields = () => Array.from({ length: random.between(0, 15) }, field);

const pseudo = (path: string): HpackField[] => [
  { name: ":method", value: "GET" },
  { name: ":scheme", value: "http" },
  { name: ":authority", value: "a.test" },
  { name: ":path", value: path, incremental: random.chance(0.5) },
];

/** HEADERS, and CONTINUATION for each further piece. */
function inFrames(stream: number, block: Buffer): Buffer[] {
  const cuts = Array.from({ length: random.between(0, 8) }, () => random.between(0, block.length));
  const ends = [...cuts.sort((a, b) => a - b), block.length];
  return ends.map((end, at) => {
    const flags = at === ends.length - 1 ? END_HEADERS : 0;
    const payload = block.subarray(at === 0 ? 0 : ends[at - 1], end);
    return at === 0
      ? frame(HEADERS, flags | END_STREAM, stream, payload)
      : frame(CONTINUATION, flags, stream, payload);
  });
}

test("requests that hpack.js has encoded are read as they are", async () => {
  for (let connection = 0; connection < CONNECTIONS; connection++) {
    const tableBytes = random.pick([0, 32, 100, 333, 1000, 4096]);
    const encoder = new HpackJsEncoder(tableBytes);
    const wire = new H2Wire((stream) => stream.abort(), { max_header_bytes: 131_072 });
    for (let made = 0; made < BLOCKS; made++) {
      const sent = fields();
      const list = [...pseudo(`/${made}`), ...sent];
      const block = encoder.encode(list, made === 0 || random.chance(0.1));
      wire.send(...inFrames(2 * made + 1, block));
      const stream = wire.streams.at(-1);
      expect([wire.refusals, wire.streams.length]).toEqual([[], made + 1]);
      expect([stream?.url, stream?.problem]).toEqual([`/${made}`, null]);
      const lines = sent.map(({ name, value }) => `\r\n${conventional(name)}: ${value}`);
      expect(stream?.fields.lines(0, stream.fields.names.length)).toBe(
        ["\r\nHost: a.test", ...lines].join(""),
      );
    }
    await wire.turn();
  }
});

test("responses that we have encoded are read by hpack.js as they are", () => {
  const writer = new BlockWriter();
  for (let connection = 0; connection < CONNECTIONS; connection++) {
    const decoder = new HpackJsDecoder();
    for (let made = 0; made < BLOCKS; made++) {
      const sent = fields().map(({ name, value }) => [name, value] as const);
      writer.begin(made === 0);
      const isHead = random.chance(0.5);
      const status = random.pick([200, 206, 304, 400, 404, 500, 418, 599]);
      if (isHead) {
        const lines = sent.map(([name, value]) => `${name.toUpperCase()}: ${value}\r\n`).join("");
        const head = {
          status,
          lines: `${lines}Date: d\r\n`,
          headers: new Headers(),
          hasDate: true,
        };
        const facts = { hasContentType: true, hasLength: false, length: -1, closes: false };
        writer.head({ ...head, ...facts }, { length: -1, isLast: true }, "");
      } else {
        writer.status(status);
        writer.pairs(sent);
      }
      expect(decoder.decode(Buffer.from(writer.block))).toEqual([
        [":status", String(status)],
        ...sent.map(([name, value]): [string, string] => [name, value]),
        ...(isHead ? [["date", "d"] satisfies [string, string]] : []),
      ]);
    }
  }
});
