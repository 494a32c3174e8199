// What became of a request, in the words of plugins; knows no plugin.
import type { RequestResult } from "../pdk/context.ts";
import type { RequestRecord } from "./request-record.ts";

/** May be filled for one request after the other. */
export class EndResult implements RequestResult {
  status = 0;
  upstreamStatus: number | null = null;
  bytesIn = 0;
  bytesOut = 0;
  durationMs = 0;
  firstByteMs: number | null = null;
  targetId: string | null = null;
  attempts = 0;
  upstream: EndUpstream | null = null;
  readonly #upstream = new EndUpstream();

  /** A request has ended at this moment of `performance.now()`, with this status. */
  fill(record: RequestRecord, status: number, endedAt: number): void {
    const { startedAt, headAt, attempts } = record;
    const wasUpstream = attempts > 0;
    // The client has seen the head of an answer that broke off, not the error after it.
    this.status = record.isBrokenOff ? record.status : status;
    this.upstreamStatus = headAt === 0 || record.status === 0 ? null : record.status;
    this.bytesIn = record.bytesIn;
    this.bytesOut = record.bytesOut;
    this.durationMs = endedAt - startedAt;
    this.firstByteMs = headAt === 0 ? null : headAt - startedAt;
    this.targetId = wasUpstream ? record.targetId : null;
    this.attempts = attempts;
    if (wasUpstream) this.#upstream.fill(record, endedAt);
    this.upstream = wasUpstream ? this.#upstream : null;
  }
}

class EndUpstream {
  startMs = 0;
  endMs = 0;
  address = "";

  fill({ startedAt, upstreamAt, upstreamEndAt, targetAddress }: RequestRecord, endedAt: number) {
    this.startMs = upstreamAt - startedAt;
    this.endMs = (upstreamEndAt === 0 ? endedAt : upstreamEndAt) - startedAt;
    this.address = targetAddress;
  }
}
