// What a target's frames may do to a session (RFC 9113): each rule as a row, and the same for every split of the bytes.
import { describe, expect, test } from "bun:test";
import { encode, type Field } from "../../support/h2-client.ts";
import { frame, uint32 } from "../../support/h2-wire.ts";
import { HpackEncoder } from "../../support/hpack-encoder.ts";
import type { RecordedExchange } from "./recorded-exchange.ts";
import { data, headers, TargetWire } from "./target-wire.ts";

const OK: Field = [":status", "200"];
const END_STREAM = 1;
const LAST = 5;
const ok = (id = 1) => headers(id, [OK]);
const setting = (id: number, value: number) => Buffer.concat([Buffer.from([0, id]), uint32(value)]);

/** A session with two requests: on stream 1 something happens, and stream 3 is its neighbour. */
async function scene(settings?: Uint8Array) {
  const wire = new TargetWire();
  const first = wire.request();
  const other = wire.request();
  wire.connect(settings);
  await wire.turn();
  return { wire, first, other };
}

const outcome = ({ events, error, text }: RecordedExchange) =>
  error === null ? `${events.at(-1) ?? "nothing"} ${text}`.trim() : error.detail;

/** The stream alone is broken: its neighbour gets a response, and the target a reset with this code; null: both have ended it. */
const ofStream: readonly (readonly [why: string, code: number | null, frames: Buffer[]])[] = [
  ["an interim response that ends the stream", null, [headers(1, [[":status", "103"]], LAST)]],
  ["101", 1, [headers(1, [[":status", "101"]])]],
  ["a head without a status", 1, [headers(1, [["x", "1"]])]],
  ["a status after a field", 1, [headers(1, [["x", "1"], OK])]],
  ["a status of two digits", 1, [headers(1, [[":status", "20"]])]],
  ["a pseudo field of requests", 1, [headers(1, [OK, [":path", "/"]])]],
  ["an unknown pseudo field", 1, [headers(1, [OK, [":x", "/"]])]],
  ["Connection", 1, [headers(1, [OK, ["connection", "x"]])]],
  ["Keep-Alive", 1, [headers(1, [OK, ["keep-alive", "x"]])]],
  ["Proxy-Connection", 1, [headers(1, [OK, ["proxy-connection", "x"]])]],
  ["Transfer-Encoding", 1, [headers(1, [OK, ["transfer-encoding", "chunked"]])]],
  ["Upgrade", 1, [headers(1, [OK, ["upgrade", "x"]])]],
  ["a name in upper case", 1, [headers(1, [OK, ["X", "1"]])]],
  ["a line break in a value", 1, [headers(1, [OK, ["x", "1\n2"]])]],
  ["content before a head", 1, [data(1, "x")]],
  ["less than Content-Length", null, [headers(1, [OK, ["content-length", "2"]]), data(1, "x", 1)]],
  ["more than Content-Length", 1, [headers(1, [OK, ["content-length", "2"]]), data(1, "xyz")]],
  ["no content for a Content-Length", null, [headers(1, [OK, ["content-length", "2"]], LAST)]],
  ["two Content-Lengths", 1, [headers(1, [OK, ["content-length", "2"], ["content-length", "3"]])]],
  ["content of a 204", 1, [headers(1, [[":status", "204"]]), data(1, "x")]],
  ["trailers that do not end it", 1, [ok(), headers(1, [["x", "1"]])]],
  ["a status in trailers", null, [ok(), headers(1, [OK], LAST)]],
  ["Connection in trailers", null, [ok(), headers(1, [["connection", "x"]], LAST)]],
  ["more than the window of the stream", 3, [ok(), ...windowOf(65_536)]],
  ["WINDOW_UPDATE of 0", 1, [frame(8, 0, 1, uint32(0))]],
  ["a window that becomes too large", 3, [frame(8, 0, 1, uint32(2 ** 31 - 1))]],
  ["PRIORITY of a wrong length", 6, [frame(2, 0, 1, Buffer.alloc(4))]],
];

/** DATA frames that are full, and a last one. */
function windowOf(bytes: number): Buffer[] {
  const frames: Buffer[] = [];
  for (let left = bytes; left > 0; left -= 16_384)
    frames.push(data(1, "x".repeat(Math.min(left, 16_384))));
  return frames;
}

test.each(ofStream)("%s is the error of one stream, with the code %p", async (_, code, frames) => {
  const { wire, first, other } = await scene();
  wire.send(...frames);
  await first.ended();
  expect(first.error).toMatchObject({ source: "upstream", token: "http_protocol_error" });
  wire.send(ok(3), data(3, "fine", END_STREAM));
  await wire.turn();
  const resets = code === null ? [] : [code];
  expect([outcome(other), wire.resets, wire.isClosed]).toEqual(["finished fine", resets, false]);
});

/** The session ends with this code of GOAWAY. */
const ofSession: readonly (readonly [why: string, code: number, frames: Buffer[]])[] = [
  ["DATA on a stream that never began", 1, [data(5, "x")]],
  ["DATA on a stream of the target", 1, [data(2, "x")]],
  ["DATA on stream 0", 1, [data(0, "x")]],
  ["HEADERS on a stream that never began", 1, [ok(5)]],
  ["HEADERS on a stream of the target", 1, [ok(2)]],
  ["HEADERS on stream 0", 1, [ok(0)]],
  ["RST_STREAM on a stream that never began", 1, [frame(3, 0, 5, uint32(8))]],
  ["RST_STREAM of a wrong length", 6, [frame(3, 0, 1, Buffer.alloc(3))]],
  ["WINDOW_UPDATE on a stream that never began", 1, [frame(8, 0, 5, uint32(1))]],
  ["WINDOW_UPDATE of a wrong length", 6, [frame(8, 0, 1, Buffer.alloc(3))]],
  ["WINDOW_UPDATE of 0 on stream 0", 1, [frame(8, 0, 0, uint32(0))]],
  ["a window of the connection that is too large", 3, [frame(8, 0, 0, uint32(2 ** 31 - 1))]],
  ["PUSH_PROMISE", 1, [frame(5, 4, 1, Buffer.from([0, 0, 0, 2]))]],
  ["SETTINGS that switch push on", 1, [frame(4, 0, 0, setting(2, 1))]],
  ["SETTINGS on a stream", 1, [frame(4, 0, 1, Buffer.alloc(0))]],
  ["SETTINGS of a wrong length", 6, [frame(4, 0, 0, Buffer.alloc(5))]],
  ["an acknowledgement with values", 6, [frame(4, 1, 0, Buffer.alloc(6))]],
  ["a window setting that is too large", 3, [frame(4, 0, 0, setting(4, 2 ** 31))]],
  ["a frame size below the least", 1, [frame(4, 0, 0, setting(5, 16_383))]],
  ["PING on a stream", 1, [frame(6, 0, 1, Buffer.alloc(8))]],
  ["PING of a wrong length", 6, [frame(6, 0, 0, Buffer.alloc(7))]],
  ["GOAWAY on a stream", 1, [frame(7, 0, 1, Buffer.alloc(8))]],
  ["GOAWAY of a wrong length", 6, [frame(7, 0, 0, Buffer.alloc(7))]],
  ["PRIORITY on stream 0", 1, [frame(2, 0, 0, Buffer.alloc(5))]],
  ["PRIORITY_UPDATE", 1, [frame(16, 0, 0, Buffer.from("\0\0\0\x01u=1"))]],
  ["CONTINUATION without HEADERS", 1, [frame(9, 4, 1, encode([OK]))]],
  [
    "another frame within a header block",
    1,
    [headers(1, [OK], 0), frame(6, 0, 0, Buffer.alloc(8))],
  ],
  ["CONTINUATION of another stream", 1, [headers(1, [OK], 0), frame(9, 4, 5, encode([OK]))]],
  ["a header block that is no HPACK", 9, [frame(1, 4, 1, Buffer.from([0xff, 0xff, 0xff]))]],
  ["a table that becomes too large", 9, [frame(1, 4, 1, Buffer.from([0x3f, 0xe1, 0x7f, 0x88]))]],
  ["padding longer than its frame", 1, [frame(0, 8, 1, Buffer.from([5, 0]))]],
  ["a padded frame without a length", 6, [frame(0, 8, 1, Buffer.alloc(0))]],
  ["a frame over 16 KB", 6, [ok(), frame(0, 0, 1, Buffer.alloc(16_385))]],
  ["content after the end", 5, [headers(1, [OK], LAST), data(1, "x")]],
  ["a second end", 5, [ok(), data(1, "x", 1), data(1, "", 1)]],
  ["a head after the end", 5, [headers(1, [OK], LAST), headers(1, [OK], LAST)]],
  ["too many frames of a header block", 11, [headers(1, [OK], 0), ...continuations(130, 1)]],
  ["a header block over 1 MB", 11, [headers(1, [OK], 0), ...continuations(70, 16_000)]],
  ["fields that grow out of the table", 11, [bomb()]],
];

function continuations(count: number, bytes: number): Buffer[] {
  const field = encode([["x", "y".repeat(Math.max(0, bytes - 8))]]);
  return Array.from({ length: count }, () => frame(9, 0, 1, field));
}

/** A field of 4,000 bytes in the table, and 2,000 times its index. */
function bomb(): Buffer {
  const large = { name: "x", value: "y".repeat(4000), as: "add", isHuffman: false } as const;
  const encoder = new HpackEncoder();
  const fields = [
    large,
    ...Array.from({ length: 2000 }, () => ({ ...large, as: "index" as const })),
  ];
  return frame(1, 4, 1, encoder.encode(fields));
}

test.each(ofSession)("%s ends the session with the code %d", async (_, code, frames) => {
  const { wire, other } = await scene();
  wire.send(...frames);
  await other.ended();
  expect([wire.goAway, wire.isClosed]).toEqual([code, true]);
  // The neighbour has lost its connection; nothing says that the target has processed it wrongly.
  expect(other.error?.token).toBe("connection_terminated");
});

describe("what is no error", () => {
  test.each<readonly [why: string, frames: Buffer[], text: string]>([
    ["padding", [frame(0, 8, 1, Buffer.from("\x02ab\0\0"))], "ab"],
    ["padding alone", [frame(0, 8, 1, Buffer.from("\x02\0\0")), data(1, "x")], "x"],
    ["an unknown frame", [frame(77, 255, 1, Buffer.from("abc")), data(1, "x")], "x"],
    ["PING", [frame(6, 0, 0, Buffer.alloc(8)), data(1, "x")], "x"],
    ["PRIORITY of a stream that never began", [frame(2, 0, 9, Buffer.alloc(5)), data(1, "x")], "x"],
    ["an unknown setting", [frame(4, 0, 0, setting(99, 7)), data(1, "x")], "x"],
    ["a table of size 0", [frame(4, 0, 0, setting(1, 0)), data(1, "x")], "x"],
    ["empty DATA", [data(1, ""), data(1, "x"), data(1, "")], "x"],
  ])("%s", async (_, frames, text) => {
    const { wire, first } = await scene();
    wire.send(ok(), ...frames, data(1, "", END_STREAM));
    await first.ended();
    expect(outcome(first)).toBe(`finished ${text}`);
  });

  test("frames on a stream that the gateway has reset", async () => {
    const { wire, first, other } = await scene();
    first.exchange.abort();
    await wire.turn();
    wire.send(ok(), data(1, "late"), headers(1, [["x", "1"]], LAST));
    wire.send(ok(3), data(3, "fine", END_STREAM));
    await other.ended();
    expect([outcome(other), wire.resets]).toEqual(["finished fine", [8]]);
  });

  test("a reset with NO_ERROR behind a complete response", async () => {
    const { wire, first, other } = await scene();
    wire.send(ok(), data(1, "x", END_STREAM), frame(3, 0, 1, uint32(0)));
    wire.send(ok(3), data(3, "fine", END_STREAM));
    await other.ended();
    expect([outcome(first), outcome(other)]).toEqual(["finished x", "finished fine"]);
  });
});

test("a target that sends on after a reset, beyond the window, loses its session", async () => {
  const { wire, first } = await scene();
  first.exchange.abort();
  await wire.turn();
  wire.send(ok(), ...windowOf(65_536));
  expect(wire.goAway).toBe(3);
});

test("PING and SETTINGS are acknowledged in one write", async () => {
  const { wire } = await scene();
  wire.writes.length = 0;
  wire.send(frame(6, 0, 0, Buffer.from("12345678")), frame(4, 0, 0, setting(4, 100)));
  await wire.turn();
  expect(wire.writes.map((frames) => frames.map(({ type, flags }) => [type, flags]))).toEqual([
    [
      [6, 1],
      [4, 1],
    ],
  ]);
  expect(wire.frames[0]?.payload.toString()).toBe("12345678");
});

describe("floods", () => {
  test.each<readonly [why: string, frame: Buffer]>([
    ["PING", frame(6, 0, 0, Buffer.alloc(8))],
    ["SETTINGS", frame(4, 0, 0, Buffer.alloc(0))],
    ["empty DATA", data(1, "")],
    ["WINDOW_UPDATE", frame(8, 0, 1, uint32(1))],
    ["PRIORITY", frame(2, 0, 1, Buffer.alloc(5))],
    ["unknown frames", frame(77, 0, 1, Buffer.alloc(1))],
    ["GOAWAY", frame(7, 0, 0, Buffer.from([0x7f, 255, 255, 255, 0, 0, 0, 0]))],
  ])("of %s: 900 pass, and 2,000 end the session", async (_, one) => {
    const { wire } = await scene();
    wire.send(ok(), ...Array.from({ length: 900 }, () => one));
    expect(wire.goAway).toBeNull();
    wire.send(...Array.from({ length: 1100 }, () => one));
    expect(wire.goAway).toBe(11);
  });

  test("each request allows a few frames without effect", async () => {
    const { wire } = await scene();
    for (let round = 0; round < 500; round++) {
      const one = wire.request();
      const id = 5 + 2 * round;
      wire.send(ok(id), data(id, ""), frame(6, 0, 0, Buffer.alloc(8)), data(id, "x", END_STREAM));
      await one.ended();
      expect(outcome(one)).toBe("finished x");
    }
  });

  test("a target that does not read what it gets is not read from", async () => {
    const { wire } = await scene();
    wire.room = 0;
    const pings = Array.from({ length: 900 }, () => frame(6, 0, 0, Buffer.alloc(8)));
    for (let round = 0; round < 12; round++) {
      wire.send(...pings);
      await wire.turn();
      wire.time += 9000;
      wire.sessions[0]?.tick(wire.time);
    }
    wire.send(frame(6, 0, 0, Buffer.alloc(8)));
    expect(wire.isPaused).toBe(true);
    wire.drain();
    expect(wire.isPaused).toBe(false);
  });
});

const conversation = (): Buffer => {
  const table = new HpackEncoder();
  const block = (fields: readonly Field[], as: "add" | "index" | "plain") =>
    table.encode(fields.map(([name, value]) => ({ name, value, as, isHuffman: as === "add" })));
  const long: Field = ["x-long", "l".repeat(300)];
  const first = block([OK, ["content-type", "text/plain"], long], "add");
  return Buffer.concat([
    frame(4, 0, 0, setting(3, 100)),
    frame(
      1,
      4,
      1,
      block(
        [
          [":status", "103"],
          ["link", "</a>"],
        ],
        "plain",
      ),
    ),
    frame(6, 0, 0, Buffer.from("pingping")),
    frame(1, 0, 1, first.subarray(0, 7)),
    frame(9, 0, 1, first.subarray(7, 100)),
    frame(9, 4, 1, first.subarray(100)),
    data(1, "one "),
    frame(
      1,
      4 + 8 + 32,
      3,
      Buffer.concat([
        Buffer.from([3, 0, 0, 0, 0, 7]),
        block([OK, ["content-type", "text/plain"], ["content-length", "4"], long], "index"),
        Buffer.alloc(3),
      ]),
    ),
    frame(0, 8, 1, Buffer.from("\x03two\0\0\0")),
    frame(8, 0, 0, uint32(1000)),
    frame(0, 1, 3, Buffer.from("four")),
    frame(
      1,
      5,
      1,
      block(
        [
          ["grpc-status", "0"],
          ["x-sum", "9"],
        ],
        "add",
      ),
    ),
    frame(7, 0, 0, Buffer.concat([uint32(3), uint32(0), Buffer.from("bye")])),
  ]);
};

async function heard(pieces: readonly Uint8Array[]) {
  const { wire, first, other } = await scene();
  for (const piece of pieces) wire.send(piece);
  await wire.turn();
  return [first, other].map(({ events, text, trailers, head, error }) => ({
    // How often the rest was waited for is a matter of the reads.
    events: events.filter((event) => event !== "waiting" && event !== "content"),
    text,
    trailers,
    status: head?.status,
    fields: head?.lines,
    error,
  }));
}

test("a conversation is the same in one read, byte by byte, and in every two parts", async () => {
  const all = conversation();
  const whole = await heard([all]);
  expect(whole[0]).toMatchObject({
    events: ['103 [["link","</a>"]]', "head 200", "trailers", "finished"],
    text: "one two",
    trailers: [
      ["grpc-status", "0"],
      ["x-sum", "9"],
    ],
  });
  expect(whole[1]).toMatchObject({ events: ["head 200", "finished"], text: "four" });
  expect(await heard(Array.from(all, (byte) => Uint8Array.of(byte)))).toEqual(whole);
  for (let at = 1; at < all.length; at++)
    expect(await heard([all.subarray(0, at), all.subarray(at)])).toEqual(whole);
});
