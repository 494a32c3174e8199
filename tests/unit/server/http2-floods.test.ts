// What a client of HTTP/2 may send in vain, each budget at its border: below it is served, above it the connection ends, and is counted.
import { headOf } from "../../support/outgoing-head.ts";
import { describe, expect, test } from "bun:test";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { encode, type Field } from "../../support/h2-client.ts";
import { frame, GET, H2Wire, POST, uint32 } from "../../support/h2-wire.ts";

const head = headOf();
const respond = (stream: ClientStream) => stream.respond(head, [Buffer.from("hello")], true);
const ENHANCE_YOUR_CALM = 11;
const NOTHING = Buffer.alloc(0);
const [DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING] = [0, 1, 2, 3, 4, 6];
const [WINDOW_UPDATE, CONTINUATION, PRIORITY_UPDATE] = [8, 9, 16];

const ping = frame(PING, 0, 0, Buffer.alloc(8));
const withoutEffect: readonly (readonly [what: string, frame: Buffer])[] = [
  ["PING (CVE-2019-9512)", ping],
  ["SETTINGS (CVE-2019-9515)", frame(SETTINGS, 0, 0, NOTHING)],
  ["acknowledged SETTINGS", frame(SETTINGS, 1, 0, NOTHING)],
  ["PRIORITY (CVE-2019-9513)", frame(PRIORITY, 0, 9, Buffer.alloc(5))],
  ["PRIORITY_UPDATE", frame(PRIORITY_UPDATE, 0, 0, Buffer.from("\0\0\0\x09u=1"))],
  ["empty DATA (CVE-2019-9518)", frame(DATA, 0, 1, NOTHING)],
  ["DATA of padding", frame(DATA, 8, 1, Buffer.from([3, 0, 0, 0]))],
  ["WINDOW_UPDATE", frame(WINDOW_UPDATE, 0, 0, uint32(1))],
  ["WINDOW_UPDATE of a stream", frame(WINDOW_UPDATE, 0, 1, uint32(1))],
  ["RST_STREAM of closed streams", frame(RST_STREAM, 0, 1, uint32(8))],
  ["unknown", frame(77, 0, 0, NOTHING)],
];

/** The client goes on after the end of each read. */
async function sends(wire: H2Wire, part: Buffer, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 100) {
    wire.send(...Array.from({ length: Math.min(100, count - sent) }, () => part));
    await wire.turn();
  }
}

describe.each(withoutEffect)("%s frames", (what, one) => {
  const isReset = what.startsWith("RST_STREAM");
  const begin = () => {
    const wire = new H2Wire();
    wire.send(wire.request(POST, false));
    // The first of these costs a stream.
    if (isReset) wire.send(one);
    return wire;
  };

  test("a thousand are served, and one more ends the connection", async () => {
    const wire = begin();
    await sends(wire, one, 1000);
    expect([wire.goAway, wire.ends]).toEqual([null, []]);
    wire.send(one);
    await wire.turn();
    expect([wire.goAway, wire.ends]).toEqual([ENHANCE_YOUR_CALM, ["frames"]]);
    expect(wire.refusals).toEqual(["too many HTTP/2 frames without effect"]);
    expect(wire.hasEnded).toBe(true);
  });

  test("a hundred a second are served for ever", async () => {
    const wire = begin();
    let now = performance.now();
    for (let second = 0; second < 30; second++) {
      await sends(wire, one, 100);
      now += 1000;
      wire.connection.tick(now);
    }
    expect(wire.goAway).toBe(null);
  });
});

test("what replies to bodies is no flood: two windows and a PING for each frame of 100 MB", async () => {
  const wire = new H2Wire();
  wire.send(wire.request());
  const writer = wire.streams[0]?.start(head, { wanted() {}, cancelled() {} }, true);
  const piece = Buffer.alloc(16_384);
  for (let sent = 0; sent < 6400; sent++) {
    writer?.write(piece);
    await wire.turn();
    const update = (stream: number) => frame(WINDOW_UPDATE, 0, stream, uint32(piece.length));
    wire.send(update(0), update(1), ping);
    wire.forget();
  }
  expect(wire.ends).toEqual([]);
});

test("windows of one byte at a time end the connection (CVE-2019-9511)", async () => {
  const wire = new H2Wire(respondBulk);
  wire.send(frame(SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0])), wire.request());
  for (let sent = 0; sent < 1100 && wire.ends.length === 0; sent++) {
    wire.send(frame(WINDOW_UPDATE, 0, 1, uint32(1)));
    await wire.turn();
  }
  expect([wire.goAway, wire.ends]).toEqual([ENHANCE_YOUR_CALM, ["frames"]]);
});

const respondBulk = (stream: ClientStream) => stream.respond(head, [Buffer.alloc(100_000)], true);

test("rapid reset (CVE-2023-44487): a thousand streams, and each is over at once", async () => {
  const wire = new H2Wire();
  const both = () => [wire.request(), frame(RST_STREAM, 0, 2 * wire.streams.length + 1, uint32(8))];
  for (let count = 0; count < 1000; count++) wire.send(...both());
  await wire.turn();
  expect([wire.goAway, wire.connection.pending]).toEqual([null, 0]);
  expect(wire.streams.every(({ signal }) => signal.aborted)).toBe(true);
  wire.send(...both());
  await wire.turn();
  expect([wire.goAway, wire.ends]).toEqual([ENHANCE_YOUR_CALM, ["resets"]]);
});

const mistakes: readonly (readonly [what: string, on: (id: number) => Buffer])[] = [
  ["WINDOW_UPDATE of 0", (id) => frame(WINDOW_UPDATE, 0, id, uint32(0))],
  ["a window over 2^31 - 1", (id) => frame(WINDOW_UPDATE, 0, id, uint32(2 ** 31 - 1))],
  ["DATA behind the end", (id) => frame(DATA, 0, id, Buffer.from("x"))],
  ["HEADERS behind the end", (id) => frame(HEADERS, 5, id, encode(GET))],
  ["PRIORITY of four bytes", (id) => frame(PRIORITY, 0, id, Buffer.alloc(4))],
];

test.each(mistakes)("MadeYouReset (CVE-2025-8671) by %s: 200 streams", async (_what, mistake) => {
  const wire = new H2Wire();
  const both = () => [wire.request(), mistake(2 * wire.streams.length + 1)];
  for (let count = 0; count < 200; count++) wire.send(...both());
  await wire.turn();
  expect([wire.goAway, wire.connection.pending]).toEqual([null, 0]);
  expect(wire.streams.every(({ signal }) => signal.aborted)).toBe(true);
  wire.send(...both());
  await wire.turn();
  expect([wire.goAway, wire.ends]).toEqual([ENHANCE_YOUR_CALM, ["errors"]]);
});

test("streams over the limit: 2000 are refused", async () => {
  const wire = new H2Wire(() => {}, { max_concurrent_streams: 1 });
  wire.send(wire.request());
  for (let count = 0; count < 2000; count++) wire.send(wire.request());
  await wire.turn();
  expect([wire.goAway, wire.resetsOf(3), wire.streams.length]).toEqual([null, [7], 1]);
  wire.send(wire.request());
  await wire.turn();
  expect([wire.goAway, wire.ends]).toEqual([ENHANCE_YOUR_CALM, ["refusals"]]);
});

describe("a header block (CVE-2024-27316)", () => {
  const block = encode(GET);
  /** In so many frames. */
  const inFrames = (count: number) => [
    frame(HEADERS, 1, 1, block.subarray(0, 3)),
    ...Array.from({ length: count - 2 }, () => frame(CONTINUATION, 0, 1, NOTHING)),
    frame(CONTINUATION, 4, 1, block.subarray(3)),
  ];

  test.each([
    [32, null, 1],
    [33, ENHANCE_YOUR_CALM, 0],
  ])("of %d frames", async (count, goAway, served) => {
    const wire = new H2Wire(respond);
    wire.send(...inFrames(count));
    await wire.turn();
    expect([wire.goAway, wire.streams.length]).toEqual([goAway, served]);
    if (goAway !== null) expect(wire.ends).toEqual(["heads"]);
  });

  test("whose list is over the limit gets 431, and the next request is served", async () => {
    const long: Field[] = [...GET, ["x-long", "v".repeat(17_000)]];
    const wire = new H2Wire(() => {}, { max_header_bytes: 16_384 });
    const bytes = encode(long);
    wire.send(
      frame(HEADERS, 1, 1, bytes.subarray(0, 16_384)),
      frame(CONTINUATION, 4, 1, bytes.subarray(16_384)),
      frame(HEADERS, 5, 3, encode(GET)),
    );
    await wire.turn();
    expect(wire.streams.map(({ problem }) => problem?.status)).toEqual([431, undefined]);
  });

  test.each([
    [30, null, 431],
    [40, ENHANCE_YOUR_CALM, undefined],
  ])("that stands for %d fields of 3.9 KB", async (count, goAway, status) => {
    const wire = new H2Wire(() => {}, { max_header_bytes: 16_384 });
    // A field that the table gets, and references to it: an HPACK bomb.
    const field = Buffer.concat([
      Buffer.from([0x40, 1, 0x78, 0x7f, 0xbd, 0x1d]),
      Buffer.alloc(3900, "a"),
    ]);
    wire.send(frame(HEADERS, 5, 1, Buffer.concat([block, field, Buffer.alloc(count - 1, 0xbe)])));
    await wire.turn();
    expect([wire.goAway, wire.streams[0]?.problem?.status]).toEqual([goAway, status]);
    if (goAway !== null) expect(wire.ends).toEqual(["heads"]);
  });

  test("with 64 KB of fields is served where the listener allows it", async () => {
    const many = Array.from({ length: 80 }, (_, at): Field => [`x-${at}`, "v".repeat(800)]);
    const wire = new H2Wire(() => {}, { max_header_bytes: 66_560 });
    const bytes = encode([...GET, ...many]);
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += 16_384) {
      const flags = (at === 0 ? 1 : 0) | (at + 16_384 >= bytes.length ? 4 : 0);
      parts.push(
        frame(at === 0 ? HEADERS : CONTINUATION, flags, 1, bytes.subarray(at, at + 16_384)),
      );
    }
    wire.send(...parts);
    expect(wire.streams.map(({ problem }) => problem)).toEqual([null]);
    expect(wire.streams[0]?.fields.get("x-79")?.length).toBe(800);
  });
});

test.each([
  ["half of a head", frame(HEADERS, 1, 1, encode(GET).subarray(0, 5))],
  ["half of a frame", frame(SETTINGS, 0, 0, Buffer.alloc(6)).subarray(0, 12)],
])("%s is waited for 15 s", async (_what, bytes) => {
  const wire = new H2Wire();
  wire.send(bytes);
  const now = performance.now();
  wire.connection.tick(now + 14_000);
  await wire.turn();
  expect(wire.goAway).toBe(null);
  wire.connection.tick(now + 15_100);
  await wire.turn();
  expect([wire.goAway, wire.ends]).toEqual([ENHANCE_YOUR_CALM, ["heads"]]);
});

describe("a client that does not read", () => {
  test("is not read from once 128 KB of heads wait", async () => {
    const wire = new H2Wire((stream) =>
      stream.respond(headOf({ "x-long": "v".repeat(5000) }), [], true),
    );
    wire.room = 0;
    let served = 0;
    while (!wire.isPaused && served < 1000) {
      wire.send(wire.request());
      await wire.turn();
      served++;
    }
    expect(served).toBeLessThan(30);
    wire.drain();
    expect(wire.isPaused).toBe(false);
  });

  test("loses a complete response of which it takes nothing for response_write_timeout", async () => {
    const wire = new H2Wire(respondBulk);
    wire.send(wire.request());
    await wire.turn();
    const now = performance.now();
    wire.connection.tick(now);
    wire.connection.tick(now + 59_000);
    await wire.turn();
    expect(wire.resetsOf(1)).toEqual([]);
    wire.connection.tick(now + 61_000);
    await wire.turn();
    expect([wire.resetsOf(1), wire.connection.pending]).toEqual([[2], 0]);
  });

  test("loses the connection when the system takes nothing either", async () => {
    const wire = new H2Wire(respond);
    await wire.turn();
    wire.room = 0;
    wire.send(wire.request());
    await wire.turn();
    const now = performance.now();
    wire.connection.tick(now);
    expect(wire.ends).toEqual([]);
    wire.connection.tick(now + 61_000);
    expect(wire.ends).toEqual(["unread"]);
  });
});
