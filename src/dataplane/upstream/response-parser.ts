// Parses the head of an HTTP/1.1 response from one string, strictly (RFC 9112), and caches repeated heads; knows no socket.
import type { ManagementCookies } from "../../http/management-cookies.ts";
import type { EditedFields } from "../plugin/edited-fields.ts";
import type { OutgoingHead } from "../server/client-stream.ts";

/** Header fields in a form that `new Headers` accepts: an object while no name repeats, else pairs. */
type FieldList = Record<string, string> | [string, string][];

/** How the body ends (RFC 9112 section 6.3). */
export type BodyFraming = "none" | "length" | "chunked" | "close";

export interface ResponseHead {
  readonly status: number;
  /** Without hop-by-hop fields. Several requests may share it: copy it to change it. */
  readonly headers: Headers;
  /** The same with the request id of the last request; created on first use, updated before each use. */
  withId?: OutgoingHead;
  /** The same with the header fields that plugins have set. */
  edited?: EditedFields;
  readonly framing: BodyFraming;
  /** Bytes of the body when framing is `length`, else -1. */
  readonly length: number;
  /** Whether `headers` has a Content-Length; for HEAD and 304 that of the omitted body. */
  readonly hasLength: boolean;
  readonly keepAlive: boolean;
  /** Value of Upgrade, for 101 only; null when Connection does not name it. */
  readonly upgrade: string | null;
  /** Whether the body is an event stream, which must not be buffered. */
  readonly isEventStream: boolean;
  readonly hasContentType: boolean;
  /** Whether it has a Location or Refresh. */
  readonly hasLocation: boolean;
}

/** A head that is not valid HTTP/1.1. */
export class ResponseSyntaxError extends Error {}

/** The header fields about the connection and the body. */
class Framing {
  length = -1;
  transferEncoding: string | null = null;
  connection: string | null = null;
  upgrade: string | null = null;
  contentType: string | null = null;
  hasLocation = false;
  readonly #cookies: ManagementCookies | null;

  constructor(cookies: ManagementCookies | null) {
    this.#cookies = cookies;
  }

  /** True when the field is consumed here and must not be forwarded. Selects by length, to compare few names. */
  consume(name: string, value: string): boolean {
    switch (name.length) {
      case 2:
        return same(name, "TE", "te");
      case 7:
        if (same(name, "Upgrade", "upgrade")) {
          this.upgrade = value;
          return true;
        }
        if (same(name, "Refresh", "refresh")) this.hasLocation = true;
        return same(name, "Trailer", "trailer");
      case 8:
        if (same(name, "Location", "location")) this.hasLocation = true;
        return false;
      case 10:
        if (same(name, "Connection", "connection")) {
          this.connection = this.connection === null ? value : `${this.connection},${value}`;
          return true;
        }
        if (same(name, "Set-Cookie", "set-cookie")) return this.#cookies?.isSetBy(value) === true;
        return same(name, "Keep-Alive", "keep-alive");
      case 12:
        if (same(name, "Content-Type", "content-type")) this.contentType = value;
        return false;
      case 14:
        if (!same(name, "Content-Length", "content-length")) return false;
        this.#setLength(value);
        return true;
      case 16:
        return same(name, "Proxy-Connection", "proxy-connection");
      case 17:
        if (!same(name, "Transfer-Encoding", "transfer-encoding")) return false;
        this.transferEncoding =
          this.transferEncoding === null ? value : `${this.transferEncoding},${value}`;
        return true;
      case 18:
        return same(name, "Proxy-Authenticate", "proxy-authenticate");
      default:
        return false;
    }
  }

  #setLength(value: string): void {
    const length = decimal(value);
    if (length < 0)
      throw new ResponseSyntaxError("the target sent a Content-Length that is not a number");
    if (this.length >= 0 && this.length !== length)
      throw new ResponseSyntaxError("the target sent two different Content-Lengths");
    this.length = length;
  }
}

/** RFC 9110 section 5.5. */
const NOT_IN_A_VALUE = /[\0\r\n]/;

/** Headers validates only forwarded fields. */
function checkDropped(value: string): void {
  if (NOT_IN_A_VALUE.test(value))
    throw new ResponseSyntaxError("the target sent a malformed header field");
}

/** Compares names of equal length; common spellings first, because toLowerCase allocates. */
function same(name: string, usual: string, lower: string): boolean {
  return name === usual || name === lower || name.toLowerCase() === lower;
}

/** Removes the fields that Connection names (RFC 9110 section 7.6.1). */
function withoutNamed(list: FieldList, connectionField: string | null): FieldList {
  if (connectionField === null || connectionField === "keep-alive") return list;
  const connection = connectionField.toLowerCase();
  if (connection === "keep-alive" || connection === "close" || connection === "upgrade")
    return list;
  const named = new Set(connection.split(",").map((name) => name.trim()));
  const pairs = Array.isArray(list) ? list : Object.entries(list);
  return pairs.filter(([name, value]) => {
    if (!named.has(name.toLowerCase())) return true;
    checkDropped(value);
    return false;
  });
}

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
 * Parses `text`, a whole head including the empty line. `isHead`: the request was HEAD, so there is no body.
 * No target may set one of `cookies`. Throws ResponseSyntaxError, and the TypeError of Headers for a name or value with bytes
 * that are not allowed in it.
 */
export function parseResponseHead(
  text: string,
  isHead: boolean,
  cookies: ManagementCookies | null = null,
): ResponseHead {
  const status = parseStatus(text);
  const framing = new Framing(cookies);
  const object: Record<string, string> = {};
  let pairs: [string, string][] | null = null;
  const end = text.length - 2;
  const statusEnd = text.indexOf("\r\n");
  // A lenient parser would see the end of the line here and another header field behind it.
  if (text.indexOf("\n") !== statusEnd + 1 || text.indexOf("\r") !== statusEnd)
    throw new ResponseSyntaxError("the target's status line holds a line break");
  let at = statusEnd + 2;
  while (at < end) {
    const lineEnd = text.indexOf("\r\n", at);
    const colon = text.indexOf(":", at);
    if (colon <= at || colon > lineEnd)
      throw new ResponseSyntaxError("the target sent a malformed header field");
    const name = text.slice(at, colon);
    const value = valueBetween(text, colon + 1, lineEnd);
    at = lineEnd + 2;
    if (framing.consume(name, value)) {
      checkDropped(value);
      continue;
    }
    // Inherited names such as "constructor" take the slower form, which is correct for every name.
    if (pairs === null && object[name] === undefined && name !== "__proto__") object[name] = value;
    else {
      pairs ??= Object.entries(object);
      pairs.push([name, value]);
    }
  }
  return finish(pairs ?? object, framing, { status, isHead, isHttp10: text.charCodeAt(7) === 48 });
}

/** Without optional whitespace (RFC 9112 section 5). */
export function valueBetween(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

const isBlank = (code: number) => code === 32 || code === 9;

interface StatusLine {
  readonly status: number;
  readonly isHead: boolean;
  readonly isHttp10: boolean;
}

function finish(list: FieldList, framing: Framing, line: StatusLine): ResponseHead {
  const kind = framingOf(framing, line);
  const fields = withoutNamed(list, framing.connection);
  // HEAD and 304 keep the length that the body would have had (RFC 9110 section 8.6).
  const hasLength =
    framing.length >= 0 && (kind === "length" || line.isHead || line.status === 304);
  if (hasLength) {
    if (Array.isArray(fields)) fields.push(["Content-Length", String(framing.length)]);
    else fields["Content-Length"] = String(framing.length);
  }
  return {
    status: line.status,
    headers: new Headers(fields),
    framing: kind,
    length: kind === "length" ? framing.length : -1,
    hasLength,
    keepAlive: kind !== "close" && keepsAlive(framing.connection, line.isHttp10),
    upgrade: upgradeOf(framing, line.isHttp10),
    isEventStream: framing.contentType?.startsWith("text/event-stream") === true,
    hasContentType: framing.contentType !== null,
    hasLocation: framing.hasLocation,
  };
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
  const coding = framing.transferEncoding;
  if (coding !== null) {
    if (framing.length >= 0)
      throw new ResponseSyntaxError("the target sent Transfer-Encoding and Content-Length");
    if (coding.toLowerCase() !== "chunked" || line.isHttp10)
      throw new ResponseSyntaxError("the target's transfer coding is not supported");
  }
  if (line.isHead || line.status < 200 || line.status === 204 || line.status === 304) return "none";
  if (coding !== null) return "chunked";
  return framing.length >= 0 ? "length" : "close";
}

/** Cached heads per target: few, because heads contain Date and so repeat within a second or never. */
const MAX_HEADS = 32;

/** Heads between two evaluations of the hit rate. */
const TRIAL_HEADS = 128;

/** With fewer hits than this the cache is bypassed for the next BYPASS_HEADS heads. */
const MIN_HITS = 32;
const BYPASS_HEADS = 8192;

/**
 * Under load most heads of a target are equal, and parsing one costs as much as all the rest of a small response: 2
 * microseconds of a request's 30. Where every head differs (a request id, a cookie) the cache is bypassed.
 */
export class HeadCache {
  /** Length of the target's last head, a guess for the next one; 0: none yet. */
  usualBytes = 0;
  readonly #cookies: ManagementCookies | null;
  readonly #heads = new Map<string, ResponseHead>();
  #seen = 0;
  #known = 0;
  #bypassed = 0;

  /** Removes Set-Cookie of `cookies`; null: removes none. */
  constructor(cookies: ManagementCookies | null = null) {
    this.#cookies = cookies;
  }

  /** As `parseResponseHead`; the result is shared. Responses to HEAD are not cached, because their framing differs. */
  read(text: string, isHead: boolean): ResponseHead {
    if (isHead || this.#bypassed > 0) {
      if (!isHead) this.#bypassed--;
      return parseResponseHead(text, isHead, this.#cookies);
    }
    const known = this.#heads.get(text);
    if (known !== undefined) this.#known++;
    if (++this.#seen === TRIAL_HEADS) this.#evaluate();
    return known ?? this.#cache(text);
  }

  #cache(text: string): ResponseHead {
    const head = parseResponseHead(text, false, this.#cookies);
    // Heads with Set-Cookie belong to one client.
    if (head.status < 200 || head.headers.has("set-cookie")) return head;
    if (this.#heads.size >= MAX_HEADS) this.#heads.clear();
    this.#heads.set(text, head);
    return head;
  }

  #evaluate(): void {
    if (this.#known < MIN_HITS) {
      this.#bypassed = BYPASS_HEADS;
      this.#heads.clear();
    }
    this.#seen = 0;
    this.#known = 0;
  }
}
