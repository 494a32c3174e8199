// Rows of targeted Cache-Control: directives for some caches only.
import { hit, type Lines, miss, type Row, type Section, store, validated } from "../row.ts";

const served = (name: string, ...response: readonly string[]): Row => [
  name,
  store(response),
  hit({ after: 3 }),
];

const fetched = (name: string, ...response: readonly string[]): Row => [
  name,
  store(response),
  miss({ after: 3 }),
];

const forwarded = (name: string, response: Lines, has: Lines): Row => [
  name,
  store(response, { expect: { has } }),
  hit({ after: 3, expect: { has } }),
];

const DATE = "Date: Wed, 01 Jan 2020 00:00:00 GMT";

export const targeted: readonly Section[] = [
  {
    rule: "RFC 9213, CDN-Cache-Control",
    must: [
      fetched("Age beyond max-age", "CDN-Cache-Control: max-age=3600", "Age: 7200"),
      fetched("max-age=0", "CDN-Cache-Control: max-age=0"),
      fetched("max-age=0 with a later Expires", "CDN-Cache-Control: max-age=0", "Expires: @10000"),
      fetched(
        "shorter than Cache-Control",
        "Cache-Control: max-age=3600",
        "CDN-Cache-Control: max-age=1",
      ),
      fetched(
        "private",
        "CDN-Cache-Control: private",
        "Cache-Control: max-age=10000",
        "Expires: @10000",
      ),
      fetched(
        "no-cache",
        "CDN-Cache-Control: no-cache",
        "Cache-Control: max-age=10000",
        "Expires: @10000",
      ),
      fetched(
        "no-store",
        "CDN-Cache-Control: no-store",
        "Cache-Control: max-age=10000",
        "Expires: @10000",
      ),
      served(
        "before Cache-Control: no-store",
        "Cache-Control: no-store",
        "CDN-Cache-Control: max-age=10000",
      ),
      fetched(
        "no structured field: ignored",
        "CDN-Cache-Control: max-age=10000, &&&&&",
        "Cache-Control: no-store",
      ),
      served(
        "no structured field: Cache-Control counts",
        "CDN-Cache-Control: no-store, &&&&&",
        "Cache-Control: max-age=60",
      ),
      fetched(
        "a string is no number",
        'CDN-Cache-Control: max-age="10000"',
        "Cache-Control: no-store",
      ),
      fetched(
        "a fraction is no number",
        "CDN-Cache-Control: max-age=10000.5",
        "Cache-Control: no-store",
      ),
      fetched(
        "space before the equals sign",
        "Cache-Control: max-age=1",
        "CDN-Cache-Control: max-age =100",
      ),
      fetched(
        "space after the equals sign",
        "Cache-Control: max-age=1",
        "CDN-Cache-Control: max-age= 100",
      ),
      served(
        "a string is no number: Cache-Control counts",
        'CDN-Cache-Control: max-age="1"',
        "Cache-Control: max-age=60",
      ),
      fetched("Expires does not count beside it", "CDN-Cache-Control: foo", "Expires: @60"),
      served(
        "an empty one: Cache-Control counts",
        "CDN-Cache-Control:",
        "Cache-Control: max-age=60",
      ),
      fetched("the last of two members", "CDN-Cache-Control: max-age=10000, max-age=1"),
    ],
    better: [
      served("max-age", "CDN-Cache-Control: max-age=3600"),
      served("2^31 seconds", "CDN-Cache-Control: max-age=2147483648"),
      served("99999999999 seconds", "CDN-Cache-Control: max-age=99999999999"),
      served("a directive that no cache knows", "CDN-Cache-Control: foobar, max-age=3600"),
      served(
        "a past Expires does not count",
        "CDN-Cache-Control: max-age=3600",
        "Expires: @-10000",
      ),
      served("an invalid Expires does not count", "CDN-Cache-Control: max-age=3600", "Expires: 0"),
      served(
        "longer than Cache-Control",
        "Cache-Control: max-age=1",
        "CDN-Cache-Control: max-age=3600",
      ),
      served(
        "private in Cache-Control does not count",
        "Cache-Control: private",
        "CDN-Cache-Control: max-age=60",
      ),
      [
        "no-cache with a tag",
        store(["Cache-Control: max-age=60", "CDN-Cache-Control: no-cache", 'ETag: "a"']),
        validated(),
      ],
      forwarded(
        "reaches other caches",
        ["Cache-Control: max-age=10000", "CDN-Cache-Control: max-age=60"],
        "CDN-Cache-Control: max-age=60",
      ),
      [
        "Age, Date and Expires stay",
        store([
          DATE,
          "Expires: @1",
          "Cache-Control: max-age=1",
          "CDN-Cache-Control: max-age=10000",
        ]),
        hit({ after: 3, expect: { has: ["Age: 3", DATE, "Expires"] } }),
      ],
    ],
  },
  {
    rule: "RFC 9213, Sluice-Cache-Control",
    must: [
      fetched(
        "before CDN-Cache-Control",
        "Sluice-Cache-Control: no-store",
        "CDN-Cache-Control: max-age=60",
      ),
      fetched("shorter", "Sluice-Cache-Control: max-age=1", "CDN-Cache-Control: max-age=60"),
    ],
    better: [
      served("longer", "Sluice-Cache-Control: max-age=60", "CDN-Cache-Control: max-age=1"),
      served("alone", "Sluice-Cache-Control: max-age=60", "Cache-Control: no-store"),
    ],
  },
];
