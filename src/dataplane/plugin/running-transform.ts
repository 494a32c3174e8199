// Says which plugin from a directory runs while a transform of it has the thread; knows no handler and no response.
import type { BodyTransform } from "../../pdk/context.ts";

/** The cell of this worker that holds the number of the plugin that runs; null: none is from a directory. */
let cell: Float64Array | null = null;

export function useRunningCell(running: Float64Array): void {
  cell = running;
}

/** The transform, guarded when a plugin from a directory is adding it. */
export function asRunning(transform: BodyTransform): BodyTransform {
  const running = cell;
  const number = running?.[0] ?? 0;
  return running === null || number === 0
    ? transform
    : new RunningTransform(transform, running, number);
}

class RunningTransform implements BodyTransform {
  readonly isObserver: boolean;
  readonly isSlow: boolean;
  readonly pieceBytes?: number;
  readonly #transform: BodyTransform;
  readonly #cell: Float64Array;
  readonly #number: number;
  readonly whole?: NonNullable<BodyTransform["whole"]>;
  readonly abort?: NonNullable<BodyTransform["abort"]>;

  constructor(transform: BodyTransform, running: Float64Array, number: number) {
    this.#transform = transform;
    this.#cell = running;
    this.#number = number;
    this.isObserver = transform.isObserver === true;
    this.isSlow = transform.isSlow === true;
    if (transform.pieceBytes !== undefined) this.pieceBytes = transform.pieceBytes;
    // The gateway asks whether they are there.
    if (transform.whole !== undefined)
      this.whole = (pieces, trailers) => this.#run(() => transform.whole?.(pieces, trailers) ?? []);
    if (transform.abort !== undefined) this.abort = () => this.#run(() => transform.abort?.());
  }

  push(chunk: Uint8Array): ReturnType<BodyTransform["push"]> {
    return this.#run(() => this.#transform.push(chunk));
  }

  end(trailers: Headers): ReturnType<BodyTransform["end"]> {
    return this.#run(() => this.#transform.end(trailers));
  }

  #run<T>(work: () => T): T {
    const before = this.#cell[0] ?? 0;
    this.#cell[0] = this.#number;
    try {
      return work();
    } finally {
      this.#cell[0] = before;
    }
  }
}
