// Rows of freshness: lifetimes, ages, and how caches read the headers that give them.
import { hit, miss, notReused, type Row, type Section, store, validated } from "../row.ts";

const DAY_S = 86_400;

const fresh = (name: string, ...response: readonly string[]): Row => [
  name,
  store(response),
  hit({ after: 3 }),
];

const staleSoon = (name: string, ...response: readonly string[]): Row => [
  name,
  store(response),
  miss({ after: 3 }),
];

export const freshness: readonly Section[] = [
  {
    rule: "RFC 9111 section 4.2.1, lifetimes",
    must: [
      notReused("nothing says how long", "X-Other: 1"),
      notReused("max-age=0", "Cache-Control: max-age=0"),
      staleSoon("max-age is over", "Cache-Control: max-age=2"),
      staleSoon("s-maxage is shorter than max-age", "Cache-Control: max-age=3600, s-maxage=1"),
      staleSoon("s-maxage before max-age", "Cache-Control: s-maxage=1, max-age=3600"),
      staleSoon(
        "s-maxage on a line of its own",
        "Cache-Control: max-age=3600",
        "Cache-Control: s-maxage=1",
      ),
      notReused("s-maxage=0 with max-age", "Cache-Control: max-age=3600, s-maxage=0"),
      notReused(
        "max-age=0 with a later Expires",
        "Cache-Control: max-age=0",
        "Expires: @3600",
        "Date: @0",
      ),
      notReused("a past Expires", `Expires: @-${30 * DAY_S}`, "Date: @0"),
      notReused("Expires is Date", "Expires: @0", "Date: @0"),
      notReused("Expires before a Date that is ahead", "Expires: @300", "Date: @400"),
      staleSoon("Expires is over", "Expires: @2", "Date: @0"),
      notReused("Expires: 0", "Expires: 0", "Date: @0"),
      notReused("Expires: -1", "Expires: -1", "Date: @0"),
      notReused("an empty Expires", "Expires:", "Date: @0"),
      notReused("a negative max-age", "Cache-Control: max-age=-3600"),
      notReused("max-age without a value", "Cache-Control: max-age"),
      notReused("max-age with an empty value", "Cache-Control: max-age="),
      notReused(
        "an invalid max-age counts before Expires",
        "Cache-Control: max-age=x",
        "Expires: @60",
      ),
      // "Consider responses that have invalid freshness information to be stale."
      notReused(
        "an invalid s-maxage counts before max-age",
        "Cache-Control: s-maxage=x, max-age=60",
      ),
      notReused("public gives no lifetime", "Cache-Control: public"),
    ],
    better: [
      ["max-age", store("Cache-Control: max-age=3600"), hit({ after: 3599 - 10 })],
      fresh("s-maxage", "Cache-Control: s-maxage=3600"),
      fresh("s-maxage is longer than max-age", "Cache-Control: max-age=1, s-maxage=3600"),
      fresh(
        "s-maxage with max-age=0 and a past Expires",
        "Cache-Control: max-age=0, s-maxage=3600",
        "Expires: @-10",
      ),
      fresh(
        "max-age with a past Expires",
        "Cache-Control: max-age=3600",
        "Expires: @-7200",
        "Date: @0",
      ),
      fresh(
        "max-age with an invalid Expires",
        "Cache-Control: max-age=3600",
        "Expires: 0",
        "Date: @0",
      ),
      fresh("Expires", `Expires: @${30 * DAY_S}`, "Date: @0"),
      fresh("Expires without Date", "Expires: @60"),
      fresh("Expires with an invalid Date", "Expires: @60", "Date: foo"),
      fresh("Expires after a Date that is ahead", "Expires: @460", "Date: @400"),
      fresh("2^31 - 1 seconds", "Cache-Control: max-age=2147483647"),
      fresh("2^31 seconds", "Cache-Control: max-age=2147483648"),
      fresh("2^31 + 1 seconds", "Cache-Control: max-age=2147483649"),
      fresh("more seconds than 64 bits hold", "Cache-Control: max-age=99999999999999999999"),
      fresh("99999999999 seconds", "Cache-Control: max-age=99999999999"),
    ],
  },
  {
    rule: "RFC 9111 section 4.2.3, ages",
    must: [
      notReused("Age beyond max-age", "Cache-Control: max-age=3600", "Age: 7200", "Date: @0"),
      notReused("Age is max-age", "Cache-Control: max-age=60", "Age: 60"),
      notReused("Age beyond Expires, and Date is slow", "Date: @-10", "Expires: @10", "Age: 25"),
      notReused("Age beyond Expires, and Date is ahead", "Date: @10", "Expires: @20", "Age: 15"),
      [
        "Age counts from the start",
        store(["Cache-Control: max-age=60", "Age: 50"]),
        miss({ after: 11 }),
      ],
      notReused(
        "Date of an HTTP/1.0 response, which may lack Age",
        "Via: 1.0 old",
        "Date: @-7200",
        "Cache-Control: max-age=3600",
      ),
    ],
  },
  {
    rule: "RFC 9111 section 5.1, Age",
    must: [
      [
        "is added",
        store("Cache-Control: max-age=60"),
        hit({ after: 3, expect: { has: "Age: 3" } }),
      ],
      [
        "grows from hit to hit",
        store("Cache-Control: max-age=60"),
        hit({ after: 3, expect: { has: "Age: 3" } }),
        hit({ expect: { has: "Age: 3" } }),
        hit({ after: 20, expect: { has: "Age: 23" } }),
      ],
      [
        "grows with max-age",
        store(["Cache-Control: max-age=600", "Age: 30"]),
        hit({ after: 10, expect: { has: "Age: 40" } }),
      ],
      [
        "grows with Expires",
        store(["Expires: @600", "Date: @0", "Age: 30"]),
        hit({ after: 10, expect: { has: "Age: 40" } }),
      ],
      fresh("not a number: ignored", "Cache-Control: max-age=3600", "Age: abc"),
      fresh("negative: ignored", "Cache-Control: max-age=3600", "Age: -7200"),
      fresh("with a fraction: ignored", "Cache-Control: max-age=3600", "Age: 7200.0"),
      fresh("empty: ignored", "Cache-Control: max-age=3600", "Age:"),
      notReused("2^31 - 1", "Cache-Control: max-age=3600", "Age: 2147483647"),
      notReused("2^31", "Cache-Control: max-age=3600", "Age: 2147483648"),
      notReused("2^31 + 1", "Cache-Control: max-age=3600", "Age: 2147483649"),
      notReused("more than 64 bits", "Cache-Control: max-age=3600", "Age: 99999999999999999999"),
      notReused("old, 0: the first counts", "Cache-Control: max-age=3600", "Age: 7200, 0"),
      fresh("0, old: the first counts", "Cache-Control: max-age=3600", "Age: 0, 7200"),
      notReused("old before 0 on two lines", "Cache-Control: max-age=3600", "Age: 7200", "Age: 0"),
      fresh("0 before old on two lines", "Cache-Control: max-age=3600", "Age: 0", "Age: 7200"),
      fresh("0, 0", "Cache-Control: max-age=3600", "Age: 0, 0"),
      fresh("0 on two lines", "Cache-Control: max-age=3600", "Age: 0", "Age: 0"),
      fresh(
        "twice the same, within the lifetime",
        "Cache-Control: max-age=10000",
        "Age: 3600",
        "Age: 3600",
      ),
    ],
  },
  {
    rule: "RFC 9111 section 5.2, reading Cache-Control",
    must: [
      staleSoon(
        "max-age in quotes before the real one",
        'Cache-Control: extension="max-age=3600", max-age=1',
      ),
      staleSoon(
        "max-age in quotes after the real one",
        'Cache-Control: max-age=1, extension="max-age=3600"',
      ),
      staleSoon(
        "max-age behind an escaped quote",
        'Cache-Control: extension="\\", max-age=3600, \\"", max-age=1',
      ),
      notReused("single quotes are no quotes", "Cache-Control: max-age='3600'"),
      notReused("letters before the number", "Cache-Control: max-age=a3600"),
      notReused("letters after the number", "Cache-Control: max-age=3600a"),
      notReused("a fraction", "Cache-Control: max-age=3600.5"),
      notReused("a fraction of nothing", "Cache-Control: max-age=3600.0"),
      notReused("space before the equals sign", "Cache-Control: max-age =3600"),
      notReused("space after the equals sign", "Cache-Control: max-age= 3600"),
      notReused("another directive that ends in max-age", "Cache-Control: x-max-age=3600"),
      staleSoon("the first of two lifetimes counts", "Cache-Control: max-age=1, max-age=1800"),
      staleSoon(
        "the first of two lines counts",
        "Cache-Control: max-age=1",
        "Cache-Control: max-age=1800",
      ),
      ["leading zeros", store("Cache-Control: max-age=003600"), hit({ after: 3599 - 10 })],
    ],
    better: [
      fresh("a directive that no cache knows", "Cache-Control: foobar, max-age=3600"),
      fresh("any case", "Cache-Control: MaX-aGe=3600"),
      fresh("a number in quotes", 'Cache-Control: max-age="3600"'),
      fresh("empty members", "Cache-Control: , ,max-age=3600,,"),
      fresh("the longer lifetime is the first", "Cache-Control: max-age=1800, max-age=1"),
    ],
  },
  {
    rule: "RFC 9111 section 5.3, Expires",
    must: [
      notReused("another time zone", "Expires: Thu, 18 Aug 2050 02:01:18 UTC"),
      notReused("the zone AEST", "Expires: Thu, 18 Aug 2050 02:01:18 AEST"),
      notReused("an offset for a zone", "Expires: Thu, 18 Aug 2050 02:01:18 +0000"),
      notReused("a year of two digits", "Expires: Thu, 18 Aug 50 02:01:18 GMT"),
      notReused("no comma", "Expires: Thu 18 Aug 2050 02:01:18 GMT"),
      notReused("several spaces", "Expires: Thu, 18  Aug  2050 02:01:18 GMT"),
      notReused("dashes in the date", "Expires: Thu, 18-Aug-2050 02:01:18 GMT"),
      notReused("periods in the time", "Expires: Thu, 18 Aug 2050 02.01.18 GMT"),
      notReused("an hour of one digit", "Expires: Thu, 18 Aug 2050 2:01:18 GMT"),
      notReused("a day of one digit", "Expires: Thu, 8 Aug 2050 02:01:18 GMT"),
      notReused("no weekday", "Expires: 18 Aug 2050 02:01:18 GMT"),
      notReused("ISO 8601", "Expires: 2050-08-18T02:01:18Z"),
      notReused("seconds since 1970", "Expires: 2544400878"),
      notReused("an hour that is none", "Expires: Thu, 18 Aug 2050 24:01:18 GMT"),
      notReused("a minute that is none", "Expires: Thu, 18 Aug 2050 02:60:18 GMT"),
      notReused("a second that is none", "Expires: Thu, 18 Aug 2050 02:01:61 GMT"),
      notReused("30 February", "Expires: Wed, 30 Feb 2050 02:01:18 GMT"),
      notReused("a day that is none", "Expires: Thu, 32 Aug 2050 02:01:18 GMT"),
      notReused(
        "several lines",
        "Expires: Thu, 18 Aug 2050 2:01:18 GMT",
        "Expires: Thu, 18 Aug 2050 2:01:19 GMT",
      ),
    ],
    better: [
      fresh("beyond 32 bits of seconds", "Expires: Tue, 19 Jan 2038 14:14:08 GMT"),
      fresh("in 2286", "Expires: Sun, 21 Nov 2286 04:46:39 GMT"),
      fresh("a leap second", "Expires: Thu, 18 Aug 2050 23:59:60 GMT"),
      fresh("RFC 850", "Expires: Thursday, 18-Aug-50 02:01:18 GMT"),
      fresh("asctime", "Expires: Thu Aug  8 02:01:18 2050"),
      fresh("another case of the weekday", "Expires: THU, 18 Aug 2050 02:01:18 GMT"),
      fresh("another case of the month", "Expires: Thu, 18 AUG 2050 02:01:18 GMT"),
      fresh("another case of the zone", "Expires: Thu, 18 Aug 2050 02:01:18 gMT"),
    ],
  },
  {
    rule: "RFC 9111 section 4.2.4, stale responses",
    must: [
      [
        "without a validator: fetched again",
        store("Cache-Control: max-age=2"),
        miss({
          after: 3,
          response: "Cache-Control: max-age=60",
          upstream: { lacks: "If-None-Match" },
        }),
        hit({ expect: { body: "body of step 2" } }),
      ],
      [
        "are not served when the origin fails",
        store("Cache-Control: max-age=2"),
        miss({ after: 3, status: 503, expect: { status: 503 } }),
      ],
      [
        "are not served when the origin cannot be reached",
        store("Cache-Control: max-age=2"),
        miss({ after: 3, cut: "head", expect: { status: 502 } }),
      ],
    ],
    better: [
      [
        "with a validator: validated",
        store(["Cache-Control: max-age=2", 'ETag: "a"']),
        validated({
          after: 3,
          upstream: { has: 'If-None-Match: "a"' },
          expect: { body: "body of step 1" },
        }),
      ],
    ],
  },
];
