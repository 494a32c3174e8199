// Writes one HTTP/1.1 response with its framing (RFC 9112 sections 6 and 7.1); knows no request path.
import { STATUS_CODES } from "node:http";
import { forbiddenInTrailers } from "../../../http/trailer-fields.ts";
import { bufferRelease } from "../../buffer-release.ts";
import type { FieldPairs } from "../../../http/fields.ts";
import type { BodyReader, BodyWriter, OutgoingHead } from "../client-stream.ts";
import type { PeerSocket } from "../peer-socket.ts";
import { dateValue } from "../response-date.ts";

/** RFC 9110 section 5. Written as latin1, a character over 255 would become another one, a line break for instance. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const NOT_A_VALUE = /[^\t -~\x80-\xff]/;

const CRLF = Buffer.from("\r\n");

const dateLine = (): string => `Date: ${dateValue()}\r\n`;

/** The status line of the last response: mostly that of the next one. */
const last = { status: 0, reason: "", line: "" };

/**
 * The head of a response; `framing`: lines of framing and connection; `altSvc`: the line that announces HTTP/3 in the place of what
 * the target announces, empty: there is none. A proxy adds a missing Date (RFC 9110 section 6.6.1).
 */
export function responseHead(head: OutgoingHead, framing: string, altSvc: string): string {
  const { status } = head;
  let { lines } = head;
  // RFC 9110 section 8.6: no length with 204.
  if (status === 204 && head.hasLength) lines = lines.replace(/^content-length:.*\r\n/gim, "");
  if (altSvc !== "") lines = withoutAltSvc(lines) + altSvc;
  const reason = head.reason ?? STATUS_CODES[status] ?? "";
  if (status !== last.status || reason !== last.reason)
    Object.assign(last, { status, reason, line: `HTTP/1.1 ${status} ${reason}\r\n` });
  // Each part of a text that is put together costs, also an empty one.
  if (head.hasDate && framing === "") return `${last.line}${lines}\r\n`;
  return `${last.line}${lines}${head.hasDate ? "" : dateLine()}${framing}\r\n`;
}

/** The alternative services of a target are not the gateway's (RFC 7838 section 3). */
const withoutAltSvc = (lines: string): string =>
  /^alt-svc:/im.test(lines) ? lines.replace(/^alt-svc:.*\r\n/gim, "") : lines;

/** A whole body in one chunk, with trailers. */
export function oneChunk(
  pieces: readonly Uint8Array[],
  size: number,
  trailers: FieldPairs,
): readonly Uint8Array[] {
  const end = Buffer.from(lastChunk(trailers), "latin1");
  if (size === 0) return [end];
  return [Buffer.from(`${size.toString(16)}\r\n`), ...pieces, CRLF, end];
}

/** The last chunk with those of the trailers that a client may merge (RFC 9110 section 6.5.1). */
const lastChunk = (trailers: FieldPairs): string =>
  `0\r\n${linesOf(trailers.filter(([name]) => !forbiddenInTrailers(name.toLowerCase())))}\r\n`;

/** The line of Trailer, where trailers may follow the body. */
export const trailerLine = ({ trailer = null }: OutgoingHead): string =>
  trailer === null ? "" : `Trailer: ${trailer}\r\n`;

/** Fields as lines. Those that are not valid, which no head may hold, are left out. */
export function linesOf(fields: FieldPairs): string {
  let lines = "";
  for (const [name, value] of fields)
    if (FIELD_NAME.test(name) && !NOT_A_VALUE.test(value)) lines += `${name}: ${value}\r\n`;
  return lines;
}

export interface WriterOptions {
  readonly isChunked: boolean;
  /** Nothing is sent: HEAD, 204, 304. */
  readonly isEmpty: boolean;
  /** As declared; null: unknown. */
  readonly length: number | null;
  /** Whether other code still holds the pieces. */
  readonly isShared: boolean;
  /** The client understands trailers. */
  readonly takesTrailers: boolean;
  trailers(): FieldPairs;
  /** The response is complete, as far as the gateway is concerned. */
  ended(): void;
}

/** Shorter pieces are not worth a look at how much the client has read. */
const LONG_BYTES = 65_536;

/** The body of a streamed response. */
export class Http1Writer implements BodyWriter {
  isEmpty = true;
  readonly #socket: PeerSocket;
  readonly #reader: BodyReader;
  readonly #options: WriterOptions;
  #left: number;
  #isOver = false;
  #isFull = false;
  /** Runs when all was sent. */
  #done: (() => void) | null = null;

  constructor(socket: PeerSocket, reader: BodyReader, options: WriterOptions) {
    this.#socket = socket;
    this.#reader = reader;
    this.#options = options;
    this.#left = options.length ?? Number.POSITIVE_INFINITY;
  }

  write(chunk: Uint8Array): boolean {
    this.isEmpty = false;
    const { isEmpty, isChunked, isShared } = this.#options;
    if (this.#isOver || isEmpty || chunk.byteLength === 0) return true;
    this.#left -= chunk.byteLength;
    // More than declared would be taken for the next response.
    if (this.#left < 0) {
      this.#socket.destroy();
      return true;
    }
    const socket = this.#socket;
    if (chunk.byteLength >= LONG_BYTES && socket.isBehind) this.#reader.behind?.();
    const hasRoom = isChunked
      ? socket.writeText(`${chunk.byteLength.toString(16)}\r\n`, [chunk, CRLF])
      : socket.write(chunk);
    this.#isFull = !hasRoom;
    if (hasRoom && !isShared) bufferRelease.releaseNow(chunk);
    return hasRoom;
  }

  end(done: () => void): void {
    if (this.#isOver) return done();
    this.#isOver = true;
    const { length, isEmpty, isChunked, takesTrailers, trailers, ended } = this.#options;
    const socket = this.#socket;
    // Shorter than declared: the client must not wait for the rest, nor take it for complete.
    if (length !== null && !isEmpty && this.#left > 0) {
      socket.destroy();
      return done();
    }
    if (isChunked) socket.writeText(lastChunk(takesTrailers ? trailers() : []));
    if (socket.heldBytes > 0 && !socket.isClosed) this.#done = done;
    ended();
    if (this.#done === null) done();
  }

  fail(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
  }

  /** Whether a probe of the connection is possible: between two chunks. */
  get canProbe(): boolean {
    return this.#options.isChunked && !this.#isOver && this.#socket.heldBytes === 0;
  }

  drained(): void {
    const done = this.#done;
    this.#done = null;
    done?.();
    if (!this.#isFull || this.#isOver) return;
    this.#isFull = false;
    this.#reader.wanted();
  }

  /** The client has gone. */
  closed(): void {
    const done = this.#done;
    this.#done = null;
    done?.();
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reader.cancelled();
  }
}
