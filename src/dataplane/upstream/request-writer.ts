// Writes the head of every upstream request, the one place that drops and adds header fields; knows no socket.
import { formatGrpcTimeout } from "../../http/grpc.ts";
import { namesLoop } from "../../http/cdn-loop.ts";
import { forwardedPrefix } from "../../http/forwarded.ts";
import { encodePath, withoutSlash } from "../../http/request-target.ts";
import { fieldName } from "../../http/field-name.ts";
import { connectionOptions } from "../../http/hop-by-hop.ts";
import { listedTrailers } from "../../http/trailer-fields.ts";
import { failures, type ProxyError } from "../error.ts";
import { likelyHttpVersionOf } from "../protocol-version.ts";
import type { FieldPairs } from "../../http/fields.ts";
import type { Generation } from "../generation.ts";
import type { ClientRequest } from "../request/client-request.ts";
import { changedPrefix, type RouteRuntime } from "../route-runtime.ts";

/**
 * The client's header fields as sent upstream (RFC 9110 section 7.6): hop-by-hop fields and those that Connection
 * names are removed before the gateway adds its own, so no client can strip those. Sets `upstreamFields` and
 * `upstreamBodyLength`; returns an error for an exceeded limit or a loop.
 */
export function writeUpstreamFields(request: ClientRequest): ProxyError | null {
  const { listener, fields, edits, generation, known } = request;
  if (fields.written instanceof WrittenFields && fields.written.isFor(request)) {
    request.upstreamFields = fields.written.with(request);
    request.upstreamBodyLength = null;
    return null;
  }
  const { names } = fields;
  const { connectionField, cdnLoop } = known;
  const named = connectionField === null ? NO_NAMES : connectionOptions(connectionField);
  const isTrusted = listener.trustsAnyone && request.isFromTrustedProxy();
  const sendsId = request.plugins === null ? listener.namesRequests : request.sendsId;
  const passesAll = named.length === 0 && edits === null;
  const prefix = request.route?.namesPrefix === true ? strippedPrefix(request.route, request) : "";
  let lines = "";
  // Those next to each other that are passed are one text.
  let from = 0;
  for (let at = 0; at < names.length; at++) {
    const name = names[at];
    if (name === undefined) continue;
    const { handling, lower } = name;
    if (handling === "passed" && passesAll) continue;
    const isDropped =
      handling === "dropped" ||
      (sendsId && handling === "id") ||
      (handling === "deadline" && request.callsGrpc) ||
      // Where the gateway reads messages it supports no compression.
      (handling === "extensions" && request.stream.switchProtocols === undefined) ||
      (prefix !== "" && lower === PREFIX_FIELD) ||
      (handling === "trusted" ? !isTrusted : named.length > 0 && named.includes(lower)) ||
      edits?.replaces(lower) === true;
    if (!isDropped) continue;
    if (from < at) lines += fields.lines(from, at);
    from = at + 1;
  }
  if (from < names.length) lines += fields.lines(from, names.length);
  // Request line and empty line.
  const bytes = request.method.length + request.target.length + 14 + fields.size;
  if (names.length > listener.maxHeaderFields) return failures.tooManyFields;
  if (bytes > listener.maxHeaderBytes) return failures.headTooLarge;
  if (cdnLoop !== null && namesLoop(cdnLoop, generation.loopToken)) return failures.loop;
  const ofPlugins = edits === null ? "" : edits.lines();
  const ofPrefix = prefix === "" ? "" : prefixField(request, prefix, isTrusted);
  const own = ofPrefix + ownFields(request, isTrusted);
  if (sendsId && edits?.replaces("x-request-id") !== true) {
    if (isTrusted) useGivenId(request);
    request.upstreamFields = `${lines}\r\n${ofPlugins}X-Request-Id: ${request.id}\r\n${own}`;
  } else request.upstreamFields = `${lines}\r\n${ofPlugins}${own}`;
  const hasFraming = known.transferEncoding !== null || known.contentLength !== null;
  const mayHaveBody = hasFraming || request.stream.hasBody || request.bodyBytes !== null;
  if (mayHaveBody || edits !== null) return frameBody(request);
  request.upstreamBodyLength = null;
  if (fields.isShared && WrittenFields.mayKeep(request))
    fields.written = new WrittenFields(request, { lines, own, sendsId });
  return null;
}

/** What was written for a request without a body and plugins, for the next one with the same block. */
class WrittenFields {
  /** Each version has its own. The version itself would stay in memory as long as a client keeps its connection. */
  readonly #version: Generation["hopFields"];
  readonly #listenerId: string;
  readonly #routeId: string | undefined;
  readonly #peer: string;
  readonly #httpVersion: string | null;
  readonly #sendsId: boolean;
  readonly #before: string;
  readonly #after: string;

  constructor(
    request: ClientRequest,
    { lines, own, sendsId }: { readonly lines: string; readonly own: string; sendsId: boolean },
  ) {
    this.#version = request.generation.hopFields;
    this.#listenerId = request.listener.id;
    this.#routeId = request.route?.route.id;
    this.#peer = request.peerAddress();
    this.#httpVersion = request.stream.httpVersion;
    this.#sendsId = sendsId;
    this.#before = flat(`${lines}\r\n${sendsId ? "X-Request-Id: " : ""}`);
    this.#after = flat(sendsId ? `\r\n${own}` : own);
  }

  /** Whether nothing else than listener, version, route and peer decides. */
  static mayKeep({ fields, listener, plugins, stream }: ClientRequest): boolean {
    const isUsual = plugins === null && !listener.trustsAnyone;
    if (!isUsual || stream.connection === null || stream.connection.clientCertificateField !== "")
      return false;
    return fields.names.every(
      ({ handling }) => handling !== "deadline" && handling !== "extensions",
    );
  }

  isFor(request: ClientRequest): boolean {
    const { stream } = request;
    return (
      this.#version === request.generation.hopFields &&
      this.#listenerId === request.listener.id &&
      this.#routeId === request.route?.route.id &&
      request.plugins === null &&
      request.edits === null &&
      request.bodyBytes === null &&
      !stream.hasBody &&
      this.#httpVersion === stream.httpVersion &&
      stream.connection?.clientCertificateField === "" &&
      this.#peer === request.peerAddress()
    );
  }

  with(request: ClientRequest): string {
    return this.#sendsId
      ? `${this.#before}${request.id}${this.#after}`
      : this.#before + this.#after;
  }
}

/** The same text in one piece, which is copied faster. */
const flat = (text: string): string => Buffer.from(text, "latin1").latin1Slice(0, text.length);

/** Whether trailers of the client follow the body. What plugins make of that is another one: they may hold a checksum. */
export const passesTrailers = (request: ClientRequest): boolean =>
  request.upstreamBodyLength === -1 &&
  request.stream.features.readsTrailers &&
  request.bodyBytes === null &&
  request.bodyStream === null &&
  (request.edits === null || request.edits.body === null);

/** The client's trailers for the target. */
export function upstreamTrailers(request: ClientRequest, trailers: FieldPairs): FieldPairs {
  const passes = trailerRule(request);
  return trailers.filter(([name]) => passes(name.toLowerCase()));
}

/** Targets may merge them with the header fields (RFC 9110 section 6.5.1): so none that the gateway drops, sets or replaces there. */
function trailerRule({ known, edits }: ClientRequest): (name: string) => boolean {
  const named = connectionOptions(known.connectionField);
  return (name) =>
    fieldName(name).handling === "passed" &&
    edits?.replaces(name) !== true &&
    !named.includes(name);
}

/** The line of Trailer, where trailers follow. */
function trailerLine(request: ClientRequest): string {
  if (!passesTrailers(request)) return "";
  const announced = request.fields.get("trailer");
  const listed = announced === null ? null : listedTrailers(announced, trailerRule(request));
  return listed === null ? "" : `Trailer: ${listed}\r\n`;
}

const NO_NAMES: readonly string[] = [];

/** Safe in logs, pages and header fields. */
const ID = /^[\w.~+/=:@-]{1,128}$/;

/** The id that a trusted proxy has sent. Other clients could make two requests look like one. */
function useGivenId(request: ClientRequest): void {
  const given = request.fields.get("x-request-id");
  if (given !== null && ID.test(given)) request.id = given;
}

/**
 * The gateway's header fields about the client and itself. Connection does not apply to them: through a trusted proxy that
 * forwards it, a client could make the target mistake the proxy for the client (Traefik CVE-2024-45410), or hide a loop.
 */
function ownFields(request: ClientRequest, isTrusted: boolean): string {
  const { listener, known, generation, edits, stream } = request;
  const isReplaced = edits?.replaces("client-cert") === true;
  const certificate = isReplaced ? "" : (stream.connection?.clientCertificateField ?? "");
  const chain = isTrusted ? before(request.header("x-forwarded-for")) : "";
  const peer = request.peerAddress();
  const client = listener.trustsAnyone ? request.clientAddress() : peer;
  const host = isTrusted ? request.clientHost() : request.rawHost;
  const ofConnection = isTrusted ? trustedFields(request) : listener.upstreamFields;
  const { via, cdnLoop } = known;
  const version =
    stream.httpVersion ?? (stream.connection === null ? "1.1" : likelyHttpVersionOf(request));
  const usual = via === null && cdnLoop === null ? generation.hopFields[version] : undefined;
  const hops = usual ?? hopFields(request, version);
  const own = `${peer}\r\nX-Real-IP: ${client}\r\nX-Forwarded-Host: ${host}\r\n${ofConnection}${hops}`;
  // Each part of a text that is put together costs, also an empty one.
  return certificate === "" && chain === ""
    ? `X-Forwarded-For: ${own}`
    : `${certificate}X-Forwarded-For: ${chain}${own}`;
}

const hopFields = (
  { known: { via, cdnLoop }, generation }: ClientRequest,
  version: string,
): string =>
  `Via: ${before(via)}${version} sluice\r\nCDN-Loop: ${before(cdnLoop)}${generation.loopToken}\r\n`;

/** The existing list, to append to. */
const before = (value: string | null) => (value === null ? "" : `${value}, `);

/** The framing of the upstream body. */
function frameBody(request: ClientRequest): ProxyError | null {
  const held = request.edits?.body ?? request.bodyBytes;
  if (held !== null) {
    request.upstreamBodyLength = held.byteLength === 0 ? null : held.byteLength;
    return null;
  }
  const bodyLength = bodyLengthOf(request);
  const { method } = request;
  request.upstreamBodyLength = bodyLength;
  if (bodyLength === null || request.stream.hasBody) return null;
  request.upstreamBodyLength = null;
  // Bun hides the body of these. Dropping it could change the meaning (a search in a GET).
  return method === "GET" || method === "HEAD"
    ? failures.badRequest(`a ${method} with a body cannot be forwarded`)
    : null;
}

/** Forwards what a trusted proxy says about the client's connection. */
const trustedFields = (request: ClientRequest): string =>
  `X-Forwarded-Proto: ${request.clientScheme()}\r\nX-Forwarded-Port: ${request.clientPort()}\r\n`;

/** The prefix that the route strips; empty: a plugin decides the path or the field. */
function strippedPrefix(route: RouteRuntime, { edits, path }: ClientRequest): string {
  if (edits !== null && (edits.hasOwnPath || edits.replaces(PREFIX_FIELD))) return "";
  return encodePath(withoutSlash(changedPrefix(route, path) ?? ""));
}

const prefixField = (request: ClientRequest, prefix: string, isTrusted: boolean): string =>
  `X-Forwarded-Prefix: ${forwardedPrefix(isTrusted ? request.header(PREFIX_FIELD) : null, prefix)}\r\n`;

const PREFIX_FIELD = "x-forwarded-prefix";

/** RFC 9112 section 6: Transfer-Encoding or Content-Length announces a body; HTTP/2 needs neither. */
function bodyLengthOf(request: ClientRequest): number | null {
  const { known, stream } = request;
  const { transferEncoding, contentLength } = known;
  if (transferEncoding !== null) return -1;
  if (contentLength !== null) return contentLength === "0" ? null : Number(contentLength);
  return stream.hasBody ? -1 : null;
}

/** Request line, Host, header fields and framing, in their usual case: small controllers compare names by bytes. */
export function requestHead(
  request: ClientRequest,
  host: string,
  connection: "keep" | "close" | { readonly upgrade: string },
): string {
  const { edits, upstreamBodyLength: length, stream } = request;
  const method = edits === null ? request.method : edits.method;
  const grpc =
    (request.isGrpc || edits !== null) && request.callsGrpc ? deadlineField(request) : "";
  const framing = length === null && method === "GET" ? "" : framingLine(method, length);
  // The target decides whether the client sends its body.
  const expect = length !== null && stream.awaitsContinue ? "Expect: 100-continue\r\n" : "";
  const trailers = length === -1 ? trailerLine(request) : "";
  const follows = connection === "keep" ? "" : connectionLines(connection);
  const more = grpc + framing + trailers + expect + follows;
  const head = `${method} ${request.upstreamTarget} HTTP/1.1\r\nHost: ${host}${request.upstreamFields}`;
  return more === "" ? `${head}\r\n` : `${head}${more}\r\n`;
}

/** How much of the client's deadline is left for this attempt. */
function deadlineField({ grpcDeadline, edits }: ClientRequest): string {
  if (grpcDeadline === Number.POSITIVE_INFINITY || edits?.replaces("grpc-timeout") === true)
    return "";
  return `grpc-timeout: ${formatGrpcTimeout(grpcDeadline - performance.now())}\r\n`;
}

/** What follows the exchange. */
const connectionLines = (connection: "close" | { readonly upgrade: string }): string =>
  connection === "close"
    ? "Connection: close\r\n"
    : `Connection: Upgrade\r\nUpgrade: ${connection.upgrade}\r\n`;

function framingLine(method: string, bodyLength: number | null): string {
  if (bodyLength === null) {
    // RFC 9110 section 8.6: an explicit 0 for methods that usually have a body.
    return method === "POST" || method === "PUT" || method === "PATCH"
      ? "Content-Length: 0\r\n"
      : "";
  }
  return bodyLength < 0 ? "Transfer-Encoding: chunked\r\n" : `Content-Length: ${bodyLength}\r\n`;
}
