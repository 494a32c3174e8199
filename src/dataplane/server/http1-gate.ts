// Cuts the bytes of an HTTP/1.1 connection into requests and gives a parser one at a time; knows no socket and no response.
import type { IncomingMessage } from "node:http";
import { ChunkedDecoder } from "../upstream/chunked-decoder.ts";

/** Largest request head, as with Bun.serve; the listener's own limit is lower and is answered with an error page. */
export const MAX_HEAD_BYTES = 16_384;

const END = "\r\n\r\n";
const LF = 10;
/** RFC 9112 section 3. Node's parser also accepts several spaces, RTSP and ICE. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP\/1\.[01]$/;
const OTHER_VERSION = /^[!-~]+ [!-~]+ HTTP\/(?!1\.[01])\d\.\d$/;
/** In the beginning of a request line: no further byte makes it valid. */
const NOT_A_REQUEST_LINE = /[^\r -~]|\r[\s\S]/;

const MALFORMED = "400 Bad Request";
const HEAD_TOO_LARGE = "431 Request Header Fields Too Large";
const WRONG_VERSION = "505 HTTP Version Not Supported";

export interface GateOwner {
  /** Whether a request may begin. */
  readonly isReady: boolean;
  /** Gives the parser bytes of one request; returns the request whose head they complete. */
  parse(bytes: Buffer): IncomingMessage | null;
  /** The parser has accepted the head of a request. */
  serve(request: IncomingMessage): void;
  /** Nothing more can be read as a request. */
  refuse(status: string): void;
}

/** Where the body of a request ends; null: unknown, nothing can follow it (RFC 9112 section 6.3). */
function bodyEndOf({ headers, httpVersion }: IncomingMessage): BodyEnd | null {
  const { "transfer-encoding": coding, "content-length": length } = headers;
  if (coding === undefined) {
    if (length === undefined) return new LengthEnd(0);
    return /^\d{1,15}$/.test(length) ? new LengthEnd(Number(length)) : null;
  }
  const isChunked = coding === "chunked" && length === undefined && httpVersion === "1.1";
  return isChunked ? new ChunkedEnd() : null;
}

interface BodyEnd {
  readonly isReached: boolean;
  /** How many of the bytes belong to the body. Throws for a malformed chunk. */
  take(bytes: Buffer): number;
}

class LengthEnd implements BodyEnd {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isReached(): boolean {
    return this.#left === 0;
  }

  take(bytes: Buffer): number {
    const size = Math.min(this.#left, bytes.length);
    this.#left -= size;
    return size;
  }
}

class ChunkedEnd implements BodyEnd {
  readonly #decoder = new ChunkedDecoder();

  get isReached(): boolean {
    return this.#decoder.done;
  }

  take(bytes: Buffer): number {
    return this.#decoder.push(bytes, () => {});
  }
}

type State =
  | { readonly at: "line" }
  /** `tail`: the last bytes that the parser has got, in which the empty line may have begun. */
  | { readonly at: "fields"; readonly size: number; readonly tail: string }
  | { readonly at: "body"; readonly end: BodyEnd; readonly request: IncomingMessage };

const LINE: State = { at: "line" };
const EMPTY = Buffer.alloc(0);

/**
 * A parser of Node creates the requests of all bytes that it gets, however many a client pipelines. And this is a second
 * opinion on where each request ends: when the two disagree, the request is refused (request smuggling).
 */
export class RequestGate {
  readonly #owner: GateOwner;
  #held: Buffer = EMPTY;
  #state: State = LINE;
  #isRunning = false;
  #isClosed = false;

  constructor(owner: GateOwner) {
    this.#owner = owner;
  }

  /** Bytes that wait for the request before them. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** A head has begun and is not complete. */
  get isWithinHead(): boolean {
    return this.#state.at === "fields" || (this.#state.at === "line" && this.#held.length > 0);
  }

  push(chunk: Buffer): void {
    if (this.#isClosed) return;
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.advance();
  }

  /** Goes on as far as the bytes and the owner allow. Responses within `serve` call it again: a loop, to bound the stack. */
  advance(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      while (!this.#isClosed && this.#held.length > 0 && this.#step());
    } finally {
      this.#isRunning = false;
    }
  }

  /** Lets nothing more through; returns the bytes that the parser has not got. */
  close(): Buffer {
    const rest = this.#held;
    this.#isClosed = true;
    this.#held = EMPTY;
    return rest;
  }

  /** False: it needs more bytes, or must wait. */
  #step(): boolean {
    const state = this.#state;
    if (state.at === "body") return this.#body(state.end, state.request);
    return state.at === "fields" ? this.#fields(state.size, state.tail) : this.#line();
  }

  #line(): boolean {
    if (!this.#owner.isReady) return false;
    // RFC 9112 section 2.2.
    while (this.#held[0] === 13 && this.#held[1] === LF) this.#take(2);
    const held = this.#held;
    const end = held.indexOf(LF);
    const line = held.toString("latin1", 0, end < 0 ? MAX_HEAD_BYTES : end);
    if (end < 0) {
      if (NOT_A_REQUEST_LINE.test(line)) this.#refuse(MALFORMED);
      else if (held.length >= MAX_HEAD_BYTES) this.#refuse(HEAD_TOO_LARGE);
      return false;
    }
    const text = line.endsWith("\r") ? line.slice(0, -1) : "";
    if (!REQUEST_LINE.test(text))
      return this.#refuse(OTHER_VERSION.test(text) ? WRONG_VERSION : MALFORMED);
    this.#state = { at: "fields", size: 0, tail: "" };
    return true;
  }

  /** The parser gets fields as they come, to refuse malformed ones at once. */
  #fields(size: number, tail: string): boolean {
    const held = this.#held;
    const bridge = (tail + held.toString("latin1", 0, END.length - 1)).indexOf(END);
    const at = bridge < 0 ? held.indexOf(END) : bridge - tail.length;
    const isWhole = bridge >= 0 || at >= 0;
    const length = isWhole ? at + END.length : held.length;
    if (size + length > MAX_HEAD_BYTES) return this.#refuse(HEAD_TOO_LARGE);
    const request = this.#owner.parse(this.#take(length));
    if (this.#isClosed) return false;
    if ((request !== null) !== isWhole) return this.#refuse(MALFORMED);
    if (request === null) {
      const last = (tail + held.toString("latin1", Math.max(0, length - 3))).slice(-3);
      this.#state = { at: "fields", size: size + length, tail: last };
      return true;
    }
    return this.#begin(request);
  }

  #begin(request: IncomingMessage): boolean {
    const end = bodyEndOf(request);
    if (end === null || request.complete !== end.isReached) return this.#refuse(MALFORMED);
    this.#state = end.isReached ? LINE : { at: "body", end, request };
    this.#owner.serve(request);
    return true;
  }

  #body(end: BodyEnd, request: IncomingMessage): boolean {
    let size: number;
    try {
      size = end.take(this.#held);
    } catch {
      return this.#refuse(MALFORMED);
    }
    // Before the owner hears of the end, it may begin the next request.
    if (end.isReached) this.#state = LINE;
    this.#owner.parse(this.#take(size));
    return this.#isClosed || request.complete === end.isReached || this.#refuse(MALFORMED);
  }

  #take(size: number): Buffer {
    const bytes = this.#held.subarray(0, size);
    this.#held = this.#held.subarray(size);
    return bytes;
  }

  #refuse(status: string): false {
    this.close();
    this.#owner.refuse(status);
    return false;
  }
}
