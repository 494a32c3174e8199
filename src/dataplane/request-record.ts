// What becomes known of one request on its way, for counting and for the list of recent requests; knows no memory and no socket.
import type { Series } from "../shared-memory/traffic-metrics.ts";

/** What is noted of a route: where its requests are counted, and what it is. */
export interface NotedRoute {
  readonly id: string;
  /** Found when the first of its requests is counted; null until then. */
  series: Series | null;
  readonly route: { readonly service_id: string | null };
}

/** What is noted of the target of an attempt. */
interface Target {
  readonly id: string;
  readonly authority: string;
}

/** Times are milliseconds of `performance.now()`; 0: it did not happen. Looking at the clock is what costs most here. */
export class RequestRecord {
  /** When the head of the request was there. */
  readonly startedAt: number = performance.now();
  /** Null: no route took it. */
  route: NotedRoute | null = null;
  /** Of the service that it went to, where that is not the route's. */
  otherServiceId: string | null = null;
  /** Of the last attempt. */
  targetId = "";
  /** As requests name it: `host` or `host:port`. */
  targetAddress = "";
  attempts = 0;
  /** Attempts before the last one, unless the same target was only asked again on a new connection; null: none. */
  earlier: { readonly targetId: string; readonly status: number; readonly ms: number }[] | null =
    null;
  /** Of the answer that began; 0: none has. */
  status = 0;
  /** When the first attempt began, and when the last answer had arrived whole or the last attempt had failed. */
  upstreamAt = 0;
  upstreamEndAt = 0;
  /** Of the last attempt: when it began, had its connection, heard from the target last, and had the head of its answer. */
  attemptAt = 0;
  connectedAt = 0;
  arrivedAt = 0;
  headAt = 0;
  /** Milliseconds until plugins let it go on; negative: none ran. */
  pluginsMs = -1;
  /** Of these, waiting for a place. */
  queueMs = 0;
  /** Bytes of the bodies. */
  bytesIn = 0;
  bytesOut = 0;
  /** Why it ended as it did: words of RFC 9209, separated by spaces. */
  reasons = "";
  /** The answer had begun and did not come to its end. */
  isBrokenOff = false;

  /** An attempt begins on a target. */
  began({ id: targetId, authority }: Target): void {
    const now = performance.now();
    if (this.attempts === 0) this.upstreamAt = now;
    else if (targetId !== this.targetId || this.headAt !== 0) this.#keepAttempt(now);
    this.attempts++;
    this.targetId = targetId;
    this.targetAddress = authority;
    this.attemptAt = now;
    // True of a kept connection; one that has to be made tells when it is there.
    this.connectedAt = now;
    this.headAt = 0;
  }

  #keepAttempt(now: number): void {
    this.earlier ??= [];
    const status = this.headAt === 0 ? 502 : this.status;
    this.earlier.push({ targetId: this.targetId, status, ms: now - this.attemptAt });
  }

  /** The head of an answer is there. */
  answered(status: number): void {
    this.headAt = this.arrivedAt;
    this.status = status;
  }

  /** The present attempt has failed. */
  failed(word: string): void {
    this.upstreamEndAt = performance.now();
    this.because(word);
  }

  /** The client is told that there is no answer of a target. */
  refused(word: string): void {
    this.bytesOut = 0;
    this.because(word);
  }

  /** Adds a word to the reasons, unless it is the last one. */
  because(word: string): void {
    if (this.reasons.endsWith(word)) return;
    this.reasons = this.reasons === "" ? word : `${this.reasons} ${word}`;
  }
}
