// What a cache reports: every outcome survives as an integer that the request list can hold, and has an explanation.
import { expect, test } from "bun:test";
import {
  cacheForwards,
  type CacheOutcome,
  cacheReasons,
  cacheStatuses,
  decodeCacheOutcome,
  encodeCacheOutcome,
  explainCacheOutcome,
} from "../../../src/model/cache-outcome.ts";

const outcomes: CacheOutcome[] = cacheStatuses.flatMap((status) =>
  [null, ...cacheForwards].flatMap((fwd) =>
    [null, ...cacheReasons].flatMap((reason) =>
      [true, false].flatMap((stored) =>
        [true, false, null].map((collapsed) => ({ status, fwd, stored, collapsed, reason })),
      ),
    ),
  ),
);

test("an outcome is an integer of its own below 2^24, and that is the outcome", () => {
  const codes = outcomes.map(encodeCacheOutcome);
  expect(codes.map(decodeCacheOutcome)).toEqual(outcomes);
  expect(new Set(codes).size).toBe(outcomes.length);
  expect(Math.min(...codes)).toBeGreaterThan(0);
  expect(Math.max(...codes)).toBeLessThan(2 ** 24);
  expect(decodeCacheOutcome(0)).toBeNull();
});

test("each reason is a token of structured fields and a sentence", () => {
  for (const reason of cacheReasons) {
    expect(reason).toMatch(/^[a-z][a-z_]*$/);
    const outcome = {
      status: "bypass",
      fwd: null,
      stored: false,
      collapsed: null,
      reason,
    } as const;
    expect(explainCacheOutcome(outcome)).toMatch(
      /^The request bypassed the cache\. [A-Z].*[^.]\.$/,
    );
  }
});

test.each<[Partial<CacheOutcome>, string]>([
  [{ status: "hit" }, "Served a fresh stored response."],
  [
    { status: "hit", fwd: "uri-miss", collapsed: true },
    "No response was stored for this URL and key. Served the response to another request that was fetching it.",
  ],
  [
    { status: "stale", reason: "stale_while_revalidate" },
    "Served the stale stored response. The gateway refreshes it in the background, as stale_while_revalidate allows.",
  ],
  [
    { status: "revalidated", fwd: "stale", stored: true },
    "The stored response was stale. The service confirmed it, and it was served. The response was stored.",
  ],
  [
    { status: "miss", fwd: "uri-miss", reason: "set_cookie" },
    "No response was stored for this URL and key. The response was not stored. The response sets a cookie.",
  ],
  [
    { status: "miss", fwd: "vary-miss", stored: true, collapsed: false },
    "Responses to this URL were stored, but for other values of the headers in Vary. It waited for another request to fetch it, in vain. The response was stored.",
  ],
  [
    { status: "bypass", fwd: "bypass", reason: "condition" },
    "The request bypassed the cache. The request matches bypass_when.",
  ],
])("%j is explained", (outcome, text) => {
  const rest = { fwd: null, stored: false, collapsed: null, reason: null };
  expect(explainCacheOutcome({ status: "miss", ...rest, ...outcome })).toBe(text);
});
