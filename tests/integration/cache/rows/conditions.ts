// Rows of conditional requests from clients: 304, the whole response, or a request to the origin.
import { hit, miss, type Row, type Section, store, validated } from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";
const SOON = "Cache-Control: max-age=2";
const TAG = 'ETag: "abc"';
const OLD = "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT";
const SINCE = OLD.replace("Last-Modified", "If-Modified-Since");

const notModified = { status: 304, body: "" };
const whole = { status: 200, body: "body of step 1" };

/** A 304 to the holder of a stored response with this tag. */
const matches = (name: string, tag: string, condition: string): Row => [
  name,
  store([FRESH, `ETag: ${tag}`]),
  hit({ request: `If-None-Match: ${condition}`, expect: { ...notModified, has: `ETag: ${tag}` } }),
];

const differs = (name: string, tag: string, condition: string): Row => [
  name,
  store([FRESH, `ETag: ${tag}`]),
  hit({ request: `If-None-Match: ${condition}`, expect: whole }),
];

const dateMatches = (name: string, response: string, since: string): Row => [
  name,
  store([FRESH, response]),
  hit({ request: `If-Modified-Since: ${since}`, expect: notModified }),
];

const dateDiffers = (name: string, response: string, since: string): Row => [
  name,
  store([FRESH, response]),
  hit({ request: `If-Modified-Since: ${since}`, expect: whole }),
];

export const conditions: readonly Section[] = [
  {
    rule: "RFC 9111 section 4.3.2 and RFC 9110 section 13.1.2, If-None-Match",
    must: [
      [
        "a 304 has the tag",
        store([FRESH, TAG]),
        hit({ request: 'If-None-Match: "abc"', expect: { status: 304, has: TAG } }),
      ],
      [
        "a 304 has the other headers that a 200 would have",
        store([FRESH, TAG, "Content-Location: /a", "Expires: @60", "Vary: X-A"]),
        hit({
          request: 'If-None-Match: "abc"',
          expect: {
            status: 304,
            has: [FRESH, "Content-Location: /a", "Date", "Expires", "Vary: X-A"],
          },
        }),
      ],
      [
        "a 304 does not describe a body",
        store([FRESH, TAG, "Content-Type: text/a", "Content-Language: de"]),
        hit({
          request: 'If-None-Match: "abc"',
          expect: { status: 304, lacks: ["Content-Length", "Content-Type", "Content-Language"] },
        }),
      ],
      [
        "it counts, and If-Modified-Since does not",
        store([FRESH, TAG, "Last-Modified: @-5000"]),
        hit({
          request: ['If-None-Match: "abc"', "If-Modified-Since: @-9000"],
          expect: notModified,
        }),
        hit({ request: ['If-None-Match: "x"', "If-Modified-Since: @0"], expect: whole }),
      ],
      differs("another tag", '"abc"', '"abd"'),
      differs("a part of the tag", '"abc"', '"ab"'),
      differs("a tag inside of another one", '"abc"', '"x,abc"'),
      [
        "a tag for a response without one",
        store(FRESH),
        hit({ request: 'If-None-Match: "abc"', expect: whole }),
      ],
      [
        "a stored 404 is no 304",
        store([FRESH, TAG], { status: 404 }),
        hit({ request: 'If-None-Match: "abc"', expect: { status: 404, body: "body of step 1" } }),
      ],
    ],
    better: [
      matches("a strong tag", '"abc"', '"abc"'),
      matches("a weak tag", 'W/"abc"', 'W/"abc"'),
      matches("weak comparison", '"abc"', 'W/"abc"'),
      matches("the first of several", '"abc"', '"abc", "1", "2"'),
      matches("the second of several", '"abc"', '"1", "abc", "2"'),
      matches("the last of several", '"abc"', '"1", "2", "abc"'),
      matches("without spaces", '"abc"', '"1","abc"'),
      matches("any", '"abc"', "*"),
      matches("bytes beyond ASCII", '"abc\xfc"', '"abc\xfc"'),
      matches("a comma in the tag", '"a,b"', '"x", "a,b"'),
      [
        "on a miss it stays here, so that there is a response to store",
        store([FRESH, TAG], {
          request: 'If-None-Match: "abc"',
          upstream: { lacks: "If-None-Match" },
        }),
        hit({ request: 'If-None-Match: "abc"', expect: { status: 304 } }),
      ],
      [
        "HEAD",
        store([FRESH, TAG]),
        hit({ method: "HEAD", request: 'If-None-Match: "abc"', expect: { status: 304 } }),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 4.3.2 and RFC 9110 section 13.1.3, If-Modified-Since",
    must: [
      dateDiffers("a later change", "Last-Modified: @-1000", "@-2000"),
      dateDiffers("not a date", OLD, "yesterday"),
      dateDiffers("an invalid date", OLD, "Wed, 01 Jan 2020 00:00:00 UTC"),
      // "The cache uses Date": the response may have changed since.
      dateDiffers("a response of a later Date without Last-Modified", "Date: @0", "@-3000"),
    ],
    better: [
      dateMatches("the same date", OLD, "Wed, 01 Jan 2020 00:00:00 GMT"),
      dateMatches("an earlier change", "Last-Modified: @-3000", "@-2000"),
      dateMatches("RFC 850", OLD, "Wednesday, 01-Jan-20 00:00:01 GMT"),
      [
        "after validation",
        store([SOON, OLD]),
        validated({ after: 3, request: SINCE, expect: notModified }),
      ],
    ],
  },
  {
    rule: "RFC 9110 section 13.1.1 and 13.1.4, conditions that only the origin evaluates",
    must: [
      [
        "If-Match",
        store([FRESH, TAG]),
        miss({ request: 'If-Match: "x"', upstream: { has: 'If-Match: "x"' } }),
      ],
      [
        "If-Unmodified-Since",
        store([FRESH, OLD]),
        miss({ request: "If-Unmodified-Since: @-9", upstream: { has: "If-Unmodified-Since" } }),
      ],
    ],
  },
];
