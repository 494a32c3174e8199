// Rows of directives in requests and responses, of Pragma, and of the RFCs that add directives.
import {
  hit,
  type Lines,
  miss,
  rejected,
  type Row,
  type Section,
  stale,
  staleIfError,
  store,
  validated,
} from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";
const TAG = 'ETag: "abc"';

/** A stored response of this age is fetched again for such a request. */
const fetched = (name: string, response: Lines, request: string): Row => [
  name,
  store(response),
  miss({ request }),
];

const served = (name: string, response: Lines, request: string): Row => [
  name,
  store(response),
  hit({ request }),
];

/** Stale after 2 seconds, then served in the place of this. */
const instead = (name: string, failure: { status?: number; cut?: "head" }): Row => [
  name,
  store("Cache-Control: max-age=2, stale-if-error=60"),
  staleIfError({ after: 3, ...failure, expect: { status: 200, body: "body of step 1" } }),
];

/** Neither of the stale directives counts beside this one. */
const noStale = (directive: string): readonly Row[] => [
  [
    `${directive} when the origin fails`,
    store(`Cache-Control: max-age=2, stale-if-error=60, ${directive}`),
    miss({ after: 3, status: 503, expect: { status: 503 } }),
  ],
  [
    `${directive} when the origin cannot be reached`,
    store(`Cache-Control: max-age=2, stale-if-error=60, ${directive}`),
    miss({ after: 3, cut: "head", expect: { status: 502 } }),
  ],
  [
    `${directive} while it revalidates`,
    store(`Cache-Control: max-age=2, stale-while-revalidate=60, ${directive}`),
    miss({ after: 3 }),
  ],
];

export const directives: readonly Section[] = [
  {
    rule: "RFC 9111 section 5.2.1, requests, with ignore_client_no_cache off",
    settings: { ignore_client_no_cache: false },
    must: [
      [
        "only-if-cached without a stored response",
        rejected({ request: "Cache-Control: only-if-cached" }),
      ],
      [
        "only-if-cached with a stale one that max-stale accepts",
        store("Cache-Control: max-age=2"),
        stale({ after: 3, request: "Cache-Control: only-if-cached, max-stale=60" }),
      ],
      [
        "only-if-cached with a stale one",
        store("Cache-Control: max-age=2"),
        rejected({ after: 3, request: "Cache-Control: only-if-cached" }),
      ],
      ...["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2"].map((directive): Row => [
        `max-stale against ${directive}`,
        store(`Cache-Control: max-age=2, ${directive}`),
        miss({ after: 3, request: "Cache-Control: max-stale=60" }),
      ]),
      [
        "max-stale less than the staleness",
        store("Cache-Control: max-age=2"),
        miss({ after: 13, request: "Cache-Control: max-stale=10" }),
      ],
      [
        "no-store is stored for nobody",
        store(FRESH, { request: "Cache-Control: no-store" }),
        miss(),
      ],
    ],
    better: [
      fetched("max-age=0", FRESH, "Cache-Control: max-age=0"),
      [
        "max-age less than the age",
        store(FRESH),
        miss({ after: 3, request: "Cache-Control: max-age=1" }),
      ],
      fetched("max-age less than Age", [FRESH, "Age: 1800"], "Cache-Control: max-age=600"),
      served("max-age more than the age", [FRESH, "Age: 60"], "Cache-Control: max-age=600"),
      fetched(
        "min-fresh more than the lifetime",
        "Cache-Control: max-age=1500",
        "Cache-Control: min-fresh=2000",
      ),
      fetched(
        "min-fresh more than is left",
        ["Cache-Control: max-age=1500", "Age: 1000"],
        "Cache-Control: min-fresh=1000",
      ),
      served("min-fresh less than is left", FRESH, "Cache-Control: min-fresh=60"),
      [
        "max-stale",
        store("Cache-Control: max-age=2"),
        stale({ after: 3, request: "Cache-Control: max-stale=60", expect: { has: "Age: 3" } }),
      ],
      [
        "max-stale without seconds",
        store("Cache-Control: max-age=2"),
        stale({ after: 3600, request: "Cache-Control: max-stale" }),
      ],
      fetched("no-cache", FRESH, "Cache-Control: no-cache"),
      [
        "no-cache validates with a date",
        store([FRESH, "Last-Modified: @-10000"]),
        validated({ request: "Cache-Control: no-cache", upstream: { has: "If-Modified-Since" } }),
      ],
      [
        "no-cache validates with a tag",
        store([FRESH, TAG]),
        validated({
          request: "Cache-Control: no-cache",
          upstream: { has: 'If-None-Match: "abc"' },
        }),
      ],
      [
        "no-cache freshens for others",
        store([FRESH, TAG]),
        validated({ after: 60, request: "Cache-Control: no-cache" }),
        hit({ expect: { has: "Age: 0" } }),
      ],
      served("only-if-cached with a stored response", FRESH, "Cache-Control: only-if-cached"),
      served("a directive that no cache knows", FRESH, "Cache-Control: foobar"),
      [
        "another directive does not end stale-while-revalidate",
        store("Cache-Control: max-age=2, stale-while-revalidate=60"),
        stale({ after: 3, request: "Cache-Control: no-transform" }),
      ],
      [
        "another directive does not end stale-if-error",
        store("Cache-Control: max-age=2, stale-if-error=60"),
        staleIfError({ after: 3, status: 503, request: "Cache-Control: max-age=3600" }),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 5.4, Pragma, with ignore_client_no_cache off",
    settings: { ignore_client_no_cache: false },
    better: [
      fetched("no-cache in the request", FRESH, "Pragma: no-cache"),
      [
        "does not count beside Cache-Control",
        store(FRESH),
        hit({ request: ["Pragma: no-cache", "Cache-Control: max-age=60"] }),
      ],
      served("another word in the request", FRESH, "Pragma: other"),
    ],
  },
  {
    // Browsers send max-age=0 at each reload: clients would decide how much the origin has to do.
    rule: "RFC 9111 section 5.2.1, requests: a cache may ignore them, and does by default",
    must: [
      [
        "only-if-cached without a stored response",
        rejected({ request: "Cache-Control: only-if-cached" }),
      ],
    ],
    better: [
      served("no-cache", FRESH, "Cache-Control: no-cache"),
      served("max-age=0", FRESH, "Cache-Control: max-age=0"),
      served("Pragma: no-cache", FRESH, "Pragma: no-cache"),
      served("Pragma: other", FRESH, "Pragma: other"),
      served("only-if-cached with a stored response", FRESH, "Cache-Control: only-if-cached"),
    ],
  },
  {
    rule: "RFC 9111 section 5.2.2, responses",
    must: [
      ["no-cache", store(["Cache-Control: max-age=10000, no-cache", "Expires: @10000"]), miss()],
      ["No-CaChE", store("Cache-Control: max-age=10000, No-CaChE"), miss()],
      // RFC 9111 section 5.2.2.4: a cache may treat the qualified form as the unqualified one.
      ["no-cache for one header", store('Cache-Control: max-age=10000, no-cache="x-a"'), miss()],
      [
        "must-revalidate",
        store(["Cache-Control: max-age=60, must-revalidate", TAG]),
        hit(),
        validated({ after: 61, upstream: { has: 'If-None-Match: "abc"' } }),
      ],
      ["must-revalidate gives no lifetime", store("Cache-Control: must-revalidate"), miss()],
    ],
    better: [
      [
        "no-cache with a tag: validated each time",
        store(["Cache-Control: no-cache", TAG]),
        validated({ upstream: { has: 'If-None-Match: "abc"' } }),
        validated({ expect: { body: "body of step 1" } }),
      ],
      [
        "no-cache with a lifetime and a tag",
        store(["Cache-Control: max-age=10000, no-cache", "Expires: @10000", TAG]),
        validated({ upstream: { has: 'If-None-Match: "abc"' } }),
      ],
      [
        "no-cache with a date",
        store(["Cache-Control: no-cache", "Last-Modified: @-1000"]),
        validated({ upstream: { has: "If-Modified-Since" } }),
      ],
      ["max-age=0 with a tag", store(["Cache-Control: max-age=0", TAG]), validated()],
      ["s-maxage=0 with a tag", store(["Cache-Control: s-maxage=0", TAG]), validated()],
      ["a past Expires with a tag", store(["Expires: 0", TAG]), validated()],
      ["Age beyond the lifetime, with a tag", store([FRESH, "Age: 7200", TAG]), validated()],
      [
        "must-revalidate within the lifetime",
        store(["Cache-Control: max-age=10000, must-revalidate", TAG]),
        hit(),
      ],
      [
        "proxy-revalidate within the lifetime",
        store("Cache-Control: max-age=10000, proxy-revalidate"),
        hit(),
      ],
      ["no-transform", store("Cache-Control: max-age=3600, no-transform"), hit()],
      ["Pragma means nothing in a response", store(["Expires: @60", "Pragma: no-cache"]), hit()],
      ["Pragma beside Cache-Control", store([FRESH, "Pragma: no-cache"]), hit()],
      ["another Pragma", store([FRESH, "Pragma: other"]), hit()],
    ],
  },
  {
    rule: "RFC 9111 section 4.2.4, directives that forbid stale responses",
    must: ["must-revalidate", "proxy-revalidate", "no-cache"].flatMap(noStale),
  },
  {
    rule: "RFC 9111 section 4.2.4, s-maxage forbids what only settings allow",
    settings: { stale_if_error: 60, stale_while_revalidate: 60 },
    must: [
      [
        "s-maxage when the origin fails",
        store("Cache-Control: s-maxage=2"),
        miss({ after: 3, status: 503, expect: { status: 503 } }),
      ],
      ["s-maxage while it revalidates", store("Cache-Control: s-maxage=2"), miss({ after: 3 })],
    ],
    better: [
      [
        "max-age",
        store("Cache-Control: max-age=2"),
        stale({ after: 3, expect: { body: "body of step 1" } }),
      ],
    ],
  },
  {
    rule: "RFC 5861 section 3, stale-while-revalidate",
    must: [
      [
        "ends after its seconds",
        store(["Cache-Control: max-age=2, stale-while-revalidate=4", TAG]),
        miss({ after: 7 }),
      ],
      [
        "ends when the origin forbids to store the new response",
        store("Cache-Control: max-age=2, stale-while-revalidate=60"),
        stale({ after: 3, response: "Cache-Control: no-store" }),
        miss(),
      ],
      [
        "ends when a 304 forbids to store it",
        store(["Cache-Control: max-age=2, stale-while-revalidate=60", TAG]),
        stale({ after: 3, status: 304, response: "Cache-Control: private" }),
        miss({ upstream: { lacks: "If-None-Match" } }),
      ],
      [
        "HEAD and GET get the same",
        store("Cache-Control: max-age=2, stale-while-revalidate=60"),
        stale({ after: 3, method: "HEAD", response: FRESH }),
        hit({ expect: { status: 200 } }),
      ],
    ],
    better: [
      // s-maxage forbids stale responses (RFC 9111 section 5.2.2.10), which the origin's own directive allows again.
      [
        "counts beside s-maxage",
        store("Cache-Control: s-maxage=2, stale-while-revalidate=60"),
        stale({ after: 3 }),
      ],
      [
        "serves the stale response, then the new one",
        store("Cache-Control: max-age=2, stale-while-revalidate=3600"),
        stale({ after: 3, response: FRESH, expect: { body: "body of step 1", has: "Age: 3" } }),
        hit({ expect: { body: "body of step 2" } }),
      ],
      [
        "stores a response that is stale from the start",
        store("Cache-Control: max-age=0, stale-while-revalidate=60"),
        stale(),
      ],
      [
        "goes on while the origin fails",
        store("Cache-Control: max-age=2, stale-while-revalidate=60"),
        stale({ after: 3, status: 503 }),
        stale({ after: 3, expect: { body: "body of step 1" } }),
      ],
      [
        "revalidates with the stored tag",
        store(["Cache-Control: max-age=2, stale-while-revalidate=60", TAG]),
        stale({ after: 3, response: FRESH }),
        hit(),
      ],
    ],
  },
  {
    rule: "RFC 5861 section 4, stale-if-error",
    must: [
      [
        "ends after its seconds",
        store("Cache-Control: max-age=2, stale-if-error=4"),
        miss({ after: 7, status: 503, expect: { status: 503 } }),
      ],
      [
        "does not count once the origin forbids to store the response",
        store(["Cache-Control: max-age=2, stale-if-error=60", TAG]),
        miss({ after: 3, response: "Cache-Control: no-store" }),
        miss({ status: 503, expect: { status: 503 } }),
      ],
      [
        "does not count once a 304 forbids to store it",
        store(["Cache-Control: max-age=2, stale-if-error=60", TAG]),
        validated({ after: 3, response: "Cache-Control: no-store" }),
        miss({ status: 503, expect: { status: 503 } }),
      ],
      [
        "does not count once HEAD shows another response",
        store(["Cache-Control: max-age=2, stale-if-error=60", TAG]),
        miss({ after: 3, method: "HEAD", response: 'ETag: "new"' }),
        miss({ status: 503, expect: { status: 503 } }),
      ],
      [
        "404 is no error",
        store("Cache-Control: max-age=2, stale-if-error=60"),
        miss({ after: 3, status: 404, expect: { status: 404 } }),
      ],
      [
        "a fetch that succeeds is served",
        store("Cache-Control: max-age=2, stale-if-error=60"),
        miss({ after: 3, response: FRESH }),
        hit({ expect: { body: "body of step 2" } }),
      ],
    ],
    better: [
      [
        "stores a response that is stale from the start",
        store(["Cache-Control: max-age=60, stale-if-error=60", "Age: 70"]),
        staleIfError({ status: 503, expect: { status: 200, has: "Age: 70" } }),
      ],
      instead("500", { status: 500 }),
      instead("502", { status: 502 }),
      instead("503", { status: 503 }),
      instead("504", { status: 504 }),
      instead("a closed connection", { cut: "head" }),
    ],
  },
  {
    rule: "RFC 8246, immutable",
    settings: { ignore_client_no_cache: false },
    must: [
      [
        "a stale response is revalidated",
        store(["Cache-Control: max-age=2, immutable", TAG]),
        validated({ after: 3 }),
      ],
    ],
    better: [
      [
        "a reload does not reach the origin",
        store(["Cache-Control: max-age=10000, immutable", TAG]),
        hit({ request: "Cache-Control: max-age=0" }),
      ],
    ],
  },
];
