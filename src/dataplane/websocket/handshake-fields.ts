// Checks the header fields of the opening handshake on both sides (RFC 6455 sections 4.1 and 4.2); knows no socket.
import { createHash } from "node:crypto";
import { failures, type ProxyError } from "../error.ts";
import { listOf } from "../upstream/response-head.ts";
import type { ResponseHead } from "../upstream/response-head.ts";

/** Sixteen bytes in base64. */
const KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/;
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** The client's request. */
interface HandshakeRequest {
  readonly upstreamBodyLength: number | null;
  readonly stream: { readonly switchProtocols?: unknown };
  header(name: string): string | null;
}

/** Why the client's handshake is not valid; null when it is. */
export function handshakeProblem(request: HandshakeRequest): ProxyError | null {
  if (request.upstreamBodyLength !== null)
    return failures.badRequest("a WebSocket handshake has no body");
  if (request.header("sec-websocket-version") !== "13") return failures.webSocketVersion;
  if (!KEY.test(request.header("sec-websocket-key") ?? ""))
    return failures.badRequest("the Sec-WebSocket-Key is not valid");
  return null;
}

/** The header fields of the client's 101 response; an error when the target's 101 is not valid. */
export function upgradeFields(
  request: HandshakeRequest,
  head: ResponseHead,
): [string, string][] | ProxyError {
  if (head.upgrade?.toLowerCase() !== "websocket")
    return failures.upgrade("the target switched to another protocol than WebSocket");
  const fields = listOf(head);
  // A repeated field is joined with a comma, so that it equals no valid value.
  const accept = fields.get("sec-websocket-accept");
  const protocol = fields.get("sec-websocket-protocol");
  const extensions = fields.get("sec-websocket-extensions");
  if (extensions !== null && !isOffered(request, extensions))
    return failures.upgrade("the target chose an extension that was not offered");
  if (accept !== acceptOf(request.header("sec-websocket-key") ?? ""))
    return failures.upgrade("the target's Sec-WebSocket-Accept is not valid");
  if (protocol !== null && !offeredProtocols(request).includes(protocol))
    return failures.upgrade("the target chose a sub-protocol that was not offered");
  // Without this field Bun selects the first protocol that the client offers; it omits an empty one.
  fields.set("Sec-WebSocket-Protocol", protocol ?? "");
  fields.delete("sec-websocket-accept");
  return fields.pairs;
}

function acceptOf(key: string): string {
  return createHash("sha1").update(`${key}${ACCEPT_SUFFIX}`).digest("base64");
}

/** Whether the target was offered all of these extensions: none where the gateway reads messages itself. */
function isOffered(request: HandshakeRequest, extensions: string): boolean {
  if (request.stream.switchProtocols === undefined) return false;
  const offered = extensionNames(request.header("sec-websocket-extensions") ?? "");
  return extensionNames(extensions).every((name) => offered.includes(name));
}

const extensionNames = (list: string): string[] =>
  list.split(",").map((extension) => (extension.split(";", 1)[0] ?? "").trim().toLowerCase());

function offeredProtocols(request: HandshakeRequest): readonly string[] {
  const offered = request.header("sec-websocket-protocol");
  return offered === null ? [] : offered.split(",").map((name) => name.trim());
}
