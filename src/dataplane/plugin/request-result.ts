// The result of a request as plugins see it; knows no plugin.
import type { RequestResult } from "../../pdk/context.ts";
import type { ClientRequest } from "../request/client-request.ts";

/** The request ended at this moment of `performance.now()`, with this status. */
export function resultOf(request: ClientRequest, status: number, endedAt: number): RequestResult {
  const { startedAt, headAt, attempts, upstreamStatus, upstreamAt, upstreamEndAt } = request;
  const wasUpstream = attempts > 0;
  return {
    // The client has seen the head of a response that broke off, not the error after it.
    status: request.isResponseAborted ? request.sentStatus : status,
    upstreamStatus: headAt === 0 || upstreamStatus === 0 ? null : upstreamStatus,
    grpcStatus: request.grpcStatus,
    bytesIn: request.bytesIn,
    bytesOut: request.bytesOut,
    durationMs: endedAt - startedAt,
    firstByteMs: headAt === 0 ? null : headAt - startedAt,
    targetId: wasUpstream ? request.targetId : null,
    attempts,
    upstream: wasUpstream
      ? {
          startMs: upstreamAt - startedAt,
          endMs: (upstreamEndAt === 0 ? endedAt : upstreamEndAt) - startedAt,
          address: request.targetAddress,
        }
      : null,
  };
}
