// Rows of validation: conditional requests to the origin, and what a 304 or HEAD updates.
import { hit, miss, type Row, type Section, store, validated } from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";
const SOON = "Cache-Control: max-age=2";
const TAG = 'ETag: "abc"';
const OLD = "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT";
const SINCE = OLD.replace("Last-Modified", "If-Modified-Since");

const whole = { status: 200, body: "body of step 1" };

/** A 304 replaces the first value by the second, in its response and in later ones. */
const updated = (name: string, first: string, second: string): Row => [
  name,
  store([SOON, TAG, `${name}: ${first}`]),
  validated({
    after: 3,
    response: [FRESH, TAG, `${name}: ${second}`],
    expect: { has: `${name}: ${second}` },
  }),
  hit({ expect: { has: `${name}: ${second}` } }),
];

/** A 304 does not. */
const unchanged = (name: string, first: string, second: string): Row => [
  name,
  store([SOON, TAG, `${name}: ${first}`]),
  validated({
    after: 3,
    response: [FRESH, TAG, `${name}: ${second}`],
    expect: { has: `${name}: ${first}` },
  }),
  hit({ expect: { has: `${name}: ${first}` } }),
];

export const validation: readonly Section[] = [
  {
    rule: "RFC 9111 section 4.3.1, requests to the origin",
    must: [
      [
        "have the headers that Vary names",
        store([SOON, TAG, "Vary: Abc"], { request: "Abc: 123" }),
        validated({ after: 3, request: "Abc: 123", upstream: { has: "Abc: 123" } }),
      ],
      [
        "have the stored validator, not the client's",
        store([SOON, TAG]),
        validated({
          after: 3,
          request: 'If-None-Match: "other"',
          upstream: { has: 'If-None-Match: "abc"' },
          expect: whole,
        }),
      ],
      [
        "have no range",
        store([SOON, TAG]),
        validated({
          after: 3,
          request: "Range: bytes=0-1",
          upstream: { lacks: "Range" },
          expect: { status: 206, body: "bo" },
        }),
      ],
    ],
    better: [
      [
        "a tag",
        store([SOON, TAG]),
        validated({ after: 3, upstream: { has: 'If-None-Match: "abc"' }, expect: whole }),
      ],
      [
        "a weak tag",
        store([SOON, 'ETag: W/"abc"']),
        validated({ after: 3, upstream: { has: 'If-None-Match: W/"abc"' } }),
      ],
      ["a date", store([SOON, OLD]), validated({ after: 3, upstream: { has: SINCE } })],
      [
        "a tag and a date",
        store([SOON, OLD, TAG]),
        validated({ after: 3, upstream: { has: [SINCE, 'If-None-Match: "abc"'] } }),
      ],
      [
        "the tag of the variant that fits",
        store([SOON, 'ETag: "a"', "Vary: Foo"], { request: "Foo: 1" }),
        miss({ request: "Foo: 2", response: [SOON, 'ETag: "b"', "Vary: Foo"] }),
        validated({
          after: 3,
          request: "Foo: 1",
          upstream: { has: 'If-None-Match: "a"' },
          expect: whole,
        }),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 4.3.3, responses to validation",
    must: [
      [
        "304: the stored response",
        store([SOON, TAG, "X-A: 1"]),
        validated({ after: 3, response: FRESH, expect: { ...whole, has: ["X-A: 1", FRESH] } }),
        hit({ expect: whole }),
      ],
      [
        "200: the new response, stored",
        store([SOON, TAG]),
        miss({
          after: 3,
          response: [FRESH, 'ETag: "new"'],
          upstream: { has: 'If-None-Match: "abc"' },
        }),
        hit({ expect: { body: "body of step 2", has: 'ETag: "new"' } }),
      ],
      [
        "200 that must not be stored",
        store([SOON, TAG]),
        miss({ after: 3, response: "Cache-Control: no-store" }),
        miss(),
      ],
      [
        "404: the new response",
        store([SOON, TAG]),
        miss({ after: 3, status: 404, expect: { status: 404 } }),
      ],
      [
        "500: the new response",
        store([SOON, TAG]),
        miss({ after: 3, status: 500, expect: { status: 500 } }),
      ],
      [
        "a 304 that nobody asked for is not stored",
        store(FRESH, { status: 304, request: 'If-None-Match: "x"', expect: { status: 304 } }),
        miss({ response: FRESH, expect: { status: 200 } }),
      ],
    ],
  },
  {
    rule: "RFC 9111 sections 3.2 and 4.3.4, headers that a 304 updates",
    must: [
      [
        "headers that it omits stay",
        store([SOON, OLD, "Test-Header: a"]),
        validated({ after: 3, response: OLD, expect: { has: "Test-Header: a" } }),
        hit({ expect: { has: "Test-Header: a" } }),
      ],
      updated("Test-Header", "a", "b"),
      updated("X-Test-Header", "a", "b"),
      updated("Content-Foo", "a", "b"),
      updated("X-Content-Foo", "a", "b"),
      updated("Content-Location", "/foo", "/bar"),
      updated("Content-MD5", "rL0Y20zC+Fzt72VPzMSk2A==", "N7UdGUp1E+RbVvZSTy1R8g=="),
      updated("Content-Security-Policy", "default-src 'self'", "default-src 'none'"),
      updated("Clear-Site-Data", "cache", "cookies"),
      updated("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
      updated("Public-Key-Pins", "a", "b"),
      updated("Set-Cookie2", "a=b", "a=c"),
      updated("X-Frame-Options", "deny", "sameorigin"),
      updated("X-XSS-Protection", "1", "1; mode=block"),
      updated("Date", "Wed, 01 Jan 2020 00:00:00 GMT", "Wed, 01 Jan 2020 00:10:00 GMT"),
      [
        "Cache-Control",
        store([SOON, TAG]),
        validated({ after: 3, response: [FRESH, TAG], expect: { has: FRESH } }),
        hit({ after: 60, expect: { has: FRESH } }),
      ],
      [
        "all lines of one name",
        store([SOON, TAG, "X-A: 1", "X-A: 2"]),
        validated({ after: 3, response: [FRESH, "X-A: 3"], expect: { has: "X-A: 3" } }),
        hit({ expect: { has: "X-A: 3" } }),
      ],
      [
        "not those of one hop",
        store([SOON, TAG]),
        validated({
          after: 3,
          response: [FRESH, "Connection: X-A", "X-A: 1", "Keep-Alive: timeout=3"],
        }),
        hit({ expect: { lacks: ["X-A", "Keep-Alive"] } }),
      ],
      // They describe the stored body.
      unchanged("Content-Encoding", "custom", "other"),
      unchanged("Content-Range", "bytes", "other"),
      [
        "not Content-Length",
        store([SOON, TAG]),
        validated({
          after: 3,
          response: [FRESH, "Content-Length: 3"],
          expect: { ...whole, has: "Content-Length: 14" },
        }),
        hit({ expect: { ...whole, has: "Content-Length: 14" } }),
      ],
      [
        "nothing, when it has another strong tag",
        store([SOON, TAG, "X-A: 1"]),
        validated({
          after: 3,
          response: [FRESH, 'ETag: "other"', "X-A: 2"],
          expect: { has: "X-A: 1" },
        }),
        miss(),
      ],
      [
        "no-store ends it",
        store([SOON, TAG]),
        validated({ after: 3, response: "Cache-Control: no-store" }),
        miss(),
      ],
      [
        "private ends it",
        store([SOON, TAG]),
        validated({ after: 3, response: "Cache-Control: private, max-age=60" }),
        miss(),
      ],
      [
        "Vary: * ends it",
        store([SOON, TAG]),
        validated({ after: 3, response: [FRESH, "Vary: *"] }),
        miss(),
      ],
      [
        "a new Vary selects later requests",
        store([SOON, TAG], { request: "Foo: 1" }),
        validated({ after: 3, request: "Foo: 1", response: [FRESH, "Vary: Foo"] }),
        hit({ request: "Foo: 1" }),
        miss({ request: "Foo: 2" }),
      ],
      [
        "without Date and Expires: a past Expires stays in the past",
        store(["Expires: @-30", "Date: @-90", TAG]),
        validated({ after: 61, response: TAG }),
        validated(),
      ],
      [
        "its Age counts",
        store([SOON, TAG]),
        validated({ after: 3, response: [FRESH, "Age: 100"] }),
        hit({ after: 10, expect: { has: "Age: 110" } }),
      ],
    ],
    better: [
      [
        "without a lifetime: the stored one begins again",
        store(["Cache-Control: max-age=60", TAG]),
        validated({ after: 61, response: TAG }),
        hit({ after: 50, expect: { has: "Age: 50" } }),
        validated({ after: 20 }),
      ],
      [
        "a weak tag of the same value",
        store([SOON, TAG]),
        validated({ after: 3, response: [FRESH, 'ETag: W/"abc"'] }),
        hit(),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 4.3.5, HEAD",
    must: [
      [
        "goes to the origin as HEAD",
        store(SOON),
        miss({ after: 3, method: "HEAD", upstream: { method: "HEAD" } }),
      ],
      [
        "another tag invalidates",
        store([SOON, TAG]),
        miss({ after: 3, method: "HEAD", response: [FRESH, 'ETag: "new"'] }),
        miss(),
      ],
      [
        "another length invalidates",
        store([SOON, TAG]),
        miss({ after: 3, method: "HEAD", response: [FRESH, TAG, "Content-Length: 99"] }),
        miss(),
      ],
      [
        "another date invalidates",
        store([SOON, OLD]),
        miss({ after: 3, method: "HEAD", response: [FRESH, "Last-Modified: @0"] }),
        miss(),
      ],
    ],
    better: [
      [
        "the same validator freshens",
        store([SOON, TAG, "X-A: 1", "X-B: 1"]),
        miss({ after: 3, method: "HEAD", response: [FRESH, TAG, "X-A: 2"] }),
        hit({ expect: { ...whole, has: ["X-A: 2", "X-B: 1"] } }),
      ],
      [
        "the same length freshens, without a validator",
        store([SOON, "X-A: 1"]),
        miss({ after: 3, method: "HEAD", response: [FRESH, "X-A: 2"] }),
        hit({ expect: { ...whole, has: "X-A: 2" } }),
      ],
    ],
  },
];
