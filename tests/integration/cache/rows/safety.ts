// Rows of safety: what one client gets or causes must not reach another.
import { hit, miss, notReused, type Row, type Section, store, validated } from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";

const unstoredStatus = (status: number): Row => [
  `${status}`,
  store(FRESH, { status }),
  miss({ expect: { status: 200 } }),
];

export const safety: readonly Section[] = [
  {
    // A client that causes such a response with an unusual request would take the page from all others.
    rule: "security, statuses that one client can cause",
    must: [400, 405, 413, 414, 416, 421, 431, 500, 501, 502].map(unstoredStatus),
  },
  {
    rule: "security, cookies",
    must: [
      // Allowed by the RFC, and the way by which sessions leak.
      notReused("a response that sets a cookie is not stored", FRESH, "Set-Cookie: a=b"),
      notReused("not even with public", "Cache-Control: public, max-age=3600", "Set-Cookie: a=b"),
      [
        "a 304 that sets a cookie gives it to its client only",
        store(["Cache-Control: max-age=2", 'ETag: "a"']),
        validated({
          after: 3,
          response: [FRESH, 'ETag: "a"', "Set-Cookie: a=b"],
          expect: { has: "Set-Cookie: a=b" },
        }),
        hit({ expect: { lacks: "Set-Cookie" } }),
      ],
    ],
  },
  {
    // Applications mark personal pages with no-cache, and some validate them by the time of the last change for all users.
    rule: "security, pages of users with cookies that must be validated",
    must: [
      [
        "are not stored",
        store(["Cache-Control: no-cache", 'ETag: "a"'], { request: "Cookie: a=b" }),
        miss({ upstream: { lacks: "If-None-Match" } }),
      ],
      [
        "are not stored when they are stale from the start",
        store(["Cache-Control: max-age=0", "Last-Modified: @-1000"], { request: "Cookie: a=b" }),
        miss({ upstream: { lacks: "If-Modified-Since" } }),
      ],
    ],
    better: [
      [
        "unless they are public",
        store(["Cache-Control: public, no-cache", 'ETag: "a"'], { request: "Cookie: a=b" }),
        validated(),
      ],
    ],
  },
  {
    rule: "cache_set_cookie",
    settings: { cache_set_cookie: true },
    must: [
      [
        "only the first client gets the cookie",
        store([FRESH, "Set-Cookie: a=b"], { expect: { has: "Set-Cookie: a=b" } }),
        hit({ expect: { lacks: "Set-Cookie" } }),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 3.5, Authorization",
    must: [
      [
        "is passed on, and nothing is stored",
        store([FRESH, "Expires: @3600"], {
          request: "Authorization: FOO",
          upstream: { has: "Authorization: FOO" },
        }),
        miss(),
      ],
      [
        "gets no stored response of others",
        store(FRESH),
        miss({ request: "Authorization: FOO" }),
        hit({ expect: { body: "body of step 1" } }),
      ],
      [
        "not even with public, unless configured",
        store("Cache-Control: max-age=3600, public", { request: "Authorization: FOO" }),
        miss(),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 3.5, Authorization with cache_authorized",
    settings: { cache_authorized: true },
    must: [
      ["not with max-age alone", store(FRESH, { request: "Authorization: FOO" }), miss()],
      [
        "not with Expires alone",
        store(["Expires: @3600"], { request: "Authorization: FOO" }),
        miss(),
      ],
      [
        "not with must-understand alone",
        store("Cache-Control: max-age=3600, must-understand", { request: "Authorization: FOO" }),
        miss(),
      ],
      [
        "not private, though public",
        store("Cache-Control: max-age=3600, public, private", { request: "Authorization: FOO" }),
        miss(),
      ],
    ],
    better: [
      [
        "with public",
        store("Cache-Control: max-age=3600, public", { request: "Authorization: FOO" }),
        hit(),
      ],
      [
        "with must-revalidate",
        store("Cache-Control: max-age=3600, must-revalidate", { request: "Authorization: FOO" }),
        hit(),
      ],
      [
        "with s-maxage",
        store("Cache-Control: s-maxage=3600", { request: "Authorization: FOO" }),
        hit(),
      ],
    ],
  },
];
