// Reads the answer to a request of the gateway's own; knows no connection and no plugin.
import type { Refetched } from "../../pdk/context.ts";
import type { Visit } from "./visit.ts";

/** `visit`: what has seen the answer. The body is left out when it is longer than `maxBytes` or breaks off. */
export async function readRefetched(
  response: Response | undefined,
  { seenSource: source }: Visit,
  maxBytes: number,
): Promise<Refetched> {
  // A connection that went on as something else has no answer.
  if (response === undefined)
    return { source: "gateway", status: 0, headers: new Headers(), body: null };
  const { status, headers } = response;
  return { source, status, headers, body: await readUpTo(response.body, maxBytes) };
}

async function readUpTo(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Uint8Array | null> {
  if (stream === null) return new Uint8Array(0);
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    // Leaving the loop ends the stream, and with it the exchange.
    for await (const piece of stream) {
      size += piece.byteLength;
      if (size > maxBytes) return null;
      pieces.push(piece);
    }
  } catch {
    return null;
  }
  return Buffer.concat(pieces);
}
