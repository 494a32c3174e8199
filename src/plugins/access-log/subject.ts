// The subject of a log line, a request or a stream connection, in one shape; knows no format.
import type {
  RequestContext,
  RequestResult,
  StreamContext,
  StreamResult,
} from "../../pdk/context.ts";

/** The data of a line. */
export interface Subject {
  readonly kind: "http" | "stream";
  /** For stream connections without headers and method. */
  readonly context: RequestContext;
  readonly result: RequestResult;
  /** Null when not configured, or when there is no response. */
  readonly responseHeaders: Headers | null;
}

/** A stream connection as a request context, with status 0. */
export function streamSubject(context: StreamContext, result: StreamResult): Subject {
  const { refusal, bytesIn, bytesOut, durationMs, targetId } = result;
  const isNoted = refusal === null || context.reasons.includes(refusal);
  const seen = {
    id: context.id,
    method: "",
    scheme: context.protocol,
    host: context.serverName ?? "",
    path: "",
    query: "",
    target: "",
    headers: {},
    header: () => null,
    cookie: () => null,
    queryValue: () => null,
    clientAddress: () => context.clientAddress(),
    peerAddress: () => context.clientAddress(),
    country: () => context.country(),
    asn: () => context.asn(),
    tls: null,
    route: context.streamRoute,
    service: context.service,
    startedAt: context.startedAt,
    consumer: null,
    credential: null,
    groups: [],
    reasons: isNoted ? context.reasons : [...context.reasons, refusal],
  };
  return {
    kind: "stream",
    // Complete for formatting; missing members only change requests.
    context: seen as unknown as RequestContext,
    responseHeaders: null,
    result: {
      status: 0,
      upstreamStatus: null,
      grpcStatus: null,
      bytesIn,
      bytesOut,
      durationMs,
      firstByteMs: null,
      targetId,
      attempts: targetId === null ? 0 : 1,
      upstream: null,
    },
  };
}
