// What gRPC changes in a proxied request: time limits, message limits, the status of the call; knows no exchange and no plugin.
import {
  encodeGrpcMessage,
  GRPC_CONTENT_TYPE,
  GrpcMessages,
  grpcStatusOfHttp,
  httpStatusOfGrpc,
  isGrpcContentType,
  readGrpcStatus,
} from "../../http/grpc.ts";
import { titleOf } from "../error-page.ts";
import type { ResponseDraft } from "../plugin/response-draft.ts";
import { failures, type ProxyError } from "../error.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { FieldList } from "../../http/field-list.ts";
import type { FieldPairs } from "../../http/fields.ts";
import type { ResponseHead } from "../upstream/response-head.ts";
import type { RequestBody } from "../upstream/request-body.ts";
import type { ExchangeTimeouts } from "../upstream/transport.ts";
import type { ClientRequest } from "./client-request.ts";

/** UNKNOWN: what clients report of a call that ended without a status. */
const UNKNOWN = 2;
const DEADLINE_EXCEEDED = 4;
const CLIENT_CLOSED = 499;

/** The lowest of several limits; 0 stands for no limit. */
const lowest = (...limits: readonly number[]): number =>
  limits.reduce((least, limit) => (limit > 0 && (least === 0 || limit < least) ? limit : least), 0);

/** One call, from its first attempt to its last byte. */
export class GrpcCall {
  readonly #request: ClientRequest;
  readonly #idleMs: number;
  readonly #responses: GrpcMessages;
  #bytes = 0;
  #activeAt: number;

  /** `now` in the worker's milliseconds. `onTooLarge`: a message of the request is. */
  constructor(
    request: ClientRequest,
    { route }: RouteRuntime,
    { now, onTooLarge }: { readonly now: number; readonly onTooLarge: () => void },
  ) {
    const { grpc_max_message_bytes: maxBytes, grpc_idle_timeout: idleMs } = route;
    this.#request = request;
    this.#idleMs = idleMs;
    this.#activeAt = now;
    this.#responses = new GrpcMessages(maxBytes);
    const counted = new GrpcMessages(
      lowest(maxBytes, request.bodyLimit, request.listener.maxBodyBytes),
    );
    // A translating plugin sees the messages of the others.
    if (request.isGrpc) request.clientBody?.countMessages(counted, onTooLarge);
  }

  /** The gateway sets no time for a response or between its bytes: streams may be silent for hours. */
  timeouts({ connect }: ExchangeTimeouts): ExchangeTimeouts {
    return { connect, response: 0, read: 0, write: 0 };
  }

  /** What a response says of its target by its head alone, as an HTTP status; 200 while the status is still to come. */
  responded(head: ResponseHead): number {
    const status = readGrpcStatus(head.headers.get("grpc-status"));
    if (status === null) return head.status;
    this.#request.grpcStatus = status;
    return this.targetStatus;
  }

  /**
   * What the complete response says of its target. A deadline of the client says nothing: otherwise one client could make the
   * gateway eject every target.
   */
  get targetStatus(): number {
    const { grpcStatus, grpcDeadline } = this.#request;
    const isOfClient = grpcStatus === DEADLINE_EXCEEDED && grpcDeadline !== Infinity;
    return isOfClient ? CLIENT_CLOSED : httpStatusOfGrpc(grpcStatus ?? UNKNOWN);
  }

  /** Whether the response comes from something that does not speak gRPC, such as another proxy. */
  isForeign({ status, headers }: ResponseHead): boolean {
    if (headers.has("grpc-status")) return false;
    return status !== 200 || !isGrpcContentType(headers.get("content-type"));
  }

  /** The trailers of the response have arrived; their last status counts. */
  trailed(trailers: FieldPairs): void {
    const status = readGrpcStatus(
      trailers.findLast(([name]) => name.toLowerCase() === "grpc-status")?.[1],
    );
    if (status !== null) this.#request.grpcStatus = status;
  }

  /** The response has ended; returns the HTTP status that stands for the call. */
  ended(): number {
    this.#request.grpcStatus ??= UNKNOWN;
    return httpStatusOfGrpc(this.#request.grpcStatus);
  }

  /** False: the response has a message that is too large. */
  passes(chunk: Uint8Array): boolean {
    return this.#responses.push(chunk);
  }

  /** Why the gateway ends the call; null: it goes on. Call it about ten times a second. */
  overdue(now: number, body: RequestBody | null): ProxyError | null {
    if (this.#request.worker.inFlight.isStopping) return failures.stopping;
    if (now >= this.#request.grpcDeadline) return failures.grpcDeadline;
    return this.#isIdle(now, body) ? failures.grpcIdle : null;
  }

  /** Whether nothing has passed in either direction for `grpc_idle_timeout`. */
  #isIdle(now: number, body: RequestBody | null): boolean {
    const bytes = this.#request.bytesOut + (body?.bytes ?? 0);
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#activeAt = now;
    }
    return this.#idleMs > 0 && now - this.#activeAt >= this.#idleMs;
  }
}

/** They describe a body, or the connection of HTTP/1.1. */
const NOT_FOR_GRPC = [
  "content-length",
  "content-encoding",
  "content-language",
  "transfer-encoding",
  "connection",
];

/** The trailers of a call that the gateway ends. */
export function failureTrailers(
  request: ClientRequest,
  error: Pick<ProxyError, "grpcStatus" | "status" | "detail">,
): FieldPairs {
  const status = error.grpcStatus ?? grpcStatusOfHttp(error.status);
  request.grpcStatus = status;
  return [
    ["grpc-status", String(status)],
    ["grpc-message", encodeGrpcMessage(error.detail)],
  ];
}

/** The header fields of a response that consists of them: those of an HTTP response with the status in the place of a body. */
export function trailersOnly(
  request: ClientRequest,
  draft: Pick<ResponseDraft, "fields" | "status">,
  error: ProxyError | null,
): FieldList {
  const { fields, status } = draft;
  for (const name of NOT_FOR_GRPC) fields.delete(name);
  fields.set("Content-Type", GRPC_CONTENT_TYPE);
  // A plugin may have responded in gRPC.
  request.grpcStatus = readGrpcStatus(fields.get("grpc-status"));
  if (request.grpcStatus !== null) return fields;
  const detail = error?.detail ?? titleOf(status);
  for (const [name, value] of failureTrailers(request, { ...error, status, detail }))
    fields.set(name, value);
  return fields;
}
