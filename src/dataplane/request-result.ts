// What became of a request, in the words of plugins; knows no plugin.
import type { RequestResult } from "../pdk/context.ts";
import type { RequestRecord } from "./request-record.ts";

/** Of a request that ends now, as `performance.now()` tells it, with this status. */
export function resultOf(record: RequestRecord, status: number, now: number): RequestResult {
  const { startedAt, headAt, upstreamAt, upstreamEndAt, targetId, attempts } = record;
  const end = upstreamEndAt === 0 ? now : upstreamEndAt;
  const wasUpstream = attempts > 0;
  return {
    // The client has seen the head of an answer that broke off, not the error after it.
    status: record.isBrokenOff ? record.status : status,
    upstreamStatus: headAt === 0 || record.status === 0 ? null : record.status,
    bytesIn: record.bytesIn,
    bytesOut: record.bytesOut,
    durationMs: now - startedAt,
    firstByteMs: headAt === 0 ? null : headAt - startedAt,
    targetId: wasUpstream ? targetId : null,
    attempts,
    upstream: wasUpstream
      ? {
          startMs: upstreamAt - startedAt,
          endMs: end - startedAt,
          address: record.targetAddress,
        }
      : null,
  };
}
