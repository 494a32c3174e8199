// What becomes known of one request on its way, for counting and for the list of recent requests; knows no memory and no socket.

/** Times are milliseconds of `performance.now()`; 0: it did not happen. Whoever knows a fact sets it. */
export class RequestRecord {
  /** When the head of the request was there. */
  readonly startedAt: number = performance.now();
  /** Status that the client is sent; 0: it was sent none. */
  status = 0;
  attempts = 0;
  /** When the first attempt began, and when the answer of the last one had arrived whole or broke off. */
  upstreamAt = 0;
  upstreamEndAt = 0;
  /** Of the last attempt: when it began, when it had its connection, when the head of its answer was there. */
  attemptAt = 0;
  connectedAt = 0;
  headAt = 0;
  /** Milliseconds in plugins, and waiting for room on a target. */
  pluginsMs = -1;
  queueMs = -1;
  /** Bytes of the bodies. */
  bytesIn = 0;
  bytesOut = 0;
  routeId = "";
  serviceId = "";
  targetId = "";
  consumer = "";
  /** Why it ended as it did: words of RFC 9209 and of plugins, separated by spaces. */
  reasons = "";
  isBrokenOff = false;

  /** Adds a word to the reasons. */
  because(word: string): void {
    this.reasons = this.reasons === "" ? word : `${this.reasons} ${word}`;
  }
}
