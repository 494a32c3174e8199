// Resets HTTP/2 streams whose client does not read the complete response that the engine holds for it; knows no socket.
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { resetStream } from "./full-http2.ts";

/**
 * A client with a window of 0 could make the gateway hold a response for each stream of each connection, for ever
 * (CVE-2019-9517). The request path watches responses that it streams; complete ones are watched here.
 */
export class UnreadResponses {
  readonly #timeout: number;
  /** When complete responses were first seen. */
  readonly #since = new WeakMap<ServerHttp2Stream, number>();
  /** Frames of the connection that wait for the client's windows, and since when there are so many. */
  #frames = 0;
  #unchangedSince = 0;

  /** Milliseconds; infinity: no limit. */
  constructor(timeout: number) {
    this.#timeout = timeout;
  }

  /** Called about once a second. */
  tick(streams: Iterable<ServerHttp2Stream>, session: ServerHttp2Session, now: number): void {
    if (this.#timeout === Number.POSITIVE_INFINITY) return;
    const waiting = [...streams].filter((stream) => stream.writableEnded && !stream.destroyed);
    if (waiting.length === 0) {
      this.#unchangedSince = now;
      return;
    }
    const frames = session.state.outboundQueueSize ?? 0;
    if (frames !== this.#frames) this.#unchangedSince = now;
    this.#frames = frames;
    const isStalled = now - this.#unchangedSince >= this.#timeout;
    for (const stream of waiting)
      if (isStalled ? this.#isOlder(stream, this.#timeout, now) : this.#isTooSlow(stream, now))
        resetStream(stream);
  }

  /** A client that reads some of one stream from time to time holds no others: 1000 bytes per second are the least. */
  #isTooSlow(stream: ServerHttp2Stream, now: number): boolean {
    return this.#isOlder(stream, this.#timeout + stream.writableLength, now);
  }

  #isOlder(stream: ServerHttp2Stream, ms: number, now: number): boolean {
    const since = this.#since.get(stream);
    if (since === undefined) this.#since.set(stream, now);
    return since !== undefined && now - since >= ms;
  }
}
