// A request body that a plugin may read before it goes upstream; knows no plugin and no target.
import type { BodyReadLimits, BodySource } from "../client-body.ts";
import { bodyFailure, failures, type ProxyError } from "../error.ts";
import type { ClientRequest } from "../request/client-request.ts";

export interface HeldBodyOptions {
  readonly request: ClientRequest;
  readonly patience: BodyReadLimits;
  /** Refuses the request, whose body cannot be read any further. */
  readonly refuse: (error: ProxyError) => void;
}

/** Hard limit for what plugins read. */
const MAX_HELD_BYTES = 64 * 1_048_576;

/** Created when a plugin asks for the body. */
export class HeldBody {
  readonly #options: HeldBodyOptions;
  #read: Promise<Uint8Array | null> | null = null;
  #bytes: Uint8Array | null = null;
  #isGivenUp = false;

  constructor(options: HeldBodyOptions) {
    this.#options = options;
  }

  /** Declared length, -1 when unknown, 0: no body. */
  get length(): number {
    if (this.#bytes !== null) return this.#bytes.byteLength;
    return this.#options.request.declaredLength;
  }

  limit(maxBytes: number, reason: string): void {
    const { request } = this.#options;
    if (request.bodyLimit !== 0 && request.bodyLimit <= maxBytes) return;
    request.bodyLimit = maxBytes;
    request.bodyLimitReason = reason;
  }

  /** Pipes the body through this for every later reader. False: there is none, or it was read already. */
  pass(
    through: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>,
    changesLength: boolean,
  ): boolean {
    const { request } = this.#options;
    if (this.#bytes !== null || this.#read !== null || this.length === 0) return false;
    const stream = request.bodyStream ?? request.readBody(this.#options.patience)?.stream();
    if (stream === undefined) return false;
    request.bodyStream = through(stream);
    if (changesLength) request.known.contentLength = null;
    return true;
  }

  /** Null when it is longer. */
  async read(maxBytes: number): Promise<Uint8Array | null> {
    const most = Math.min(maxBytes, MAX_HELD_BYTES);
    if (this.#bytes !== null) return this.#bytes.byteLength <= most ? this.#bytes : null;
    if (this.length === 0) return new Uint8Array(0);
    if (this.length > most) return null;
    // A stream may never end, and a client may send its next message only after a response.
    if (this.#options.request.isGrpcCall) {
      this.#options.request.addReason("grpc.body_not_read");
      return null;
    }
    // One reader at a time: a second one with a higher limit resumes where the first one stopped.
    while (this.#read !== null) await this.#read;
    if (this.#bytes !== null) return this.read(maxBytes);
    this.#read = this.#readUpTo(most);
    const result = await this.#read;
    this.#read = null;
    return result;
  }

  async #readUpTo(most: number): Promise<Uint8Array | null> {
    const { request, patience } = this.#options;
    const source = request.bodyStream?.getReader() ?? request.readBody(patience);
    if (source === null) return new Uint8Array(0);
    // While a body arrives, the body timeouts apply.
    request.stream.suspendIdleTimeout();
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await this.#next(source);
      if (done) break;
      pieces.push(value);
      size += value.byteLength;
      // Overwritten with the bytes sent to the target when the request goes upstream.
      request.bytesIn = size;
      const { maxBodyBytes } = request.listener;
      const limit = Math.min(maxBodyBytes || Infinity, request.bodyLimit || Infinity);
      if (size > limit) return await this.#giveUp(failures.bodyTooLarge);
      if (size > most) {
        request.bodyStream = continued(pieces, source);
        request.stream.restoreIdleTimeout(request.listener.idleTimeout);
        return null;
      }
    }
    request.stream.restoreIdleTimeout(request.listener.idleTimeout);
    this.#bytes = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
    request.bodyBytes = this.#bytes;
    return this.#bytes;
  }

  async #next(source: BodySource) {
    try {
      return await source.read();
    } catch (error) {
      return await this.#giveUp(bodyFailure(error));
    }
  }

  /** Called about ten times a second while a plugin waits. */
  tick(now: number): void {
    if (this.#read === null) return;
    const overdue = this.#options.request.clientBody?.overdue(now) ?? null;
    if (overdue !== null) void this.#giveUp(overdue);
  }

  /** Ends the request: the promise never resolves, and is collected with the request. */
  #giveUp(error: ProxyError): Promise<never> {
    // A refused client disconnects, which fails the read a second time.
    if (!this.#isGivenUp) this.#options.refuse(error);
    this.#isGivenUp = true;
    return new Promise(() => {});
  }
}

/** The bytes that were read already, then the rest. */
function continued(pieces: readonly Uint8Array[], source: BodySource): ReadableStream<Uint8Array> {
  const first = [...pieces];
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = first.shift();
      if (piece !== undefined) {
        controller.enqueue(piece);
        return;
      }
      const { done, value } = await source.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => source.cancel(reason),
  });
}
