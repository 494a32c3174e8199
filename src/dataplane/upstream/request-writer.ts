// Writes the head of every request that leaves the gateway: the one place where fields are dropped and added; knows no socket.
import { hyphenated } from "../../http/fields.ts";
import { connectionOptions, HOP_BY_HOP } from "../../http/hop-by-hop.ts";
import { failures, type ProxyError } from "../error.ts";
import type { RequestContext } from "../request-context.ts";

/** The client's fields as they go on, and how its body is framed. */
export interface ForwardedFields {
  /** Lines that end in CRLF, without Host and framing. */
  readonly lines: string;
  /** What the body is: null none, -1 of unknown length. */
  readonly bodyLength: number | null;
}

/** Identity of this gateway in CDN-Loop (RFC 8586). */
export const loopToken = (instanceId: string) => `sluice-${instanceId}`;

/**
 * What an application must not take for a field of the gateway: dropped in every spelling but the very names below, see
 * `hyphenated`.
 */
const ALIASES =
  /^(?:x-(?:forwarded|real-ip|request-id|consumer|credential|anonymous|authenticated|auth)|forwarded|via$|cdn-loop|host$|content-length|transfer-encoding|connection|proxy-|client-cert)/;

/** Fields that end here, or that are written anew below. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "expect",
  "http2-settings",
  // Offers compression of WebSocket messages, which are read and written anew here.
  "sec-websocket-extensions",
  "x-real-ip",
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  // RFC 9440 section 4: only the gateway says which certificate the client has shown.
  "client-cert",
  "client-cert-chain",
  "via",
  "cdn-loop",
  // CGI makes HTTP_PROXY of it, which libraries take for the proxy of their own requests (httpoxy, CVE-2016-5385).
  "proxy",
  // Only the gateway says who the client is.
  "x-consumer-id",
  "x-consumer-username",
  "x-consumer-custom-id",
  "x-consumer-groups",
  "x-credential-identifier",
  "x-anonymous-consumer",
]);

type FieldKind =
  | "plain"
  | "dropped"
  /** That a trusted proxy alone may send, also one that no standard names, such as X-Forwarded-User. */
  | "of-proxy"
  | "request-id";

/** What to do with the fields seen lately: names repeat, and to find one costs less than to look at it. */
const kinds = new Map<string, FieldKind>();
const MAX_KINDS = 1000;
const MAX_NAME_LENGTH = 64;

function kindOf(name: string): FieldKind {
  const known = kinds.get(name);
  if (known !== undefined) return known;
  const kind = findKind(name);
  if (kinds.size >= MAX_KINDS) kinds.clear();
  if (name.length <= MAX_NAME_LENGTH) kinds.set(name, kind);
  return kind;
}

function findKind(name: string): FieldKind {
  const plain = hyphenated(name);
  if (NOT_FORWARDED.has(name) || (plain !== name && ALIASES.test(plain))) return "dropped";
  if (name.startsWith("x-forwarded-") || name === "forwarded") return "of-proxy";
  return name === "x-request-id" ? "request-id" : "plain";
}

/**
 * The client's fields in the form that goes upstream (RFC 9110 section 7.6): hop-by-hop fields and those that Connection
 * names are gone before ours are added, so no client can strip what the gateway says. A ProxyError when a limit is passed
 * or the request has been here before.
 */
export function forwardFields(
  context: RequestContext,
  token: string,
): ForwardedFields | ProxyError {
  const { headers, known, listener } = context;
  const named = connectionOptions(known.connection);
  const isTrusted = context.isFromTrustedProxy();
  let lines = "";
  let count = 0;
  // Request line and empty line.
  const { edits, tellsId } = context;
  let bytes = context.method.length + context.target.length + 14;
  for (const name in headers) {
    const value = headers[name] ?? "";
    count++;
    bytes += name.length + value.length + 4;
    const kind = kindOf(name);
    if (kind === "dropped" || (kind === "of-proxy" && !isTrusted)) continue;
    if (kind === "request-id" && tellsId) continue;
    if (edits?.replaces(name) === true) continue;
    if (named.length > 0 && kind !== "of-proxy" && named.includes(name)) continue;
    // In one: a text of its own for the line, joined to the rest afterwards, would be garbage for each field.
    lines = `${lines}${name}: ${value}\r\n`;
  }
  if (count > listener.maxHeaderFields) return failures.tooManyFields;
  if (bytes > listener.maxHeaderBytes) return failures.headTooLarge;
  const { cdnLoop: loop } = known;
  if (loop !== null && hasToken(loop, token)) return failures.loop;
  if (edits !== null) lines += edits.lines();
  if (tellsId && edits?.replaces("x-request-id") !== true) lines += idLine(context, isTrusted);
  return withBody(context, lines + ownFields(context, token));
}

/** An id goes to logs, pages and fields: nothing in it may mean anything there. */
const ID = /^[\w.~+/=:@-]{1,128}$/;

/** The request's id. That of a trusted proxy before this one is kept; anybody else could make two requests look like one. */
function idLine(context: RequestContext, isTrusted: boolean): string {
  const given = isTrusted ? context.headers["x-request-id"] : undefined;
  if (given !== undefined && ID.test(given)) context.setId(given);
  return `x-request-id: ${context.id}\r\n`;
}

/**
 * What the gateway says of the client and of itself. Here Connection counts for nothing: through a trusted proxy that
 * passes it on, a client could make the target take the proxy for the client (Traefik CVE-2024-45410), or hide a loop.
 */
function ownFields(context: RequestContext, token: string): string {
  const { via, cdnLoop } = context.known;
  const isTrusted = context.isFromTrustedProxy();
  const chain = isTrusted ? before(context.header("x-forwarded-for")) : "";
  const connection = isTrusted ? trustedFields(context) : context.listener.upstreamFields;
  const isReplaced = context.edits?.replaces("client-cert") === true;
  const certificate = isReplaced ? "" : (context.connection?.clientCertificateField ?? "");
  return `${certificate}x-forwarded-for: ${chain}${context.peerAddress()}\r\nx-real-ip: ${context.clientAddress()}\r\nx-forwarded-host: ${context.clientHost()}\r\n${connection}via: ${before(via)}1.1 sluice\r\ncdn-loop: ${before(cdnLoop)}${token}\r\n`;
}

/** What somebody else has said already, to add to it. */
const before = (value: string | null) => (value === null ? "" : `${value}, `);

function withBody(context: RequestContext, lines: string): ForwardedFields | ProxyError {
  const held = context.edits?.body ?? context.bodyBytes;
  if (held !== null) return { lines, bodyLength: held.byteLength === 0 ? null : held.byteLength };
  const bodyLength = bodyLengthOf(context);
  if (bodyLength === null || context.request.body !== null) return { lines, bodyLength };
  // Bun hides the body of these. To drop it could change what is asked for (a search in a GET), so say no.
  if (context.method === "GET" || context.method === "HEAD")
    return failures.badRequest(`a ${context.method} with a body cannot be passed on`);
  return { lines, bodyLength: null };
}

/** What a trusted proxy said of the client's connection goes on. */
function trustedFields(context: RequestContext): string {
  const port = context.header("x-forwarded-port");
  const knownPort = port !== null && /^\d{1,5}$/.test(port) ? port : String(context.listener.port);
  return `x-forwarded-proto: ${context.clientScheme()}\r\nx-forwarded-port: ${knownPort}\r\n`;
}

/** Whether a CDN-Loop value holds the token as a member; parameters do not count. */
function hasToken(value: string, token: string): boolean {
  return value.split(",").some((member) => (member.split(";")[0] ?? "").trim() === token);
}

/** RFC 9112 section 6: a coding or a length announces a body; HTTP/2 needs neither. */
function bodyLengthOf(context: RequestContext): number | null {
  const { known, method } = context;
  if (known.transferEncoding !== null) return -1;
  const { contentLength: length } = known;
  if (length !== null) return length === "0" ? null : Number(length);
  if (method === "GET" || method === "HEAD" || context.request.body === null) return null;
  return -1;
}

/** Everything that goes before a body: request line, Host, fields, framing. */
export function requestHead(
  context: RequestContext,
  fields: ForwardedFields,
  upstream: {
    readonly target: string;
    readonly host: string;
    /** What is asked of the connection after the exchange; an upgrade is always to a WebSocket. */
    readonly connection: "keep" | "close" | "upgrade";
  },
): string {
  const method = context.upstreamMethod;
  return `${method} ${upstream.target} HTTP/1.1\r\nhost: ${upstream.host}\r\n${fields.lines}${framing(method, fields.bodyLength)}${CONNECTION[upstream.connection]}\r\n`;
}

const CONNECTION = {
  keep: "",
  close: "connection: close\r\n",
  upgrade: "connection: Upgrade\r\nupgrade: websocket\r\n",
} as const;

function framing(method: string, bodyLength: number | null): string {
  if (bodyLength === null) {
    // RFC 9110 section 8.6: says that there is none where the method would have one.
    return method === "POST" || method === "PUT" || method === "PATCH"
      ? "content-length: 0\r\n"
      : "";
  }
  return bodyLength < 0 ? "transfer-encoding: chunked\r\n" : `content-length: ${bodyLength}\r\n`;
}
