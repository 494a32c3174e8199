// One active check of one target, from connecting to the result; knows no schedule and no health state.
import type { Failure } from "../../shared-memory/target-health.ts";
import type { ProxyError } from "../error.ts";
import type { FieldPairs } from "../../http/fields.ts";
import { failureOf } from "../request/upstream-attempts.ts";
import { NO_POOL, UpstreamConnection } from "../upstream/connection.ts";
import type { Endpoint } from "../upstream/endpoint.ts";
import { Exchange } from "../upstream/exchange.ts";
import { Http2Exchange } from "../upstream/http2-exchange.ts";
import { SessionPool } from "../upstream/http2-pool.ts";
import { RequestBody } from "../upstream/request-body.ts";
import type { ExchangeOwner, ExchangeSubject, UpstreamExchange } from "../upstream/transport.ts";
import { GrpcCheckResponse } from "./grpc-check.ts";
import type { ResponseHead } from "../upstream/response-head.ts";
import { parseLenientHead, parseResponseHead } from "../upstream/response-parser.ts";
import { HeadCache } from "../upstream/response-head.ts";

/** The request of a check and the response it expects. */
export interface ProbeSpec {
  readonly endpoint: Endpoint;
  /** Null: a TCP check, which only connects. */
  readonly request: {
    /** Request line and header fields with the empty line, latin1. */
    readonly head: string;
    readonly method: string;
    /** Null: none. */
    readonly body: Uint8Array | null;
    readonly isHttp2: boolean;
    /** Whether responses need not be strictly valid; HTTP/1.1 only. */
    readonly isLenient: boolean;
    /** The response is a HealthCheckResponse. */
    readonly isGrpc: boolean;
    readonly accepts: (status: number) => boolean;
    /** Bytes that the first MAX_BODY_BYTES must contain; null: any body. */
    readonly text: Buffer | null;
  } | null;
  readonly timeoutMs: number;
}

/** Searched for the expected text. */
const MAX_BODY_BYTES = 65_536;
const MAX_HEAD_BYTES = 65_536;
const NO_TIMEOUTS = { connect: 0, response: 0, read: 0, write: 0 };

/** Every check opens a connection, to test that too. */
const NO_KEEPALIVE = { size: 0, idleTimeout: 0, maxRequests: 0 };

/** The constructor starts the check; calls `done` once, with null for success, and never after `stop`. */
export class Probe implements ExchangeOwner {
  readonly body: RequestBody | null;
  readonly timeouts = NO_TIMEOUTS;
  readonly request: ExchangeSubject;
  readonly #spec: ProbeSpec;
  readonly #done: (failure: Failure | null) => void;
  readonly #timer: Timer;
  #connection: UpstreamConnection | null = null;
  #exchange: UpstreamExchange | null = null;
  readonly #grpc = new GrpcCheckResponse();
  #isOver = false;
  #bytes = 0;
  /** The end of the last piece: the text may span two pieces. */
  #tail: Buffer = Buffer.alloc(0);

  constructor(spec: ProbeSpec, done: (failure: Failure | null) => void) {
    this.#spec = spec;
    this.request = {
      upstreamMethod: spec.request?.method ?? "GET",
      generation: { maxResponseHeadBytes: MAX_HEAD_BYTES },
      connectedAt: 0,
      receivedAt: 0,
    };
    this.body = bodyOf(spec.request?.body ?? null);
    this.#done = done;
    this.#timer = setTimeout(() => this.#timedOut(), spec.timeoutMs);
    try {
      if (spec.request?.isHttp2 === true) this.#beginHttp2();
      else this.#begin(new UpstreamConnection(spec.endpoint, NO_POOL));
    } catch {
      // For example an invalid CA bundle.
      this.#end("the check could not be sent");
    }
  }

  #begin(connection: UpstreamConnection): void {
    this.#connection = connection;
    if (this.#spec.request === null) {
      connection.handler = {
        connected: () => this.#end(null),
        received() {},
        drained() {},
        ended: (error) => this.#end(error === null ? CLOSED : failureOf(error)),
      };
      return;
    }
    const lenient = this.#spec.request.isLenient ? parseLenientHead : null;
    const heads = new HeadCache(parseResponseHead, null, lenient);
    this.#exchange = new Exchange(connection, heads, this);
    this.#exchange.start(0);
  }

  #beginHttp2(): void {
    const pool = new SessionPool(this.#spec.endpoint, NO_KEEPALIVE, () => performance.now());
    const heads = new HeadCache(parseResponseHead);
    this.#exchange = new Http2Exchange({ pool, owner: this, heads, isFresh: true });
    this.#exchange.start(0);
  }

  requestHead(): string {
    return this.#spec.request?.head ?? "";
  }

  onHead({ status, headers }: ResponseHead): void {
    const { request } = this.#spec;
    if (request?.accepts(status) === false) this.#end({ status });
    else if (request?.isGrpc === true) this.#grpc.head(headers);
    else if (request?.text === null) this.#end(null);
  }

  onContent(chunk: Buffer): void {
    if (this.#spec.request?.isGrpc === true) this.#grpc.content(chunk);
    const text = this.#spec.request?.text;
    if (this.#isOver || !text) return;
    const seen = Buffer.concat([this.#tail, chunk.subarray(0, MAX_BODY_BYTES - this.#bytes)]);
    this.#bytes += chunk.length;
    if (seen.includes(text)) this.#end(null);
    else if (this.#bytes >= MAX_BODY_BYTES) this.#end("the response lacks the expected text");
    else this.#tail = seen.subarray(Math.max(0, seen.length - text.length + 1));
  }

  onWaiting(): void {}

  onTrailers(trailers: FieldPairs): void {
    this.#grpc.trailers(trailers);
  }

  onFinished(): void {
    if (this.#spec.request?.isGrpc === true) this.#end(this.#grpc.result());
    else this.#end("the response lacks the expected text");
  }

  onFailed(error: ProxyError): void {
    this.#end(failureOf(error));
  }

  #timedOut(): void {
    this.#end(
      this.#exchange?.isSent === true
        ? "the target did not respond in time"
        : "the target did not accept the connection in time",
    );
  }

  /** Aborts without calling `done`. */
  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#exchange?.abort();
    if (this.#connection !== null) this.#connection.handler = null;
    this.#connection?.destroy();
  }

  #end(failure: Failure | null): void {
    if (this.#isOver) return;
    this.stop();
    this.#done(failure);
  }
}

const bodyOf = (bytes: Uint8Array | null): RequestBody | null =>
  bytes === null
    ? null
    : new RequestBody({
        client: null,
        piped: null,
        bytes,
        length: bytes.byteLength,
        keepsShort: false,
        maxBytes: 0,
        now: () => performance.now(),
      });

const CLOSED = "the target closed the connection without a response";
