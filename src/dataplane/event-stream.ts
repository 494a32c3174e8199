// Lets a client see the head of an event stream that is silent at first; knows no socket.
import type { ResponseHead } from "./upstream/response-parser.ts";

/**
 * A comment, which readers of event streams skip (HTML standard, section 9.2.6). Bun.serve completes the head only with
 * the first byte of the body, and a browser's EventSource is open only when it has the whole head.
 */
export const silentOpening: Uint8Array = Buffer.from(":\n\n");

/** Whether `silentOpening` may be put before the body: never into coded, measured or protected content. */
export function takesOpening({ status, isEventStream, framing, headers }: ResponseHead): boolean {
  if (!isEventStream || status !== 200 || framing === "length") return false;
  // RFC 9110 section 7.7: a sender may ask that its content stays as it is.
  const mayChange = headers.get("cache-control")?.toLowerCase().includes("no-transform") !== true;
  return mayChange && !headers.has("content-encoding");
}
