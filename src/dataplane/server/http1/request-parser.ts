// Reads the head of an HTTP/1.1 request, strictly (RFC 9112): what servers read differently is refused; knows no socket.
import {
  type FieldName,
  KNOWN,
  KNOWN_MEMBERS,
  NameSlots,
  SLOTS,
} from "../../../http/field-name.ts";
import { HeaderBlock } from "../../../http/header-block.ts";
import { normalTarget, NOT_NORMAL } from "../../../http/request-target.ts";
import { failures, type ProxyError } from "../../error.ts";
import { markOf } from "../../../http/repeated-bytes.ts";

/** Length of `RequestHead.bodyLength` for a chunked body. */
export const CHUNKED = -1;

export interface RequestHead {
  readonly method: string;
  /** Origin form, or `*`. */
  readonly target: string;
  /** The same before it was made normal. */
  readonly rawTarget: string;
  readonly httpVersion: "1.0" | "1.1";
  readonly fields: HeaderBlock;
  /** Bytes of the body; `CHUNKED`; 0: none. */
  readonly bodyLength: number;
  /** Whether the client keeps the connection (RFC 9112 section 9.3). */
  readonly keepsAlive: boolean;
  readonly expectsContinue: boolean;
  /** Whether trailers may be sent to the client (RFC 9110 section 6.5.1). */
  readonly takesTrailers: boolean;
  /** The protocol that the client asks for, as sent; null: none (RFC 9110 section 7.8). */
  readonly upgrade: string | null;
}

const END = "\r\n\r\n";
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~\x80-\xff]+ HTTP\/1\.[01]$/;
const OTHER_VERSION = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~\x80-\xff]+ HTTP\/\d(?:\.\d)?$/;
/** In the beginning of a head: no further byte makes it valid. */
const NOT_IN_A_HEAD = /[^\t\r\n -~\x80-\xff]|\r[^\n]|[^\r]\n|^\n/;
const ABSOLUTE = /^https?:\/\/([^/?#]*)([/?].*)?$/i;
const TRAILERS = /(?:^|,)[\t ]*trailers[\t ]*(?:,|;|$)/i;
const LENGTH = /^\d{1,15}$/;

/** The bytes before a request line that RFC 9112 section 2.2 has servers ignore. */
export function leadingBreaks(bytes: Buffer): number {
  let at = 0;
  while (bytes[at] === 13 && bytes[at + 1] === 10) at += 2;
  return at;
}

/** Nearly all heads are shorter. */
const USUAL_HEAD_BYTES = 2048;

/** Of `repeated`; a power of two. */
const PLACES = 64;

/**
 * Heads without a body that came as one read and more than once, for all clients of a thread: programs ask for the same again and
 * again. The second one with a mark is kept, so that heads which differ cost no copy.
 */
const repeated: ({ readonly bytes: Buffer; readonly head: RequestHead } | null)[] = [];
const marks: number[] = [];
for (let place = 0; place < PLACES; place++) {
  repeated.push(null);
  marks.push(0);
}

function remember(mark: number, bytes: Buffer, head: RequestHead): void {
  const place = mark & (PLACES - 1);
  if (marks[place] === mark) {
    head.fields.isShared = true;
    repeated[place] = { bytes: Buffer.from(bytes), head };
  } else {
    marks[place] = mark;
    repeated[place] = null;
  }
}

/** Reads one head after the other. Looks at each byte of a head at most twice, because a client may send them one by one. */
export class HeadReader {
  /** Bytes of the last head. */
  size = 0;
  #scanned = 0;
  #isLineKnown = false;

  /** `bytes`: all of the head that has arrived, and perhaps more; null: it is not complete. */
  read(bytes: Buffer, maxBytes: number): RequestHead | ProxyError | null {
    if (this.#scanned > 0) return this.#readOn(bytes, maxBytes);
    const mayRepeat = bytes.length <= Math.min(maxBytes, USUAL_HEAD_BYTES);
    const mark = mayRepeat ? markOf(bytes, 0, bytes.length) : 0;
    const place = mark & (PLACES - 1);
    const known = mayRepeat && marks[place] === mark ? (repeated[place] ?? null) : null;
    if (known !== null && bytes.equals(known.bytes)) {
      this.size = bytes.length;
      return known.head;
    }
    const parts = partsOf(bytes, maxBytes);
    if (parts === null) return this.#readOn(bytes, maxBytes);
    this.size = parts.size;
    const head = requestOf(parts);
    if (mayRepeat && parts.size === bytes.length && "method" in head && head.bodyLength === 0)
      remember(mark, bytes, head);
    return head;
  }

  /** Not a whole and valid head, when it was looked at last. */
  #readOn(bytes: Buffer, maxBytes: number): RequestHead | ProxyError | null {
    const begin = this.#scanned;
    // The empty line may have begun before. What is beyond the limit may not have arrived, so it decides nothing.
    const from = Math.max(0, begin - 3);
    const most = Math.min(maxBytes + 1, bytes.length);
    let text = bytes.latin1Slice(from, Math.min(from + USUAL_HEAD_BYTES, most));
    let end = text.indexOf(END);
    if (end < 0 && most > from + USUAL_HEAD_BYTES) {
      text = bytes.latin1Slice(from, most);
      end = text.indexOf(END);
    }
    const size = end < 0 ? bytes.length : from + end + END.length;
    if (end < 0 || size > maxBytes) {
      this.#scanned = bytes.length;
      return this.#partOfHead(text, bytes, maxBytes);
    }
    this.#scanned = 0;
    this.#isLineKnown = false;
    const parts = begin === 0 ? null : partsOf(bytes, maxBytes);
    this.size = parts === null ? size : parts.size;
    return parts === null ? problemOf(bytes.latin1Slice(0, size)) : requestOf(parts);
  }

  /** What no further byte makes valid is refused at once. `text`: what is new. */
  #partOfHead(text: string, bytes: Buffer, maxBytes: number): ProxyError | null {
    // The CR of a line feed at the begin was looked at before.
    const isBroken = NOT_IN_A_HEAD.test(
      this.#scanned > text.length ? text.replace(/^\n/, "") : text,
    );
    if (!this.#isLineKnown) {
      const lineEnd = text.includes("\r\n") ? bytes.indexOf("\r\n") : -1;
      const line = bytes.latin1Slice(0, Math.max(0, lineEnd));
      this.#isLineKnown = lineEnd >= 0;
      if (this.#isLineKnown && !REQUEST_LINE.test(line)) return problemOfLine(line);
    }
    if (isBroken) return this.#isLineKnown ? notAField : notALine;
    if (bytes.length <= maxBytes) return null;
    return this.#isLineKnown ? failures.headTooLarge : failures.targetTooLong;
  }
}

/** The parts of a whole head. */
interface HeadParts {
  readonly text: string;
  /** Bytes, with the empty line. */
  readonly size: number;
  readonly lineEnd: number;
  readonly names: readonly FieldName[];
  readonly offsets: readonly number[];
  readonly plainFrom: number;
}

const TOKEN = 1;
const VALUE = 2;
const TARGET = 4;
const BLANK = 8;
/** What a byte may be a part of. */
const CLASSES = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  const char = String.fromCharCode(byte);
  if (/[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(char)) CLASSES[byte] = TOKEN;
  if (/[\t -~\x80-\xff]/.test(char)) CLASSES[byte] = (CLASSES[byte] ?? 0) | VALUE;
  if (/[!-~\x80-\xff]/.test(char)) CLASSES[byte] = (CLASSES[byte] ?? 0) | TARGET;
  if (/[\t ]/.test(char)) CLASSES[byte] = (CLASSES[byte] ?? 0) | BLANK;
}

const CR = 13;
const LF = 10;
const SPACE = 32;
const COLON = 58;
/** After the target. */
const VERSION = Buffer.from(" HTTP/1.");

/** The names of one thread's clients. */
const slots = new NameSlots();

/** Where the request line ends; -1: it is not whole, or not valid. */
function lineEndOf(bytes: Buffer, end: number): number {
  let at = 0;
  while (at < end && ((CLASSES[bytes[at] ?? 0] ?? 0) & TOKEN) !== 0) at++;
  const target = at + 1;
  if (at === 0 || bytes[at++] !== SPACE) return -1;
  while (at < end && ((CLASSES[bytes[at] ?? 0] ?? 0) & TARGET) !== 0) at++;
  if (at === target) return -1;
  for (let in_ = 0; in_ < VERSION.length; in_++) if (bytes[at++] !== VERSION[in_]) return -1;
  const minor = bytes[at++];
  return minor === 48 || minor === 49 ? at : -1;
}

/** Request line and fields, with CRLF and nothing else at the end of each line; null: not whole, not valid, or longer. */
function partsOf(bytes: Buffer, maxBytes: number): HeadParts | null {
  const end = Math.min(bytes.length, maxBytes);
  const lineEnd = lineEndOf(bytes, end);
  if (lineEnd < 0) return null;
  let at = lineEnd;
  const names: FieldName[] = [];
  const offsets: number[] = [];
  let isPlain = true;
  for (;;) {
    if (at + 1 >= end || bytes[at] !== CR || bytes[at + 1] !== LF) return null;
    at += 2;
    const nameStart = at;
    let hash = 0;
    for (; at < end; at++) {
      const byte = bytes[at] ?? 0;
      if (((CLASSES[byte] ?? 0) & TOKEN) === 0) break;
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    if (at === nameStart) break;
    if (at >= end || bytes[at] !== COLON) return null;
    const slot = hash & (SLOTS - 1);
    const known = slots.bytes[slot];
    let same = known?.length === at - nameStart ? nameStart : at + 1;
    while (same < at && known?.[same - nameStart] === bytes[same]) same++;
    const name = same === at ? slots.names[slot] : undefined;
    names.push(name ?? slots.fill(slot, bytes, { start: nameStart, end: at }));
    at++;
    if (bytes[at] === SPACE) at++;
    else isPlain = false;
    let start = at;
    while (at < end && ((CLASSES[bytes[at] ?? 0] ?? 0) & VALUE) !== 0) at++;
    let stop = at;
    // RFC 9112 section 5.1: without optional whitespace.
    while (start < stop && ((CLASSES[bytes[start] ?? 0] ?? 0) & BLANK) !== 0) start++;
    while (stop > start && ((CLASSES[bytes[stop - 1] ?? 0] ?? 0) & BLANK) !== 0) stop--;
    isPlain &&= stop === at && bytes[start - 2] === COLON;
    offsets.push(start, stop);
  }
  if (at + 1 >= end || bytes[at] !== CR || bytes[at + 1] !== LF) return null;
  const size = at + 2;
  const text = bytes.latin1Slice(0, size);
  return { text, size, lineEnd, names, offsets, plainFrom: isPlain ? lineEnd + 2 : -1 };
}

/** A whole head as latin1, with its empty line. An error when it is no request that the gateway may serve. */
export const parseRequestHead = (text: string): RequestHead | ProxyError => {
  const parts = partsOf(Buffer.from(text, "latin1"), text.length);
  return parts === null ? problemOf(text) : requestOf(parts);
};

function requestOf(parts: HeadParts): RequestHead | ProxyError {
  const { text, lineEnd } = parts;
  const isHttp11 = text.charCodeAt(lineEnd - 1) === 49;
  let fields = new HeaderBlock(parts.names, parts);
  const problem = readFields(fields);
  if (problem !== null) return failures.badRequest(problem);
  const { hostField, connectionField, contentLength, transferEncoding, expect, te } = fields;
  const { upgrade } = fields;
  const isChunked = transferEncoding !== null;
  if (isChunked && contentLength !== null)
    return failures.badRequest("the request has Transfer-Encoding and Content-Length");
  if (isChunked && !isHttp11) return failures.badRequest("HTTP/1.0 has no Transfer-Encoding");
  if (hostField === null && isHttp11) return failures.badRequest("the request has no Host field");
  const methodEnd = text.indexOf(" ");
  const method = text.slice(0, methodEnd);
  const sent = text.slice(methodEnd + 1, lineEnd - 9);
  // Servers that read one of several cookie fields would see other cookies than plugins do.
  if (fields.cookies > 1) fields = fields.with("cookie", fields.cookie);
  let rawTarget = sent;
  let target = sent;
  if (sent.charCodeAt(0) !== 47) {
    const other = otherForm(sent, method);
    if (other === null) return failures.badRequest("the request target is not valid");
    rawTarget = other.rawTarget;
    target = rawTarget === "*" ? rawTarget : normalTarget(rawTarget);
    // RFC 9112 section 3.2.2: it replaces Host.
    if (other.authority !== null && other.authority !== hostField)
      fields = fields.with("host", other.authority);
  } else if (NOT_NORMAL.test(sent)) target = normalTarget(sent);
  const bodyLength = isChunked ? CHUNKED : contentLength === null ? 0 : Number(contentLength);
  const options = connectionField === null ? NO_OPTIONS : optionsOf(connectionField);
  return {
    method,
    target,
    rawTarget,
    httpVersion: isHttp11 ? "1.1" : "1.0",
    fields,
    bodyLength,
    keepsAlive: !options.includes("close") && (isHttp11 || options.includes("keep-alive")),
    expectsContinue: expect?.toLowerCase() === "100-continue" && isHttp11 && bodyLength !== 0,
    takesTrailers: te !== null && isHttp11 && TRAILERS.test(te),
    upgrade: isHttp11 && options.includes("upgrade") ? upgrade : null,
  };
}

/** A target that is no path: absolute form (RFC 9112 section 3.2.2), `*`, or that of CONNECT; null: not valid. */
function otherForm(
  sent: string,
  method: string,
): { readonly rawTarget: string; readonly authority: string | null } | null {
  const absolute = ABSOLUTE.exec(sent);
  if (absolute === null) {
    if (sent === "*" && method === "OPTIONS") return { rawTarget: sent, authority: null };
    return method === "CONNECT" ? { rawTarget: sent, authority: null } : null;
  }
  // RFC 9112 section 3.2.4: without a path, OPTIONS asks about the whole server.
  const [, authority = "", path = method === "OPTIONS" ? "*" : "/"] = absolute;
  // RFC 9110 section 4.2.4: user information would show another name than the one that is meant.
  if (authority === "" || authority.includes("@")) return null;
  return { rawTarget: path.startsWith("?") ? `/${path}` : path, authority };
}

const NO_OPTIONS: readonly string[] = [];

/** Sets those that the gateway reads. A text: what is wrong with them. */
function readFields(fields: HeaderBlock): string | null {
  const { names } = fields;
  fields.isRead = true;
  for (let at = 0; at < names.length; at++) {
    const known = names[at]?.known ?? 0;
    if (known === 0) continue;
    const value = fields.valueAt(at);
    if (known === KNOWN.host) {
      if (fields.hostField !== null) return "the request has two Host fields";
      fields.hostField = value;
    } else if (known === KNOWN["user-agent"]) fields.userAgent = list(fields.userAgent, value);
    else if (known === KNOWN.cookie) {
      fields.cookie = fields.cookie === null ? value : `${fields.cookie}; ${value}`;
      fields.cookies++;
    } else {
      const problem = addField(fields, known, value);
      if (problem !== null) return problem;
    }
  }
  return null;
}

/** RFC 9110 section 5.3. */
const list = (before: string | null, value: string): string =>
  before === null ? value : `${before}, ${value}`;

/** Those that few requests have. */
function addField(found: HeaderBlock, known: number, value: string): string | null {
  const member = KNOWN_MEMBERS[known] ?? null;
  if (member === null) return null;
  const before = found[member];
  if (known === KNOWN["content-length"]) {
    if (before !== null) return "the request has two Content-Length fields";
    if (!LENGTH.test(value)) return "the request's Content-Length is not a number";
  } else if (known === KNOWN["transfer-encoding"]) {
    if (before !== null) return "the request has two Transfer-Encoding fields";
    // Any other coding is one that the target may understand and the gateway does not.
    if (value.toLowerCase() !== "chunked") return "the request's transfer coding is not supported";
  }
  found[member] = known === KNOWN.expect ? value : list(before, value);
  return null;
}

function optionsOf(value: string): string[] {
  const usual = value === "keep-alive" || value === "close" ? value : value.toLowerCase();
  return usual.includes(",") ? usual.split(",").map((option) => option.trim()) : [usual];
}

/** Why a whole head is refused. */
function problemOf(text: string): ProxyError {
  const line = text.slice(0, text.indexOf("\r\n"));
  return REQUEST_LINE.test(line) ? notAField : problemOfLine(line);
}

const problemOfLine = (line: string): ProxyError =>
  OTHER_VERSION.test(line) ? failures.httpVersion : notALine;

const notALine = failures.badRequest("the request line is not valid");
const notAField = failures.badRequest("a header field of the request is not valid");
