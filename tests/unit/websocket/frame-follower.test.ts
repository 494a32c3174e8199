// The follower passes every byte of valid frames, however they are split, and nothing of the first one that is not.
import { describe, expect, test } from "bun:test";
import { FrameFollower, reservedBits } from "../../../src/dataplane/websocket/frame-follower.ts";
import { closePayload, frameBytes, opcodes } from "../../integration/websocket/peer.ts";

/** What the sink gets of the pieces. */
function follow(pieces: readonly Buffer[], isMasked: boolean) {
  const passed: Buffer[] = [];
  const events: string[] = [];
  const follower = new FrameFollower(
    {
      pass(bytes) {
        passed.push(bytes);
      },
      control(opcode, payload) {
        events.push(`${opcode} ${payload.toString()}`);
        return payload.toString() !== "mine";
      },
      between: () => void events.push("between"),
      closed: (frame) => void events.push(`closed ${frame.length}`),
      broken: () => void events.push("broken"),
    },
    { isMasked, reserved: reservedBits(null) },
  );
  for (const piece of pieces) follower.push(piece);
  return { bytes: Buffer.concat(passed).toString("hex"), events, isBetween: follower.isBetween };
}

function pieces(bytes: Buffer, size: number): Buffer[] {
  const all: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) all.push(bytes.subarray(at, at + size));
  return all;
}

describe.each([true, false])("masked: %p", (mask) => {
  const frame = (opcode: number, payload: string | Buffer, isFinal = true) =>
    frameBytes(opcode, payload, { mask, isFinal });
  const good = [
    frame(opcodes.text, "one", false),
    frame(opcodes.ping, "hello"),
    frame(opcodes.continuation, Buffer.alloc(126, 7), false),
    frame(opcodes.continuation, ""),
    frame(opcodes.pong, "p".repeat(125)),
    frame(opcodes.binary, Buffer.alloc(65_536, 8)),
  ];
  const sizes = [1, 2, 3, 5, 7, 64, 131, 1000, 65_535, 1_000_000];

  test.each(sizes)("pieces of %d bytes: all frames pass", (size) => {
    const bytes = Buffer.concat(good);
    expect(follow(pieces(bytes, size), mask)).toEqual({
      bytes: bytes.toString("hex"),
      events: ["9 hello", `10 ${"p".repeat(125)}`],
      isBetween: true,
    });
  });

  test.each(sizes)("pieces of %d bytes: a pong that the sink keeps is cut out", (size) => {
    const [before, after] = [frame(opcodes.text, "before"), frame(opcodes.text, "after")];
    const bytes = Buffer.concat([before, frame(opcodes.pong, "mine"), after]);
    expect(follow(pieces(bytes, size), mask)).toMatchObject({
      bytes: Buffer.concat([before, after]).toString("hex"),
      events: ["10 mine"],
    });
  });

  test.each(sizes)("pieces of %d bytes: nothing follows a Close", (size) => {
    const close = frame(opcodes.close, closePayload(1000, "bye"));
    const text = frame(opcodes.text, "before");
    const bytes = Buffer.concat([text, close, frame(opcodes.text, "after")]);
    expect(follow(pieces(bytes, size), mask)).toMatchObject({
      bytes: text.toString("hex"),
      events: [`closed ${close.length}`],
    });
  });

  test.each(sizes)("pieces of %d bytes: nothing of a broken frame passes", (size) => {
    const text = frame(opcodes.text, "before");
    const bytes = Buffer.concat([text, frame(3, "x"), frame(opcodes.text, "after")]);
    expect(follow(pieces(bytes, size), mask)).toMatchObject({
      bytes: text.toString("hex"),
      events: ["broken"],
    });
  });

  test("half a payload is no place for another frame", () => {
    expect(follow([frame(opcodes.text, "half").subarray(0, -1)], mask).isBetween).toBe(false);
    // Of a header nothing has passed.
    expect(follow([frame(opcodes.text, "half").subarray(0, 1)], mask).isBetween).toBe(true);
  });
});

test.each([
  [null, 0, 0],
  ["permessage-deflate", 0x40, 0],
  ["permessage-deflate; server_no_context_takeover; client_max_window_bits=10", 0x40, 0],
  ["x-other", 0x70, 0x70],
  ["permessage-deflate, x-other", 0x70, 0x70],
])("the reserved bits of %p", (extensions, first, other) => {
  expect(reservedBits(extensions)).toEqual({ first, other });
});
