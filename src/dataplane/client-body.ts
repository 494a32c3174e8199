// A request body as it arrives, with its read timeout and minimum rate; knows no target and no plugin.
import type { GrpcMessages } from "../http/grpc.ts";
import { failures, type ProxyError } from "./error.ts";
import type { FieldPairs } from "../http/fields.ts";

/** Limits on reading a request body. */
export interface BodyReadLimits {
  /** Milliseconds in which the client must send something; 0: no limit. */
  readonly readTimeout: number;
  /** Bytes per second that the client must send on average; 0: no limit. */
  readonly minRate: number;
  /** Milliseconds of waiting before the rate counts. */
  readonly rateGrace: number;
}

/** The limits that no listener or route overrides. */
export type BodyReadTimeouts = Omit<BodyReadLimits, "minRate">;

/** A readable body. */
export interface BodySource {
  /** What follows it, once it is complete; null or absent: nothing, or the engine does not say. */
  readonly trailers?: FieldPairs | null;
  read(): Promise<BodyPiece>;
  cancel(reason?: unknown): Promise<void>;
}

type BodyPiece =
  | { readonly done: false; readonly value: Uint8Array }
  | { readonly done: true; readonly value?: Uint8Array | undefined };

/** For bodies that the gateway itself sends. */
export const NO_READ_LIMITS: BodyReadLimits = { readTimeout: 0, minRate: 0, rateGrace: 0 };

/** Most milliseconds that one tick counts: when the worker was late, the client may not have been. */
const MAX_STEP_MS = 100;

/**
 * All readers read the body through this. Only time counts in which the gateway waits for the client: not while a
 * target does not read, and not while a plugin holds bytes back. The rate is that of the whole body: a client may pause after it
 * has sent much.
 */
export class ClientBody implements BodySource {
  /** Bytes that have arrived. */
  bytes = 0;
  /** Whether its end has arrived. */
  isComplete = false;
  readonly #stream: { openBody(): BodySource };
  readonly #limits: BodyReadLimits;
  #messages: { readonly counted: GrpcMessages; readonly onTooLarge: () => void } | null = null;
  #reader: BodySource | null = null;
  #isWaiting = false;
  /** 0: never. */
  #tickedAt = 0;
  /** Milliseconds since the last byte, and all milliseconds of waiting for the client. */
  #silentMs = 0;
  #waitedMs = 0;

  constructor(stream: { openBody(): BodySource }, limits: BodyReadLimits) {
    this.#stream = stream;
    this.#limits = limits;
  }

  /** The next piece. One call at a time; rejects when the client has gone. */
  async read(): Promise<BodyPiece> {
    this.#reader ??= this.#stream.openBody();
    this.#isWaiting = true;
    this.#silentMs = 0;
    const result = await this.#reader.read();
    this.#isWaiting = false;
    if (result.done) this.isComplete = true;
    else this.bytes += result.value.byteLength;
    if (!result.done && this.#messages?.counted.push(result.value) === false) {
      this.#messages.onTooLarge();
      // The request has ended: its reader must not send the beginning of the message.
      return new Promise(() => {});
    }
    return result;
  }

  /** Once it is complete: the fields that follow it; null: none. */
  get trailers(): FieldPairs | null {
    return this.#reader?.trailers ?? null;
  }

  /** Counts the messages of a gRPC call from now on. */
  countMessages(counted: GrpcMessages, onTooLarge: () => void): void {
    this.#messages = { counted, onTooLarge };
  }

  /** The unread rest as a stream, which reads on demand only. */
  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await this.read();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        cancel: () => this.cancel(),
      },
      { highWaterMark: 0 },
    );
  }

  /** Stops reading and drops what has not arrived. */
  async cancel(): Promise<void> {
    this.#isWaiting = false;
    // Rejects when the client is already gone.
    await this.#reader?.cancel().catch(() => {});
  }

  /** The failure when the client is too slow; null when it is not, or no reader waits. Call it about ten times a second. */
  overdue(now: number): ProxyError | null {
    const step = this.#tickedAt === 0 ? 0 : Math.min(now - this.#tickedAt, MAX_STEP_MS);
    this.#tickedAt = now;
    if (!this.#isWaiting) return null;
    this.#silentMs += step;
    this.#waitedMs += step;
    const { readTimeout, minRate, rateGrace } = this.#limits;
    if (readTimeout > 0 && this.#silentMs >= readTimeout) return failures.bodyTimeout;
    if (this.#waitedMs < rateGrace || this.bytes * 1000 >= minRate * this.#waitedMs) return null;
    return failures.bodyTooSlow;
  }
}
