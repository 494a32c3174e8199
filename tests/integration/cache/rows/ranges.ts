// Rows of ranges: parts of stored responses, and partial responses of the origin.
import { hit, miss, type Row, type Section, store } from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";
const TAG = 'ETag: "abc"';
const DIGITS = { body: "0123456789" };
const whole = { status: 200, body: "0123456789" };

const part = (range: string, body: string, contentRange: string): Row => [
  range,
  store([FRESH, TAG], DIGITS),
  hit({
    request: `Range: ${range}`,
    expect: {
      status: 206,
      body,
      has: [`Content-Range: bytes ${contentRange}`, `Content-Length: ${body.length}`, TAG],
    },
  }),
];

const ignored = (name: string, ...request: readonly string[]): Row => [
  name,
  store([FRESH, TAG], DIGITS),
  hit({ request, expect: { ...whole, lacks: "Content-Range" } }),
];

const unsatisfiable = (range: string): Row => [
  `${range} is beyond the end`,
  store([FRESH, TAG], DIGITS),
  hit({
    request: `Range: ${range}`,
    expect: { status: 416, body: "", has: "Content-Range: bytes */10" },
  }),
];

export const ranges: readonly Section[] = [
  {
    rule: "RFC 9110 section 14.2, parts of a stored response",
    must: [
      unsatisfiable("bytes=10-"),
      unsatisfiable("bytes=10-20"),
      unsatisfiable("bytes=-0"),
      ignored("an unknown unit", "Range: lines=0-1"),
      ignored("several ranges, which a server may ignore", "Range: bytes=0-1,4-5"),
      ignored("a list of nothing", "Range: bytes=,"),
      ignored("numbers that are too long", "Range: bytes=0-99999999999999999999"),
      ignored("no numbers", "Range: bytes=-"),
      ignored("the end before the start", "Range: bytes=5-2"),
      ignored("letters", "Range: bytes=a-b"),
      [
        "HEAD has no ranges",
        store([FRESH, TAG], DIGITS),
        hit({
          method: "HEAD",
          request: "Range: bytes=0-1",
          expect: { status: 200, has: "Content-Length: 10" },
        }),
      ],
      [
        "a part has the headers of the whole",
        store([FRESH, "X-A: 1", "Date: Wed, 01 Jan 2020 00:00:00 GMT"], DIGITS),
        hit({
          request: "Range: bytes=0-1",
          expect: {
            status: 206,
            has: ["X-A: 1", "Date: Wed, 01 Jan 2020 00:00:00 GMT", FRESH, "Age"],
          },
        }),
      ],
      [
        "If-None-Match goes first",
        store([FRESH, TAG], DIGITS),
        hit({
          request: ["Range: bytes=0-1", 'If-None-Match: "abc"'],
          expect: { status: 304, body: "" },
        }),
      ],
      [
        "of an error there is none",
        store(FRESH, { status: 404, body: "0123456789" }),
        hit({ request: "Range: bytes=0-1", expect: { status: 404, body: "0123456789" } }),
      ],
    ],
    better: [
      part("bytes=0-1", "01", "0-1/10"),
      part("bytes=1-", "123456789", "1-9/10"),
      part("bytes=-1", "9", "9-9/10"),
      part("bytes=-99", "0123456789", "0-9/10"),
      part("bytes=8-99", "89", "8-9/10"),
      part("bytes=9-9", "9", "9-9/10"),
    ],
  },
  {
    rule: "RFC 9110 section 13.1.5, If-Range",
    must: [
      ignored("another tag: the whole", "Range: bytes=0-1", 'If-Range: "old"'),
      ignored("a weak tag: the whole", "Range: bytes=0-1", 'If-Range: W/"abc"'),
      ignored("a date, but no Last-Modified: the whole", "Range: bytes=0-1", "If-Range: @0"),
      [
        "a date that a change in the same second may have: the whole",
        store([FRESH, "Last-Modified: @0", "Date: @0"], DIGITS),
        hit({ request: ["Range: bytes=0-1", "If-Range: @0"], expect: whole }),
      ],
      [
        "a later date: the whole",
        store([FRESH, "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"], DIGITS),
        hit({ request: ["Range: bytes=0-1", "If-Range: @0"], expect: whole }),
      ],
    ],
    better: [
      [
        "the same tag",
        store([FRESH, TAG], DIGITS),
        hit({
          request: ["Range: bytes=0-1", 'If-Range: "abc"'],
          expect: { status: 206, body: "01" },
        }),
      ],
      [
        "the same date",
        store([FRESH, "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"], DIGITS),
        hit({
          request: ["Range: bytes=0-1", "If-Range: Wed, 01 Jan 2020 00:00:00 GMT"],
          expect: { status: 206, body: "01" },
        }),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 3.3, partial responses of the origin",
    must: [
      [
        "a part is not the whole",
        store([FRESH, "Content-Range: bytes 0-4/10"], {
          request: "Range: bytes=0-4",
          upstream: { has: "Range: bytes=0-4" },
          status: 206,
          body: "01234",
        }),
        miss({ response: FRESH, body: "0123456789", expect: { ...whole } }),
        hit({ expect: whole }),
      ],
      [
        "a part that nobody asked for is not the whole",
        store([FRESH, "Content-Range: bytes 0-4/10"], { status: 206, body: "01234" }),
        miss({ body: "0123456789", expect: whole }),
      ],
      [
        "a part does not replace the whole",
        store([FRESH, TAG, "X-A: 1"], DIGITS),
        hit({
          request: "Range: bytes=0-1",
          response: "X-A: 2",
          expect: { status: 206, has: "X-A: 1" },
        }),
        hit({ expect: { ...whole, has: "X-A: 1" } }),
      ],
      [
        "416 is not stored",
        store([FRESH, "Content-Range: bytes */10"], { request: "Range: bytes=99-", status: 416 }),
        miss({ body: "0123456789", expect: whole }),
      ],
    ],
  },
];
