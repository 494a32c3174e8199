// Decoding the frames of a server: what is forwarded, and what is rejected with which close code.
import { describe, expect, test } from "bun:test";
import { FrameDecoder, type FrameSink } from "../../../src/dataplane/websocket/frame-decoder.ts";
import { FrameError } from "../../../src/dataplane/websocket/frame.ts";

const MAX_BYTES = 100_000;

class Recorder implements FrameSink {
  readonly calls: (readonly unknown[])[] = [];
  text(message: string): void {
    this.calls.push(["text", message]);
  }
  binary(message: Buffer): void {
    this.calls.push(["binary", message.toString("hex")]);
  }
  ping(data: Buffer): void {
    this.calls.push(["ping", data.toString()]);
  }
  pong(data: Buffer): void {
    this.calls.push(["pong", data.toString()]);
  }
  closed(code: number, reason: string): void {
    this.calls.push(["closed", code, reason]);
  }
}

/** What the sink received, and the close code of the error, if any, with the input cut into pieces of `step` bytes. */
function read(bytes: Buffer, step: number): { calls: Recorder["calls"]; code: number | null } {
  const recorder = new Recorder();
  const decoder = new FrameDecoder(recorder, MAX_BYTES);
  try {
    for (let at = 0; at < bytes.length; at += step) decoder.push(bytes.subarray(at, at + step));
  } catch (error) {
    if (error instanceof FrameError) return { calls: recorder.calls, code: error.code };
    throw error;
  }
  return { calls: recorder.calls, code: null };
}

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");

const good: { why: string; bytes: Buffer; calls: unknown[][] }[] = [
  { why: "a text", bytes: hex("8105 48656c6c6f"), calls: [["text", "Hello"]] },
  { why: "an empty text", bytes: hex("8100"), calls: [["text", ""]] },
  { why: "an empty binary message", bytes: hex("8200"), calls: [["binary", ""]] },
  { why: "a byte order mark is content", bytes: hex("8103 efbbbf"), calls: [["text", "\ufeff"]] },
  {
    why: "a message in fragments, one of them empty, with a ping inside",
    bytes: hex("0103 48656c 8902 6869 0000 8002 6c6f"),
    calls: [
      ["ping", "hi"],
      ["text", "Hello"],
    ],
  },
  {
    why: "a character that is cut by a fragment border",
    bytes: hex("0101 c3 8001 a9"),
    calls: [["text", "é"]],
  },
  {
    why: "two messages and a pong",
    bytes: hex("820101 8a00 820102"),
    calls: [
      ["binary", "01"],
      ["pong", ""],
      ["binary", "02"],
    ],
  },
  {
    why: "a length of 16 bits",
    bytes: Buffer.concat([hex("827e 0080"), Buffer.alloc(128, 1)]),
    calls: [["binary", "01".repeat(128)]],
  },
  {
    why: "a length of 64 bits",
    bytes: Buffer.concat([hex("827f 0000000000010000"), Buffer.alloc(65_536, 1)]),
    calls: [["binary", "01".repeat(65_536)]],
  },
  {
    why: "a control frame of the largest size",
    bytes: Buffer.concat([hex("897d"), Buffer.alloc(125, 97)]),
    calls: [["ping", "a".repeat(125)]],
  },
  { why: "a close without a code", bytes: hex("8800"), calls: [["closed", 1005, ""]] },
  {
    why: "a close with a reason",
    bytes: hex("8805 0bb8 776879"),
    calls: [["closed", 3000, "why"]],
  },
  {
    why: "what follows a close does not count, be it a frame or nonsense",
    bytes: hex("8802 03e8 810161 ffff"),
    calls: [["closed", 1000, ""]],
  },
];

const bad: { why: string; bytes: Buffer; code: number }[] = [
  { why: "reserved bit 1, since no compression was agreed", bytes: hex("c10161"), code: 1002 },
  { why: "reserved bit 2", bytes: hex("a10161"), code: 1002 },
  { why: "reserved bit 3", bytes: hex("910161"), code: 1002 },
  { why: "opcode 3", bytes: hex("830161"), code: 1002 },
  { why: "opcode 11", bytes: hex("8b0161"), code: 1002 },
  { why: "a masked frame from a server", bytes: hex("8181 01020304 60"), code: 1002 },
  { why: "a fragmented ping", bytes: hex("090161"), code: 1002 },
  { why: "a ping of 126 bytes", bytes: hex("897e 007e"), code: 1002 },
  { why: "a continuation of nothing", bytes: hex("800161"), code: 1002 },
  { why: "a text inside a text", bytes: hex("010161 810161"), code: 1002 },
  { why: "a 16 bit length that fits in 7", bytes: hex("827e 007d"), code: 1002 },
  { why: "a 64 bit length that fits in 16", bytes: hex("827f 000000000000ffff"), code: 1002 },
  { why: "a length with the highest bit", bytes: hex("827f 8000000000000000"), code: 1002 },
  { why: "a message longer than the limit", bytes: hex("827f 00000000000186a1"), code: 1009 },
  { why: "a length past 53 bits", bytes: hex("827f 7fffffffffffffff"), code: 1009 },
  {
    why: "fragments that are longer together than the limit",
    bytes: Buffer.concat([
      hex("027e ffff"),
      Buffer.alloc(65_535),
      hex("807e ffff"),
      Buffer.alloc(65_535),
    ]),
    code: 1009,
  },
  { why: "a close of one byte", bytes: hex("8801 03"), code: 1002 },
  { why: "a text that is not UTF-8", bytes: hex("8102 c328"), code: 1007 },
  { why: "a text with half a surrogate pair", bytes: hex("8103 eda080"), code: 1007 },
  { why: "a text that ends inside a character", bytes: hex("8101 c3"), code: 1007 },
  { why: "a reason that is not UTF-8", bytes: hex("8804 03e8 c328"), code: 1007 },
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535].map((code) => ({
    why: `close code ${code}`,
    bytes: Buffer.from([0x88, 2, code >> 8, code & 255]),
    code: 1002,
  })),
];

describe.each([1, 2, 3, 7, 1_000_000])("in pieces of %d bytes", (step) => {
  test.each(good)("forwards: $why", ({ bytes, calls }) => {
    expect(read(bytes, step)).toEqual({ calls, code: null });
  });

  test.each(bad)("rejects: $why", ({ bytes, code }) => {
    expect(read(bytes, step)).toEqual({ calls: [], code });
  });
});

test.each([1000, 1001, 1002, 1003, 1007, 1011, 1012, 1013, 1014, 3000, 4999])(
  "accepts close code %d",
  (code) => {
    const { calls } = read(Buffer.from([0x88, 2, code >> 8, code & 255]), 100);
    expect(calls).toEqual([["closed", code, ""]]);
  },
);

test.each([
  ["in the next fragment", ["0104 cebae1bd", "0002 b9ff"], 1],
  ["at the byte that spoils a character", ["0101 f4", "0001 90", "8002 8080"], 1],
  ["in the first part of a frame", ["810a ceba ff", "ceba"], 0],
  ["in the second part of a frame", ["810a ceba", "ff"], 1],
  ["when the message ends inside a character", ["0101 f0", "0001 9f", "8000"], 2],
])("text that cannot become UTF-8 is rejected at once: %s", (_, pieces, at) => {
  const decoder = new FrameDecoder(new Recorder(), MAX_BYTES);
  for (const piece of pieces.slice(0, at)) decoder.push(hex(piece));
  expect(() => decoder.push(hex(pieces[at] ?? ""))).toThrow(
    expect.objectContaining({ code: 1007 }),
  );
});

test("a fragmented text does not change the next one", () => {
  const recorder = new Recorder();
  const decoder = new FrameDecoder(recorder, MAX_BYTES);
  for (const byte of hex("0101 c3 0000 8001 a9 8101 61 0100 8001 62 8100"))
    decoder.push(Buffer.of(byte));
  expect(recorder.calls.map(([, text]) => text)).toEqual(["é", "a", "b", ""]);
});

test("messages before an error are forwarded, and nothing after it", () => {
  const recorder = new Recorder();
  const decoder = new FrameDecoder(recorder, MAX_BYTES);
  expect(() => decoder.push(hex("810161 810162 830163 810164"))).toThrow(FrameError);
  decoder.push(hex("810165"));
  expect(recorder.calls).toEqual([
    ["text", "a"],
    ["text", "b"],
  ]);
});
