// Rows that the outside suite h2spec has beside ours: what servers must take, and windows in the middle of a response.
import { string, integer } from "../../support/hpack-encoder.ts";
import type { Field, H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import {
  connectionError,
  CONTINUATION,
  COMPRESSION,
  DATA,
  empty,
  END_HEADERS,
  END_STREAM,
  FLOW_CONTROL,
  frames,
  GET,
  getBlock,
  GOAWAY,
  HEADERS,
  NO_ERROR,
  onHalfClosed,
  open,
  PADDED,
  PING,
  POST,
  postBlock,
  PRIORITY,
  priority,
  PROTOCOL,
  type Row,
  rowsOf,
  RST_STREAM,
  served,
  setting,
  settings,
  STREAM_CLOSED,
  streamError,
  thenGet,
  uint32,
  WINDOW_UPDATE,
} from "./rfc9113-row.ts";

const states = rowsOf("generic 2: streams");
const taken = rowsOf("generic 3: frames");
const semantics = rowsOf("generic 4: messages");
const compressed = rowsOf("generic 5: field compression");
const concurrency = rowsOf("5.1.2 concurrency");
const settled = rowsOf("6.5.3 settings synchronization");
const windows = rowsOf("6.9 flow control");
const continued = rowsOf("6.10 CONTINUATION");
const codes = rowsOf("7 error codes");
const index = rowsOf("RFC 7541 2.3.3 index address space");

/** The body of the response is the path. */
const LONG: readonly Field[] = [...GET.slice(0, 3), [":path", "/0123456789"]];
const LENGTH = 11;

const dataOf = (client: H2Client, stream: number) =>
  client.frames
    .filter((frame) => frame.type === DATA && frame.stream === stream)
    .map(({ payload }) => payload.length);

/** Waits for DATA of so many bytes each, and no more by the time a PING is back. */
async function sees(client: H2Client, stream: number, sizes: readonly number[]): Promise<void> {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const received = () => dataOf(client, stream).reduce((sum, size) => sum + size, 0);
  await eventually(() => received() >= total, { intervalMs: 1 });
  const pong = `after ${String(client.pongs.length).padStart(2)}`;
  client.frame(PING, 0, 0, Buffer.from(pong));
  await eventually(() => client.pongs.includes(pong), { intervalMs: 1 });
  const seen = dataOf(client, stream).filter((size) => size > 0);
  if (Bun.deepEquals(seen, sizes)) return;
  throw new Error(`DATA of ${seen.join()} bytes instead of ${sizes.join()}`);
}

/** The client's windows begin at so many bytes. */
async function withWindow(client: H2Client, bytes: number): Promise<void> {
  const { acknowledged } = client;
  client.givesBack = false;
  client.frame(...settings(setting(4, bytes)));
  await eventually(() => client.acknowledged > acknowledged, { intervalMs: 1 });
}

const block = (client: H2Client, ...parts: readonly Buffer[]) => {
  client.frame(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat(parts));
  return 1;
};
const literal = (first: number, bits: number, isHuffman: boolean) => [
  // With a name of the static table (user-agent), and with one of its own.
  Buffer.concat([integer(first, bits, 58), string("value", isHuffman)]),
  Buffer.concat([Buffer.from([first]), string("x-own", isHuffman), string("value", isHuffman)]),
];

const wide = Array.from({ length: 101 }, (_, at) => at);

export const suiteRows: readonly Row[] = [
  states("idle: PRIORITY, then the request", served, (client) => {
    client.frame(PRIORITY, 0, 1, priority(0));
    return client.headers(GET);
  }),
  states("half-closed: RST_STREAM, then another request", served, (client) => {
    void onHalfClosed(RST_STREAM, 0, uint32(8))(client);
    return client.headers(GET);
  }),
  ...[0, 255].map((weight) =>
    taken(`PRIORITY with the weight ${weight + 1}`, served, (client) => {
      client.frame(PRIORITY, 0, 1, Buffer.concat([uint32(0), Buffer.from([weight])]));
      return client.headers(GET);
    }),
  ),
  taken("PRIORITY with an exclusive dependency", served, (client) => {
    client.frame(PRIORITY, 0, 1, Buffer.concat([uint32(0x80000003), Buffer.from([9])]));
    return client.headers(GET);
  }),
  taken("PRIORITY of a later stream, then the request of an earlier one", served, (client) => {
    client.frame(PRIORITY, 0, 5, priority(0));
    return client.headers(GET);
  }),
  taken("HEADERS with padding and a priority", served, (client) => {
    const payload = Buffer.concat([Buffer.from([5]), priority(0), getBlock(), Buffer.alloc(5)]);
    client.frame(HEADERS, END_HEADERS | END_STREAM | PADDED | 32, 1, payload);
    return 1;
  }),
  taken("GOAWAY without an error", /^(?:silence|closed)$/, frames([GOAWAY, 0, 0, Buffer.alloc(8)])),
  taken("SETTINGS without any", served, thenGet(settings(empty))),
  taken("WINDOW_UPDATE of a stream", served, (client) => {
    const stream = open(client);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(1));
    client.data(stream, "x");
    return stream;
  }),
  semantics("HEAD", served, (client) => client.headers([[":method", "HEAD"], ...GET.slice(1)])),
  semantics("a POST with DATA and trailers", served, (client) => {
    const stream = client.headers(POST, { isLast: false });
    client.data(stream, "x", { isLast: false });
    client.trailers(stream, [["x-checksum", "1"]]);
    return stream;
  }),
  ...[false, true].flatMap((isHuffman) =>
    (
      [
        ["with incremental indexing", 0x40, 6],
        ["without indexing", 0x00, 4],
        ["never indexed", 0x10, 4],
      ] as const
    ).flatMap(([what, first, bits]) =>
      literal(first, bits, isHuffman).map((bytes, at) =>
        compressed(
          `a literal ${what}, ${at === 0 ? "indexed" : "new"} name${isHuffman ? ", Huffman" : ""}`,
          served,
          (client) => block(client, getBlock(), bytes),
        ),
      ),
    ),
  ),
  compressed("an indexed field of the dynamic table", served, (client) => {
    const own = Buffer.concat([Buffer.from([0x40]), string("x-own", false), string("v", false)]);
    return block(client, getBlock(), own, Buffer.from([0xbe]));
  }),
  compressed("a change of the table's size", served, (client) =>
    block(client, Buffer.from([0x20]), getBlock()),
  ),
  compressed("two changes of the table's size", served, (client) =>
    block(client, Buffer.from([0x20, 0x3f, 0xe1, 0x1f]), getBlock()),
  ),
  index("a literal with a name that no table has", connectionError(COMPRESSION), (client) => {
    const bytes = Buffer.concat([integer(0x40, 6, 70), string("v", false)]);
    return block(client, getBlock(), bytes);
  }),
  concurrency("one stream more than allowed", streamError(PROTOCOL, 7), (client) => {
    const streams = wide.map(() => open(client));
    return streams.at(-1);
  }),
  settled("the last of two equal settings counts", served, async (client) => {
    client.givesBack = false;
    client.frame(...settings(Buffer.concat([setting(4, 100), setting(4, 1)])));
    const stream = client.headers(LONG);
    await sees(client, stream, [1]);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(LENGTH));
    return stream;
  }),
  windows("a window of one byte", served, async (client) => {
    await withWindow(client, 1);
    const stream = client.headers(LONG);
    await sees(client, stream, [1]);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(LENGTH));
    return stream;
  }),
  windows("a window that opens within a response", served, async (client) => {
    await withWindow(client, 0);
    const stream = client.headers(LONG);
    await sees(client, stream, []);
    await withWindow(client, 1);
    await sees(client, stream, [1]);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(LENGTH));
    return stream;
  }),
  windows("a window that becomes negative", served, async (client) => {
    await withWindow(client, 3);
    const stream = client.headers(LONG);
    await sees(client, stream, [3]);
    // 2 were spent beyond what it is now.
    await withWindow(client, 1);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(2));
    await sees(client, stream, [3]);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(1));
    await sees(client, stream, [3, 1]);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(LENGTH));
    return stream;
  }),
  windows("settings that take one over 2^31 - 1", connectionError(FLOW_CONTROL), (client) => {
    const stream = open(client);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(2 ** 31 - 65_536));
    client.frame(...settings(setting(4, 2 ** 31 - 1)));
    return undefined;
  }),
  windows("several updates over 2^31 - 1, connection", connectionError(FLOW_CONTROL), (client) => {
    for (let count = 0; count < 3; count++) client.frame(WINDOW_UPDATE, 0, 0, uint32(2 ** 30));
    return undefined;
  }),
  windows("several updates over 2^31 - 1, stream", streamError(FLOW_CONTROL), (client) => {
    const stream = open(client);
    for (let count = 0; count < 3; count++) client.frame(WINDOW_UPDATE, 0, stream, uint32(2 ** 30));
    return stream;
  }),
  continued(
    "behind CONTINUATION with END_HEADERS",
    connectionError(PROTOCOL, STREAM_CLOSED),
    frames(
      [HEADERS, 0, 1, postBlock().subarray(0, 9)],
      [CONTINUATION, END_HEADERS, 1, postBlock().subarray(9)],
      [CONTINUATION, END_HEADERS, 1, empty],
    ),
  ),
  continued(
    "behind DATA",
    connectionError(PROTOCOL, STREAM_CLOSED),
    frames(
      [HEADERS, END_HEADERS, 1, postBlock()],
      [DATA, 0, 1, Buffer.from("x")],
      [CONTINUATION, END_HEADERS, 1, empty],
    ),
  ),
  codes("an unknown one in GOAWAY", /^(?:silence|closed)$/, (client) => {
    client.frame(GOAWAY, 0, 0, Buffer.concat([uint32(0), uint32(0xff)]));
    return undefined;
  }),
  codes("GOAWAY behind a request, which is served", /^(?:silence|closed)$/, async (client) => {
    const stream = client.headers(GET);
    client.frame(GOAWAY, 0, 0, Buffer.concat([uint32(0), uint32(NO_ERROR)]));
    await eventually(() => client.seen(stream).isComplete, { intervalMs: 1 });
    return undefined;
  }),
];
