// Forwards the request body to the target with back-pressure; knows no response.
import type { FieldPairs } from "../../http/fields.ts";
import type { BodySource, ClientBody } from "../client-body.ts";
import { bodyFailure, failures, type ProxyError } from "../error.ts";
import { bufferRelease } from "../buffer-release.ts";
import type { RequestBuffer } from "../request-buffers.ts";

/** Where the bytes of a body go: a connection, or a stream of one. */
export interface BodySink {
  /**
   * False: wait for `drained` before the next bytes, and leave these unchanged until then. `isLast`: the body ends with
   * them; sinks that frame the body end it with `done` otherwise.
   */
  write(bytes: Uint8Array, isLast: boolean): boolean;
}

/** Milliseconds in which a target may refuse a body before the client sends it. */
const CONTINUE_MS = 1000;

/** Bodies up to this size are sent in one write with the head. */
const JOIN_BYTES = 16_384;

export interface RequestBodyOptions {
  /** Null when `bytes` holds the whole body. */
  readonly client: ClientBody | null;
  /** The body as plugins pass it on, instead of the client's; plugins may still hold its pieces. */
  readonly piped: ReadableStream<Uint8Array> | null;
  readonly bytes: Uint8Array | null;
  /** Declared length; -1: unknown, sent chunked. */
  readonly length: number;
  /** Whether a short body of unknown length can be sent again: gRPC clients declare none. Default: false. */
  readonly keepsShort?: boolean;
  /** Whether the client sends the body only once it gets a 100. Default: never. */
  awaitsContinue?(): boolean;
  /** The trailers, once the body is complete. Default: there are none. */
  trailers?(): FieldPairs;
  /** Beyond it the gateway responds with 413; 0: no limit. */
  readonly maxBytes: number;
  /** The worker's milliseconds. */
  readonly now: () => number;
}

/**
 * One pass over the body. It can be sent again as long as nothing of it was read, or when it was short enough to be
 * buffered.
 */
export class RequestBody {
  #isBegun = false;
  /** A short body that was read completely. */
  #buffered: Uint8Array | null = null;
  /** Bytes read from the client. */
  bytes = 0;
  readonly #options: RequestBodyOptions;
  /** Null before the first read. */
  #source: BodySource | null = null;
  #wakeUp: (() => void) | null = null;
  #waitsFor: "client" | "target" | null = null;
  #waitsSince = 0;
  #isCancelled = false;
  /** Of the last pass; one before it has ended with its connection. */
  #pass = 0;
  /** Declared, or known because the body is buffered; -1: unknown. */
  #length: number;
  /** The whole body in a file. */
  #stored: RequestBuffer | null = null;
  #continue: (() => void) | null = null;

  constructor(options: RequestBodyOptions) {
    this.#options = options;
    this.#buffered = options.bytes;
    this.#length = options.length;
    this.bytes = this.#buffered?.byteLength ?? 0;
  }

  /**
   * Sends head and body; calls `done` with null when everything was written to the sink. A null head is sent already, and
   * the sink frames the body.
   */
  sendTo(head: string | null, sink: BodySink, done: (error: ProxyError | null) => void): void {
    this.#run(head, sink).then(done, (error: unknown) => done(bodyFailure(error)));
  }

  async #run(head: string | null, sink: BodySink): Promise<ProxyError | null> {
    // The attempt before this one has cancelled it.
    if (this.#buffered !== null || this.#stored !== null) this.#isCancelled = false;
    if (this.#buffered !== null) return await this.#sendWhole(head, sink, this.#buffered);
    const { maxBytes, piped } = this.#options;
    const length = this.#length;
    const pass = ++this.#pass;
    const source = this.#stored === null ? this.#client() : this.#stored.reader();
    if (source === null) return failures.internal(new Error("a request has no body to send"));
    const waits = head !== null && this.#options.awaitsContinue?.() === true;
    if (waits) {
      await this.#write(sink, Buffer.from(head, "latin1"));
      await this.#continued();
      if (this.#isOver(pass)) return null;
    }
    this.#source = source;
    this.#isBegun = true;
    this.bytes = 0;
    const isShort = length >= 0 && length <= JOIN_BYTES;
    const pieces: Uint8Array[] = [];
    let isKept = isShort || (length < 0 && this.#options.keepsShort === true);
    // A long or open-ended body must not delay the head; a short one shares its system call.
    let prefix = waits ? "" : (head ?? "");
    const isChunked = head !== null && length < 0;
    if (head !== null && !waits && (length < 0 || length > JOIN_BYTES)) {
      await this.#write(sink, Buffer.from(head, "latin1"));
      prefix = "";
    }
    for (;;) {
      this.#wait("client");
      const { done, value } = await source.read();
      this.#waitsFor = null;
      if (this.#isOver(pass)) return null;
      if (done) break;
      this.bytes += value.byteLength;
      if (maxBytes > 0 && this.bytes > maxBytes) return failures.bodyTooLarge;
      if (length >= 0 && this.bytes > length) return wrongLength;
      if (isKept && this.bytes > JOIN_BYTES) {
        isKept = false;
        pieces.length = 0;
      }
      if (isKept) {
        pieces.push(value);
        // Before the write, so that a retry still has the body when the connection breaks.
        if (this.bytes === length) this.#buffered = Buffer.concat(pieces);
      }
      const bytes = isChunked || prefix !== "" ? frame(prefix, value, isChunked) : value;
      const full = this.#write(sink, bytes, this.bytes === length);
      if (full !== null) await full;
      prefix = "";
      if (this.#isOver(pass)) return null;
      if (piped !== null && this.#stored === null) bufferRelease.releaseLater(value);
      else if (!isKept) bufferRelease.releaseNow(value);
    }
    if (isKept && length < 0) this.#buffered = Buffer.concat(pieces);
    if (prefix !== "") await this.#write(sink, Buffer.from(prefix, "latin1"));
    if (isChunked) await this.#write(sink, this.#lastChunk());
    // Bun checks this too; a truncated body must never look complete to the target.
    else if (length >= 0 && this.bytes !== length) return wrongLength;
    return null;
  }

  async #sendWhole(head: string | null, sink: BodySink, bytes: Uint8Array): Promise<null> {
    const whole = head === null ? bytes : Buffer.concat([Buffer.from(head, "latin1"), bytes]);
    await this.#write(sink, whole, true);
    return null;
  }

  #lastChunk(): Buffer {
    let end = "0\r\n";
    for (const [name, value] of this.trailers) end += `${name}: ${value}\r\n`;
    return Buffer.from(`${end}\r\n`, "latin1");
  }

  #client(): BodySource | null {
    const { client, piped } = this.#options;
    return piped === null ? client : piped.getReader();
  }

  #isOver(pass: number): boolean {
    return this.#isCancelled || pass !== this.#pass;
  }

  /** Reads the body to its end before it is sent, so that its length is known and it can be sent again; then calls `done`. */
  store(into: RequestBuffer, done: (error: ProxyError | null) => void): void {
    this.#store(into).then(done, (error: unknown) => done(bodyFailure(error)));
  }

  async #store(into: RequestBuffer): Promise<ProxyError | null> {
    const source = this.#buffered === null ? this.#client() : null;
    if (source === null) return null;
    const { maxBytes, piped } = this.#options;
    this.#source = source;
    this.#isBegun = true;
    for (;;) {
      this.#wait("client");
      const { done, value } = await source.read();
      this.#waitsFor = null;
      if (this.#isCancelled) return failures.clientGone;
      if (done) break;
      this.bytes += value.byteLength;
      if (maxBytes > 0 && this.bytes > maxBytes) return failures.bodyTooLarge;
      if (this.#length >= 0 && this.bytes > this.#length) return wrongLength;
      await into.add(value);
      if (this.#isCancelled) return failures.clientGone;
      if (piped === null) bufferRelease.releaseNow(value);
    }
    if (this.#length >= 0 && this.bytes !== this.#length) return wrongLength;
    this.#length = this.bytes;
    this.#buffered = await into.finish();
    if (this.#isCancelled) return failures.clientGone;
    if (this.#buffered === null) this.#stored = into;
    return null;
  }

  /** A promise while the sink is full; else null, for which nothing has to wait. */
  #write(sink: BodySink, bytes: Uint8Array, isLast = false): Promise<void> | null {
    return sink.write(bytes, isLast) || this.#isCancelled ? null : this.#drain();
  }

  async #drain(): Promise<void> {
    this.#wait("target");
    await new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
    });
    this.#waitsFor = null;
  }

  /** The target wants the body, or does not say so in time (RFC 9110 section 10.1.1). */
  #continued(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.continue(), CONTINUE_MS);
      this.#continue = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The target has sent 100. */
  continue(): void {
    const go = this.#continue;
    this.#continue = null;
    go?.();
  }

  #wait(side: "client" | "target"): void {
    this.#waitsFor = side;
    this.#waitsSince = this.#options.now();
  }

  /** Whether trailers may follow the body. */
  get mayHaveTrailers(): boolean {
    return this.#options.trailers !== undefined;
  }

  /** For the sink that frames the body, once it is complete. */
  get trailers(): FieldPairs {
    return this.#options.trailers?.() ?? [];
  }

  /** Whether the whole body can be sent to another target. */
  get isRepeatable(): boolean {
    return !this.#isBegun || this.#buffered !== null || this.#stored !== null;
  }

  /** Whether the target has everything that the client has sent so far, and more follows. */
  get waitsForClient(): boolean {
    return this.#waitsFor === "client";
  }

  drained(): void {
    const wakeUp = this.#wakeUp;
    this.#wakeUp = null;
    wakeUp?.();
  }

  /** The failure when one side is too slow, else null. `writeTimeout` in milliseconds, 0: none. */
  overdue(now: number, writeTimeout: number): ProxyError | null {
    if (this.#waitsFor === "client") return this.#options.client?.overdue(now) ?? null;
    const isStalled = writeTimeout > 0 && now - this.#waitsSince >= writeTimeout;
    return this.#waitsFor === "target" && isStalled ? failures.writeTimeout : null;
  }

  /** Stops reading from the client and drops the rest. */
  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    // Rejects when the client is already gone.
    this.#source?.cancel().catch(() => {});
    this.continue();
    this.drained();
  }
}

/** The chunk in its framing, after `prefix`. */
function frame(prefix: string, chunk: Uint8Array, isChunked: boolean): Uint8Array {
  const before = isChunked ? `${prefix}${chunk.byteLength.toString(16)}\r\n` : prefix;
  return Buffer.concat([Buffer.from(before, "latin1"), chunk, isChunked ? CRLF : NOTHING]);
}

const wrongLength = failures.badRequest("the request body does not have the declared length");
const CRLF = Buffer.from("\r\n");
const NOTHING = Buffer.alloc(0);
