// Parses the head of an HTTP/1.1 response from one string, strictly (RFC 9112), and caches repeated heads; knows no socket.
import { boundChallenges } from "../../http/bound-challenges.ts";
import { connectionOptions } from "../../http/hop-by-hop.ts";
import type { ManagementCookies } from "../../http/management-cookies.ts";
import { listedTrailers } from "../../http/trailer-fields.ts";
import { valueBetween } from "../../http/whitespace.ts";
import { strictForm } from "./lenient-head.ts";
import { type BodyFraming, ResponseHead } from "./response-head.ts";

/** A head that is not valid HTTP/1.1. */
export class ResponseSyntaxError extends Error {}

/** The header fields about the connection and the body. */
class Framing {
  length = -1;
  transferEncoding: string | null = null;
  connection: string | null = null;
  upgrade: string | null = null;
  trailer: string | null = null;
  contentType: string | null = null;
  challenges: string | null = null;
  keepAliveMs = 0;
  hasLocation = false;
  hasDate = false;
  hasId = false;
  hasCookies = false;
  readonly isLenient: boolean;
  readonly #cookies: ManagementCookies | null;

  constructor(cookies: ManagementCookies | null, isLenient: boolean) {
    this.#cookies = cookies;
    this.isLenient = isLenient;
  }

  /** True when the field is consumed here and must not be forwarded. Selects by length, to compare few names. */
  consume(name: string, value: string): boolean {
    switch (name.length) {
      case 4:
        if (same(name, "Date", "date")) this.hasDate = true;
        return false;
      case 2:
        return same(name, "TE", "te");
      case 7:
        if (same(name, "Upgrade", "upgrade")) {
          this.upgrade = value;
          return true;
        }
        if (same(name, "Refresh", "refresh")) this.hasLocation = true;
        if (!same(name, "Trailer", "trailer")) return false;
        this.trailer = this.trailer === null ? value : `${this.trailer},${value}`;
        return true;
      case 8:
        if (same(name, "Location", "location")) this.hasLocation = true;
        return false;
      case 10:
        if (same(name, "Connection", "connection")) {
          this.connection = this.connection === null ? value : `${this.connection},${value}`;
          return true;
        }
        if (same(name, "Set-Cookie", "set-cookie")) {
          this.hasCookies = true;
          return this.#cookies?.isSetBy(value) === true;
        }
        if (!same(name, "Keep-Alive", "keep-alive")) return false;
        this.keepAliveMs = Number(IDLE_SECONDS.exec(value)?.[1] ?? 0) * 1000;
        return true;
      case 12:
        if (same(name, "Content-Type", "content-type")) this.contentType = value;
        else if (same(name, "X-Request-Id", "x-request-id")) this.hasId = true;
        return false;
      case 14:
        if (!same(name, "Content-Length", "content-length")) return false;
        this.#setLength(value);
        return true;
      case 16:
        if (same(name, "WWW-Authenticate", "www-authenticate")) this.#challenge(value);
        return same(name, "Proxy-Connection", "proxy-connection");
      case 17:
        if (!same(name, "Transfer-Encoding", "transfer-encoding")) return false;
        this.transferEncoding =
          this.transferEncoding === null ? value : `${this.transferEncoding},${value}`;
        return true;
      case 18:
        if (!same(name, "Proxy-Authenticate", "proxy-authenticate")) return false;
        this.#challenge(value);
        return true;
      default:
        return false;
    }
  }

  #challenge(value: string): void {
    this.challenges = this.challenges === null ? value : `${this.challenges},${value}`;
  }

  #setLength(value: string): void {
    const equal = this.isLenient ? EQUAL_LENGTHS.exec(value)?.[1] : undefined;
    const length = decimal(equal ?? value);
    if (length < 0)
      throw new ResponseSyntaxError("the target sent a Content-Length that is not a number");
    if (this.length >= 0 && this.length !== length)
      throw new ResponseSyntaxError("the target sent two different Content-Lengths");
    this.length = length;
  }
}

/** Of Keep-Alive (RFC 2068 section 19.7.1.1). */
const IDLE_SECONDS = /(?:^|[,;\s])timeout\s*=\s*"?(\d{1,7})/i;

/** A list of one length (RFC 9110 section 8.6). */
const EQUAL_LENGTHS = /^(\d{1,15})(?: ?, ?\1)+$/;

/** Compares names of equal length; common spellings first, because toLowerCase allocates. */
function same(name: string, usual: string, lower: string): boolean {
  return name === usual || name === lower || name.toLowerCase() === lower;
}

/** Removes the fields that Connection names (RFC 9110 section 7.6.1). */
function withoutNamed(lines: string, connectionField: string | null): string {
  const named = connectionOptions(connectionField);
  if (named.length === 0 || (named.length === 1 && named[0] === "upgrade")) return lines;
  return lines
    .split("\r\n")
    .filter((line) => !named.includes(line.slice(0, line.indexOf(":")).toLowerCase()))
    .join("\r\n");
}

/** Header fields to the end of a head. No part can match in two ways (RFC 9110 sections 5.1 and 5.5). */
const FIELDS = /(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0\r\n]*\r\n)*\r\n$/y;

/** Digits only, as RFC 9110 section 8.6 has it; -1 for anything else. */
function decimal(text: string): number {
  if (text.length === 0 || text.length > 15) return -1;
  let value = 0;
  for (let at = 0; at < text.length; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** `HTTP/1.1 200 OK` or `HTTP/1.0 ...`; the reason may be empty, and the space before it may be missing. */
function parseStatus(text: string): number {
  const versionIsKnown = text.startsWith("HTTP/1.1 ") || text.startsWith("HTTP/1.0 ");
  const status = versionIsKnown ? decimal(text.slice(9, 12)) : -1;
  const next = text.charCodeAt(12);
  if (status < 100 || status > 599 || (next !== 32 && next !== 13))
    throw new ResponseSyntaxError("the target's status line is not HTTP/1.1");
  return status;
}

/**
 * Parses a head that `parseResponseHead` rejects, where it has one meaning: its connection must close after the response.
 * Throws ResponseSyntaxError.
 */
export const parseLenientHead = (
  text: string,
  isHead: boolean,
  cookies: ManagementCookies | null = null,
): ResponseHead => parse(strictForm(text), isHead, new Framing(cookies, true));

/**
 * Parses `text`, a whole head including the empty line. `isHead`: the request was HEAD, so there is no body.
 * No target may set one of `cookies`. Throws ResponseSyntaxError.
 */
export const parseResponseHead = (
  text: string,
  isHead: boolean,
  cookies: ManagementCookies | null = null,
): ResponseHead => parse(text, isHead, new Framing(cookies, false));

function parse(text: string, isHead: boolean, framing: Framing): ResponseHead {
  const status = parseStatus(text);
  const statusEnd = text.indexOf("\r\n");
  // A lenient parser would see the end of the line here and another header field behind it.
  if (text.indexOf("\n") !== statusEnd + 1 || text.indexOf("\r") !== statusEnd)
    throw new ResponseSyntaxError("the target's status line holds a line break");
  FIELDS.lastIndex = statusEnd + 2;
  if (!FIELDS.test(text))
    throw new ResponseSyntaxError("the target sent a header field that is not valid");
  const end = text.length - 2;
  let lines = "";
  // Lines that are forwarded follow one another, mostly.
  let from = statusEnd + 2;
  for (let at = from; at < end;) {
    const lineEnd = text.indexOf("\r\n", at);
    const colon = text.indexOf(":", at);
    const isConsumed = framing.consume(
      text.slice(at, colon),
      valueBetween(text, colon + 1, lineEnd),
    );
    if (isConsumed) {
      lines += text.slice(from, at);
      from = lineEnd + 2;
    }
    at = lineEnd + 2;
  }
  lines += text.slice(from, end);
  const isHttp10 = text.charCodeAt(7) === 48;
  return finish(lines, framing, { status, isHead, isHttp10, reason: text.slice(13, statusEnd) });
}

interface StatusLine {
  readonly status: number;
  readonly reason: string;
  readonly isHead: boolean;
  readonly isHttp10: boolean;
}

function finish(received: string, framing: Framing, line: StatusLine): ResponseHead {
  const { status, reason, isHead, isHttp10 } = line;
  const kind = framingOf(framing, line);
  // HEAD and 304 keep the length that the body would have had (RFC 9110 section 8.6).
  const isKept = kind === "length" || status === 304 || isHead;
  const hasLength = framing.length >= 0 && isKept;
  const bound = framing.challenges === null ? "none" : boundChallenges(framing.challenges);
  let lines = withoutNamed(received, framing.connection);
  if (hasLength) lines += `Content-Length: ${framing.length}\r\n`;
  return new ResponseHead(
    {
      status,
      reason,
      framing: kind,
      length: kind === "length" ? framing.length : -1,
      hasLength,
      announcesBody: kind === "none" && (framing.length > 0 || framing.transferEncoding !== null),
      keepAlive: kind !== "close" && keepsAlive(framing.connection, isHttp10),
      keepAliveMs: framing.keepAliveMs,
      upgrade: upgradeOf(framing, isHttp10),
      isEventStream: framing.contentType?.startsWith("text/event-stream") === true,
      hasContentType: framing.contentType !== null && framing.contentType !== "",
      hasLocation: framing.hasLocation,
      hasDate: framing.hasDate,
      hasId: framing.hasId,
      hasCookies: framing.hasCookies,
      bindsConnection: bound !== "none",
      needsHttp1: bound === "all" && (status === 401 || status === 407),
      trailer:
        framing.trailer === null || kind !== "chunked"
          ? null
          : listedTrailers(framing.trailer, () => true),
    },
    lines,
  );
}

/** RFC 9110 section 7.8: Upgrade counts on HTTP/1.1 only, and only when Connection names it. */
function upgradeOf({ upgrade, connection }: Framing, isHttp10: boolean): string | null {
  if (upgrade === null || connection === null || isHttp10) return null;
  return optionsOf(connection).includes("upgrade") ? upgrade : null;
}

/** RFC 9112 section 9.3: `close` takes precedence. */
function keepsAlive(connectionField: string | null, isHttp10: boolean): boolean {
  if (connectionField === null || connectionField === "keep-alive")
    return !isHttp10 || connectionField !== null;
  const options = optionsOf(connectionField);
  return !options.includes("close") && (!isHttp10 || options.includes("keep-alive"));
}

const optionsOf = (connectionField: string): string[] =>
  connectionField
    .toLowerCase()
    .split(",")
    .map((option) => option.trim());

/** RFC 9112 section 6.3, stricter: both framings at once, or any coding but chunked, could hide a second response. */
function framingOf(framing: Framing, line: StatusLine): BodyFraming {
  const coding = framing.isLenient
    ? lenientCoding(framing.transferEncoding)
    : framing.transferEncoding;
  if (coding !== null && !(framing.isLenient && coding === "chunked")) {
    if (framing.length >= 0)
      throw new ResponseSyntaxError("the target sent Transfer-Encoding and Content-Length");
    if (coding.toLowerCase() !== "chunked" || line.isHttp10)
      throw new ResponseSyntaxError("the target's transfer coding is not supported");
  }
  // Where both are there, the coding is what counts.
  if (coding !== null) framing.length = -1;
  if (line.isHead || line.status < 200 || line.status === 204 || line.status === 304) return "none";
  if (coding !== null) return "chunked";
  return framing.length >= 0 ? "length" : "close";
}

/** Chunked once, however often it is named; `identity` of RFC 2616 is none. */
function lenientCoding(field: string | null): string | null {
  const codings = field === null ? [] : optionsOf(field).filter((coding) => !NO_CODING.has(coding));
  return codings.length === 0 ? null : [...new Set(codings)].join();
}

const NO_CODING: ReadonlySet<string> = new Set(["", "identity"]);
