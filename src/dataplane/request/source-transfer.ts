// Sends a body that a plugin reads piece by piece, at the pace of the client; knows no plugin and no file.
import type { BodySource } from "../../pdk/response.ts";
import { failures, type ProxyError } from "../error.ts";
import { logFailure } from "../failure-log.ts";
import type { InFlightEntry } from "../in-flight.ts";
import { PipedBody } from "../plugin/piped-body.ts";
import type { TransformPipe } from "../plugin/response-draft.ts";
import type { BodyReader, BodyWriter, OutgoingHead } from "../server/client-stream.ts";
import type { ClientRequest } from "./client-request.ts";

export interface SourceResponse {
  readonly head: OutgoingHead;
  readonly source: BodySource;
  /** Transforms of plugins; null: none. */
  readonly pipe: TransformPipe | null;
  /** The body was read, and the transforms have ended. */
  readonly ending: () => void;
}

/** Resolves to the status to record when the client has all of the body or went away. Throws where a header is not valid. */
export function transferSource(request: ClientRequest, response: SourceResponse): Promise<number> {
  try {
    return new SourceTransfer(request, response).done;
  } catch (error) {
    response.source.close();
    throw error;
  }
}

class SourceTransfer implements InFlightEntry, BodyReader {
  previous: InFlightEntry | null = null;
  next: InFlightEntry | null = null;
  isListed = false;
  readonly #request: ClientRequest;
  readonly #source: BodySource;
  readonly #status: number;
  readonly #writer: BodyWriter;
  readonly #isPiped: boolean;
  readonly #ending: () => void;
  readonly #startedAt: number;
  readonly #over = Promise.withResolvers<number>();
  /** When the client must have read some of the body; infinity: it keeps up. */
  #readDeadline = Number.POSITIVE_INFINITY;
  #isPaused = false;
  #isReading = false;
  #isOver = false;
  #outlivesIdle = false;

  constructor(request: ClientRequest, response: SourceResponse) {
    const { head, source, pipe } = response;
    const { stream, worker } = request;
    this.#request = request;
    this.#source = source;
    this.#status = head.status;
    this.#isPiped = pipe !== null;
    this.#startedAt = worker.inFlight.now();
    request.bytesOut = 0;
    this.#writer =
      pipe === null ? stream.start(head, this, false) : this.#throughPipe(response, pipe);
    this.#ending = response.ending;
    worker.inFlight.add(this);
    // Bun does not cancel a stream that it has not begun to read.
    if (stream.signal.aborted) this.cancelled();
    else stream.signal.addEventListener("abort", () => this.cancelled(), { once: true });
    void this.#pump();
  }

  get done(): Promise<number> {
    return this.#over.promise;
  }

  #throughPipe({ head, ending }: SourceResponse, pipe: TransformPipe): BodyWriter {
    return new PipedBody(pipe, this, {
      start: (client) => this.#request.stream.start(head, client, true),
      passed: (bytes) => {
        this.#request.bytesOut += bytes;
      },
      ending,
    });
  }

  async #pump(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (!this.#isPaused && !this.#isOver) {
        const piece = await this.#source.read();
        if (this.#isOver) return;
        if (piece === null) this.#endBody();
        else this.#write(piece);
      }
    } catch (error) {
      this.#abort(failures.internal(error));
    } finally {
      this.#isReading = false;
    }
  }

  #endBody(): void {
    if (!this.#isPiped) this.#ending();
    this.#writer.end(() => this.#end(this.#status));
  }

  #write(piece: Uint8Array): void {
    if (!this.#isPiped) this.#request.bytesOut += piece.byteLength;
    if (this.#writer.write(piece)) return;
    const { worker, generation } = this.#request;
    this.#isPaused = true;
    this.#readDeadline = worker.inFlight.now() + generation.responseWriteTimeout;
  }

  wanted(): void {
    this.#isPaused = false;
    this.#readDeadline = Number.POSITIVE_INFINITY;
    void this.#pump();
  }

  cancelled(): void {
    this.#abort(failures.clientGone);
  }

  tick(now: number): void {
    const { stream, listener } = this.#request;
    if (now >= this.#readDeadline) this.#abort(failures.clientStalled);
    else if (!this.#outlivesIdle && now - this.#startedAt > listener.idleTimeout * 250) {
      this.#outlivesIdle = true;
      stream.suspendIdleTimeout();
    }
  }

  /** Never ends the response as if it were complete: the client must see the failure. */
  #abort(error: ProxyError): void {
    if (this.#isOver || this.#request.isResponseAborted) return;
    // Before the connection ends, which is not the client's doing.
    this.#request.isResponseAborted = true;
    this.#writer.fail(new Error(error.detail));
    this.#request.sentStatus = this.#status;
    logFailure(this.#request.worker.log, error, { request_id: this.#request.id });
    this.#end(error.status);
  }

  #end(status: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#source.close();
    const { stream, worker, listener } = this.#request;
    worker.inFlight.remove(this);
    if (this.#outlivesIdle) stream.restoreIdleTimeout(listener.idleTimeout);
    this.#over.resolve(status);
  }
}
