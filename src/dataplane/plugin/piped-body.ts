// A body that is passed on as it comes and changed by plugins on its way; knows no plugin and no target.
import { StreamedBody, type StreamSource } from "../response-builder.ts";
import type { TransformPipe } from "./answer-draft.ts";

/** Like StreamedBody. One piece at a time goes through the pipe; while it is waited for, the target is paused. */
export class PipedBody {
  readonly #body: StreamedBody;
  readonly #source: StreamSource;
  readonly #pipe: TransformPipe;
  /** Bytes go on to the client. */
  readonly #passed: (bytes: number) => void;
  #done: (() => void) | null = null;
  readonly #waiting: Uint8Array[] = [];
  #isBusy = false;
  #isEnded = false;
  #isClosed = false;

  constructor(source: StreamSource, pipe: TransformPipe, passed: (bytes: number) => void) {
    this.#passed = passed;
    this.#source = source;
    this.#pipe = pipe;
    this.#body = new StreamedBody(
      {
        wanted: () => {
          if (!this.#isBusy) source.wanted();
        },
        cancelled: () => {
          this.#abort();
          source.cancelled();
        },
      },
      // Plugins may keep what went through them.
      { isShared: true },
    );
  }

  get stream(): ReadableStream<Uint8Array> {
    return this.#body.stream;
  }

  get isEmpty(): boolean {
    return this.#body.isEmpty;
  }

  /** False when the source should pause. */
  push(chunk: Uint8Array): boolean {
    const { pieceBytes } = this.#pipe;
    if (chunk.byteLength <= pieceBytes) return this.#pushPiece(chunk);
    let wantsMore = true;
    for (let at = 0; at < chunk.byteLength; at += pieceBytes)
      wantsMore = this.#pushPiece(chunk.subarray(at, at + pieceBytes));
    return wantsMore;
  }

  #pushPiece(chunk: Uint8Array): boolean {
    if (this.#isClosed) return true;
    if (this.#isBusy) {
      this.#waiting.push(chunk);
      return false;
    }
    return this.#pass(chunk);
  }

  /** The target has sent everything. `done`: and the client has got all that was made of it. */
  end(done: () => void): void {
    this.#isEnded = true;
    this.#done = done;
    if (!this.#isBusy) this.#finish();
  }

  fail(error: Error): void {
    this.#abort();
    this.#body.fail(error);
  }

  #abort(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#pipe.abort();
  }

  #pass(chunk: Uint8Array): boolean {
    const result = this.#try(() => this.#pipe.push(chunk));
    if (!(result instanceof Promise)) return result === null || this.#give(result);
    this.#wait(result);
    return false;
  }

  #wait(result: Promise<Uint8Array | null>): void {
    this.#isBusy = true;
    result.then(
      (bytes) => {
        this.#isBusy = false;
        if (this.#isClosed) return;
        const wantsMore = bytes === null || this.#give(bytes);
        this.#goOn(wantsMore);
      },
      (error: Error) => this.#broken(error),
    );
  }

  #goOn(wantsMore: boolean): void {
    const next = this.#waiting.shift();
    if (next !== undefined) {
      const goesOn = this.#pass(next);
      if (!this.#isBusy) this.#goOn(goesOn);
    } else if (this.#isEnded) this.#finish();
    else if (wantsMore) this.#source.wanted();
  }

  #finish(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const rest = this.#try(() => this.#pipe.end());
    const close = (bytes: Uint8Array | null) => {
      if (bytes !== null) this.#give(bytes);
      this.#body.end(() => this.#done?.());
    };
    if (!(rest instanceof Promise)) close(rest);
    else
      rest.then(close, (error: Error) => {
        this.#body.fail(error);
        this.#done?.();
      });
  }

  #give(bytes: Uint8Array): boolean {
    this.#passed(bytes.byteLength);
    return this.#body.push(bytes);
  }

  #try(run: () => Uint8Array | null | Promise<Uint8Array | null>) {
    try {
      return run();
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  #broken(error: Error): void {
    if (this.#isClosed) return;
    this.#abort();
    this.#body.fail(error);
    this.#source.cancelled();
    this.#done?.();
  }
}
