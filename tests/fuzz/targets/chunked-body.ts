// Chunked bodies in any pieces: content and end are those of a parser of the whole body, or both reject it.
import fc from "fast-check";
import { ChunkedDecoder } from "../../../src/dataplane/upstream/chunked-decoder.ts";
import { ResponseSyntaxError } from "../../../src/dataplane/upstream/response-parser.ts";
import { cuts, edited, edits, type Edit, inPieces } from "../bytes.ts";
import { defineTarget, mustEqual } from "../target.ts";

interface Input {
  readonly chunks: readonly { readonly data: Uint8Array; readonly extension: string }[];
  readonly trailers: readonly string[];
  readonly changes: readonly Edit[];
  readonly cuts: readonly number[];
}

const odd = fc.constantFrom("\r", "\n", "\r\n", "0", ";", "f", " ", "-", "0\r\n\r\n", "x");

export const target = defineTarget<Input>({
  name: "chunked-body",
  share: 90,
  inputs: fc.record({
    chunks: fc.array(
      fc.record({
        data: fc.uint8Array({ minLength: 1, maxLength: 20 }),
        extension: fc.constantFrom("", "", "", ";a", ";a=b", ';a="x"'),
      }),
      { maxLength: 4 },
    ),
    trailers: fc.array(fc.constantFrom("A: b", "Content-Length: 9"), { maxLength: 2 }),
    changes: edits(
      3,
      odd.map((text) => new Uint8Array(Buffer.from(text))),
    ),
    cuts,
  }),
  check(input) {
    const bytes = edited(written(input), input.changes);
    const wanted = plainly(bytes);
    const whole = decoded([bytes]);
    mustEqual(whole, wanted, "in one piece");
    mustEqual(decoded(inPieces(bytes, input.cuts)), wanted, "in pieces");
    mustEqual(decoded(Array.from(bytes, (byte) => Buffer.of(byte))), wanted, "byte by byte");
    if (input.changes.length > 0) return;
    const content = Buffer.concat(input.chunks.map(({ data }) => data)).toString("latin1");
    mustEqual(whole, { content, used: bytes.length, end: "done" }, "what was written");
  },
});

interface Decoded {
  readonly content: string;
  /** Bytes up to the end of the body; -1 when it was rejected. */
  readonly used: number;
  readonly end: "done" | "more" | "refused";
}

function written({ chunks, trailers }: Input): Buffer {
  return Buffer.concat([
    ...chunks.flatMap(({ data, extension }) => [
      Buffer.from(`${data.length.toString(16)}${extension}\r\n`),
      data,
      Buffer.from("\r\n"),
    ]),
    Buffer.from(`0\r\n${trailers.map((line) => `${line}\r\n`).join("")}\r\n`),
  ]);
}

function decoded(pieces: readonly Buffer[]): Decoded {
  const decoder = new ChunkedDecoder();
  let [content, used] = ["", 0];
  try {
    for (const piece of pieces) {
      used += decoder.push(piece, (part) => {
        content += part.toString("latin1");
      });
      if (decoder.done) break;
    }
    return { content, used, end: decoder.done ? "done" : "more" };
  } catch (error) {
    if (!(error instanceof ResponseSyntaxError)) throw error;
    return { content, used: -1, end: "refused" };
  }
}

/** By regular expressions over the whole. */
function plainly(bytes: Buffer): Decoded {
  const text = bytes.toString("latin1");
  let [content, at] = ["", 0];
  for (;;) {
    const head = /^([0-9a-fA-F]{1,13})(?:;[^\r\n]*)?\r\n/.exec(text.slice(at));
    if (head === null) {
      const isBeginning = /^(?:[0-9a-fA-F]{1,13}(?:;[^\r\n]*)?\r?)?$/.test(text.slice(at));
      return isBeginning
        ? { content, used: text.length, end: "more" }
        : { content, used: -1, end: "refused" };
    }
    at += head[0].length;
    const size = Number.parseInt(head[1]!, 16);
    if (size === 0) break;
    content += text.slice(at, at + size);
    const after = text.slice(at + size, at + size + 2);
    if (!"\r\n".startsWith(after)) return { content, used: -1, end: "refused" };
    if (after !== "\r\n") return { content, used: text.length, end: "more" };
    at += size + 2;
  }
  const trailer = /^(?:[^\r\n]+\r\n)*\r\n/.exec(text.slice(at));
  if (trailer !== null) return { content, used: at + trailer[0].length, end: "done" };
  const isBeginning = /^(?:[^\r\n]+\r\n)*[^\r\n]*\r?$/.test(text.slice(at));
  return isBeginning
    ? { content, used: text.length, end: "more" }
    : { content, used: -1, end: "refused" };
}
