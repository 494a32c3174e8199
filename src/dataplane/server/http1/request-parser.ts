// Reads the head of an HTTP/1.1 request, strictly (RFC 9112): what servers read differently is refused; knows no socket.
import { type FieldName, fieldNameIn, KNOWN } from "../../../http/field-name.ts";
import { HeaderBlock } from "../../../http/header-block.ts";
import { normalTarget } from "../../../http/request-target.ts";
import { latin1 } from "../../../http/bytes.ts";
import { failures, type ProxyError } from "../../error.ts";

/** Length of `RequestHead.bodyLength` for a chunked body. */
export const CHUNKED = -1;

export interface RequestHead {
  readonly method: string;
  /** Origin form, or `*`. */
  readonly target: string;
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

/** Reads one head after the other. Looks at each byte of a head at most twice, because a client may send them one by one. */
export class HeadReader {
  /** Bytes of the last head. */
  size = 0;
  #scanned = 0;
  #isLineKnown = false;

  /** `bytes`: all of the head that has arrived, and perhaps more; null: it is not complete. */
  read(bytes: Buffer, maxBytes: number): RequestHead | ProxyError | null {
    const begin = this.#scanned;
    if (begin === 0) {
      const head = this.#parse(bytes, maxBytes);
      if (head !== null) return head;
    }
    // The empty line may have begun before.
    const from = Math.max(0, begin - 3);
    let text = latin1(bytes, from, from + USUAL_HEAD_BYTES);
    let end = text.indexOf(END);
    if (end < 0 && bytes.length > from + USUAL_HEAD_BYTES) {
      text = latin1(bytes, from, maxBytes + 1);
      end = text.indexOf(END);
    }
    const size = end < 0 ? bytes.length : from + end + END.length;
    if (end < 0 || size > maxBytes) {
      this.#scanned = bytes.length;
      return this.#partOfHead(text, bytes, maxBytes);
    }
    const head = begin === 0 ? null : this.#parse(bytes, maxBytes);
    if (head !== null) return head;
    this.#reset(size);
    return problemOf(latin1(bytes, 0, size));
  }

  #parse(bytes: Buffer, maxBytes: number): RequestHead | ProxyError | null {
    const parts = partsOf(bytes, maxBytes);
    if (parts === null) return null;
    this.#reset(parts.size);
    return requestOf(parts);
  }

  #reset(size: number): void {
    this.#scanned = 0;
    this.#isLineKnown = false;
    this.size = size;
  }

  /** What no further byte makes valid is refused at once. `text`: what is new. */
  #partOfHead(text: string, bytes: Buffer, maxBytes: number): ProxyError | null {
    // The CR of a line feed at the begin was looked at before.
    const isBroken = NOT_IN_A_HEAD.test(
      this.#scanned > text.length ? text.replace(/^\n/, "") : text,
    );
    if (!this.#isLineKnown) {
      const lineEnd = text.includes("\r\n") ? bytes.indexOf("\r\n") : -1;
      const line = latin1(bytes, 0, Math.max(0, lineEnd));
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
  readonly methodEnd: number;
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

/** Request line and fields, with CRLF and nothing else at the end of each line; null: not whole, not valid, or longer. */
function partsOf(bytes: Buffer, maxBytes: number): HeadParts | null {
  const end = Math.min(bytes.length, maxBytes);
  let at = 0;
  while (at < end && ((CLASSES[bytes[at] ?? 0] ?? 0) & TOKEN) !== 0) at++;
  const methodEnd = at;
  if (at === 0 || bytes[at++] !== SPACE) return null;
  while (at < end && ((CLASSES[bytes[at] ?? 0] ?? 0) & TARGET) !== 0) at++;
  if (at === methodEnd + 1) return null;
  for (let in_ = 0; in_ < VERSION.length; in_++) if (bytes[at++] !== VERSION[in_]) return null;
  const minor = bytes[at++];
  if (minor !== 48 && minor !== 49) return null;
  const lineEnd = at;
  const names: FieldName[] = [];
  const offsets: number[] = [];
  let isPlain = true;
  for (;;) {
    if (at + 1 >= end || bytes[at] !== CR || bytes[at + 1] !== LF) return null;
    at += 2;
    const nameStart = at;
    while (at < end && ((CLASSES[bytes[at] ?? 0] ?? 0) & TOKEN) !== 0) at++;
    if (at === nameStart) break;
    if (at >= end || bytes[at] !== COLON) return null;
    names.push(fieldNameIn(bytes, nameStart, at));
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
  const text = latin1(bytes, 0, size);
  const plainFrom = isPlain ? lineEnd + 2 : -1;
  return { text, size, methodEnd, lineEnd, names, offsets, plainFrom };
}

/** A whole head as latin1, with its empty line. An error when it is no request that the gateway may serve. */
export const parseRequestHead = (text: string): RequestHead | ProxyError => {
  const parts = partsOf(Buffer.from(text, "latin1"), text.length);
  return parts === null ? problemOf(text) : requestOf(parts);
};

function requestOf(parts: HeadParts): RequestHead | ProxyError {
  const { text, methodEnd, lineEnd, names } = parts;
  const method = text.slice(0, methodEnd);
  const target = text.slice(methodEnd + 1, lineEnd - 9);
  const isHttp11 = text.charCodeAt(lineEnd - 1) === 49;
  const framing = new Framing();
  let fields = new HeaderBlock(names, parts);
  for (let at = 0; at < names.length; at++) {
    const known = names[at]?.known ?? 0;
    if (known !== 0) framing.add(known, fields.valueAt(at));
  }
  const problem = framing.problem(isHttp11);
  if (problem !== null) return failures.badRequest(problem);
  const { host, options, length, coding, upgrade } = framing;
  // Servers that read one of several cookie fields would see other cookies than plugins do.
  if (framing.cookies > 1) fields = fields.with("cookie", fields.get("cookie"));
  let origin = target;
  if (target.charCodeAt(0) !== 47) {
    const absolute = ABSOLUTE.exec(target);
    const isOfServer = target === "*" && method === "OPTIONS";
    if (absolute === null && !isOfServer && method !== "CONNECT")
      return failures.badRequest("the request target is not valid");
    if (absolute !== null) {
      // RFC 9112 section 3.2.4: without a path, OPTIONS asks about the whole server.
      const [, authority = "", path = method === "OPTIONS" ? "*" : "/"] = absolute;
      // RFC 9110 section 4.2.4: user information would show another name than the one that is meant.
      if (authority === "" || authority.includes("@"))
        return failures.badRequest("the request target is not valid");
      origin = path.startsWith("?") ? `/${path}` : path;
      // RFC 9112 section 3.2.2: it replaces Host.
      if (authority !== host) fields = fields.with("host", authority);
    }
  }
  return {
    method,
    target: origin === "*" ? origin : normalTarget(origin),
    httpVersion: isHttp11 ? "1.1" : "1.0",
    fields,
    bodyLength: coding ? CHUNKED : length,
    keepsAlive: !options.includes("close") && (isHttp11 || options.includes("keep-alive")),
    expectsContinue: framing.expectsContinue && isHttp11 && (coding || length > 0),
    takesTrailers: framing.takesTrailers && isHttp11,
    upgrade: isHttp11 && options.includes("upgrade") ? upgrade : null,
  };
}

const NO_OPTIONS: readonly string[] = [];

/** The fields about the message and its connection. */
class Framing {
  host: string | null = null;
  length = 0;
  coding = false;
  options = NO_OPTIONS;
  upgrade: string | null = null;
  expectsContinue = false;
  takesTrailers = false;
  cookies = 0;
  #hasLength = false;
  #problem: string | null = null;

  add(known: number, value: string): void {
    switch (known) {
      case KNOWN.host:
        if (this.host !== null) this.#problem = "the request has two Host fields";
        this.host = value;
        break;
      case KNOWN.connection:
        this.options = [...this.options, ...optionsOf(value)];
        break;
      case KNOWN["content-length"]:
        if (this.#hasLength) this.#problem = "the request has two Content-Length fields";
        else if (!LENGTH.test(value))
          this.#problem = "the request's Content-Length is not a number";
        this.#hasLength = true;
        this.length = Number(value);
        break;
      case KNOWN["transfer-encoding"]:
        if (this.coding) this.#problem = "the request has two Transfer-Encoding fields";
        // Any other coding is one that the target may understand and the gateway does not.
        else if (value.toLowerCase() !== "chunked")
          this.#problem = "the request's transfer coding is not supported";
        this.coding = true;
        break;
      case KNOWN.cookie:
        this.cookies++;
        break;
      case KNOWN.upgrade:
        this.upgrade = this.upgrade === null ? value : `${this.upgrade}, ${value}`;
        break;
      case KNOWN.expect:
        this.expectsContinue = value.toLowerCase() === "100-continue";
        break;
      case KNOWN.te:
        this.takesTrailers ||= TRAILERS.test(value);
        break;
    }
  }

  problem(isHttp11: boolean): string | null {
    if (this.#problem !== null) return this.#problem;
    if (this.coding && this.#hasLength)
      return "the request has Transfer-Encoding and Content-Length";
    if (this.coding && !isHttp11) return "HTTP/1.0 has no Transfer-Encoding";
    return this.host === null && isHttp11 ? "the request has no Host field" : null;
  }
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
