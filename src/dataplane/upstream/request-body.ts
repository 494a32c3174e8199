// Carries the client's request body to the target with back-pressure; knows no response.
import type { BodySource, ClientBody } from "../client-body.ts";
import { failures, type ProxyError } from "../error.ts";
import { bufferRelease } from "../buffer-release.ts";
import type { UpstreamConnection } from "./connection.ts";

/** Bodies up to this size go out in one write with the head. */
const JOIN_BYTES = 16_384;

export interface RequestBodyOptions {
  /** Null when all of it is there already, as `bytes`. */
  readonly client: ClientBody | null;
  /** In the place of what the client sends, where plugins pass it on; they may hold on to its pieces. */
  readonly piped: ReadableStream<Uint8Array> | null;
  readonly bytes: Uint8Array | null;
  /** Declared length, -1 when unknown: then it goes out chunked. */
  readonly length: number;
  /** More bytes than this are refused with 413; 0 for no limit. */
  readonly maxBytes: number;
  /** The worker's milliseconds. */
  readonly now: () => number;
}

/**
 * One pass over the body. It can be sent again as long as nothing of it was read, or when it was short enough to be kept;
 * every other one is gone once it was begun.
 */
export class RequestBody {
  #isBegun = false;
  /** A short body that was read to its end. */
  #kept: Uint8Array | null = null;
  /** Bytes taken from the client. */
  bytes = 0;
  readonly #options: RequestBodyOptions;
  /** What is read, once it is. */
  #source: BodySource | null = null;
  #wakeUp: (() => void) | null = null;
  #waitsFor: "client" | "target" | null = null;
  #waitsSince = 0;
  #isCancelled = false;

  constructor(options: RequestBodyOptions) {
    this.#options = options;
    this.#kept = options.bytes;
    this.bytes = this.#kept?.byteLength ?? 0;
  }

  /** Sends the head and then the body; `done` hears null when all was handed to the socket. */
  sendTo(
    head: string,
    connection: UpstreamConnection,
    done: (error: ProxyError | null) => void,
  ): void {
    this.#run(head, connection).then(done, (error: unknown) =>
      done({ ...failures.clientGone, cause: error }),
    );
  }

  async #run(head: string, connection: UpstreamConnection): Promise<ProxyError | null> {
    if (this.#kept !== null) {
      await this.#write(connection, Buffer.concat([Buffer.from(head, "latin1"), this.#kept]));
      return null;
    }
    const { client, length, maxBytes, piped } = this.#options;
    const source: BodySource | null = piped === null ? client : piped.getReader();
    if (source === null) return failures.internal(new Error("a request has no body to send"));
    this.#source = source;
    this.#isBegun = true;
    const isShort = length >= 0 && length <= JOIN_BYTES;
    const pieces: Uint8Array[] = [];
    // A long or open-ended body must not hold the head back; a short one saves a system call by going with it.
    let prefix = head;
    if (length < 0 || length > JOIN_BYTES) {
      await this.#write(connection, Buffer.from(head, "latin1"));
      prefix = "";
    }
    for (;;) {
      this.#wait("client");
      const { done, value } = await source.read();
      this.#waitsFor = null;
      if (this.#isCancelled) return null;
      if (done) break;
      this.bytes += value.byteLength;
      if (maxBytes > 0 && this.bytes > maxBytes) return failures.bodyTooLarge;
      if (isShort) {
        pieces.push(value);
        // Before it is written: a connection that breaks meanwhile must not take it along.
        if (this.bytes === length) this.#kept = Buffer.concat(pieces);
      }
      await this.#write(connection, this.#frame(prefix, value));
      prefix = "";
      if (this.#isCancelled) return null;
      if (piped !== null) bufferRelease.releaseLater(value);
      else if (!isShort) bufferRelease.releaseNow(value);
    }
    if (prefix !== "") await this.#write(connection, Buffer.from(prefix, "latin1"));
    if (length < 0) await this.#write(connection, LAST_CHUNK);
    // Bun checks this too; a short body must never look complete to the target.
    else if (this.bytes !== length)
      return failures.badRequest("the request body does not have the declared length");
    return null;
  }

  /** The chunk as it goes on the wire, after what is still to go before it. */
  #frame(prefix: string, chunk: Uint8Array): Uint8Array {
    const isChunked = this.#options.length < 0;
    if (prefix === "" && !isChunked) return chunk;
    const before = isChunked ? `${prefix}${chunk.byteLength.toString(16)}\r\n` : prefix;
    return Buffer.concat([Buffer.from(before, "latin1"), chunk, isChunked ? CRLF : NOTHING]);
  }

  async #write(connection: UpstreamConnection, bytes: Uint8Array): Promise<void> {
    if (connection.write(bytes) || this.#isCancelled) return;
    this.#wait("target");
    await new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
    });
    this.#waitsFor = null;
  }

  #wait(side: "client" | "target"): void {
    this.#waitsFor = side;
    this.#waitsSince = this.#options.now();
  }

  /** Whether the whole body can be sent to another target. */
  get isRepeatable(): boolean {
    return !this.#isBegun || this.#kept !== null;
  }

  /** Whether the target has all that the client has sent so far, and more is to come. */
  get waitsForClient(): boolean {
    return this.#waitsFor === "client";
  }

  drained(): void {
    const wakeUp = this.#wakeUp;
    this.#wakeUp = null;
    wakeUp?.();
  }

  /** Why it is given up: one side has kept it waiting for too long. Null: it goes on. `writeTimeout` in milliseconds, 0: none. */
  overdue(now: number, writeTimeout: number): ProxyError | null {
    if (this.#waitsFor === "client") return this.#options.client?.overdue(now) ?? null;
    const isStalled = writeTimeout > 0 && now - this.#waitsSince >= writeTimeout;
    return this.#waitsFor === "target" && isStalled ? failures.writeTimeout : null;
  }

  /** Stops reading from the client; what has not been sent is dropped. */
  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    // Rejects when the client is already gone, which is what cancelling means anyway.
    this.#source?.cancel().catch(() => {});
    this.drained();
  }
}

const LAST_CHUNK = Buffer.from("0\r\n\r\n");
const CRLF = Buffer.from("\r\n");
const NOTHING = Buffer.alloc(0);
