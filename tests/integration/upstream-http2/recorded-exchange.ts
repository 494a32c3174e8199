// Drives one exchange with a target and records what its owner gets to see.
import type { BodySource } from "../../../src/dataplane/client-body.ts";
import { ClientBody, NO_READ_LIMITS } from "../../../src/dataplane/client-body.ts";
import type { ProxyError } from "../../../src/dataplane/error.ts";
import { FixedAddress } from "../../../src/dataplane/names/addresses.ts";
import type { FieldPairs } from "../../../src/http/fields.ts";
import { Http1Transport } from "../../../src/dataplane/upstream/exchange.ts";
import { Http2Transport } from "../../../src/dataplane/upstream/http2-exchange.ts";
import { SessionPool } from "../../../src/dataplane/upstream/http2-pool.ts";
import { ConnectionPool } from "../../../src/dataplane/upstream/pool.ts";
import { RequestBody } from "../../../src/dataplane/upstream/request-body.ts";
import type { ResponseHead } from "../../../src/dataplane/upstream/response-head.ts";
import { parseResponseHead } from "../../../src/dataplane/upstream/response-parser.ts";
import { HeadCache } from "../../../src/dataplane/upstream/response-head.ts";
import type {
  ExchangeOwner,
  UpstreamExchange,
  UpstreamTransport,
} from "../../../src/dataplane/upstream/transport.ts";

const options = { size: 8, idleTimeout: 60_000, maxRequests: 0 };
const now = () => performance.now();

const endpointOf = (port: number) => ({
  hostname: "127.0.0.1",
  port,
  addresses: new FixedAddress({ host: "127.0.0.1" }),
  tls: null,
});

/** `clock` in milliseconds. */
export function http2Target(port: number, clock: () => number) {
  const pool = new SessionPool(endpointOf(port), options, clock);
  return { pool, transport: new Http2Transport(pool, new HeadCache(parseResponseHead)) };
}

export const http2Transport = (port: number): UpstreamTransport => http2Target(port, now).transport;

export function http1Transport(port: number): UpstreamTransport {
  return new Http1Transport(
    new ConnectionPool(endpointOf(port), options),
    new HeadCache(parseResponseHead),
  );
}

export interface ExchangeSketch {
  readonly transport: UpstreamTransport;
  readonly method?: string;
  readonly target?: string;
  /** Further lines of the head, each with CRLF. */
  readonly fields?: string;
  /** A streamed body. */
  readonly source?: BodySource;
  /** What follows it. */
  readonly trailers?: FieldPairs;
  readonly readTimeout?: number;
}

export class RecordedExchange implements ExchangeOwner {
  readonly request;
  readonly body: RequestBody | null;
  readonly timeouts;
  readonly #sketch: ExchangeSketch;
  readonly exchange: UpstreamExchange;
  readonly events: string[] = [];
  readonly content: Buffer[] = [];
  head: ResponseHead | null = null;
  trailers: FieldPairs | null = null;
  error: ProxyError | null = null;
  readonly #over = Promise.withResolvers<void>();

  constructor(sketch: ExchangeSketch) {
    this.#sketch = sketch;
    const { method = "GET", source, trailers, transport, readTimeout = 0 } = sketch;
    this.timeouts = { connect: 0, response: 0, read: readTimeout, write: 0 };
    this.request = {
      upstreamMethod: method,
      generation: { maxResponseHeadBytes: 65_536 },
      connectedAt: 0,
      receivedAt: 0,
    };
    this.body =
      source === undefined
        ? null
        : new RequestBody({
            client: new ClientBody({ openBody: () => source }, NO_READ_LIMITS),
            piped: null,
            bytes: null,
            length: -1,
            keepsShort: false,
            maxBytes: 0,
            now,
            ...(trailers === undefined ? {} : { trailers: () => trailers }),
          });
    this.exchange = transport.open(this, false);
    this.exchange.start(now());
  }

  /** Resolves at the end, however it came. */
  async ended(): Promise<this> {
    await this.#over.promise;
    return this;
  }

  get text(): string {
    return Buffer.concat(this.content).toString("latin1");
  }

  requestHead(): string {
    const { method = "GET", target = "/", fields = "", source } = this.#sketch;
    const framing = source === undefined ? "" : "transfer-encoding: chunked\r\n";
    return `${method} ${target} HTTP/1.1\r\nHost: own.test\r\n${fields}${framing}\r\n`;
  }

  onHead(head: ResponseHead): void {
    this.head = head;
    this.events.push(`head ${head.status}`);
  }

  onContent(chunk: Buffer): void {
    this.content.push(chunk);
    if (this.events.at(-1) !== "content") this.events.push("content");
  }

  onWaiting(): void {
    if (this.events.at(-1) !== "waiting") this.events.push("waiting");
  }

  onTrailers(trailers: FieldPairs): void {
    this.trailers = trailers;
    this.events.push("trailers");
  }

  onInterim(status: number, fields: FieldPairs): void {
    this.events.push(`${status} ${JSON.stringify(fields)}`);
  }

  onFinished(): void {
    this.events.push("finished");
    this.#over.resolve();
  }

  onFailed(error: ProxyError): void {
    this.error = error;
    this.events.push("failed");
    this.#over.resolve();
  }
}
