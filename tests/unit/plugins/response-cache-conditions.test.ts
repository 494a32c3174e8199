// Dates, conditions, ranges and comparable request headers of response-cache, without a request.
import { expect, test } from "bun:test";
import { remainingOf } from "../../../src/plugins/response-cache/cached-responses.ts";
import { comparableValue } from "../../../src/plugins/response-cache/comparable.ts";
import { isNotModified, rangeOf } from "../../../src/plugins/response-cache/conditional.ts";
import { parseDirectives } from "../../../src/plugins/response-cache/directives.ts";
import { parseHttpDate } from "../../../src/plugins/response-cache/http-date.ts";
import { Storing } from "../../../src/plugins/response-cache/storing.ts";

const NOW = "Sat, 21 Nov 2026 10:00:00 GMT";
const LATER = "Sat, 21 Nov 2026 10:01:00 GMT";
const HOUR_AGO = "Sat, 21 Nov 2026 09:00:00 GMT";

test.each([
  ["Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37"],
  ["Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37"],
  ["Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37"],
  ["SUN, 06 nov 1994 08:49:37 gmt", "1994-11-06T08:49:37"],
  ["Thu, 18 Aug 2050 02:01:18 GMT", "2050-08-18T02:01:18"],
  ["Tuesday, 31-Dec-30 23:59:60 GMT", "2031-01-01T00:00:00"],
  ...[
    ...["0", "", "foo", "-1", "1700000000", "Thu, 18 Aug 2050 02:01:18 UTC"],
    ...["Thu, 18 Aug 50 02:01:18 GMT", "Thu 18 Aug 2050 02:01:18 GMT"],
    ...["Thu, 18  Aug  2050 02:01:18 GMT", "Thu, 18-Aug-2050 02:01:18 GMT"],
    ...["Thu, 18 Aug 2050 02.01.18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT"],
    ...["Thu, 18 Aug 2050 24:01:18 GMT", "Thu, 18 Aug 2050 02:60:18 GMT"],
    ...["Wed, 31 Feb 2050 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:18 GMT, x", "2050-08-18"],
  ].map((text) => [text, null] as const),
] as const)("the date %p is %p", (text, expected) => {
  expect(parseHttpDate(text)).toBe(expected === null ? null : Date.parse(`${expected}Z`));
});

const head = (fields: Record<string, string>) => (name: string) => fields[name] ?? null;

test.each([
  [{ "if-none-match": '"a"' }, true],
  [{ "if-none-match": 'W/"a"' }, true],
  [{ "if-none-match": '"x", W/"a" , "y"' }, true],
  [{ "if-none-match": "*" }, true],
  [{ "if-none-match": '"b"' }, false],
  [{ "if-none-match": "a" }, false],
  [{ "if-none-match": '"b"', "if-modified-since": NOW }, false],
  [{ "if-modified-since": NOW }, true],
  [{ "if-modified-since": LATER }, true],
  [{ "if-modified-since": HOUR_AGO }, false],
  [{ "if-modified-since": "yesterday" }, false],
  [{ "if-modified-since": "Saturday, 21-Nov-26 10:00:00 GMT" }, true],
  [{}, false],
] as const)("a copy with %p is still good: %p", (fields, expected) => {
  const stored = { etag: '"a"', lastModified: NOW, headers: new Headers() };
  expect(isNotModified(head(fields), stored)).toBe(expected);
});

test("without Last-Modified, Date decides about If-Modified-Since", () => {
  const stored = { etag: null, lastModified: null, headers: new Headers({ date: NOW }) };
  const asked = (date: string) => isNotModified(head({ "if-modified-since": date }), stored);
  expect([asked(HOUR_AGO), asked(NOW), asked(LATER)]).toEqual([false, true, true]);
});

test("a tag that is no valid one equals itself", () => {
  const stored = { etag: "abc", lastModified: null, headers: new Headers() };
  const asked = (tags: string) => isNotModified(head({ "if-none-match": tags }), stored);
  expect([asked("abc"), asked('"abc"'), asked("ab")]).toEqual([true, false, false]);
});

test.each([
  [{ range: "bytes=0-3" }, { first: 0, last: 3 }],
  [{ range: "bytes=5-" }, { first: 5, last: 9 }],
  [{ range: "bytes=5-99" }, { first: 5, last: 9 }],
  [{ range: "bytes=-4" }, { first: 6, last: 9 }],
  [{ range: "bytes=-99" }, { first: 0, last: 9 }],
  [{ range: "bytes=10-" }, "unsatisfiable"],
  [{ range: "bytes=-0" }, "unsatisfiable"],
  [{ range: "bytes=3-1" }, null],
  [{ range: "bytes=-" }, null],
  [{ range: "bytes=0-1,3-4" }, null],
  [{ range: "Bytes= 0-3 " }, { first: 0, last: 3 }],
  [{ range: "lines=0-1" }, null],
  [
    { range: "bytes=0-3", "if-range": '"a"' },
    { first: 0, last: 3 },
  ],
  [{ range: "bytes=0-3", "if-range": 'W/"a"' }, null],
  [{ range: "bytes=0-3", "if-range": '"b"' }, null],
  [
    { range: "bytes=0-3", "if-range": NOW },
    { first: 0, last: 3 },
  ],
  [{ range: "bytes=0-3", "if-range": LATER }, null],
] as const)("of ten bytes, %p gets %p", (fields, expected) => {
  const headers = new Headers({ date: LATER });
  const range = rangeOf(head(fields), 10, { etag: '"a"', lastModified: NOW, headers });
  expect(range).toEqual(expected as ReturnType<typeof rangeOf>);
});

test("If-Range with a date needs a Date later than it", () => {
  const of = (date: string) =>
    rangeOf(head({ range: "bytes=0-3", "if-range": NOW }), 10, {
      etag: null,
      lastModified: NOW,
      headers: new Headers({ date }),
    });
  expect([of(NOW), of(LATER)]).toEqual([null, { first: 0, last: 3 }]);
});

test.each([
  ["accept-encoding", "gzip, br", "br;q=0.5,  GZIP", true],
  ["accept-encoding", "gzip, br;q=0", "gzip", true],
  ["accept-encoding", "gzip, br", "gzip", false],
  ["accept-language", "en, de", "de, en", true],
  ["accept-language", "en, de", "eN , De", true],
  ["accept-language", "en;q=1.0, de;q=0.80", "en,de; q=0.8", true],
  ["accept-language", "en, de", "en, de;q=0.5", false],
  ["accept-language", "en, de;q=0.5", "en;q=0.5, de", false],
  ["accept-language", "en", "en, de", false],
  ["accept", "text/html, */*;q=0.1", "*/*;q=0.1,TEXT/html", true],
  ["accept", "text/html;level=1", "text/html;level=2", false],
  ["accept", "a/b;p=X", "a/b;p=x", false],
  ["accept", 'a/b;p="x, y"', 'a/b;p="x,y"', false],
  ["x-list", "1,2", " 1, 2 ", true],
  ["x-list", "1,2", "2,1", false],
  ["x-list", "a", "A", false],
  ["x-list", '"1, 2"', '"1,2"', false],
  ["cookie", "a=1, 2", "a=1,2", false],
  ["user-agent", "a, b", "a,b", false],
])("%s of %p and %p means the same: %p", (name, one, other, expected) => {
  expect(comparableValue(name, one) === comparableValue(name, other)).toBe(expected);
});

test("a long value takes no longer than it is", () => {
  const spaces = " ".repeat(2_000_000);
  for (const name of ["accept", "accept-encoding", "x-list"])
    expect(comparableValue(name, `a${spaces}b, c;q${spaces}=1`)).not.toBeNull();
});

test("no header differs from an empty one", () => {
  for (const name of ["accept", "accept-encoding", "x-list"])
    expect(comparableValue(name, null)).not.toBe(comparableValue(name, ""));
});

test("a soft purge makes a fresh response stale now, and a stale one no fresher", () => {
  const remaining = (now: number, isSoftPurged: boolean) =>
    remainingOf(
      {
        ...{ key: "a", resource: "a", status: 200, headers: new Headers(), variesOn: [], tags: [] },
        ...{ etag: null, lastModified: null, storedAt: 0, isSoftPurged },
        freshness: {
          ...{ ageMs: 10, lifetimeMs: 100, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 },
          mustRevalidate: false,
        },
      },
      now,
    );
  expect([remaining(50, false), remaining(50, true)]).toEqual([40, 0]);
  expect([remaining(200, false), remaining(200, true)]).toEqual([-110, -110]);
});

test("a 304 without Date does not begin the time until Expires anew", () => {
  const rules = {
    ...{ ttlDefault: 0, heuristic: 0, heuristicMax: 0, respectsCacheControl: true },
    ...{ targetFields: [], statuses: new Set([200]), staleWhileRevalidate: 0, staleIfError: 0 },
    ...{ cacheAuthorized: false, cacheSetCookie: false, keysCookies: false },
  };
  const storing = new Storing(rules, []);
  const now = Date.now();
  const at = (seconds: number) => new Date(now + seconds * 1000).toUTCString();
  const fillRequest = {
    cacheKey: { key: "a", resource: "a", query: "" },
    request: {
      cacheControl: parseDirectives(null),
      ...{ hasAuthorization: false, hasCookies: false, hasQuery: false },
    },
    clientHost: "h.test",
    fieldOf: () => null,
    startedAt: performance.now(),
    epoch: 0,
  };
  const headers = new Headers({ date: at(-90), expires: at(-30), etag: '"a"' });
  const decision = storing.judge({ status: 200, headers }, fillRequest, performance.now());
  if ("reason" in decision) throw new Error(decision.reason);
  const stored = storing.complete(decision.storable, fillRequest, { bodyLength: 1, now: 0 });
  const lifetimeAfter = (more: Record<string, string>) => {
    const next = storing.freshened({ ...stored, bodyLength: 1 }, new Headers(more), fillRequest);
    return typeof next === "string" ? next : next.freshness.lifetimeMs;
  };
  expect(stored.freshness.lifetimeMs).toBe(60_000);
  expect(lifetimeAfter({ etag: '"a"' })).toBe(0);
  expect(lifetimeAfter({ expires: at(60) })).toBeGreaterThan(50_000);
  expect(lifetimeAfter({ date: at(0), expires: at(60) })).toBe(60_000);
});
