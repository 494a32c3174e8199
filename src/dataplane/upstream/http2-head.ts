// Translates heads between HTTP/1.1 text and header blocks of HTTP/2, strictly (RFC 9113 section 8); knows no stream.
import type { FieldPairs } from "../../http/fields.ts";
import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";
import { forbiddenInTrailers } from "../../http/trailer-fields.ts";
import { conventional } from "../../http/usual-case.ts";
import { FieldWriter, literal, type WrittenName } from "../http2/field-writer.ts";
import { CODE, ConnectionError } from "../http2/frames.ts";
import type { HeadCache } from "./response-head.ts";
import type { ResponseHead } from "./response-head.ts";
import { ResponseSyntaxError } from "./response-parser.ts";

const NOT_IN_A_TARGET = /[^!-~\x80-\xff]/;

/** A request head that HTTP/2 cannot carry. */
export class RequestSyntaxError extends Error {}

const invalidField = () => new RequestSyntaxError("a request header field is not valid");

const VERSION = " HTTP/1.1";
const HOST = "Host: ";
const METHOD = literal(":method");
const SCHEME = literal(":scheme");
const AUTHORITY = literal(":authority");
const PATH = literal(":path");
const TE = literal("te");

/** The value of Content-Type of every kind of gRPC begins so. */
const GRPC = Buffer.from("application/grpc");

/** One for each thread: a block is sent before the next one is written. */
export class RequestBlock extends FieldWriter {
  #isValid = true;
  #isGrpc = false;

  /** The fields of a head in HTTP/1.1 text, whose framing they leave out. Its first field is Host. Throws RequestSyntaxError. */
  request(text: string, scheme: string): void {
    const lineEnd = text.indexOf("\r\n");
    const methodEnd = text.indexOf(" ");
    const targetEnd = lineEnd - VERSION.length;
    const target = text.slice(methodEnd + 1, targetEnd);
    if (methodEnd <= 0 || !text.startsWith(VERSION, targetEnd) || NOT_IN_A_TARGET.test(target))
      throw new RequestSyntaxError("the request target is not valid");
    const hostEnd = text.indexOf("\r\n", lineEnd + 2);
    if (!text.startsWith(HOST, lineEnd + 2)) throw invalidField();
    this.field(METHOD, text.slice(0, methodEnd));
    this.field(SCHEME, scheme);
    this.field(AUTHORITY, text.slice(lineEnd + 2 + HOST.length, hostEnd));
    this.field(PATH, target);
    this.#isValid = true;
    this.#isGrpc = false;
    const isWhole = this.lines(text.slice(hostEnd + 2, text.length - 2));
    if (!isWhole || !this.#isValid) throw invalidField();
    // gRPC targets reject calls without it; the gateway reads the trailers of every response.
    if (this.#isGrpc) this.field(TE, "trailers");
  }

  protected override takes(
    { prefix, kind }: WrittenName,
    from: Buffer,
    { start, end }: { readonly start: number; readonly end: number },
  ): boolean {
    if (kind === "invalid") this.#isValid = false;
    if (kind === "content-type" && end - start >= GRPC.length)
      this.#isGrpc ||= from.compare(GRPC, 0, GRPC.length, start, start + GRPC.length) === 0;
    return prefix.length > 0 && kind !== "te" && kind !== "host";
  }
}

/** A lower-case token (RFC 9113 section 8.2.1). */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const NOT_IN_A_VALUE = /[\0\r\n]/;
const STATUS = /^[1-5]\d\d$/;

const MALFORMED = "the target sent a malformed header field";
const OF_CONNECTION = "the target sent a field that HTTP/2 does not have";
const PSEUDO = "the target sent a pseudo field that is not valid";

/** What is wrong with a name; null: nothing. */
const verdicts = new Map<string, string | null>();
const MAX_VERDICTS = 1000;
const MAX_NAME_LENGTH = 64;

function verdictOf(name: string): string | null {
  const known = verdicts.get(name);
  if (known !== undefined) return known;
  const verdict = !NAME.test(name) ? MALFORMED : CONNECTION_FIELDS.has(name) ? OF_CONNECTION : null;
  if (verdicts.size >= MAX_VERDICTS) verdicts.clear();
  if (name.length <= MAX_NAME_LENGTH) verdicts.set(name, verdict);
  return verdict;
}

/** Of a list, with what lines of HTTP/1.1 have more, and in number; `max_response_head_bytes` is checked for each response. */
export const MAX_LIST_BYTES = 1_048_576;
const MAX_FIELDS = 2000;
/** A list that is so many times as long ends the session (an HPACK bomb). */
const MOST_TIMES = 4;
const LINE_BYTES = 4;

/** A header list of a target. Equal ones may share it. */
export class ResponseList {
  /** 0: it has none. */
  status = 0;
  /** As RFC 9113 section 6.5.2 counts them, without the 32 bytes for each field and with those of lines. */
  bytes = 0;
  /** Lines as for HTTP/1.1. */
  #lines = "";
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  #hasLength = false;
  #problem: string | null = null;
  /** As it was made last, and the cache that has made it. */
  #head: ResponseHead | null = null;
  #heads: HeadCache | null = null;
  #trailers: FieldPairs | null = null;

  get isTooLong(): boolean {
    return this.bytes > MAX_LIST_BYTES || this.#names.length > MAX_FIELDS;
  }

  add(name: string, value: string): void {
    this.bytes += name.length + value.length + LINE_BYTES;
    if (this.isTooLong) {
      // The rest is decoded for the table only.
      if (this.bytes <= MOST_TIMES * MAX_LIST_BYTES) return;
      throw new ConnectionError(CODE.enhanceYourCalm, "a header list is too long", "heads");
    }
    if (name.charCodeAt(0) === COLON) return this.#pseudo(name, value);
    this.#problem ??= verdictOf(name) ?? (NOT_IN_A_VALUE.test(value) ? MALFORMED : null);
    if (name === "content-length") this.#hasLength = true;
    this.#lines = `${this.#lines}${conventional(name)}: ${value}\r\n`;
    this.#names.push(name);
    this.#values.push(value);
  }

  #pseudo(name: string, value: string): void {
    const isFirst = this.status === 0 && this.#names.length === 0;
    if (name === ":status" && isFirst && STATUS.test(value)) this.status = Number(value);
    else this.#problem ??= PSEUDO;
  }

  /** Throws ResponseSyntaxError. */
  #check(): void {
    if (this.#problem !== null) throw new ResponseSyntaxError(this.#problem);
  }

  /** Throws ResponseSyntaxError unless it is one of a response. */
  checkHead(): void {
    this.#check();
    if (this.status === 0)
      throw new ResponseSyntaxError("the target sent a response without a status");
  }

  /** The head through the target's cache, whose parser has the rules on lengths, cookies and hop-by-hop fields. */
  head(isHead: boolean, heads: HeadCache): ResponseHead {
    if (this.#head !== null && this.#heads === heads && !isHead) return this.#head;
    // A body without a length ends with the stream, as a chunked one ends with its last chunk.
    const framing = this.#hasLength ? "" : "transfer-encoding: chunked\r\n";
    const head = heads.read(`HTTP/1.1 ${this.status} \r\n${this.#lines}${framing}\r\n`, isHead);
    // Heads with Set-Cookie belong to one client.
    if (isHead || head.status < 200 || head.hasCookies) return head;
    this.#head = head;
    this.#heads = heads;
    return head;
  }

  get pairs(): FieldPairs {
    return this.#names.map((name, at) => [name, this.#values[at] ?? ""]);
  }

  /** As trailers, without those that no recipient may merge (RFC 9110 section 6.5.1). Throws ResponseSyntaxError. */
  trailers(): FieldPairs {
    this.#check();
    if (this.status !== 0) throw new ResponseSyntaxError(PSEUDO);
    if (this.isTooLong) throw new ResponseSyntaxError("the target's trailers are too long");
    this.#trailers ??= this.pairs.filter(([name]) => !forbiddenInTrailers(name));
    return this.#trailers;
  }
}

const COLON = 58;

/** Limits of interim responses (RFC 9110 section 15.2) per exchange, in number and bytes. */
const MAX_INTERIM_RESPONSES = 8;
const MAX_INTERIM_BYTES = 65_536;

/** The interim responses of one exchange. */
export class InterimResponses {
  #count = 0;
  #bytes = 0;

  /** Throws ResponseSyntaxError. */
  check({ bytes, status }: ResponseList): void {
    this.#count++;
    this.#bytes += bytes;
    if (this.#count > MAX_INTERIM_RESPONSES || this.#bytes > MAX_INTERIM_BYTES)
      throw new ResponseSyntaxError("the target sent too many interim responses");
    if (status === 101) throw new ResponseSyntaxError("the target switched protocols over HTTP/2");
  }
}
