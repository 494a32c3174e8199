// A request body that a plugin may read before it goes upstream; knows no plugin and no target.
import type { BodyReadLimits, BodySource } from "../client-body.ts";
import { failures, type ProxyError } from "../error.ts";
import type { ClientRequest } from "../request/client-request.ts";

export interface HeldBodyOptions {
  readonly request: ClientRequest;
  readonly patience: BodyReadLimits;
  /** The request has to be refused: it cannot be read any further. */
  readonly refuse: (error: ProxyError) => void;
}

/** What a plugin may ask for at most, whatever it says. */
const MAX_HELD_BYTES = 64 * 1_048_576;

/** Made for requests whose body a plugin wants; costs nothing until somebody asks. */
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

  /** Whoever reads the body from here on gets it through this. False: there is none, or it was read already. */
  pass(through: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>): boolean {
    const { request } = this.#options;
    if (this.#bytes !== null || this.#read !== null || this.length === 0) return false;
    const stream = request.bodyStream ?? request.readBody(this.#options.patience)?.stream();
    if (stream === undefined) return false;
    request.bodyStream = through(stream);
    return true;
  }

  /** Null when it is longer. */
  async read(maxBytes: number): Promise<Uint8Array | null> {
    const most = Math.min(maxBytes, MAX_HELD_BYTES);
    if (this.#bytes !== null) return this.#bytes.byteLength <= most ? this.#bytes : null;
    if (this.length === 0) return new Uint8Array(0);
    if (this.length > most) return null;
    // Only one may read at a time, and a second one with a higher limit begins where the first one stopped.
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
    // While a body arrives, our own timeouts decide.
    request.stream.suspendIdleTimeout();
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await this.#next(source);
      if (done) break;
      pieces.push(value);
      size += value.byteLength;
      // Of a request that goes on, what the target was sent is counted in its place.
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
    } catch {
      return await this.#giveUp(failures.clientGone);
    }
  }

  /** Called about ten times a second while a plugin waits. */
  tick(now: number): void {
    if (this.#read === null) return;
    const overdue = this.#options.request.clientBody?.overdue(now) ?? null;
    if (overdue !== null) void this.#giveUp(overdue);
  }

  /** The request ends here: whoever waits for the body waits for ever, and is forgotten with it. */
  #giveUp(error: ProxyError): Promise<never> {
    // A client that is refused goes away, and its body with it: that is no second end.
    if (!this.#isGivenUp) this.#options.refuse(error);
    this.#isGivenUp = true;
    return new Promise(() => {});
  }
}

/** What was read already and then the rest. */
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
