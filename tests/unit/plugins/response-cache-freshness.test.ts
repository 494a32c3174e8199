// Which responses response-cache stores, for how long they are fresh, and the reason where it does not store one.
import { describe, expect, test } from "bun:test";
import { parseDirectives, seconds } from "../../../src/plugins/response-cache/directives.ts";
import { type FreshnessRules, freshnessOf } from "../../../src/plugins/response-cache/freshness.ts";

const RULES: FreshnessRules = {
  ttlDefault: 0,
  heuristic: 0,
  heuristicMax: 86_400,
  targetFields: ["Sluice-Cache-Control", "CDN-Cache-Control"],
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
  readonly request?: {
    authorization?: boolean;
    cookies?: boolean;
    control?: string;
    query?: boolean;
  };
}

function judged({ fields, rules, status = 200, delayMs = 0, request = {} }: Case) {
  const { authorization = false, cookies = false, control = null, query = false } = request;
  return freshnessOf(
    { status, headers: new Headers(fields), delayMs },
    {
      cacheControl: parseDirectives(control),
      hasAuthorization: authorization,
      hasCookies: cookies,
      hasQuery: query,
    },
    { ...RULES, ...rules },
  );
}

/** Seconds for which it is still fresh, 0 or less where each use needs a validation; the reason where it is not stored. */
function remaining(one: Case): number | string {
  const freshness = judged(one);
  if (typeof freshness === "string") return freshness;
  return (freshness.lifetimeMs - freshness.ageMs) / 1000;
}

type Rows = readonly (readonly [string, Record<string, string>, number | string])[];

const NOW = "Sat, 21 Nov 2026 10:00:00 GMT";
const LATER = "Sat, 21 Nov 2026 10:01:00 GMT";
const HOUR_AGO = "Sat, 21 Nov 2026 09:00:00 GMT";

const cc = (value: string, more: Record<string, string> = {}) => ({
  "cache-control": value,
  ...more,
});

describe("Cache-Control", () => {
  const rows: Rows = [
    ["nothing is said", {}, "no_freshness"],
    ["Last-Modified alone is no permission", { "last-modified": HOUR_AGO }, "no_freshness"],
    ["neither is ETag", { etag: '"a"' }, "no_freshness"],
    ["max-age", cc("max-age=60"), 60],
    ["names in capitals", cc("Public, Max-Age=60"), 60],
    ["zeros in front", cc("max-age=0060"), 60],
    ["s-maxage before max-age", cc("max-age=60, s-maxage=5"), 5],
    ["also a longer one", cc("max-age=0, s-maxage=60", { expires: HOUR_AGO }), 60],
    ["s-maxage=0 before max-age", cc("max-age=60, s-maxage=0"), "no_validator"],
    ["quoted seconds", cc('max-age="60"'), 60],
    ["single quotes are none", cc("max-age='60'"), "no_validator"],
    ["quoted text is no directive", cc('max-age=60, x="a, max-age=500, s-maxage=9"'), 60],
    ["a directive hidden in quotes", cc('x="max-age=60"'), "no_freshness"],
    ["the same twice: the first one", cc("max-age=60, max-age=5"), 60],
    ["the other way round", cc("max-age=5, max-age=60"), 5],
    ["a space before =", cc("max-age =60"), "no_validator"],
    ["a space after =", cc("max-age= 60"), "no_validator"],
    ["no number", cc("max-age=abc"), "no_validator"],
    ["a number with more", cc("max-age=60a"), "no_validator"],
    ["a fraction", cc("max-age=60.5"), "no_validator"],
    ["a negative number", cc("max-age=-1"), "no_validator"],
    ["31 bits", cc("max-age=2147483648"), 2_147_483_648],
    ["more than 31 bits", cc("max-age=99999999999999"), 2_147_483_648],
    ["must-revalidate is fresh until then", cc("max-age=60, must-revalidate"), 60],
    ["proxy-revalidate too", cc("max-age=60, proxy-revalidate"), 60],
    ["an unknown directive", cc("foobar, max-age=60"), 60],
    ["immutable alone says nothing", cc("immutable"), "no_freshness"],
    ["Pragma says nothing beside it", cc("max-age=60", { pragma: "no-cache" }), 60],
    ["no-store", cc("no-store, max-age=60"), "no_store"],
    ["NO-STORE", cc("NO-STORE, max-age=60"), "no_store"],
    ["private", cc("private, max-age=60"), "private"],
    ["Private with names and a comma in them", cc('Private="a, b", max-age=60'), "private"],
    ["Vary: *", cc("max-age=60", { vary: "accept, *" }), "vary_any"],
    ["Vary: * after nothing", cc("max-age=60", { vary: ", *" }), "vary_any"],
    ["Set-Cookie", cc("public, max-age=60", { "set-cookie": "a=1" }), "set_cookie"],
    ["events", cc("max-age=60", { "content-type": "text/event-stream" }), "streaming"],
  ];
  test.each(rows)("%s", (_, fields, expected) => {
    expect(remaining({ fields })).toBe(expected);
  });

  test("the time that the response took counts", () => {
    expect(remaining({ fields: cc("max-age=60"), delayMs: 2500 })).toBe(57.5);
  });

  test("a request can forbid storing", () => {
    const request = { control: "No-Store" };
    expect(remaining({ fields: cc("max-age=60"), request })).toBe("request_no_store");
  });
});

describe("a response that is never fresh is stored only if it can be validated or served stale", () => {
  const never: Rows = [
    ["no-cache", cc("no-cache, max-age=60"), 0],
    ["No-Cache", cc("No-Cache"), 0],
    ["no-cache with names", cc('no-cache="set-cookie", max-age=60'), 0],
    ["max-age=0", cc("max-age=0"), 0],
    ["max-age=0, must-revalidate", cc("max-age=0, must-revalidate"), 0],
    ["s-maxage=0", cc("max-age=60, s-maxage=0"), 0],
    ["Age beyond it", cc("max-age=60", { age: "90" }), -30],
    ["Expires that is no date", { expires: "0", date: NOW }, 0],
    ["Expires in the past", { expires: HOUR_AGO, date: NOW }, 0],
    ["Expires at Date", { expires: NOW, date: NOW }, 0],
  ];
  test.each(never)("%s", (_, fields, expected) => {
    expect(remaining({ fields })).toBe("no_validator");
    expect(remaining({ fields: { ...fields, etag: 'W/"a"' } })).toBe(expected);
    expect(remaining({ fields: { ...fields, "last-modified": HOUR_AGO } })).toBe(expected);
    expect(remaining({ fields: { ...fields, "last-modified": "yesterday" } })).toBe("no_validator");
  });

  test.each([
    ["no-cache", "personal"],
    ["no-cache, must-revalidate, max-age=0", "personal"],
    ["no-cache, public", 0],
    ["s-maxage=0", 0],
    ["max-age=60", 60],
    ["max-age=0, stale-while-revalidate=9", 0],
  ])("after a request with cookies: %s", (control, expected) => {
    const fields = cc(control, { etag: '"a"' });
    const rules = { staleIfError: 9 };
    expect(remaining({ fields, rules, request: { cookies: true } })).toBe(expected);
    expect(remaining({ fields, rules, request: {} })).toBeNumber();
    const keyed = { ...rules, keysCookies: true };
    expect(remaining({ fields, rules: keyed, request: { cookies: true } })).toBeNumber();
  });

  test.each([
    ["max-age=0, stale-while-revalidate=9", 0],
    ["max-age=0, stale-if-error=9", 0],
    ["max-age=0, stale-if-error=9, must-revalidate", "no_validator"],
    ["no-cache, stale-while-revalidate=9", "no_validator"],
  ])("%s", (control, expected) => {
    expect(remaining({ fields: cc(control) })).toBe(expected);
  });
});

describe("Expires", () => {
  const rows: Rows = [
    ["after Date", { expires: LATER, date: NOW }, 60],
    ["max-age before it", cc("max-age=5", { expires: LATER, date: NOW }), 5],
    ["an invalid one beside max-age", cc("max-age=5", { expires: "0", date: NOW }), 5],
    ["needs no clock of ours", { expires: HOUR_AGO, date: "Sat, 21 Nov 2026 08:59:00 GMT" }, 60],
    ["RFC 850", { expires: "Saturday, 21-Nov-26 10:01:00 GMT", date: NOW }, 60],
    ["asctime", { expires: "Sat Nov 21 10:01:00 2026", date: NOW }, 60],
    ["case does not matter", { expires: "SAT, 21 nov 2026 10:01:00 gmt", date: NOW }, 60],
  ];
  test.each(rows)("%s", (_, fields, expected) => {
    expect(remaining({ fields })).toBe(expected);
  });

  test("an invalid Date is now", () => {
    const expires = new Date(Date.now() + 60_000).toUTCString();
    expect(remaining({ fields: { expires, date: "foo" } })).toBeWithin(58, 61);
  });
});

describe("Age", () => {
  const rows: readonly (readonly [string, number | string])[] = [
    ["20", 40],
    ["59", 1],
    ["60", "no_validator"],
    ["2147483647", "no_validator"],
    ["99999999999", "no_validator"],
    ["x", 60],
    ["-20", 60],
    ["20.0", 60],
    ["20, 0", 40],
    ["0, 90", 60],
    ["90, 0", "no_validator"],
    ["20;a=b", 40],
  ];
  test.each(rows)("%s", (age, expected) => {
    expect(remaining({ fields: cc("max-age=60", { age }) })).toBe(expected);
  });

  test("a slow clock of the service does not count, except behind a hop that may not count", () => {
    expect(remaining({ fields: cc("max-age=60", { date: HOUR_AGO }) })).toBe(60);
    const fields = cc("max-age=60", { date: HOUR_AGO, via: "1.0 a" });
    expect(remaining({ fields })).toBe("no_validator");
  });
});

describe("targeted fields", () => {
  const own = "sluice-cache-control";
  const cdn = "cdn-cache-control";
  const rows: Rows = [
    ["alone", { [cdn]: "max-age=60" }, 60],
    ["before no-store", cc("no-store", { [cdn]: "max-age=60" }), 60],
    ["before a longer max-age", cc("max-age=600", { [cdn]: "max-age=5" }), 5],
    ["before Expires", { expires: LATER, date: NOW, [cdn]: "max-age=5" }, 5],
    ["replaces Expires", { expires: LATER, date: NOW, [cdn]: "public" }, "no_freshness"],
    ["the gateway's own first", { [cdn]: "max-age=60", [own]: "max-age=5" }, 5],
    ["private", cc("max-age=60", { [cdn]: "private" }), "private"],
    ["no-store", cc("max-age=60", { [own]: "no-store" }), "no_store"],
    ["no-cache", cc("max-age=60", { [cdn]: "no-cache" }), "no_validator"],
    ["max-age=0", cc("max-age=60", { [cdn]: "max-age=0" }), "no_validator"],
    ["a negative number", cc("max-age=60", { [cdn]: "max-age=-1" }), "no_validator"],
    ["of several values the last", { [cdn]: "max-age=60, max-age=5" }, 5],
    ["parameters do not matter", { [cdn]: "max-age=60;a=b" }, 60],
    ["more than 31 bits", { [cdn]: "max-age=99999999999" }, 2_147_483_648],
    ["no valid structure", cc("no-store", { [cdn]: "max-age=60, &&&&&" }), "no_store"],
    ["capitals are no valid structure", cc("no-store", { [cdn]: "Max-Age=60" }), "no_store"],
    ["text where a number belongs", cc("no-store", { [cdn]: 'max-age="60"' }), "no_store"],
    ["an invalid one gives way", { [own]: "max-age=x", [cdn]: "max-age=5" }, 5],
    ["an empty one too", cc("max-age=60", { [cdn]: "" }), 60],
    [
      "Surrogate-Control is not one by default",
      { "surrogate-control": "max-age=60" },
      "no_freshness",
    ],
  ];
  test.each(rows)("%s", (_, fields, expected) => {
    expect(remaining({ fields })).toBe(expected);
  });

  test("can be others, or none", () => {
    const fields = cc("max-age=60", { [cdn]: "no-store", "surrogate-control": "max-age=5" });
    expect(remaining({ fields, rules: { targetFields: [] } })).toBe(60);
    expect(remaining({ fields, rules: { targetFields: ["Surrogate-Control"] } })).toBe(5);
  });
});

describe("statuses", () => {
  const of = (status: number, control: string, rules: Partial<FreshnessRules> = {}) =>
    remaining({ fields: cc(control), status, rules });

  test.each([200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 399, 404, 410, 499, 599])(
    "%d is stored with explicit freshness",
    (status) => {
      expect(of(status, "max-age=60")).toBe(60);
    },
  );

  test.each([
    ...[100, 103, 206, 304, 400, 401, 403, 405, 406, 412, 413, 414, 416, 421, 429, 431, 451],
    ...[500, 501, 502, 503, 504, 600, 999],
  ])("%d is not", (status) => {
    expect(of(status, "max-age=60")).toBe("status");
  });

  test("one that is listed is", () => {
    expect(of(503, "max-age=60", { statuses: new Set([503]) })).toBe(60);
  });

  test("the default is for those that are listed", () => {
    const rules = { ttlDefault: 30 };
    expect([of(404, "", rules), of(410, "", rules)]).toEqual([30, "status"]);
  });

  test("must-understand replaces no-store for those whose rules are known", () => {
    const control = "max-age=60, no-store, must-understand";
    expect([of(200, control), of(599, control)]).toEqual([60, "not_understood"]);
    expect(of(599, "max-age=60, must-understand")).toBe("not_understood");
  });
});

describe("without explicit freshness", () => {
  const table = [
    ["nothing is said", {}, {}, 30],
    ["with cookies it might be one person's", {}, { cookies: true }, "personal"],
    ["with Authorization too", {}, { authorization: true }, "authorization"],
    ["no-cache", cc("no-cache"), {}, "no_validator"],
    ["private", cc("private"), {}, "private"],
    ["Pragma", { pragma: "no-cache" }, {}, "no_freshness"],
    ["public alone", cc("public"), {}, 30],
    ["what is said counts more", cc("max-age=5"), { cookies: true }, 5],
    ["also when it is nothing", cc("max-age=0"), {}, "no_validator"],
  ] as const;
  test.each(table)("the default is 30 seconds: %s", (_, fields, request, expected) => {
    expect(remaining({ fields, request, rules: { ttlDefault: 30 } })).toBe(expected);
  });

  test("Cache-Control ignored: everything is stored except cookies and credentials", () => {
    const rules = { ttlDefault: 30, respectsCacheControl: false, cacheAuthorized: true };
    const fields = cc("no-store, private", { expires: "0", "cdn-cache-control": "no-store" });
    expect(remaining({ fields, rules })).toBe(30);
    expect(remaining({ fields: {}, rules, request: { cookies: true } })).toBe(30);
    expect(remaining({ fields: { "set-cookie": "a=1" }, rules })).toBe("set_cookie");
    expect(remaining({ fields: { vary: "*" }, rules })).toBe("vary_any");
    expect(remaining({ fields: cc("public"), rules, request: { authorization: true } })).toBe(
      "authorization",
    );
  });

  const modified = { "last-modified": HOUR_AGO, date: NOW };
  const heuristic = [
    ["a share of the time since Last-Modified", { fields: modified }, 360],
    ["at most the maximum", { fields: modified, rules: { heuristicMax: 100 } }, 100],
    ["not with a query", { fields: modified, request: { query: true } }, "no_freshness"],
    ["not with cookies", { fields: modified, request: { cookies: true } }, "personal"],
    ["not without Last-Modified", { fields: { date: NOW } }, "no_freshness"],
    ["not with a later Last-Modified", { fields: { ...modified, date: HOUR_AGO } }, "no_freshness"],
    ["not for other statuses", { fields: modified, status: 599 }, "status"],
    ["also for them if public", { fields: { ...modified, ...cc("public") }, status: 599 }, 360],
    ["never for errors", { fields: { ...modified, ...cc("public") }, status: 502 }, "status"],
    ["not beside explicit freshness", { fields: { ...modified, ...cc("max-age=5") } }, 5],
    ["not beside an invalid Expires", { fields: { ...modified, expires: "0" } }, 0],
    ["before the default", { fields: modified, rules: { ttlDefault: 30 } }, 360],
  ] as const;
  test.each(heuristic)("heuristic: %s", (_, one, expected) => {
    const { rules = {} } = one as Case;
    expect(remaining({ ...one, rules: { heuristic: 0.1, ...rules } })).toBe(expected);
  });
});

test.each([
  ["public, max-age=60", 60],
  ["s-maxage=60", 60],
  ["max-age=60, must-revalidate", 60],
  ["max-age=60", "authorization"],
  ["max-age=60, proxy-revalidate", "authorization"],
])("with Authorization, where it is allowed at all: %s", (control, expected) => {
  const request = { authorization: true };
  const rules = { cacheAuthorized: true };
  expect(remaining({ fields: cc(control), request, rules })).toBe(expected);
  expect(remaining({ fields: cc(control), request })).toBe("authorization");
});

test.each([
  ["max-age=60", [7, 9, false]],
  ["max-age=60, stale-while-revalidate=3, stale-if-error=4", [3, 4, false]],
  ["max-age=60, must-revalidate, stale-while-revalidate=3", [0, 0, true]],
  ["max-age=60, proxy-revalidate", [0, 0, true]],
  ["s-maxage=60", [0, 0, true]],
  ["s-maxage=60, stale-while-revalidate=3", [3, 0, true]],
] as const)("how long a stale response may be served: %s", (control, expected) => {
  const [revalidate, error, mustRevalidate] = expected;
  const rules = { staleWhileRevalidate: 7, staleIfError: 9 };
  expect(judged({ fields: cc(control), rules })).toMatchObject({
    staleWhileRevalidateMs: revalidate * 1000,
    staleIfErrorMs: error * 1000,
    mustRevalidate,
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
