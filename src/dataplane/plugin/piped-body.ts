// Streams a response body through the transforms of plugins; knows no plugin and no target.
import type { BodyReader, BodyWriter } from "../server/client-stream.ts";
import type { TransformPipe } from "./response-draft.ts";

export interface PipedBodyOptions {
  /** Begins the response. Plugins may hold on to the chunks that it is given. */
  readonly start: (reader: BodyReader) => BodyWriter;
  /** So many bytes were sent to the client. */
  readonly passed: (bytes: number) => void;
  /** The transforms have ended; the end of the body follows. */
  readonly ending: () => void;
}

/** One chunk at a time goes through the pipe; a transform that waits pauses the target. */
export class PipedBody implements BodyWriter {
  readonly #writer: BodyWriter;
  readonly #reader: BodyReader;
  readonly #pipe: TransformPipe;
  readonly #passed: (bytes: number) => void;
  readonly #ending: () => void;
  #done: (() => void) | null = null;
  readonly #waiting: Uint8Array[] = [];
  #isBusy = false;
  #isEnded = false;
  #isClosed = false;

  constructor(
    pipe: TransformPipe,
    reader: BodyReader,
    { start, passed, ending }: PipedBodyOptions,
  ) {
    this.#passed = passed;
    this.#ending = ending;
    this.#reader = reader;
    this.#pipe = pipe;
    this.#writer = start({
      wanted: () => {
        if (!this.#isBusy) reader.wanted();
      },
      cancelled: () => {
        this.#abort();
        reader.cancelled();
      },
    });
  }

  get isEmpty(): boolean {
    return this.#writer.isEmpty;
  }

  /** False when the source should pause. */
  write(chunk: Uint8Array): boolean {
    const { pieceBytes } = this.#pipe;
    if (chunk.byteLength <= pieceBytes) return this.#writePiece(chunk);
    let wantsMore = true;
    for (let at = 0; at < chunk.byteLength; at += pieceBytes)
      wantsMore = this.#writePiece(chunk.subarray(at, at + pieceBytes));
    return wantsMore;
  }

  #writePiece(chunk: Uint8Array): boolean {
    if (this.#isClosed) return true;
    if (this.#isBusy) {
      this.#waiting.push(chunk);
      return false;
    }
    return this.#pass(chunk);
  }

  /** The target has sent everything. `done`: the client has received all of it. */
  end(done: () => void): void {
    this.#isEnded = true;
    this.#done = done;
    if (!this.#isBusy) this.#finish();
  }

  fail(error: Error): void {
    this.#abort();
    this.#writer.fail(error);
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
        this.#resume(wantsMore);
      },
      (error: Error) => this.#broken(error),
    );
  }

  #resume(wantsMore: boolean): void {
    const next = this.#waiting.shift();
    if (next !== undefined) {
      const wantsNext = this.#pass(next);
      if (!this.#isBusy) this.#resume(wantsNext);
    } else if (this.#isEnded) this.#finish();
    else if (wantsMore) this.#reader.wanted();
  }

  #finish(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const rest = this.#try(() => this.#pipe.end());
    const close = (bytes: Uint8Array | null) => {
      if (bytes !== null) this.#give(bytes);
      this.#ending();
      this.#writer.end(() => this.#done?.());
    };
    if (!(rest instanceof Promise)) close(rest);
    else
      rest.then(close, (error: Error) => {
        this.#writer.fail(error);
        this.#done?.();
      });
  }

  #give(bytes: Uint8Array): boolean {
    this.#passed(bytes.byteLength);
    return this.#writer.write(bytes);
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
    this.#writer.fail(error);
    this.#reader.cancelled();
    this.#done?.();
  }
}
