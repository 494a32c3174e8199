// Writes the head of every request that leaves the gateway: the one place where fields are dropped and added; knows no socket.
import { namesLoop } from "../../http/cdn-loop.ts";
import { hyphenated } from "../../http/fields.ts";
import { connectionOptions, HOP_BY_HOP } from "../../http/hop-by-hop.ts";
import { failures, type ProxyError } from "../error.ts";
import type { ClientRequest } from "../request/client-request.ts";

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

/** What happens with a field of the client, by its name alone. */
interface FieldRule {
  /** `trusted`: only a trusted proxy may send it, also where no standard names it, such as X-Forwarded-User. */
  readonly fate: "dropped" | "trusted" | "passed" | "id";
  /** Goes before the value: the end of the line before, the name and a colon. */
  readonly prefix: string;
}

/** Rules of the names seen lately: names repeat, and to find a rule costs less than to work it out. */
const rules = new Map<string, FieldRule>();
const MAX_RULES = 1000;
const MAX_NAME_LENGTH = 64;

function ruleOf(name: string): FieldRule {
  const known = rules.get(name);
  if (known !== undefined) return known;
  const rule = { fate: fateOf(name), prefix: `\r\n${name}: ` };
  if (rules.size >= MAX_RULES) rules.clear();
  if (name.length <= MAX_NAME_LENGTH) rules.set(name, rule);
  return rule;
}

function fateOf(name: string): FieldRule["fate"] {
  const plain = hyphenated(name);
  if (NOT_FORWARDED.has(name) || (plain !== name && ALIASES.test(plain))) return "dropped";
  if (name.startsWith("x-forwarded-") || name === "forwarded") return "trusted";
  return name === "x-request-id" ? "id" : "passed";
}

/**
 * The client's fields in the form that goes upstream (RFC 9110 section 7.6): hop-by-hop fields and those that Connection
 * names are gone before ours are added, so no client can strip what the gateway says. Sets `upstreamFields` and
 * `upstreamBodyLength`; the error says that a limit is passed or that the request has been here before.
 */
export function writeUpstreamFields(request: ClientRequest): ProxyError | null {
  const { headers, listener } = request;
  const token = request.generation.loopToken;
  const named = connectionOptions(request.connectionField);
  const isTrusted = request.isFromTrustedProxy();
  let lines = "";
  let count = 0;
  // Request line and empty line.
  const { edits, sendsId } = request;
  let bytes = request.method.length + request.target.length + 14;
  for (const name in headers) {
    const value = headers[name] ?? "";
    count++;
    bytes += name.length + value.length + 4;
    const { fate, prefix } = ruleOf(name);
    if (fate === "dropped" || (sendsId && fate === "id")) continue;
    if (fate === "trusted" ? !isTrusted : named.length > 0 && named.includes(name)) continue;
    if (edits?.replaces(name) === true) continue;
    // Three parts: the engine makes one text of them, and two of four.
    lines = `${lines}${prefix}${value}`;
  }
  lines += "\r\n";
  if (count > listener.maxHeaderFields) return failures.tooManyFields;
  if (bytes > listener.maxHeaderBytes) return failures.headTooLarge;
  const { cdnLoop: loop } = request;
  if (loop !== null && namesLoop(loop, token)) return failures.loop;
  if (edits !== null) lines += edits.lines();
  if (sendsId && edits?.replaces("x-request-id") !== true) lines += idLine(request, isTrusted);
  request.upstreamFields = lines + ownFields(request, token);
  return frameBody(request);
}

/** An id goes to logs, pages and fields: nothing in it may mean anything there. */
const ID = /^[\w.~+/=:@-]{1,128}$/;

/** The request's id. That of a trusted proxy before this one is kept; anybody else could make two requests look like one. */
function idLine(request: ClientRequest, isTrusted: boolean): string {
  const given = isTrusted ? request.headers["x-request-id"] : undefined;
  if (given !== undefined && ID.test(given)) request.id = given;
  return `x-request-id: ${request.id}\r\n`;
}

/**
 * What the gateway says of the client and of itself. Here Connection counts for nothing: through a trusted proxy that
 * passes it on, a client could make the target take the proxy for the client (Traefik CVE-2024-45410), or hide a loop.
 */
function ownFields(request: ClientRequest, token: string): string {
  const isReplaced = request.edits?.replaces("client-cert") === true;
  const certificate = isReplaced ? "" : (request.stream.connection?.clientCertificateField ?? "");
  const isTrusted = request.isFromTrustedProxy();
  const chain = isTrusted ? before(request.header("x-forwarded-for")) : "";
  const peer = request.peerAddress();
  const client = request.clientAddress();
  const host = request.clientHost();
  return `${certificate}x-forwarded-for: ${chain}${peer}\r\nx-real-ip: ${client}\r\nx-forwarded-host: ${host}\r\n${connectionFields(request, isTrusted)}${hopFields(request, token)}`;
}

const connectionFields = (request: ClientRequest, isTrusted: boolean): string =>
  isTrusted ? trustedFields(request) : request.listener.upstreamFields;

/** Of a client that no gateway stands before they are the same for all requests. */
function hopFields({ via, cdnLoop, generation }: ClientRequest, token: string): string {
  if (via === null && cdnLoop === null) return generation.hopFields;
  return `via: ${before(via)}1.1 sluice\r\ncdn-loop: ${before(cdnLoop)}${token}\r\n`;
}

/** What somebody else has said already, to add to it. */
const before = (value: string | null) => (value === null ? "" : `${value}, `);

/** How the body goes upstream. */
function frameBody(request: ClientRequest): ProxyError | null {
  const held = request.edits?.body ?? request.bodyBytes;
  if (held !== null) {
    request.upstreamBodyLength = held.byteLength === 0 ? null : held.byteLength;
    return null;
  }
  const bodyLength = bodyLengthOf(request);
  const { method } = request;
  request.upstreamBodyLength = bodyLength;
  if (bodyLength === null || request.stream.body !== null) return null;
  request.upstreamBodyLength = null;
  // Bun hides the body of these. To drop it could change what is asked for (a search in a GET), so say no.
  return method === "GET" || method === "HEAD"
    ? failures.badRequest(`a ${method} with a body cannot be passed on`)
    : null;
}

/** What a trusted proxy said of the client's connection goes on. */
function trustedFields(request: ClientRequest): string {
  const port = request.header("x-forwarded-port");
  const knownPort = port !== null && /^\d{1,5}$/.test(port) ? port : String(request.listener.port);
  return `x-forwarded-proto: ${request.clientScheme()}\r\nx-forwarded-port: ${knownPort}\r\n`;
}

/** RFC 9112 section 6: a coding or a length announces a body; HTTP/2 needs neither. */
function bodyLengthOf(request: ClientRequest): number | null {
  const { transferEncoding, contentLength, method } = request;
  if (transferEncoding !== null) return -1;
  if (contentLength !== null) return contentLength === "0" ? null : Number(contentLength);
  if (method === "GET" || method === "HEAD" || request.stream.body === null) return null;
  return -1;
}

/** Everything that goes before a body: request line, Host, fields, framing. */
export function requestHead(
  request: ClientRequest,
  host: string,
  connection: keyof typeof CONNECTION,
): string {
  const method = request.upstreamMethod;
  return `${method} ${request.upstreamTarget} HTTP/1.1\r\nhost: ${host}${request.upstreamFields}${framing(method, request.upstreamBodyLength)}${CONNECTION[connection]}\r\n`;
}

/** What is asked of the connection after the exchange; an upgrade is always to a WebSocket. */
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
