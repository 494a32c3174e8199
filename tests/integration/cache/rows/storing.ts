// Rows of storing: which responses, and which of their headers.
import { hit, miss, notReused, type Row, type Section, store } from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";
/** More than one read of a socket. */
const LONG = "0123456789".repeat(50_000);

/** A header of the first response, in that of a hit. */
const header = (line: string): Row => [line, store([FRESH, line]), hit({ expect: { has: line } })];

const noHeader = (line: string): Row => [
  line,
  store([FRESH, line]),
  hit({ expect: { lacks: line.slice(0, line.indexOf(":")) } }),
];

const freshStatus = (status: number): Row => [
  `${status}`,
  store([FRESH, "Location: /there"], { status }),
  hit({ expect: { status } }),
];

const staleStatus = (status: number): Row => [
  `${status}`,
  store(["Expires: @-5000", "Date: @0", "Last-Modified: @-100000"], { status }),
  miss({ status, expect: { status } }),
];

const STATUSES = [200, 203, 204, 299, 301, 302, 303, 307, 308, 404, 410];

export const storing: readonly Section[] = [
  {
    rule: "RFC 9111 section 3, what is stored",
    must: [
      notReused("no-store", "Cache-Control: no-store"),
      notReused("No-StOrE", "Cache-Control: No-StOrE"),
      notReused(
        "no-store with a lifetime",
        "Cache-Control: max-age=10000, no-store",
        "Expires: @10000",
      ),
      notReused("no-store on another line", FRESH, "Cache-Control: no-store"),
      notReused("private", "Cache-Control: private, max-age=3600"),
      notReused("private with s-maxage", "Cache-Control: private, s-maxage=3600"),
      notReused("private with public", "Cache-Control: public, private, max-age=3600"),
      notReused("an event stream", FRESH, "Content-Type: text/event-stream"),
      notReused("a multipart stream", FRESH, "Content-Type: multipart/x-mixed-replace; boundary=a"),
      notReused(
        "private for some headers: as for all",
        'Cache-Control: max-age=3600, private="x-user"',
      ),
      [
        "no-store in the request",
        store(FRESH, { request: "Cache-Control: no-store" }),
        miss({ response: FRESH }),
        hit(),
      ],
      [
        "an incomplete response",
        store(FRESH, { cut: "body" }),
        miss({ response: FRESH }),
        hit({ expect: { body: "body of step 2" } }),
      ],
      [
        "an incomplete chunked response",
        store([FRESH, "Transfer-Encoding: chunked"], {
          cut: "body",
          body: "6\r\nbroken\r\n9\r\nand more\r\n",
        }),
        miss({ response: FRESH }),
        hit({ expect: { body: "body of step 2" } }),
      ],
      [
        "of a response with more bytes than its length only those",
        store([FRESH, "Content-Length: 4"], {
          body: "body and more",
          expect: { status: 200, body: "body" },
        }),
        hit({ expect: { body: "body" } }),
      ],
    ],
    better: [
      [
        "chunked",
        store([FRESH, "Transfer-Encoding: chunked"], { body: "4\r\nbody\r\n0\r\n\r\n" }),
        hit({ expect: { body: "body" } }),
      ],
      ["a long body", store(FRESH, { body: LONG }), hit({ expect: { body: LONG } })],
      ["an empty body", store(FRESH, { body: "" }), hit({ expect: { status: 200, body: "" } })],
      ["for a request with a cookie", store(FRESH, { request: "Cookie: a=b" }), hit()],
      ["and reused for a request with a cookie", store(FRESH), hit({ request: "Cookie: a=b" })],
      ["a download", store([FRESH, "Content-Disposition: attachment; filename=a.txt"]), hit()],
    ],
  },
  {
    rule: "RFC 9111 section 3, methods",
    must: [
      [
        "POST goes to the origin",
        store(FRESH),
        miss({ method: "POST", upstream: { method: "POST" } }),
      ],
      [
        "PUT goes to the origin",
        store(FRESH),
        miss({ method: "PUT", upstream: { method: "PUT" } }),
      ],
      ["OPTIONS goes to the origin", store(FRESH), miss({ method: "OPTIONS" }), hit()],
      ["of OPTIONS nothing is stored", store(FRESH, { method: "OPTIONS" }), miss()],
      ["of DELETE nothing is stored", store(FRESH, { method: "DELETE" }), miss()],
      [
        "of HEAD no body is stored",
        store(FRESH, { method: "HEAD" }),
        miss({ response: FRESH, expect: { body: "body of step 2" } }),
      ],
      // The RFC allows to store it; whether the origin repeats it for GET depends on its word alone.
      [
        "of POST nothing is stored",
        store([FRESH, "Content-Location: /"], { method: "POST" }),
        miss(),
      ],
    ],
    better: [
      [
        "HEAD is served from GET",
        store([FRESH, "X-A: 1"]),
        hit({ method: "HEAD", expect: { has: ["X-A: 1", "Content-Length: 14"], body: "" } }),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 4, the cache key",
    must: [
      ["another query", store(FRESH, { path: "?a=1" }), miss({ path: "?a=2" })],
      ["a query, and none", store(FRESH), miss({ path: "?a=1" })],
      ["an empty value", store(FRESH, { path: "?a" }), miss({ path: "?a=" })],
      [
        "another order in the query",
        store(FRESH, { path: "?a=1&b=2" }),
        miss({ path: "?b=2&a=1" }),
      ],
      ["another case in the path", store(FRESH, { path: "/a" }), miss({ path: "/A" })],
      ["a slash at the end", store(FRESH, { path: "/a" }), miss({ path: "/a/" })],
    ],
    better: [["the same query", store(FRESH, { path: "?a=1" }), hit({ path: "?a=1" })]],
  },
  { rule: "RFC 9111 section 3, fresh statuses", better: STATUSES.map(freshStatus) },
  {
    rule: "RFC 9111 section 3, stale statuses",
    must: [...STATUSES, 400, 499, 500, 502, 503, 504, 599].map(staleStatus),
  },
  {
    rule: "RFC 9111 section 5.2.2.3, must-understand",
    must: [
      [
        "not with an unknown status",
        store("Cache-Control: max-age=3600, no-store, must-understand", { status: 599 }),
        miss(),
      ],
    ],
    better: [
      [
        "no-store does not count when the status is understood",
        store("Cache-Control: max-age=3600, no-store, must-understand"),
        hit(),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 3.1, headers that are stored",
    must: [
      header("X-Test: a"),
      header("Test-Header: a"),
      header("Content-Foo: a"),
      header("X-Content-Foo: a"),
      header("Content-Encoding: custom"),
      header("Content-Language: de"),
      header("Content-Location: /foo"),
      header("Content-MD5: rL0Y20zC+Fzt72VPzMSk2A=="),
      header("Content-Range: bytes"),
      header("Content-Security-Policy: default-src 'self'"),
      header("Content-Type: text/plain;charset=utf-8"),
      header("Clear-Site-Data: cookies"),
      header('ETag: "abc"'),
      header("Expires: Mon, 11 Jan 2038 11:11:11 GMT"),
      header("Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"),
      header("Link: </style.css>; rel=preload"),
      header("Public-Key-Pins: a"),
      header("Set-Cookie2: a=b"),
      header("X-Frame-Options: deny"),
      header("X-XSS-Protection: 1"),
      ["Cache-Control", store(FRESH), hit({ expect: { has: FRESH } })],
      ["Vary", store([FRESH, "Vary: X-A"]), hit({ expect: { has: "Vary: X-A" } })],
      ["several lines", store([FRESH, "X-A: 1", "X-A: 2"]), hit({ expect: { has: "X-A: 1, 2" } })],
      ["Date stays", store([FRESH, "Date: @-30"]), hit({ after: 3, expect: { has: "Date" } })],
      [
        "Date stays as it was",
        store([FRESH, "Date: Wed, 01 Jan 2020 00:00:00 GMT"]),
        hit({ after: 3, expect: { has: "Date: Wed, 01 Jan 2020 00:00:00 GMT" } }),
      ],
      [
        "Date stays with Expires",
        store(["Expires: Wed, 01 Jan 2020 00:01:00 GMT", "Date: Wed, 01 Jan 2020 00:00:00 GMT"]),
        hit({
          expect: {
            has: ["Date: Wed, 01 Jan 2020 00:00:00 GMT", "Expires: Wed, 01 Jan 2020 00:01:00 GMT"],
          },
        }),
      ],
      ["Date is added", store(FRESH), hit({ expect: { has: "Date" } })],
    ],
  },
  {
    rule: "RFC 9111 section 3.1, headers that are not stored",
    must: [
      noHeader("Keep-Alive: timeout=5"),
      noHeader("Proxy-Authenticate: Basic"),
      noHeader("Proxy-Authentication-Info: a"),
      noHeader("Proxy-Authorization: a"),
      noHeader("Proxy-Connection: keep-alive"),
      noHeader("TE: trailers"),
      noHeader("Upgrade: h2c"),
      [
        "those that Connection names",
        store([FRESH, "Connection: X-A, x-b", "X-A: 1", "X-B: 2", "X-C: 3"]),
        hit({ expect: { has: "X-C: 3", lacks: ["X-A", "X-B"] } }),
      ],
      [
        "Transfer-Encoding",
        store([FRESH, "Transfer-Encoding: chunked"], { body: "4\r\nbody\r\n0\r\n\r\n" }),
        hit({ expect: { lacks: "Transfer-Encoding" } }),
      ],
    ],
  },
  {
    rule: "respect_cache_control off",
    settings: { respect_cache_control: false, ttl_default: 60 },
    must: [
      [
        "responses are fresh for ttl_default",
        store(["Cache-Control: no-store", "Expires: 0"]),
        hit({ after: 55 }),
        miss({ after: 10 }),
      ],
      [
        "no targeted field counts",
        store("CDN-Cache-Control: no-store"),
        hit({ after: 55 }),
        miss({ after: 10 }),
      ],
      notReused("Vary: * counts", "Vary: *"),
      notReused("a cookie counts", "Set-Cookie: a=b"),
    ],
  },
  {
    rule: "RFC 9110 section 15.2, interim responses",
    must: [
      [
        "103 is not stored",
        store(FRESH, { interim: "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload" }),
        hit({ expect: { interim: [], body: "body of step 1" } }),
      ],
      [
        "headers of 103 are not stored",
        store(FRESH, {
          interim: "HTTP/1.1 103 Early Hints\r\nX-Hint: 1",
          expect: { lacks: "X-Hint" },
        }),
        hit({ expect: { lacks: "X-Hint" } }),
      ],
    ],
    better: [
      ["102 before a stored response", store(FRESH, { interim: "HTTP/1.1 102 Processing" }), hit()],
    ],
  },
];
