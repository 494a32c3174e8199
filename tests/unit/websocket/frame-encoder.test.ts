// Writing the frames of a client: header, mask and payload, checked by decoding them.
import { expect, test } from "bun:test";
import { BINARY, CLOSE, FrameEncoder, PING, TEXT } from "../../../src/dataplane/websocket/frame.ts";

interface Frame {
  readonly opcode: number;
  readonly headerBytes: number;
  readonly key: string;
  readonly payload: Buffer;
}

/** Decodes a masked final frame, as a server does. */
function parse(frame: Buffer): Frame {
  const short = (frame[1] ?? 0) & 0x7f;
  expect((frame[1] ?? 0) & 0x80).toBe(0x80);
  expect((frame[0] ?? 0) & 0xf0).toBe(0x80);
  const size = short < 126 ? 2 : short === 126 ? 4 : 10;
  const length =
    size === 2 ? short : size === 4 ? frame.readUInt16BE(2) : Number(frame.readBigUInt64BE(2));
  const key = frame.subarray(size, size + 4);
  const payload = Buffer.from(frame.subarray(size + 4));
  expect(payload.length).toBe(length);
  for (let at = 0; at < payload.length; at++) payload[at] = payload[at]! ^ key[at & 3]!;
  return { opcode: frame[0]! & 15, headerBytes: size, key: key.toString("hex"), payload };
}

test.each([
  [0, 2],
  [1, 2],
  [3, 2],
  [63, 2],
  [64, 2],
  [125, 2],
  [126, 4],
  [127, 4],
  [65_535, 4],
  [65_536, 10],
  [1_000_003, 10],
])("a message of %d bytes has a header of %d and arrives as it was", (length, headerBytes) => {
  const payload = Buffer.from(Array.from({ length }, (_, at) => (at * 7) & 255));
  const before = Buffer.from(payload);
  const frame = parse(new FrameEncoder().encode(BINARY, payload));
  expect(frame.headerBytes).toBe(headerBytes);
  expect(frame.opcode).toBe(BINARY);
  expect(frame.payload.equals(before)).toBe(true);
  // The caller may still use its buffer.
  expect(payload.equals(before)).toBe(true);
});

test.each(["", "a", "é", "\ufeffwith a byte order mark", "👋".repeat(40), "x".repeat(70_000)])(
  "text is UTF-8 (%#)",
  (text) => {
    const frame = parse(new FrameEncoder().encode(TEXT, text));
    expect(frame.opcode).toBe(TEXT);
    expect(frame.payload.toString("utf8")).toBe(text);
  },
);

test("every frame has its own masking key", () => {
  const encoder = new FrameEncoder();
  const keys = Array.from(
    { length: 3000 },
    () => parse(encoder.encode(PING, Buffer.from("x"))).key,
  );
  // Out of 4 billion values a pair may be equal by chance, but not ten.
  expect(new Set(keys).size).toBeGreaterThan(2990);
});

test("a close frame contains its code and reason, or nothing when there was no code", () => {
  const encoder = new FrameEncoder();
  const full = parse(encoder.encodeClose(4999, "because"));
  expect(full.opcode).toBe(CLOSE);
  expect(full.payload.readUInt16BE()).toBe(4999);
  expect(full.payload.subarray(2).toString()).toBe("because");
  expect(parse(encoder.encodeClose(1005, "")).payload.length).toBe(0);
});
