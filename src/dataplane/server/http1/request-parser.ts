// Reads the head of an HTTP/1.1 request, strictly (RFC 9112): what servers read differently is refused; knows no socket.
import { type FieldName, fieldName, KNOWN } from "../../../http/field-name.ts";
import { HeaderBlock } from "../../../http/header-block.ts";
import { normalTarget } from "../../../http/request-target.ts";
import { failures, type ProxyError } from "../../error.ts";
import { valueBetween } from "../../upstream/response-head.ts";

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
/** Request line and fields, with CRLF and nothing else at the end of each line. No part can match in two ways. */
const HEAD =
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~\x80-\xff]+ HTTP\/1\.[01]\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~\x80-\xff]*\r\n)*\r\n$/;
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

/** Reads one head after the other. Looks at each byte of a head once, because a client may send them one by one. */
export class HeadReader {
  /** Bytes of the last head. */
  size = 0;
  #scanned = 0;
  #isLineKnown = false;

  /** `bytes`: all of the head that has arrived, and perhaps more; null: it is not complete. */
  read(bytes: Buffer, maxBytes: number): RequestHead | ProxyError | null {
    // The empty line may have begun before.
    const from = Math.max(0, this.#scanned - 3);
    let text = bytes.toString("latin1", from, Math.min(bytes.length, from + USUAL_HEAD_BYTES));
    let end = text.indexOf(END);
    if (end < 0 && bytes.length > from + USUAL_HEAD_BYTES) {
      text = bytes.toString("latin1", from, Math.min(bytes.length, maxBytes + 1));
      end = text.indexOf(END);
    }
    const size = end < 0 ? bytes.length : from + end + END.length;
    if (end < 0 || size > maxBytes) {
      this.#scanned = bytes.length;
      return this.#partOfHead(text, bytes, maxBytes);
    }
    const head = from === 0 ? text.slice(0, size) : bytes.toString("latin1", 0, size);
    this.#scanned = 0;
    this.#isLineKnown = false;
    this.size = size;
    return parseRequestHead(head);
  }

  /** What no further byte makes valid is refused at once. `text`: what is new. */
  #partOfHead(text: string, bytes: Buffer, maxBytes: number): ProxyError | null {
    // The CR of a line feed at the begin was looked at before.
    const isBroken = NOT_IN_A_HEAD.test(
      this.#scanned > text.length ? text.replace(/^\n/, "") : text,
    );
    if (!this.#isLineKnown) {
      const lineEnd = text.includes("\r\n") ? bytes.indexOf("\r\n") : -1;
      const line = bytes.toString("latin1", 0, Math.max(0, lineEnd));
      this.#isLineKnown = lineEnd >= 0;
      if (this.#isLineKnown && !REQUEST_LINE.test(line)) return problemOfLine(line);
    }
    if (isBroken) return this.#isLineKnown ? notAField : notALine;
    if (bytes.length <= maxBytes) return null;
    return this.#isLineKnown ? failures.headTooLarge : failures.targetTooLong;
  }
}

/** `text`: a whole head as latin1, with its empty line. An error when it is no request that the gateway may serve. */
export function parseRequestHead(text: string): RequestHead | ProxyError {
  if (!HEAD.test(text)) return problemOf(text);
  const lineEnd = text.indexOf("\r\n");
  const methodEnd = text.indexOf(" ");
  const method = text.slice(0, methodEnd);
  const target = text.slice(methodEnd + 1, lineEnd - 9);
  const isHttp11 = text.charCodeAt(lineEnd - 1) === 49;
  const framing = new Framing();
  const names: FieldName[] = [];
  const values: string[] = [];
  const end = text.length - 2;
  for (let at = lineEnd + 2; at < end;) {
    const stop = text.indexOf("\r\n", at);
    const colon = text.indexOf(":", at);
    const name = fieldName(text.slice(at, colon));
    const value = valueBetween(text, colon + 1, stop);
    names.push(name);
    values.push(value);
    if (name.known !== 0) framing.add(name.known, value);
    at = stop + 2;
  }
  const problem = framing.problem(isHttp11);
  if (problem !== null) return failures.badRequest(problem);
  const { host, options, length, coding, upgrade } = framing;
  let fields = new HeaderBlock(names, values);
  // Servers that read one of several cookie fields would see other cookies than plugins do.
  if (framing.cookies > 1) fields = fields.with("cookie", fields.get("cookie"));
  let origin = target;
  if (target.charCodeAt(0) !== 47) {
    const absolute = ABSOLUTE.exec(target);
    const isOfServer = target === "*" && method === "OPTIONS";
    if (absolute === null && !isOfServer && method !== "CONNECT")
      return failures.badRequest("the request target is not valid");
    if (absolute !== null) {
      const [, authority = "", path = "/"] = absolute;
      // RFC 9110 section 4.2.4: user information would show another name than the one that is meant.
      if (authority === "" || authority.includes("@"))
        return failures.badRequest("the request target is not valid");
      origin = path.startsWith("/") ? path : `/${path}`;
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
