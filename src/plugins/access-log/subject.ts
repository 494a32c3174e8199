// What a line of a log is about, a request or a stream connection, in one shape; knows no format.
import type {
  RequestContext,
  RequestResult,
  StreamContext,
  StreamResult,
} from "../../pdk/context.ts";

/** What lines are made from. */
export interface Subject {
  readonly kind: "http" | "stream";
  /** Of a stream connection only what is known of it: no fields, no method. */
  readonly context: RequestContext;
  readonly result: RequestResult;
  /** Fields of the answer; null where nobody asked for them, or there are none. */
  readonly answer: Headers | null;
}

/** A stream connection in the words of requests; status 0. */
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
    // Everything that lines are made from is there; what it lacks can only change requests.
    context: seen as unknown as RequestContext,
    answer: null,
    result: {
      status: 0,
      upstreamStatus: null,
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
