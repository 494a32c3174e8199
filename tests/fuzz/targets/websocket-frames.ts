// Frames of WebSockets that pass a tunnel: in any pieces the same bytes pass, the same control frames are seen, and it ends in the same way.
import fc from "fast-check";
import { isCloseCode } from "../../../src/dataplane/websocket/frame.ts";
import { FrameFollower, reservedBits } from "../../../src/dataplane/websocket/frame-follower.ts";
import { cuts, edited, edits, type Edit, inPieces } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

export interface Sketch {
  /** FIN, reserved bits and opcode. */
  readonly first: number;
  readonly payload: Uint8Array;
  /** Bytes of the length: 0 for the shortest form. */
  readonly form: 0 | 2 | 8;
}

export interface Input {
  readonly frames: readonly Sketch[];
  readonly isMasked: boolean;
  readonly extensions: string | null;
  readonly changes: readonly Edit[];
  readonly cuts: readonly number[];
}

/** The payload of the pings of the gateway, whose pongs do not pass. */
const OWN = Buffer.from("own-ping");

const LONG = new Uint8Array(65_540);
const payload = fc.oneof(
  { weight: 96, arbitrary: fc.uint8Array({ maxLength: 12 }) },
  { weight: 16, arbitrary: fc.constantFrom(125, 126, 127).map((size) => new Uint8Array(size)) },
  { weight: 1, arbitrary: fc.constant(LONG) },
  { weight: 32, arbitrary: fc.constantFrom(OWN, Buffer.from([3, 232]), Buffer.from([3, 237, 97])) },
);
const right = [0x81, 0x82, 0x01, 0x00, 0x80, 0x89, 0x8a, 0x88];
const wrong = [0xc1, 0xc2, 0x41, 0xa1, 0x91, 0x83, 0x8b, 0x09, 0x08, 0x0a, 0x87];

/** Conversations of one peer, right and wrong. */
export const frames: fc.Arbitrary<Input> = fc.record({
  frames: fc.array(
    fc.record<Sketch>({
      first: fc.oneof(
        { weight: 9, arbitrary: fc.constantFrom(...right) },
        { weight: 1, arbitrary: fc.constantFrom(...wrong) },
      ),
      payload,
      form: fc.oneof(
        { weight: 12, arbitrary: fc.constant<0>(0) },
        { weight: 1, arbitrary: fc.constantFrom<2 | 8>(2, 8) },
      ),
    }),
    { maxLength: 6 },
  ),
  isMasked: fc.boolean(),
  extensions: fc.constantFrom(null, "permessage-deflate", "x-other"),
  changes: edits(2),
  cuts,
});

export const target = defineTarget<Input>({
  name: "websocket-frames",
  share: 90,
  inputs: frames,
  check(input) {
    const bytes = edited(bytesOf(input), input.changes);
    const wanted = plainly(bytes, input);
    mustEqual(followed([bytes], input), wanted, "in one piece");
    const pieces = inPieces(bytes, input.cuts);
    mustEqual(followed(pieces, input), wanted, "in pieces");
    // Of the long ones only the beginning.
    const single = Array.from(bytes.subarray(0, 400), (byte) => Buffer.of(byte));
    mustEqual(followed([...single, bytes.subarray(400)], input), wanted, "byte by byte");
    mustEqual(interrupted(pieces, input), wanted, "with frames in between");
  },
});

export function bytesOf({ frames: all, isMasked }: Input): Buffer {
  return Buffer.concat(
    all.flatMap(({ first, payload: data, form }) => {
      const size = data.length;
      const length = Buffer.alloc(form > 0 ? form : size < 126 ? 0 : size < 65_536 ? 2 : 8);
      if (length.length === 2) length.writeUInt16BE(size & 0xffff);
      if (length.length === 8) length.writeUInt32BE(size, 4);
      const short = length.length === 0 ? size : length.length === 2 ? 126 : 127;
      const key = isMasked ? Buffer.from([1, 2, 3, 4]) : Buffer.alloc(0);
      const sent = isMasked ? data.map((byte, at) => byte ^ (key[at & 3] ?? 0)) : data;
      return [Buffer.of(first, (isMasked ? 0x80 : 0) | short), length, key, Buffer.from(sent)];
    }),
  );
}

interface Followed {
  /** SHA-1 and length of what passes. */
  readonly passed: string;
  readonly controls: readonly string[];
  readonly end: string;
}

const digest = (pieces: readonly Buffer[]): string => {
  const all = Buffer.concat(pieces);
  return `${all.length} ${Bun.SHA1.hash(all, "hex")}`;
};

/** `onNotify`: what `between` does. */
function follow(input: Input, onNotify: (follower: FrameFollower) => void) {
  const passed: Buffer[] = [];
  const controls: string[] = [];
  let end = "open";
  const follower: FrameFollower = new FrameFollower(
    {
      pass: (bytes) => {
        must(end === "open", "bytes pass after the end");
        passed.push(Buffer.from(bytes));
      },
      control: (opcode, data) => {
        controls.push(`${opcode} ${data.toString("hex")}`);
        return !isOwn(opcode, data);
      },
      between: () => onNotify(follower),
      closed: (frame) => (end = `closed ${frame.toString("hex")}`),
      broken: () => (end = "broken"),
    },
    { isMasked: input.isMasked, reserved: reservedBits(input.extensions) },
  );
  return { follower, result: (): Followed => ({ passed: digest(passed), controls, end }) };
}

const isOwn = (opcode: number, data: Buffer) => opcode === 10 && data.equals(OWN);

function followed(pieces: readonly Buffer[], input: Input): Followed {
  const { follower, result } = follow(input, () => must(false, "a gap that was not asked for"));
  for (const piece of pieces) follower.push(Buffer.from(piece));
  return result();
}

/** The gateway has a frame of its own to send after each piece. */
function interrupted(pieces: readonly Buffer[], input: Input): Followed {
  const { follower, result } = follow(input, (one) => must(one.isBetween, "within a frame"));
  for (const piece of pieces) {
    follower.push(Buffer.from(piece));
    if (!follower.isBetween) follower.notifyBetween();
  }
  return result();
}

/** Frame by frame over the whole. */
function plainly(bytes: Buffer, { isMasked, extensions }: Input): Followed {
  const allowed = reservedBits(extensions);
  const passed: Buffer[] = [];
  const controls: string[] = [];
  const ended = (end: string): Followed => ({ passed: digest(passed), controls, end });
  let isInMessage = false;
  for (let at = 0; ;) {
    const rest = bytes.subarray(at);
    const [first, second] = rest;
    if (first === undefined) return ended("open");
    const [opcode, isFinal] = [first & 15, first >= 0x80];
    const isText = opcode === 1 || opcode === 2;
    const isControl = opcode >= 8;
    if ((first & 0x70 & ~(isText ? allowed.first : allowed.other)) !== 0) return ended("broken");
    if (![0, 1, 2, 8, 9, 10].includes(opcode)) return ended("broken");
    if (isControl ? !isFinal : isText === isInMessage) return ended("broken");
    if (second === undefined) return ended("open");
    if (second >= 0x80 !== isMasked) return ended("broken");
    const short = second & 0x7f;
    if (isControl && short > 125) return ended("broken");
    const lengthEnd = short === 127 ? 10 : short === 126 ? 4 : 2;
    if (rest.length < lengthEnd) return ended("open");
    let size = short;
    if (short === 126) size = rest.readUInt16BE(2);
    if (short === 127) size = Number(rest.readBigUInt64BE(2));
    if (short === 126 && size < 126) return ended("broken");
    if (short === 127 && (size < 65_536 || (rest[2] ?? 0) >= 0x80)) return ended("broken");
    const start = isMasked ? lengthEnd + 4 : lengthEnd;
    if (rest.length < (isControl ? start + size : start)) return ended("open");
    const frame = rest.subarray(0, start + size);
    const key = rest.subarray(lengthEnd, start);
    if (isControl) {
      const data = Buffer.from(
        frame.subarray(start).map((byte, index) => byte ^ (isMasked ? (key[index & 3] ?? 0) : 0)),
      );
      if (opcode === 8) {
        const isValid = size === 0 || (size > 1 && isCloseCode(data.readUInt16BE()));
        return ended(isValid ? `closed ${frame.toString("hex")}` : "broken");
      }
      controls.push(`${opcode} ${data.toString("hex")}`);
      if (!isOwn(opcode, data)) passed.push(frame);
    } else {
      passed.push(frame);
      isInMessage = !isFinal;
    }
    at += start + size;
    if (at > bytes.length) return ended("open");
  }
}
