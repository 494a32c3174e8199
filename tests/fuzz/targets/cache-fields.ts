// Dates, ranges, targeted fields and Vary headers as clients and origins write them, for the response cache.
import fc from "fast-check";
import { comparableValue, comparer } from "../../../src/plugins/response-cache/comparable.ts";
import { rangeOf } from "../../../src/plugins/response-cache/conditional.ts";
import { parseTargeted, seconds } from "../../../src/plugins/response-cache/directives.ts";
import { parseHttpDate } from "../../../src/plugins/response-cache/http-date.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly time: number;
  readonly text: string;
  readonly range: string;
  readonly size: number;
  readonly targeted: string;
  readonly preferences: readonly string[];
}

const piece = fc.constantFrom(
  ...[
    "Sat, ",
    "saturday, ",
    "Sat ",
    "21",
    "-",
    " ",
    "Nov",
    "nov ",
    "2026",
    "26",
    "10:00:00",
    " GMT",
    "gmt",
  ],
  ...["UTC", "0", "99", ":", ",", "31 Feb 2027", "24:00:00", "é", "\u0000"],
);
const member = fc.constantFrom(
  ...[
    "max-age=60",
    "max-age=-1",
    'max-age="60"',
    "max-age=1.5",
    "s-maxage=5",
    "no-store",
    "private",
  ],
  ...["no-store=?0", "a=(1 2)", "MAX-AGE=1", "&&", "foo;bar=1", 'private="a, b"', "=", ""],
);
const preference = fc.constantFrom(
  ...[
    "en",
    "EN",
    "de;q=0.5",
    "de; Q=0.50",
    "*",
    "text/html;level=1",
    "a/b;q=0",
    "",
    ";",
    "q=1",
    "a;q=x",
  ],
);

const remembered = comparer();

export const target = defineTarget<Input>({
  name: "cache-fields",
  share: 40,
  inputs: fc.record({
    time: fc.integer({ min: 0, max: 253_402_300_799 }),
    text: fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("")),
    range: fc
      .array(fc.constantFrom("bytes", "=", "-", ",", "0", "5", "99", " ", "Bytes=", "bytes=1-"), {
        maxLength: 8,
      })
      .map((pieces) => pieces.join("")),
    size: fc.integer({ min: 0, max: 12 }),
    targeted: fc.array(member, { maxLength: 4 }).map((members) => members.join(", ")),
    preferences: fc.array(preference, { maxLength: 5 }),
  }),
  check({ time, text, range, size, targeted, preferences }) {
    mustEqual(parseHttpDate(new Date(time * 1000).toUTCString()), time * 1000, "a date");
    const parsed = parseHttpDate(text);
    if (parsed !== null)
      mustEqual(parseHttpDate(new Date(parsed).toUTCString()), parsed, "a date as text and back");
    const headers = { etag: null, lastModified: null, headers: new Headers() };
    const part = rangeOf((name) => (name === "range" ? range : null), size, headers);
    if (part !== null && part !== "unsatisfiable")
      must(0 <= part.first && part.first <= part.last && part.last < size, "outside of the body");
    const directives = parseTargeted(targeted);
    if (directives !== null)
      for (const name of ["max-age", "s-maxage"])
        must((seconds(directives, name) ?? 0) >= 0, `${name} is negative`);
    for (const name of ["accept", "accept-language"]) {
      const value = preferences.join(",");
      const own = comparableValue(name, value);
      for (let at = 0; at < 2; at++) mustEqual(remembered(name, value), own, "remembered");
      mustEqual(comparableValue(name, preferences.toReversed().join(" , ")), own, "in any order");
      mustEqual(comparableValue(name, own), own, "a second time");
    }
  },
});
