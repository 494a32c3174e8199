// The rules of response-cache without a request: how long responses are fresh, what clients with a copy get, which entries are evicted.
import { describe, expect, test } from "bun:test";
import CachePolicy from "http-cache-semantics";
import { isNotModified, rangeOf } from "../../../src/plugins/response-cache/conditional.ts";
import { parseDirectives, seconds } from "../../../src/plugins/response-cache/directives.ts";
import { CacheSlot, Sieve } from "../../../src/plugins/response-cache/eviction.ts";
import { type FreshnessRules, freshnessOf } from "../../../src/plugins/response-cache/freshness.ts";
import { Store, type Stored } from "../../../src/plugins/response-cache/store.ts";
import { comparableValue } from "../../../src/plugins/response-cache/storing.ts";

const RULES: FreshnessRules = {
  ttlDefault: 0,
  respectsCacheControl: true,
  statuses: new Set([200, 404]),
  staleWhileRevalidate: 0,
  staleIfError: 0,
  cacheAuthorized: false,
  cacheSetCookie: false,
  keysCookies: false,
};

interface Case {
  readonly fields: Record<string, string>;
  readonly rules?: Partial<FreshnessRules>;
  readonly status?: number;
  readonly delayMs?: number;
  readonly request?: { authorization?: boolean; cookies?: boolean; control?: string };
}

function judged({ fields, rules, status = 200, delayMs = 0, request = {} }: Case) {
  const { authorization = false, cookies = false, control = null } = request;
  return freshnessOf(
    { status, headers: new Headers(fields), delayMs },
    {
      cacheControl: parseDirectives(control),
      hasAuthorization: authorization,
      hasCookies: cookies,
    },
    { rules: { ...RULES, ...rules }, Policy: CachePolicy },
  );
}

/** Seconds for which it is still fresh; null: not stored. */
function remaining(one: Case): number | null {
  const freshness = judged(one);
  return freshness === null ? null : (freshness.lifetimeMs - freshness.ageMs) / 1000;
}

const NOW = "Sat, 21 Nov 2026 10:00:00 GMT";
const LATER = "Sat, 21 Nov 2026 10:01:00 GMT";
const HOUR_AGO = "Sat, 21 Nov 2026 09:00:00 GMT";

test("quoted text of a directive is not another directive", () => {
  const fields = { "cache-control": 'max-age=60, note="a, max-age=500, s-maxage=900"' };
  expect(remaining({ fields })).toBe(60);
});

describe("how long a response is fresh", () => {
  const cc = (value: string, more: Record<string, string> = {}) => ({
    "cache-control": value,
    ...more,
  });
  const table: readonly (readonly [string, Record<string, string>, number | null])[] = [
    ["nothing is said", {}, null],
    ["Last-Modified alone is no permission", { "last-modified": HOUR_AGO, date: NOW }, null],
    ["max-age", cc("max-age=60"), 60],
    ["names in capitals", cc("Public, Max-Age=60"), 60],
    ["s-maxage before max-age", cc("max-age=60, s-maxage=5"), 5],
    ["s-maxage=0 before max-age", cc("max-age=60, s-maxage=0"), null],
    ["quoted seconds", cc('max-age="60"'), 60],
    ["Expires", { expires: LATER, date: NOW }, 60],
    ["max-age before Expires", cc("max-age=5", { expires: LATER, date: NOW }), 5],
    ["Expires that is no date", { expires: "0", date: NOW }, null],
    ["Expires in the past", { expires: HOUR_AGO, date: NOW }, null],
    ["no-store", cc("no-store, max-age=60"), null],
    ["NO-STORE", cc("NO-STORE, max-age=60"), null],
    ["no-cache", cc("no-cache, max-age=60"), null],
    ["no-cache with names", cc('no-cache="set-cookie", max-age=60'), null],
    ["private", cc("private, max-age=60"), null],
    ["Private with names and a comma in them", cc('Private="a, b", max-age=60'), null],
    ["a directive hidden in quotes", cc('x="max-age=60"'), null],
    ["the same twice: the smaller one", cc("max-age=600, max-age=5"), 5],
    ["no number", cc("max-age=abc"), null],
    ["a negative number", cc("max-age=-1"), null],
    ["more than 31 bits", cc("max-age=99999999999999"), 2_147_483_648],
    ["must-revalidate is fresh until then", cc("max-age=60, must-revalidate"), 60],
    ["proxy-revalidate too", cc("max-age=60, proxy-revalidate"), 60],
    ["Age counts", cc("max-age=60", { age: "20" }), 40],
    ["Age that used it up", cc("max-age=60", { age: "60" }), null],
    ["Age that is no number is 0", cc("max-age=60", { age: "x" }), 60],
    ["Date of a clock that is slow does not count", cc("max-age=60", { date: HOUR_AGO }), 60],
    [
      "but behind a hop that does not count",
      cc("max-age=60", { date: HOUR_AGO, via: "1.0 a" }),
      null,
    ],
    [
      "Expires needs no clock of ours",
      { expires: HOUR_AGO, date: "Sat, 21 Nov 2026 08:59:00 GMT" },
      60,
    ],
    ["Vary: *", cc("max-age=60", { vary: "accept, *" }), null],
    ["Set-Cookie", cc("public, max-age=60", { "set-cookie": "a=1" }), null],
    ["Pragma: no-cache", { pragma: "no-cache" }, null],
    ["immutable alone says nothing", cc("immutable"), null],
  ];
  test.each(table)("%s", (_, fields, expected) => {
    expect(remaining({ fields })).toBe(expected);
  });

  test("the time that the response took counts", () => {
    expect(remaining({ fields: cc("max-age=60"), delayMs: 2500 })).toBe(57.5);
  });

  test("statuses that are not listed are not stored", () => {
    expect(remaining({ fields: cc("max-age=60"), status: 410 })).toBeNull();
    expect(remaining({ fields: cc("max-age=60"), status: 206 })).toBeNull();
    expect(remaining({ fields: cc("max-age=60"), status: 404 })).toBe(60);
  });

  test.each([
    ["nothing is said", {}, {}, 30],
    ["with cookies it might be one person's", {}, { cookies: true }, null],
    ["with Authorization too", {}, { authorization: true }, null],
    ["no-cache", { "cache-control": "no-cache" }, {}, null],
    ["private", { "cache-control": "private" }, {}, null],
    ["Pragma", { pragma: "no-cache" }, {}, null],
    ["public alone", { "cache-control": "public" }, {}, 30],
    ["what is said counts more", { "cache-control": "max-age=5" }, { cookies: true }, 5],
    ["also when it is nothing", { "cache-control": "max-age=0" }, {}, null],
  ] as const)("by default for 30 seconds: %s", (_, fields, request, expected) => {
    expect(remaining({ fields, request, rules: { ttlDefault: 30 } })).toBe(expected);
  });

  test("ignoring Cache-Control stores everything except cookies and credentials", () => {
    const rules = { ttlDefault: 30, respectsCacheControl: false, cacheAuthorized: true };
    expect(remaining({ fields: cc("no-store, private"), rules })).toBe(30);
    expect(remaining({ fields: { "set-cookie": "a=1" }, rules })).toBeNull();
    expect(remaining({ fields: { vary: "*" }, rules })).toBeNull();
    expect(remaining({ fields: {}, rules, request: { authorization: true } })).toBeNull();
  });

  test("a request can forbid storing", () => {
    expect(remaining({ fields: cc("max-age=60"), request: { control: "No-Store" } })).toBeNull();
  });

  test.each([
    ["public, max-age=60", 60],
    ["s-maxage=60", 60],
    ["max-age=60, must-revalidate", 60],
    ["max-age=60", null],
  ])("with Authorization, where it is allowed at all: %s", (control, expected) => {
    const request = { authorization: true };
    expect(remaining({ fields: cc(control), request, rules: { cacheAuthorized: true } })).toBe(
      expected,
    );
    expect(remaining({ fields: cc(control), request })).toBeNull();
  });
});

test.each([
  ["max-age=60", [7, 9]],
  ["max-age=60, stale-while-revalidate=3, stale-if-error=4", [3, 4]],
  ["max-age=60, must-revalidate, stale-while-revalidate=3", [0, 0]],
  ["max-age=60, proxy-revalidate", [0, 0]],
  ["s-maxage=60", [0, 0]],
  ["s-maxage=60, stale-while-revalidate=3", [3, 0]],
])("how long a stale response may be served: %s", (control, [revalidate = 0, error = 0]) => {
  const freshness = judged({
    fields: { "cache-control": control },
    rules: { staleWhileRevalidate: 7, staleIfError: 9 },
  });
  expect(freshness).toMatchObject({
    staleWhileRevalidateMs: revalidate * 1000,
    staleIfErrorMs: error * 1000,
  });
});

test("directives are parsed in every spelling", () => {
  const odd = parseDirectives('max-age=x, =, ,no-cache=", a="b\\"c", MAX-AGE = 3');
  expect(odd.has("no-cache")).toBe(true);
  expect(seconds(odd, "max-age")).toBe(0);
  expect(seconds(odd, "s-maxage")).toBeNull();
  const long = `${'a="'.repeat(3000)}${"\\".repeat(3000)}`;
  expect(parseDirectives(long).size).toBeGreaterThan(0);
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
  [{}, false],
] as const)("a copy with %p is still good: %p", (fields, expected) => {
  expect(isNotModified(head(fields), { etag: '"a"', lastModified: NOW })).toBe(expected);
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
  const range = rangeOf(head(fields), 10, { etag: '"a"', lastModified: NOW });
  expect(range).toEqual(expected as ReturnType<typeof rangeOf>);
});

test.each([
  ["gzip, br", "br;q=0.5,  GZIP", true],
  ["gzip, br;q=0", "gzip", true],
  ["gzip, br", "gzip", false],
])("the codings of %p and %p mean the same: %p", (one, other, expected) => {
  expect(
    comparableValue("accept-encoding", one) === comparableValue("accept-encoding", other),
  ).toBe(expected);
});

test("unused entries are evicted before used ones", () => {
  const sieve = new Sieve<number>();
  const slots = [1, 2, 3, 4].map((item) => new CacheSlot(item));
  for (const slot of slots) sieve.add(slot);
  const wanted = (item: number) => {
    for (const slot of slots) if (slot.item === item) slot.isVisited = true;
  };
  const gone: number[] = [];
  const evict = () => {
    const slot = sieve.next();
    if (slot === null) return;
    sieve.remove(slot);
    gone.push(slot.item);
  };
  wanted(1);
  wanted(3);
  evict();
  evict();
  evict();
  evict();
  evict();
  expect(gone).toEqual([2, 4, 1, 3]);
});

const stored = (name: string, bytes: number, tags: readonly string[] = []): Stored => ({
  key: name,
  resource: `h/${name}`,
  status: 200,
  headers: new Headers(),
  body: new Uint8Array(bytes),
  etag: null,
  lastModified: null,
  variesOn: [],
  tags,
  freshness: { ageMs: 0, lifetimeMs: 1000, staleIfErrorMs: 0, staleWhileRevalidateMs: 0 },
  storedAt: 0,
});

test("a store never holds more than it may, and a flood does not evict requested entries", () => {
  const store = new Store(100_000);
  const none = () => null;
  for (let at = 0; at < 10; at++) store.put(stored(`page-${at}`, 1000));
  for (let round = 0; round < 500; round++) {
    for (let at = 0; at < 10; at++) store.find(`page-${at}`, none);
    store.put(stored(`junk-${round}`, 1000));
    expect(store.bytes).toBeLessThanOrEqual(100_000);
  }
  for (let at = 0; at < 10; at++) expect(store.find(`page-${at}`, none)).not.toBeNull();
  expect(store.put(stored("huge", 200_000))).toBe(false);
});

test("a purged entry leaves every index", () => {
  const store = new Store(1_000_000);
  const fill = () => {
    for (let at = 0; at < 20; at++) store.put(stored(`${at}`, 10, [`t${at % 2}`]));
  };
  fill();
  expect(store.purge({ by: "tag", value: "t0" })).toBe(10);
  expect(store.purge({ by: "key", value: "h/1" })).toBe(1);
  expect(store.purge({ by: "key", value: "/3" })).toBe(1);
  expect(store.purge({ by: "prefix", value: "h/1" })).toBe(5);
  expect(store.purge({ by: "all" })).toBe(3);
  expect(store.bytes).toBe(0);
  fill();
  expect(store.invalidate("h/7")).toBe(1);
  expect(store.purge({ by: "all" })).toBe(19);
});

test("variants of one key by Vary are bounded", () => {
  const store = new Store(10_000_000);
  for (let at = 0; at < 200; at++)
    store.put({ ...stored("page", 10), variesOn: [["accept", String(at)]] });
  expect(store.purge({ by: "all" })).toBe(64);
});

test("a flood of values of a header in Vary evicts no popular variant, and blocks no new one", () => {
  const store = new Store(10_000_000);
  const put = (value: string) =>
    store.put({ ...stored("page", 10), variesOn: [["accept-language", value]] });
  const has = (value: string) => store.find("page", () => value) !== null;
  put("de");
  expect(has("de")).toBe(true);
  for (let at = 0; at < 100; at++) put(`x-${at}`);
  expect([has("de"), has("x-0"), has("x-99")]).toEqual([true, false, true]);
  for (const value of ["en", "fr", "it"]) put(value);
  expect(["de", "en", "fr", "it"].map(has)).toEqual([true, true, true, true]);
  // Also by a client that requests each of them twice.
  for (let at = 0; at < 100; at++) {
    put(`y-${at}`);
    has(`y-${at}`);
  }
  for (const value of ["en", "fr", "it"]) put(value);
  expect(["en", "fr", "it"].map(has)).toEqual([true, true, true]);
});
