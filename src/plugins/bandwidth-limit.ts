// bandwidth-limit: limits the rate of request and response bodies.
import { Type as t } from "@sinclair/typebox";
import type { BodyTransform, RequestContext } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { config, nullable } from "../pdk/fields.ts";
import type { Counters } from "../pdk/kit.ts";
import { keyProblem, keyReader, requestKey } from "../pdk/request-key.ts";

const bytes = (description: string) =>
  nullable(t.Integer({ minimum: 1, maximum: 1_000_000_000_000, description }));

const schema = config({
  download_bps: bytes("Bytes per second to clients; null: no limit"),
  upload_bps: bytes("Bytes per second from clients; null: no limit"),
  burst: bytes("Burst in bytes after an idle period; null: a tenth of a second's worth"),
  key: requestKey("ip", "Key of the limit"),
});

export default definePlugin({
  name: "bandwidth-limit",
  summary: "Limits the bandwidth of request and response bodies",
  description: `The limits are in **bytes** per second and apply to all requests with the same key together, over all workers: two downloads from
one address share its bandwidth. Heads of requests and responses are not counted.

The gateway sends a response in chunks of at most a tenth of a second's worth, without a Content-Length, and reads the target no
faster than that. It counts bytes before compress shortens them. A request body that another plugin has read as a whole (such as
request-validation) is not delayed. While a body is delayed, \`body_read_timeout\` and \`body_min_rate\` do not apply. WebSockets and
connections of stream routes are not limited.`,
  group: "traffic",
  order: 6800,
  phases: ["access", "response", "body", "log"],
  scopes: httpScopes,
  config: schema,
  example: { download_bps: 1_000_000 },
  onError: "open",
  ignoresPath: true,
  check: ({ download_bps, upload_bps, key }) => {
    const problems: { path: string; message: string }[] = [];
    if (download_bps === null && upload_bps === null)
      problems.push({ path: "", message: "must have download_bps, upload_bps or both" });
    const problem = keyProblem(key);
    if (problem !== null) problems.push({ path: "key", message: problem });
    return problems;
  },
  create(own, { counters }) {
    const { download_bps: download, upload_bps: upload, burst } = own;
    const keyOf = keyReader(own.key);
    const place = {};
    const upwards = (context: RequestContext, bytesPerSecond: number): undefined => {
      if (!context.hasBody) return;
      const pace = new Pace(counters, `up ${keyOf(context)}`, { bytesPerSecond, burst });
      if (context.passBody((body) => pacedBody(body, pace))) context.memory.set(place, pace);
    };
    return {
      ...(upload === null
        ? {}
        : {
            access: (context) => upwards(context, upload),
            // Releases a reader that waits for a body after the request has ended.
            log: ({ memory }) => (memory.get(place) as Pace | undefined)?.end(),
          }),
      ...(download === null
        ? {}
        : {
            response(context, response) {
              if (!response.hasBody) return;
              const rate = { bytesPerSecond: download, burst };
              response.transformBody(
                pacedResponse(new Pace(counters, `down ${keyOf(context)}`, rate)),
              );
            },
          }),
    };
  },
});

/** Most bytes of one chunk. */
const MOST_AT_A_TIME = 65_536;

/** How fast bytes may go. */
interface Rate {
  readonly bytesPerSecond: number;
  /** Null: a tenth of a second's worth. */
  readonly burst: number | null;
}

/** Delays the bytes of one transfer by the token bucket of a key. */
class Pace {
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
const pacedResponse = (pace: Pace): BodyTransform => ({
  isObserver: true,
  isSlow: true,
  pieceBytes: pace.pieceBytes,
  push: (chunk) =>
    pace.takes(chunk.byteLength) ? chunk : pace.wait(chunk.byteLength).then(() => chunk),
  end: () => null,
  abort: () => pace.end(),
});

/** A request body, read no faster than the limit. */
function pacedBody(source: ReadableStream<Uint8Array>, pace: Pace): ReadableStream<Uint8Array> {
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
