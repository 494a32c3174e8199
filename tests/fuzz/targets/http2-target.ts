// Frames of HTTP/2 from a target: in any pieces the same responses arrive with the same ends, and nothing of them is left.
import fc from "fast-check";
import { encode, type Field } from "../../support/h2-client.ts";
import { frame } from "../../support/h2-wire.ts";
import type { RecordedExchange } from "../../integration/upstream-http2/recorded-exchange.ts";
import { TargetWire } from "../../integration/upstream-http2/target-wire.ts";
import { cuts, edited, edits, type Edit, inPieces } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface SentFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Uint8Array;
}

interface Input {
  readonly frames: readonly SentFrame[];
  readonly changes: readonly Edit[];
  readonly cuts: readonly number[];
}

const head = fc
  .subarray<Field>([
    ["x-a", "1"],
    ["content-length", "3"],
    ["set-cookie", "a=1"],
    ["trailer", "x-sum"],
    ["connection", "close"],
    [":status", "204"],
  ])
  .map((more) => encode([[":status", "200"], ...more]));
const block = fc.oneof(
  { arbitrary: head, weight: 4 },
  fc.constantFrom(
    encode([
      [":status", "103"],
      ["link", "</a>"],
    ]),
    encode([["grpc-status", "0"]]),
    // A field for the table, and its index.
    Buffer.from([0x88, 0x40, 1, 0x79, 1, 0x7a]),
    Buffer.from([0x88, 0xbe]),
  ),
);
const stream = fc.constantFrom(1, 1, 3, 3, 5, 7, 0, 2);
const bytes = fc.uint8Array({ maxLength: 12 });
const sent = (
  type: number,
  flags: readonly number[],
  payload: fc.Arbitrary<Uint8Array>,
  on: fc.Arbitrary<number> = stream,
) =>
  fc.record<SentFrame>({
    type: fc.constant(type),
    flags: fc.constantFrom(...flags),
    stream: on,
    payload,
  });
const uint32 = fc
  .constantFrom(0, 1, 3, 7, 100, 65_535, 2 ** 31 - 1, 2 ** 32 - 1)
  .map((value) => Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value));
const connection = fc.constantFrom(0, 0, 0, 1);

const frames = fc.array(
  fc.oneof(
    { arbitrary: sent(1, [4, 4, 5, 5, 0, 12, 36], block), weight: 6 },
    { arbitrary: sent(0, [0, 1, 1, 8, 9], bytes), weight: 5 },
    {
      arbitrary: sent(
        9,
        [4, 0],
        block.map((whole) => whole.subarray(0, 5)),
      ),
      weight: 1,
    },
    { arbitrary: sent(3, [0], uint32), weight: 2 },
    { arbitrary: sent(8, [0], uint32, fc.constantFrom(0, 1, 3)), weight: 1 },
    {
      arbitrary: sent(6, [0, 1], fc.uint8Array({ minLength: 8, maxLength: 8 }), connection),
      weight: 1,
    },
    {
      arbitrary: sent(
        4,
        [0, 1],
        fc.constantFrom(
          Uint8Array.of(),
          Uint8Array.of(0, 4, 0, 0, 0, 9),
          Uint8Array.of(0, 3, 0, 0, 0, 0),
          Uint8Array.of(0, 2, 0, 0, 0, 1),
        ),
        connection,
      ),
      weight: 1,
    },
    {
      arbitrary: sent(
        7,
        [0],
        uint32.map((last) => Uint8Array.of(...last, 0, 0, 0, 0)),
        connection,
      ),
      weight: 1,
    },
    { arbitrary: sent(77, [0, 255], bytes), weight: 1 },
  ),
  { maxLength: 8 },
);

export const target = defineTarget<Input>({
  name: "http2-target",
  share: 60,
  inputs: fc.record({ frames, changes: edits(2), cuts }),
  async check({ frames: all, changes, cuts: at }) {
    const written = all.map((one) => frame(one.type, one.flags, one.stream, one.payload));
    const whole = edited(Buffer.concat(written), changes);
    const seen = await heard([whole]);
    mustEqual(await heard(inPieces(whole, at)), seen, "in pieces");
    mustEqual(await heard(Array.from(whole, (byte) => Buffer.of(byte))), seen, "byte by byte");
  },
});

/** More steps of promises than a body needs. */
const STEPS = 30;

/** Three requests, one with a body. The target closes the connection at the end, so that each request ends. */
async function heard(pieces: readonly Buffer[]) {
  const wire = new TargetWire();
  const body = [Buffer.from("body")];
  const source = {
    async read() {
      const value = body.shift();
      return value === undefined ? ({ done: true } as const) : ({ done: false, value } as const);
    },
    async cancel() {},
  };
  const requests = [
    wire.request(),
    wire.request({ method: "HEAD" }),
    wire.request({ method: "POST", source }),
  ];
  wire.connect();
  const [session] = wire.sessions;
  for (let step = 0; step < STEPS; step++) await Promise.resolve();
  session?.output.flush();
  for (const piece of pieces) wire.send(piece);
  for (let step = 0; step < STEPS; step++) await Promise.resolve();
  session?.output.flush();
  const isOver = session?.isOver;
  wire.end();
  for (const one of wire.sessions) one.destroy();
  for (const one of requests) {
    must(one.events.filter((event) => /^f/.test(event)).length === 1, "a request has one end");
    must(!/^f/.test(one.events.slice(0, -1).join()), "nothing follows the end of a request");
  }
  must(session?.streams.size === 0 && session.load === 0, "something is left in the session");
  return { requests: requests.map(outcomeOf), resets: wire.resets, goAway: wire.goAway, isOver };
}

/** How often the rest was waited for is a matter of the reads. */
const outcomeOf = ({ events, head: first, text, trailers, error }: RecordedExchange) => ({
  events: events.filter((event) => event !== "waiting" && event !== "content"),
  lines: first?.lines,
  text,
  trailers,
  error: error?.detail,
});
