// What plugins see of when a request came and how it ended; knows nothing of its way between the two.
import type { RequestResult } from "../../pdk/context.ts";
import type { RequestContext } from "../request-context.ts";
import { EndResult } from "../request-result.ts";
import { timeOfDay } from "../time-of-day.ts";
import { RequestFacts } from "./request-facts.ts";

export class EndFacts extends RequestFacts {
  /** Of the answer; 0 until the request has ended, at that moment of `performance.now()`. */
  #endStatus = 0;
  #endedAt = 0;
  #startedAt = 0;
  #result: EndResult | null = null;
  #hasResult = false;

  /** Those of another request in the place of these. */
  protected reuseFactsFor(context: RequestContext): void {
    this.context = context;
    this.#endStatus = 0;
    this.#endedAt = 0;
    this.#startedAt = 0;
    this.#hasResult = false;
  }

  get startedAt(): number {
    if (this.#startedAt === 0) this.#startedAt = this.#startedBefore(performance.now());
    return this.#startedAt;
  }

  #startedBefore(now: number): number {
    return Math.round(timeOfDay(this.context.record.startedAt, now));
  }

  /** Made when somebody asks for it. */
  get result(): RequestResult | null {
    if (this.#endedAt === 0) return null;
    this.#result ??= new EndResult();
    if (!this.#hasResult) this.#result.fill(this.context.record, this.#endStatus, this.#endedAt);
    this.#hasResult = true;
    return this.#result;
  }

  protected get hasEnded(): boolean {
    return this.#endedAt !== 0;
  }

  /** It has ended with this status at that moment; `now` is the present one. */
  protected end(status: number, endedAt: number, now: number): void {
    this.#endStatus = status;
    this.#endedAt = endedAt;
    // Now, because whoever writes logs asks later, and a clock would have to be looked at again.
    if (this.#startedAt === 0) this.#startedAt = this.#startedBefore(now);
  }
}
