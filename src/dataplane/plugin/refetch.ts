// Sends a copy of a client's request through the plugins after the calling one; knows no plugin.
import type { Refetched, RefetchOptions } from "../../pdk/context.ts";
import type { HeaderBlock } from "../../http/header-block.ts";
import type { ClientRequest } from "../request/client-request.ts";
import type {
  BodyReader,
  BodyWriter,
  ClientStream,
  OutgoingHead,
} from "../server/client-stream.ts";
import type { PluginContext } from "./plugin-context.ts";
import { settle } from "./run-plugin-chain.ts";

/** Copies the request onto a stream without a client, and runs what comes after the calling plugin. */
export async function refetch(
  from: PluginContext,
  options: RefetchOptions,
  forward: (request: ClientRequest) => void,
): Promise<Refetched> {
  const { request } = from;
  const stream = new DetachedStream(request, options);
  const copy = request.copyFor(stream);
  const plugins = from.copyFor(copy);
  copy.plugins = plugins;
  copy.edits = request.edits?.copyFor(copy) ?? null;
  options.prepare?.(plugins.upstream);
  settle(plugins, await plugins.cursor.resume(), forward);
  return { ...(await stream.response), source: plugins.responseSource };
}

type Response = Omit<Refetched, "source">;

/** A stream without a client, which collects the response. */
class DetachedStream implements ClientStream {
  readonly method: string;
  readonly url = "http://detached/";
  readonly fields: HeaderBlock;
  readonly connection: ClientStream["connection"];
  readonly features = {
    hasTrailers: false,
    readsTrailers: false,
    keepsLength: false,
    hasInterim: false,
  };
  readonly problem = null;
  readonly awaitsContinue = false;
  readonly httpVersion: string | null;
  readonly hasBody = false;
  readonly peerPort = 0;
  readonly signal: AbortSignal;
  readonly #maxBytes: number;
  readonly #done = Promise.withResolvers<Response>();

  constructor({ fields, stream }: ClientRequest, options: RefetchOptions) {
    const { method, timeoutMs, maxBytes } = options;
    this.method = method;
    this.fields = fields.with("content-length", null).with("transfer-encoding", null);
    this.connection = stream.connection;
    this.httpVersion = stream.httpVersion;
    this.signal =
      timeoutMs === undefined ? new AbortController().signal : AbortSignal.timeout(timeoutMs);
    this.#maxBytes = maxBytes;
  }

  /** Its body is null when it is longer than `maxBytes` or incomplete. */
  get response(): Promise<Response> {
    return this.#done.promise;
  }

  openBody(): never {
    throw new Error("a copy has no body of its own");
  }

  peerAddress(): string {
    return "";
  }

  setTrailers(): void {}

  sendInterim(): void {}

  suspendIdleTimeout(): void {}

  restoreIdleTimeout(): void {}

  closeAfterResponse(): void {}

  respond({ status, headers }: OutgoingHead, pieces: readonly Uint8Array[]): void {
    const body = this.method === "HEAD" ? new Uint8Array(0) : Buffer.concat(pieces);
    const isTooLong = body.byteLength > this.#maxBytes;
    this.#done.resolve({ status, headers: new Headers(headers), body: isTooLong ? null : body });
  }

  start(head: OutgoingHead, reader: BodyReader): BodyWriter {
    const { status } = head;
    const headers = new Headers(head.headers);
    return new BodyCollector(reader, this.#maxBytes, (body) =>
      this.#done.resolve({ status, headers, body }),
    );
  }

  /** Copies cannot be upgraded. */
  upgrade(): boolean {
    return false;
  }

  abort(): void {
    this.#done.resolve({ status: 200, headers: new Headers(), body: null });
  }
}

/** Collects a streamed body up to a limit, and cancels a longer one. */
class BodyCollector implements BodyWriter {
  isEmpty = true;
  readonly #reader: BodyReader;
  readonly #maxBytes: number;
  readonly #done: (body: Uint8Array | null) => void;
  readonly #pieces: Uint8Array[] = [];
  #size = 0;
  #isOver = false;

  constructor(reader: BodyReader, maxBytes: number, done: (body: Uint8Array | null) => void) {
    this.#reader = reader;
    this.#maxBytes = maxBytes;
    this.#done = done;
  }

  write(chunk: Uint8Array): boolean {
    this.isEmpty = false;
    if (this.#isOver) return true;
    this.#size += chunk.byteLength;
    if (this.#size > this.#maxBytes) {
      this.#end(null);
      this.#reader.cancelled();
    } else this.#pieces.push(chunk);
    return true;
  }

  end(done: () => void): void {
    if (!this.#isOver) this.#end(Buffer.concat(this.#pieces));
    done();
  }

  fail(): void {
    if (!this.#isOver) this.#end(null);
  }

  #end(body: Uint8Array | null): void {
    this.#isOver = true;
    this.#done(body);
  }
}
