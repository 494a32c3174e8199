// The body of a client's request as it arrives, and how long the gateway has waited for it; knows no target and no plugin.
import { failures, type ProxyError } from "./error.ts";

/** What a client is granted while its body is read. */
export interface BodyPatience {
  /** Milliseconds in which it must send something; 0: any time. */
  readonly readTimeout: number;
  /** Bytes per second that it must send on average; 0: any number. */
  readonly minRate: number;
  /** Milliseconds of waiting after which its rate is judged. */
  readonly rateGrace: number;
}

/** How long the bodies of clients are waited for, whatever listener and route. */
export type BodyTimes = Omit<BodyPatience, "minRate">;

/** What bodies are read from. */
export interface BodySource {
  read(): Promise<BodyPiece>;
  cancel(reason?: unknown): Promise<void>;
}

type BodyPiece =
  | { readonly done: false; readonly value: Uint8Array }
  | { readonly done: true; readonly value?: Uint8Array | undefined };

/** For bodies that no client sends. */
export const ENDLESS: BodyPatience = { readTimeout: 0, minRate: 0, rateGrace: 0 };

/** Most milliseconds that one look counts, those between two: when the worker itself was late, the client need not have been. */
const MAX_STEP_MS = 100;

/** gRPC-Web is not among them: it sends a body like any other client. */
const GRPC = /^application\/grpc(?:$|[+;\s])/i;

/**
 * Every reader of the body reads it through this. Only the time counts in which the gateway waits for the client: not while a
 * target takes nothing, and not while a plugin holds bytes back. The rate is that of the whole body: a client may pause after it
 * has sent much, and each second of waiting costs it as many bytes as one that sends steadily.
 */
export class ClientBody implements BodySource {
  /** That have arrived. */
  bytes = 0;
  /** Whether its end has arrived. */
  isComplete = false;
  readonly #stream: ReadableStream<Uint8Array>;
  readonly #patience: BodyPatience;
  readonly #subject: { header(name: string): string | null };
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  #isWaiting = false;
  /** 0: never. */
  #lookedAt = 0;
  /** Milliseconds without a byte up to now, and all that the client was waited for. */
  #silentMs = 0;
  #waitedMs = 0;

  constructor(
    stream: ReadableStream<Uint8Array>,
    patience: BodyPatience,
    subject: { header(name: string): string | null },
  ) {
    this.#stream = stream;
    this.#patience = patience;
    this.#subject = subject;
  }

  /** The next piece. One at a time; rejects when the client has gone. */
  async read(): Promise<BodyPiece> {
    this.#reader ??= this.#stream.getReader();
    this.#isWaiting = true;
    this.#silentMs = 0;
    const result = await this.#reader.read();
    this.#isWaiting = false;
    if (result.done) this.isComplete = true;
    else this.bytes += result.value.byteLength;
    return result;
  }

  /** What has not been read yet, for others to read. Nothing is read before they want it. */
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

  /** Reads no more; what has not arrived is dropped. */
  async cancel(): Promise<void> {
    this.#isWaiting = false;
    // Rejects when the client is already gone, which is what cancelling means anyway.
    await this.#reader?.cancel().catch(() => {});
  }

  /** The failure when the client has used up its time; null while it has not, or while no reader waits. Call it about ten times a second. */
  overdue(now: number): ProxyError | null {
    const step = this.#lookedAt === 0 ? 0 : Math.min(now - this.#lookedAt, MAX_STEP_MS);
    this.#lookedAt = now;
    if (!this.#isWaiting) return null;
    this.#silentMs += step;
    this.#waitedMs += step;
    const { readTimeout, minRate, rateGrace } = this.#patience;
    if (readTimeout > 0 && this.#silentMs >= readTimeout) return failures.bodyTimeout;
    if (this.#waitedMs < rateGrace || this.bytes * 1000 >= minRate * this.#waitedMs) return null;
    // Both sides of a gRPC stream may be silent for as long as they like.
    return GRPC.test(this.#subject.header("content-type") ?? "") ? null : failures.bodyTooSlow;
  }
}
