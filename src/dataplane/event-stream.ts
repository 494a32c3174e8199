// Makes Bun send the head of an event stream before its first event; knows no socket.
import type { ResponseHead } from "./upstream/response-head.ts";

/**
 * A comment, which event stream parsers ignore (HTML standard, section 9.2.6). Bun.serve completes the head only with
 * the first byte of the body, and a browser's EventSource opens only with the complete head.
 */
export const openingComment: Uint8Array = Buffer.from(":\n\n");

/** Whether `openingComment` may precede the body: not with a content coding, a length or no-transform. */
export function allowsOpeningComment({
  status,
  isEventStream,
  framing,
  headers,
}: ResponseHead): boolean {
  if (!isEventStream || status !== 200 || framing === "length") return false;
  // RFC 9110 section 7.7.
  const mayChange = headers.get("cache-control")?.toLowerCase().includes("no-transform") !== true;
  return mayChange && !headers.has("content-encoding");
}
