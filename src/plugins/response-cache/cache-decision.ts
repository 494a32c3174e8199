// The cache's decision about a request, stored until its response arrives; knows no rule.
import type { CacheOutcome } from "../../pdk/cache-outcome.ts";
import type { Fill } from "./fills.ts";
import type { Stored } from "./store.ts";
import type { FillRequest } from "./storing.ts";

/** Neither served from the cache nor stored. */
interface Bypass {
  readonly kind: "bypass";
  readonly outcome: CacheOutcome;
}

/** An unsafe request, which invalidates stored responses when it succeeds. */
interface Unsafe {
  readonly kind: "unsafe";
  readonly outcome: CacheOutcome;
  readonly resource: string;
}

/** A HEAD without a fresh stored response: its response validates the stale one. */
interface Head {
  readonly kind: "head";
  readonly outcome: CacheOutcome;
  readonly fillRequest: FillRequest;
  readonly stale: Stored | null;
}

/** A fetch whose response may be stored. */
export interface FillDecision {
  readonly kind: "fill";
  /** Without a response. */
  readonly outcome: CacheOutcome;
  readonly fill: Fill;
  readonly fillRequest: FillRequest;
  /** The stored response before the fetch. */
  readonly stale: Stored | null;
  /** Whether the fetch is a conditional request for that. */
  readonly isConditional: boolean;
  /** The key, with the properties of the request that decide whether the response can be stored. */
  readonly uncacheableKey: string;
  /** The body is being stored, whose end completes the fetch. */
  isReceiving: boolean;
}

export type CacheDecision = Bypass | Unsafe | Head | FillDecision;
