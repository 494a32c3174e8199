// Delays bytes by a token bucket; knows no request.
import type { BodyTransform } from "../../pdk/context.ts";
import type { Counters } from "../../pdk/kit.ts";

/** Most bytes of one chunk. */
const MOST_AT_A_TIME = 65_536;

/** How fast bytes may go. */
export interface Rate {
  readonly bytesPerSecond: number;
  /** Null: a tenth of a second's worth. */
  readonly burst: number | null;
}

/** One transfer's use of the bucket of a key. */
export class Pace {
  /** Bytes to take at a time: at most a tenth of a second's worth. */
  readonly pieceBytes: number;
  readonly #counters: Counters;
  readonly #key: string;
  readonly #bucket: { readonly capacity: number; readonly perSecond: number };
  #wake: (() => void) | null = null;
  #isOver = false;

  constructor(counters: Counters, key: string, { bytesPerSecond, burst }: Rate) {
    const tenth = Math.ceil(bytesPerSecond / 10);
    this.pieceBytes = Math.min(MOST_AT_A_TIME, tenth);
    this.#counters = counters;
    this.#key = key;
    this.#bucket = {
      capacity: Math.max(burst ?? tenth, this.pieceBytes),
      perSecond: bytesPerSecond,
    };
  }

  /** Takes at most `pieceBytes`. False: `wait` before sending them. */
  takes(bytes: number): boolean {
    return this.#isOver || this.#ask(bytes) === 0;
  }

  /** Resolves when they may be sent, or the transfer is over. */
  async wait(bytes: number): Promise<void> {
    while (!this.#isOver) {
      const wait = this.#ask(bytes);
      if (wait === 0) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, wait);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** The transfer is over: releases waits. */
  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  #ask(bytes: number): number {
    return this.#counters.take(this.#key, { ...this.#bucket, cost: bytes }).wait;
  }
}

/** A response body. */
export const pacedResponse = (pace: Pace): BodyTransform => ({
  isObserver: true,
  isSlow: true,
  pieceBytes: pace.pieceBytes,
  push: (chunk) =>
    pace.takes(chunk.byteLength) ? chunk : pace.wait(chunk.byteLength).then(() => chunk),
  end: () => null,
  abort: () => pace.end(),
});

/** A request body, read no faster than the limit. */
export function pacedBody(
  source: ReadableStream<Uint8Array>,
  pace: Pace,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let rest: Uint8Array | null = null;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        while (rest === null || rest.byteLength === 0) {
          const { done, value } = await reader.read();
          if (done) {
            controller.close();
            return;
          }
          rest = value;
        }
        const piece: Uint8Array = rest.subarray(0, pace.pieceBytes);
        rest = rest.subarray(piece.byteLength);
        if (!pace.takes(piece.byteLength)) await pace.wait(piece.byteLength);
        controller.enqueue(piece);
      },
      cancel(reason) {
        pace.end();
        return reader.cancel(reason);
      },
    },
    // Nothing is read before there is a reader.
    { highWaterMark: 0 },
  );
}
