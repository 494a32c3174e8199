// Frames of WebSockets where the gateway reads messages: in any pieces the same messages, or the same failure after the same ones.
import { FrameError } from "../../../src/dataplane/websocket/frame.ts";
import { FrameDecoder } from "../../../src/dataplane/websocket/frame-decoder.ts";
import { edited, inPieces } from "../bytes.ts";
import { defineTarget, mustEqual } from "../target.ts";
import { bytesOf, frames, type Input } from "./websocket-frames.ts";

export const target = defineTarget<Input>({
  name: "websocket-messages",
  share: 60,
  inputs: frames,
  check(input) {
    const bytes = edited(bytesOf(input), input.changes);
    const whole = decoded([bytes], input);
    mustEqual(decoded(inPieces(bytes, input.cuts), input), whole, "in pieces");
    const single = Array.from(bytes.subarray(0, 400), (byte) => Buffer.of(byte));
    mustEqual(decoded([...single, bytes.subarray(400)], input), whole, "byte by byte");
  },
});

const MAX_BYTES = 1000;

function decoded(pieces: readonly Buffer[], { isMasked }: Input): string[] {
  const seen: string[] = [];
  const note = (what: string) => (data: Buffer) =>
    void seen.push(`${what} ${data.toString("hex")}`);
  const decoder = new FrameDecoder(
    {
      text: (message) => void seen.push(`text ${message}`),
      binary: note("binary"),
      ping: note("ping"),
      pong: note("pong"),
      closed: (code, reason) => void seen.push(`closed ${code} ${reason}`),
    },
    MAX_BYTES,
    isMasked,
  );
  try {
    for (const piece of pieces) decoder.push(Buffer.from(piece));
  } catch (error) {
    if (!(error instanceof FrameError)) throw error;
    seen.push(`error ${error.code}`);
  }
  return seen;
}
