// Decodes the chunked transfer coding, strictly (RFC 9112 section 7.1) unless it is that of a device; knows no socket.
import { HOP_BY_HOP } from "../../http/hop-by-hop.ts";
import { forbiddenInTrailers } from "../../http/trailer-fields.ts";
import { partOf } from "../buffer-release.ts";
import type { FieldPairs } from "../../http/fields.ts";
import { valueBetween } from "../../http/whitespace.ts";
import { ResponseSyntaxError } from "./response-parser.ts";

const CR = 13;
const LF = 10;
const SEMICOLON = 59;
const SPACE = 32;
const TAB = 9;

/** Longest chunk-size line with extensions, and longest trailer section, in bytes. */
const MAX_LINE_BYTES = 4096;

type State =
  | "size"
  | "size-blank"
  | "extension"
  | "size-lf"
  | "data"
  | "data-cr"
  | "data-lf"
  | "trailer"
  | "trailer-lf";

/** Accepts bytes in any pieces. */
export class ChunkedDecoder {
  /** True once the last chunk and the trailer section have been read. */
  done = false;
  /** Whether anything was accepted that is not strictly valid. */
  wasLenient = false;
  #state: State = "size";
  #remaining = 0;
  #digits = 0;
  #lineBytes = 0;
  #trailerLine = 0;
  /** Lines of the trailer section, each with a line feed, latin1. */
  #trailers = "";
  readonly #isOfClient: boolean;
  readonly #isLenient: boolean;

  /**
   * `isOfClient`: trailers about framing or routing, which some servers believe, are an error. Default: they are left out. `isLenient`:
   * blanks around a size, lines that end in LF alone, and trailers that are none are no error (default: they are).
   */
  constructor(isOfClient = false, isLenient = false) {
    this.#isOfClient = isOfClient;
    this.#isLenient = isLenient;
  }

  /**
   * Decodes `bytes`, calling `out` with each piece of content. Returns the number of bytes of the body; fewer than given
   * means that something follows it. Throws ResponseSyntaxError.
   */
  push(bytes: Buffer, out: (piece: Buffer) => void): number {
    let at = 0;
    while (at < bytes.length && !this.done) {
      if (this.#state === "data") {
        const take = Math.min(this.#remaining, bytes.length - at);
        out(partOf(bytes, at, at + take));
        at += take;
        this.#remaining -= take;
        if (this.#remaining === 0) this.#state = "data-cr";
      } else {
        this.#step(bytes[at] ?? 0);
        at++;
      }
    }
    return at;
  }

  /** The trailers, without those that RFC 9110 section 6.5.1 forbids; null: none. Throws ResponseSyntaxError. */
  get trailers(): FieldPairs | null {
    if (this.#trailers === "") return null;
    const lines = this.#trailers.split("\n").filter((line) => line !== "");
    const valid = lines.filter(isTrailer);
    if (valid.length < lines.length) this.#allow("the target sent a malformed trailer");
    return parseTrailers(valid, this.#isOfClient);
  }

  /** The connection has ended: whether a device's body is complete without the line behind its last chunk (RFC 9112 section 8). */
  endsHere(): boolean {
    const isBehindLast = this.#state === "trailer" || this.#state === "trailer-lf";
    if (!this.#isLenient || !isBehindLast || this.#trailers !== "") return false;
    this.wasLenient = true;
    return true;
  }

  #step(byte: number): void {
    if (++this.#lineBytes > MAX_LINE_BYTES)
      throw new ResponseSyntaxError("the target sent a chunk header that is too long");
    switch (this.#state) {
      case "size":
        return this.#sizeByte(byte);
      case "size-blank":
        if (!isBlank(byte)) this.#afterSize(byte);
        return;
      case "extension":
        if (byte === CR) this.#state = "size-lf";
        else if (byte === LF) this.#bareLf("size-lf");
        return;
      case "size-lf":
        this.#expect(byte, LF);
        this.#lineBytes = 0;
        this.#digits = 0;
        this.#state = this.#remaining === 0 ? "trailer" : "data";
        return;
      case "data-cr":
        if (byte === LF) return this.#bareLf("data-lf");
        this.#expect(byte, CR);
        this.#state = "data-lf";
        return;
      case "data-lf":
        this.#expect(byte, LF);
        this.#lineBytes = 0;
        this.#state = "size";
        return;
      case "trailer":
        if (byte === CR) this.#state = "trailer-lf";
        else if (byte === LF) this.#bareLf("trailer-lf");
        else {
          this.#trailerLine++;
          this.#trailers += String.fromCharCode(byte);
        }
        return;
      case "trailer-lf":
        this.#expect(byte, LF);
        if (this.#trailerLine === 0) this.done = true;
        else this.#trailers += "\n";
        this.#trailerLine = 0;
        this.#state = "trailer";
        return;
    }
  }

  #sizeByte(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      // 13 hex digits stay exact in a double.
      if (++this.#digits > 13) throw bad();
      this.#remaining = this.#remaining * 16 + digit;
      return;
    }
    if (isBlank(byte)) {
      this.#allow();
      if (this.#digits > 0) this.#state = "size-blank";
    } else if (this.#digits === 0) throw bad();
    else this.#afterSize(byte);
  }

  #afterSize(byte: number): void {
    if (byte === CR) this.#state = "size-lf";
    else if (byte === SEMICOLON) this.#state = "extension";
    else if (byte === LF) this.#bareLf("size-lf");
    else throw bad();
  }

  /** A line that ends in LF alone. `state`: that behind its CR. */
  #bareLf(state: State): void {
    this.#allow();
    this.#state = state;
    this.#step(LF);
  }

  #allow(otherwise = MALFORMED): void {
    if (!this.#isLenient) throw new ResponseSyntaxError(otherwise);
    this.wasLenient = true;
  }

  #expect(byte: number, expected: number): void {
    if (byte !== expected) throw bad();
  }
}

/** RFC 9110 section 5.6.2 and 5.5. */
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const NOT_IN_A_VALUE = /[\0-\x08\x0a-\x1f\x7f]/;

/** Name and value of a line. */
function partsOf(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, Math.max(0, colon)), valueBetween(line, colon + 1, line.length)];
}

function isTrailer(line: string): boolean {
  const [name, value] = partsOf(line);
  return NAME.test(name) && !NOT_IN_A_VALUE.test(value);
}

function parseTrailers(lines: readonly string[], isOfClient: boolean): FieldPairs | null {
  const pairs: (readonly [string, string])[] = [];
  for (const line of lines) {
    const [name, value] = partsOf(line);
    const lower = name.toLowerCase();
    if (isOfClient && (HOP_BY_HOP.has(lower) || lower === "content-length" || lower === "host"))
      throw new ResponseSyntaxError("a trailer about framing or routing");
    if (!forbiddenInTrailers(lower)) pairs.push([name, value]);
  }
  return pairs.length === 0 ? null : pairs;
}

const MALFORMED = "the target sent a malformed chunk";

const bad = () => new ResponseSyntaxError(MALFORMED);

const isBlank = (byte: number) => byte === SPACE || byte === TAB;

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
