// Tells plugins that requests have ended: at once, or of many one after the other, where one by one each costs several times as much. Knows no plugin.
import type { RequestContext } from "../request-context.ts";
import { Visit } from "./visit.ts";

/** Requests that wait at most. */
const SIZE = 64;
/** How long one waits at most. */
const LONGEST_MS = 20;

export class EndedRequests {
  readonly #contexts: (RequestContext | null)[] = [];
  readonly #statuses: number[] = [];
  readonly #endedAt: number[] = [];
  #count = 0;
  #isTelling = false;
  #timer: Timer | null = null;

  /** The request has ended with this status, at this moment of `performance.now()`. Who cannot wait is told at once. */
  ended(context: RequestContext, status: number, endedAt: number): void {
    const { heardIn } = context;
    if (context.visit === null && heardIn !== null && heardIn.chain.log.length > 0)
      context.visit = new Visit(context, heardIn);
    const { visit } = context;
    if (visit?.isHeard === true) visit.log(status, endedAt);
    if (visit === null ? heardIn !== null : visit.isHeardLater) this.#add(context, status, endedAt);
  }

  #add(context: RequestContext, status: number, endedAt: number): void {
    // The server forgets the connection of a request that has ended; whoever has asked once is told again.
    context.clientAddress();
    const at = this.#count++;
    this.#contexts[at] = context;
    this.#statuses[at] = status;
    this.#endedAt[at] = endedAt;
    if (this.#isTelling) return;
    if (at + 1 >= SIZE) this.flush();
    else if (this.#timer === null) this.#flushLater();
  }

  /** By itself: in `#add`, its closure would be made room for with each request. */
  #flushLater(): void {
    this.#timer = setTimeout(() => this.flush(), LONGEST_MS);
  }

  /** Tells of all that wait: before instances are closed, because those that saw the requests are told. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      this.#tellAll(performance.now());
    } finally {
      this.#count = 0;
      this.#isTelling = false;
    }
  }

  #tellAll(now: number): void {
    // For all that have no visit of their own.
    let lent: Visit | null = null;
    // A plugin may end a request while it is told of another one.
    for (let at = 0; at < this.#count; at++) {
      const context = this.#contexts[at] as RequestContext;
      this.#contexts[at] = null;
      let { visit } = context;
      if (visit === null) {
        if (context.heardIn === null) continue;
        if (lent === null) lent = new Visit(context, context.heardIn);
        else lent.reuseFor(context, context.heardIn);
        visit = lent;
      }
      visit.logLater(this.#statuses[at] ?? 0, this.#endedAt[at] ?? now, now);
    }
  }
}
