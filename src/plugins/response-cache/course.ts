// What was decided about a request before it went upstream, kept until its answer comes; knows no rule.
import type { Fill } from "./fills.ts";
import type { Stored } from "./store.ts";
import type { Occasion } from "./storing.ts";

/** Neither answered from the cache nor stored. */
interface Bypass {
  readonly kind: "bypass";
  /** RFC 9211 section 2.2. */
  readonly why: "bypass" | "method" | "partial" | "miss" | "request";
}

/** Changes something at the target: what is stored of that is outdated when it succeeds. */
interface Unsafe {
  readonly kind: "unsafe";
  readonly resource: string;
}

/** A HEAD for which nothing fresh is stored: its answer says whether what is stored still holds. */
interface Head {
  readonly kind: "head";
  readonly occasion: Occasion;
  readonly stale: Stored | null;
}

/** A fetch whose answer may be stored. */
export interface Filling {
  readonly kind: "fill";
  readonly fill: Fill;
  readonly occasion: Occasion;
  /** What there was before. */
  readonly stale: Stored | null;
  /** Whether the target was asked if that still holds. */
  readonly isConditional: boolean;
  readonly why: "miss" | "stale" | "request";
  /** The key, and what of the request decides beside it whether the answer can be stored. */
  readonly sort: string;
  /** The body is on its way into the store, which ends the fetch. */
  isReceiving: boolean;
}

export type Course = Bypass | Unsafe | Head | Filling;
