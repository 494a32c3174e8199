// Translates heads between HTTP/1.1 text and HTTP/2 fields, strictly (RFC 9113 section 8); knows no stream.
import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";
import { forbiddenInTrailers } from "../../http/trailer-fields.ts";
import type { FieldPairs } from "../../http/fields.ts";
import { type ResponseHead, valueBetween } from "./response-head.ts";
import type { HeadCache } from "./response-head.ts";
import { ResponseSyntaxError } from "./response-parser.ts";

/** A lower-case token (RFC 9113 section 8.2.1). */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const NOT_IN_A_VALUE = /[\0\r\n]/;
const NOT_IN_A_HEAD = /\0|\r(?!\n)|(?<!\r)\n/;
const NOT_IN_A_TARGET = /[^!-~\x80-\xff]/;

/** A request head that HTTP/2 cannot carry. */
export class RequestSyntaxError extends Error {}

/** Names and values in turn, as node:http2 takes them. */
export type RawFields = string[];

/** Lower-case names of recent requests; "" for fields of the connection, which HTTP/2 does not have. */
const names = new Map<string, string>();
const MAX_NAMES = 1000;
const MAX_NAME_LENGTH = 64;

function nameOf(text: string): string {
  const known = names.get(text);
  if (known !== undefined) return known;
  const lower = text.toLowerCase();
  if (!NAME.test(lower)) throw new RequestSyntaxError("a request header field is not valid");
  const name = CONNECTION_FIELDS.has(lower) || lower === "te" ? "" : lower;
  if (names.size >= MAX_NAMES) names.clear();
  if (text.length <= MAX_NAME_LENGTH) names.set(text, name);
  return name;
}

/** The HTTP/2 fields of a request head in HTTP/1.1 text, whose framing they leave out. */
export function requestFields(text: string, scheme: string): RawFields {
  const lineEnd = text.indexOf("\r\n");
  const methodEnd = text.indexOf(" ");
  const targetEnd = lineEnd - VERSION.length;
  const target = text.slice(methodEnd + 1, targetEnd);
  if (methodEnd <= 0 || !text.startsWith(VERSION, targetEnd) || NOT_IN_A_TARGET.test(target))
    throw new RequestSyntaxError("the request target is not valid");
  if (NOT_IN_A_HEAD.test(text)) throw new RequestSyntaxError("a request header field is not valid");
  const method = text.slice(0, methodEnd);
  const fields = [":method", method, ":scheme", scheme, ":authority", "", ":path", target];
  for (let at = lineEnd + 2; at < text.length - 2;) {
    const end = text.indexOf("\r\n", at);
    const colon = text.indexOf(":", at);
    if (colon < 0 || colon > end)
      throw new RequestSyntaxError("a request header field is not valid");
    const name = nameOf(text.slice(at, colon));
    const value = valueBetween(text, colon + 1, end);
    at = end + 2;
    if (name === "host") fields[AUTHORITY] = value;
    else if (name !== "") fields.push(name, value);
    // gRPC targets reject calls without it; the gateway reads the trailers of every response.
    if (name === "content-type" && value.startsWith("application/grpc"))
      fields.push("te", "trailers");
  }
  return fields;
}

const VERSION = " HTTP/1.1";
/** Position of the value of `:authority`. */
const AUTHORITY = 5;

/** The fields of a response or of an interim response. */
export interface ResponseFields {
  readonly status: number;
  readonly pairs: FieldPairs;
  /** As RFC 9113 section 6.5.2 counts them, without the 32 bytes for each field. */
  readonly bytes: number;
}

/** Throws ResponseSyntaxError. */
export function responseFields(raw: readonly string[]): ResponseFields {
  let status = 0;
  let bytes = 0;
  const pairs: [string, string][] = [];
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] ?? "";
    const value = raw[index + 1] ?? "";
    bytes += name.length + value.length + 4;
    if (name === ":status" && status === 0 && pairs.length === 0 && /^[1-5]\d\d$/.test(value))
      status = Number(value);
    else pairs.push(checked(name, value));
  }
  if (status === 0) throw new ResponseSyntaxError("the target sent a response without a status");
  return { status, pairs, bytes };
}

/** Limits of interim responses (RFC 9110 section 15.2) per exchange, in number and bytes. */
const MAX_INTERIM_RESPONSES = 8;
const MAX_INTERIM_BYTES = 65_536;

/** The interim responses of one exchange. */
export class InterimResponses {
  #count = 0;
  #bytes = 0;

  /** Throws ResponseSyntaxError. */
  read(raw: readonly string[]): ResponseFields {
    const fields = responseFields(raw);
    this.#count++;
    this.#bytes += fields.bytes;
    if (this.#count > MAX_INTERIM_RESPONSES || this.#bytes > MAX_INTERIM_BYTES)
      throw new ResponseSyntaxError("the target sent too many interim responses");
    if (fields.status === 101)
      throw new ResponseSyntaxError("the target switched protocols over HTTP/2");
    return fields;
  }
}

function checked(name: string, value: string): [string, string] {
  if (!NAME.test(name) || NOT_IN_A_VALUE.test(value))
    throw new ResponseSyntaxError("the target sent a malformed header field");
  if (CONNECTION_FIELDS.has(name))
    throw new ResponseSyntaxError("the target sent a field that HTTP/2 does not have");
  return [name, value];
}

/** The head through the target's cache, whose parser has the rules on lengths, cookies and hop-by-hop fields. */
export function responseHead(
  { status, pairs }: ResponseFields,
  isHead: boolean,
  heads: HeadCache,
): ResponseHead {
  let text = `HTTP/1.1 ${status} \r\n`;
  let hasLength = false;
  for (const [name, value] of pairs) {
    if (name === "content-length") hasLength = true;
    text = `${text}${name}: ${value}\r\n`;
  }
  // A body without a length ends with the stream, as a chunked one ends with its last chunk.
  if (!hasLength) text += "transfer-encoding: chunked\r\n";
  return heads.read(`${text}\r\n`, isHead);
}

/** The trailers of a response without those that no recipient may merge (RFC 9110 section 6.5.1). */
export function trailerFields(raw: readonly string[]): FieldPairs {
  const pairs: [string, string][] = [];
  for (let index = 0; index < raw.length; index += 2) {
    const pair = checked(raw[index] ?? "", raw[index + 1] ?? "");
    if (!forbiddenInTrailers(pair[0])) pairs.push(pair);
  }
  return pairs;
}

/** The trailers of a request as node:http2 takes them: lower-case names, each with all of its values. */
export function sentTrailers(trailers: FieldPairs): Record<string, string[]> {
  const fields: Record<string, string[]> = {};
  for (const [name, value] of trailers) {
    const lower = name.toLowerCase();
    fields[lower] = [...(fields[lower] ?? []), value];
  }
  return fields;
}
