// Cache-Control as origins write it: parsed as a character-by-character parser does, and never cached for longer than it says.
import fc from "fast-check";
import { parseDirectives, seconds } from "../../../src/plugins/response-cache/directives.ts";
import { freshnessOf, type FreshnessRules } from "../../../src/plugins/response-cache/freshness.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly value: string;
  readonly requestValue: string;
  readonly age: string | null;
  readonly hasAuthorization: boolean;
  readonly hasTag: boolean;
  readonly rules: Pick<FreshnessRules, "cacheAuthorized" | "ttlDefault">;
}

const directive = fc.constantFrom(
  ...[
    "no-store",
    "no-cache",
    "private",
    "public",
    "must-revalidate",
    "proxy-revalidate",
    "immutable",
  ],
  ...[
    "max-age=60",
    "MAX-AGE=30",
    "max-age=0",
    "s-maxage=10",
    "max-age=99999999999",
    "max-age=-1",
    "max-age",
  ],
  ...[
    'max-age="20"',
    "max-age=1.5",
    'private="set-cookie"',
    'no-cache="x, y"',
    "stale-if-error=5",
    "s-maxage=x",
  ],
  ...[
    "stale-while-revalidate=7",
    'note="no-store"',
    'note="a, max-age=500"',
    'note="a\\", public"',
    "note=a",
  ],
);
const value = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: directive },
      { weight: 1, arbitrary: fc.constantFrom("=", '"', "\\", " ", ";", "é", "a b", "=5", '="') },
    ),
    { maxLength: 5 },
  )
  .chain((parts) => fc.constantFrom(", ", ",", " , ", ",,").map((joint) => parts.join(joint)));

const RULES: FreshnessRules = {
  ttlDefault: 0,
  heuristic: 0,
  heuristicMax: 0,
  targetFields: [],
  respectsCacheControl: true,
  statuses: new Set([200]),
  staleWhileRevalidate: 0,
  staleIfError: 0,
  cacheAuthorized: false,
  cacheSetCookie: false,
  keysCookies: false,
};

export const target = defineTarget<Input>({
  name: "cache-control",
  share: 110,
  inputs: fc.record({
    value,
    requestValue: fc.oneof(
      { weight: 4, arbitrary: fc.constant("") },
      { weight: 1, arbitrary: value },
    ),
    age: fc.option(fc.constantFrom("0", "5", "59", "abc", "-1", "99999999999")),
    hasAuthorization: fc.boolean(),
    hasTag: fc.boolean(),
    rules: fc.record({ cacheAuthorized: fc.boolean(), ttlDefault: fc.constantFrom(0, 40) }),
  }),
  check({ value, requestValue, age, hasAuthorization, hasTag, rules }) {
    const own = parseDirectives(value);
    if (isWellFormed(value)) mustEqual([...own.keys()].sort(), namesOf(value), "names");
    const headers = new Headers({ "cache-control": value });
    if (age !== null) headers.set("age", age);
    if (hasTag) headers.set("etag", '"a"');
    const cacheControl = parseDirectives(requestValue);
    const freshness = freshnessOf(
      { status: 200, headers, delayMs: 0 },
      { cacheControl, hasAuthorization, hasCookies: false, hasQuery: false },
      { ...RULES, ...rules },
    );
    if (typeof freshness === "string") return;
    const remaining = (freshness.lifetimeMs - freshness.ageMs) / 1000;
    const { lifetimeMs, staleWhileRevalidateMs, staleIfErrorMs } = freshness;
    const staleMs = Math.max(staleWhileRevalidateMs, staleIfErrorMs);
    must(remaining <= 2 ** 31, `fresh for ${remaining} s`);
    must(hasTag || remaining * 1000 + staleMs > 0, `useless after ${remaining} s`);
    for (const name of ["no-store", "private"]) must(!own.has(name), `stored in spite of ${name}`);
    if (own.has("no-cache")) mustEqual([lifetimeMs, staleMs], [0, 0], "used in spite of no-cache");
    must(!cacheControl.has("no-store"), "stored in spite of the request");
    const said = seconds(own, "s-maxage") ?? seconds(own, "max-age") ?? rules.ttlDefault;
    must(lifetimeMs <= said * 1000, `fresh for ${lifetimeMs} ms, said was ${said} s`);
    const isOpen = ["public", "s-maxage", "must-revalidate"].some((name) => own.has(name));
    if (hasAuthorization) must(rules.cacheAuthorized && isOpen, "stored for one who is signed in");
    const mustAsk = own.has("must-revalidate") || own.has("proxy-revalidate");
    if (mustAsk) mustEqual(staleMs, 0, "stale if the target fails");
  },
});

const WELL_FORMED = /^[ ,]*(?:[\w-]+(?:=(?:"(?:[^"\\]|\\.)*"|[\w.-]+))?(?: *,[ ,]*|$))*$/;
const isWellFormed = (value: string) => WELL_FORMED.test(value);

/** One character after the other: a comma within quotes ends nothing, and a quoted pair is one character. */
function namesOf(value: string): string[] {
  const items = [""];
  let isQuoted = false;
  for (let at = 0; at < value.length; at++) {
    const character = value[at]!;
    if (isQuoted && character === "\\") at++;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === "," && !isQuoted) items.push("");
    else if (!isQuoted) items[items.length - 1] += character;
  }
  const names = items.map((item) => item.split("=")[0]!.trim().toLowerCase());
  return [...new Set(names.filter((name) => name !== ""))].sort();
}
