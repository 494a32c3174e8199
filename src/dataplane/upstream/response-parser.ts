// Parses the head of an HTTP/1.1 response from one string, strictly (RFC 9112); knows no socket.

/** Header fields in a form that `new Response` takes: an object while no name repeats, else pairs. */
export type FieldList = Record<string, string> | [string, string][];

/** How the body ends (RFC 9112 section 6.3). */
export type BodyFraming = "none" | "length" | "chunked" | "close";

export interface ResponseHead {
  readonly status: number;
  /** Without hop-by-hop fields. */
  readonly fields: FieldList;
  readonly framing: BodyFraming;
  /** Bytes of the body when framing is `length`, else -1. */
  readonly length: number;
  readonly keepAlive: boolean;
  /** Value of Upgrade, for 101 only. */
  readonly upgrade: string | null;
  /** Whether the body is a stream of events, which must never wait. */
  readonly isEventStream: boolean;
  readonly hasContentType: boolean;
}

/** A head that is not HTTP/1.1; the text says what is wrong. */
export class ResponseSyntaxError extends Error {}

/** Fields seen while a head is read. */
class HeadReader {
  #object: Record<string, string> | null = {};
  #pairs: [string, string][] | null = null;
  length = -1;
  transferEncoding: string | null = null;
  connection: string | null = null;
  upgrade: string | null = null;
  isEventStream = false;
  hasContentType = false;

  /** Adds one end-to-end field. Names are checked by the Headers that they end up in. */
  #add(name: string, value: string): void {
    const object = this.#object;
    if (object !== null) {
      // `in` also answers true for names such as "constructor": they take the slower form, which is right for any name.
      if (!(name in object)) {
        object[name] = value;
        return;
      }
      this.#pairs = Object.entries(object);
      this.#object = null;
    }
    this.#pairs?.push([name, value]);
  }

  /** Sorts one field: framing and hop-by-hop ones are kept here, all others pass. Only names of a telling length are compared. */
  take(name: string, value: string): void {
    switch (name.length) {
      case 2:
        if (name.toLowerCase() === "te") return;
        break;
      case 7: {
        const lower = name.toLowerCase();
        if (lower === "trailer") return;
        if (lower === "upgrade") {
          this.upgrade = value;
          return;
        }
        break;
      }
      case 10: {
        const lower = name.toLowerCase();
        if (lower === "keep-alive") return;
        if (lower === "connection") {
          this.connection = this.connection === null ? value : `${this.connection},${value}`;
          return;
        }
        break;
      }
      case 12:
        if (name.toLowerCase() === "content-type") {
          this.hasContentType = true;
          this.isEventStream = value.startsWith("text/event-stream");
        }
        break;
      case 14:
        if (name.toLowerCase() === "content-length") {
          this.#takeLength(value);
          return;
        }
        break;
      case 16:
        if (name.toLowerCase() === "proxy-connection") return;
        break;
      case 17:
        if (name.toLowerCase() === "transfer-encoding") {
          this.transferEncoding =
            this.transferEncoding === null ? value : `${this.transferEncoding},${value}`;
          return;
        }
        break;
    }
    this.#add(name, value);
  }

  #takeLength(value: string): void {
    const length = decimal(value);
    if (length < 0)
      throw new ResponseSyntaxError("the target sent a Content-Length that is not a number");
    if (this.length >= 0 && this.length !== length)
      throw new ResponseSyntaxError("the target sent two different Content-Lengths");
    this.length = length;
  }

  /** The fields that may pass on: without those that Connection names (RFC 9110 section 7.6.1). */
  fields(): FieldList {
    const connection = this.connection?.toLowerCase() ?? "";
    const list: FieldList = this.#object ?? this.#pairs ?? {};
    if (
      connection === "" ||
      connection === "keep-alive" ||
      connection === "close" ||
      connection === "upgrade"
    )
      return list;
    const named = new Set(connection.split(",").map((name) => name.trim()));
    const pairs = Array.isArray(list) ? list : Object.entries(list);
    return pairs.filter(([name]) => !named.has(name.toLowerCase()));
  }

  /** Content-Length goes on for bodies whose length stays true. */
  addLength(): void {
    this.#add("Content-Length", String(this.length));
  }
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
 * Throws ResponseSyntaxError. Bytes that are not allowed inside names and values are refused by the Headers object that
 * the fields are given to afterwards.
 */
export function parseResponseHead(text: string, isHead: boolean): ResponseHead {
  const status = parseStatus(text);
  const reader = new HeadReader();
  const end = text.length - 2;
  let at = text.indexOf("\r\n") + 2;
  while (at < end) {
    const lineEnd = text.indexOf("\r\n", at);
    const colon = text.indexOf(":", at);
    if (colon <= at || colon > lineEnd)
      throw new ResponseSyntaxError("the target sent a malformed header field");
    let from = colon + 1;
    let to = lineEnd;
    while (from < to && isBlank(text.charCodeAt(from))) from++;
    while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
    reader.take(text.slice(at, colon), text.slice(from, to));
    at = lineEnd + 2;
  }
  return finish(reader, status, { isHead, isHttp10: text.charCodeAt(7) === 48 });
}

const isBlank = (code: number) => code === 32 || code === 9;

function finish(
  reader: HeadReader,
  status: number,
  request: { isHead: boolean; isHttp10: boolean },
): ResponseHead {
  const framing = framingOf(reader, status, request);
  // HEAD and 304 keep the length that the body would have had (RFC 9110 section 8.6).
  if (reader.length >= 0 && (framing === "length" || request.isHead || status === 304))
    reader.addLength();
  const connection = reader.connection?.toLowerCase() ?? "";
  const keepAlive = request.isHttp10
    ? connection.includes("keep-alive")
    : !connection.includes("close");
  return {
    status,
    fields: reader.fields(),
    framing,
    length: framing === "length" ? reader.length : -1,
    keepAlive: keepAlive && framing !== "close",
    upgrade: reader.upgrade,
    isEventStream: reader.isEventStream,
    hasContentType: reader.hasContentType,
  };
}

/** RFC 9112 section 6.3, and stricter: both lengths at once, or any coding but chunked, could hide a second response. */
function framingOf(
  reader: HeadReader,
  status: number,
  request: { isHead: boolean; isHttp10: boolean },
): BodyFraming {
  const coding = reader.transferEncoding;
  if (coding !== null) {
    if (reader.length >= 0)
      throw new ResponseSyntaxError("the target sent Transfer-Encoding and Content-Length");
    if (coding.toLowerCase() !== "chunked" || request.isHttp10)
      throw new ResponseSyntaxError("the target's transfer coding is not supported");
  }
  if (request.isHead || status < 200 || status === 204 || status === 304) return "none";
  if (coding !== null) return "chunked";
  return reader.length >= 0 ? "length" : "close";
}
