// Rows of heuristic freshness: a lifetime from Last-Modified, where nothing else gives one.
import { hit, miss, type Row, type Section, store } from "../row.ts";

const DAY_OLD = ["Last-Modified: @-86400", "Date: @0"];

const byStatus = (status: number): Row => [
  `${status}`,
  store([...DAY_OLD, "Location: /there"], { status }),
  hit({ expect: { status } }),
];

const notByStatus = (status: number): Row => [
  `not ${status}`,
  store(DAY_OLD, { status }),
  miss({ status, expect: { status } }),
];

const none = (name: string, ...response: readonly string[]): Row => [
  name,
  store(["Last-Modified: @-86400", ...response]),
  miss(),
];

export const heuristics: readonly Section[] = [
  {
    rule: "RFC 9111 section 4.2.2, heuristic freshness is off by default",
    must: [
      ...[201, 202, 403, 502, 503, 504, 599].map(notByStatus),
      none("not 200", "Date: @0"),
      none("not with public", "Cache-Control: public"),
    ],
  },
  {
    rule: "RFC 9111 section 4.2.2, heuristic freshness",
    settings: { heuristic: 0.1 },
    must: [
      ...[201, 202, 206, 302, 303, 307, 403, 405, 414, 501, 502, 503, 504, 599].map(notByStatus),
      [
        "ends after a tenth of the time since the last change",
        store(["Last-Modified: @-1000", "Date: @0"]),
        hit({ after: 90 }),
        miss({ after: 20 }),
      ],
      [
        "ends after a day",
        store(["Last-Modified: @-8640000", "Date: @0", "Age: 86000"]),
        hit({ after: 300 }),
        miss({ after: 101 }),
      ],
      ["Age counts", store([...DAY_OLD, "Age: 8700"]), miss()],
      ["a change in the future", store(["Last-Modified: @100", "Date: @0"]), miss()],
      ["a change that is no date", store(["Last-Modified: yesterday", "Date: @0"]), miss()],
      // The origin computes such responses, often for one request.
      ["with a query", store(DAY_OLD, { path: "?a=1" }), miss({ path: "?a=1" })],
      none("max-age counts", "Cache-Control: max-age=0"),
      none("Expires counts", "Expires: 0"),
      none("Pragma: no-cache", "Pragma: no-cache"),
      none("no-store", "Cache-Control: no-store"),
      none("private", "Cache-Control: private"),
      none("no-cache", "Cache-Control: no-cache"),
      [
        "for a request with a cookie, whose response may be its own",
        store(DAY_OLD, { request: "Cookie: a=b" }),
        miss(),
      ],
    ],
    better: [
      ...[200, 203, 204, 300, 301, 308, 404, 410].map(byStatus),
      ["a download", store([...DAY_OLD, "Content-Disposition: attachment; filename=a.txt"]), hit()],
      [
        "has no Warning, which is obsolete",
        store(["Last-Modified: @-8640000", "Date: @0", "Age: 86000"]),
        hit({ expect: { lacks: "Warning" } }),
      ],
      [
        "any status with public",
        store([...DAY_OLD, "Cache-Control: public"], { status: 599 }),
        hit(),
      ],
    ],
  },
  {
    rule: "RFC 9111 section 4.2.2, heuristic freshness of statuses that must be listed",
    settings: { heuristic: 0.1, statuses: [200, 302, 405, 414, 500, 501, 502, 503, 504] },
    // Whether listed or not, RFC 9110 section 15.1 excludes the others.
    must: [302, 404, 500, 502, 503, 504].map(notByStatus),
    better: [405, 414, 501].map(byStatus),
  },
  {
    rule: "heuristic_max",
    settings: { heuristic: 0.5, heuristic_max: 60 },
    must: [["limits the lifetime", store(DAY_OLD), hit({ after: 55 }), miss({ after: 10 })]],
  },
  {
    rule: "ttl_default",
    settings: { ttl_default: 60 },
    must: [
      [
        "is the lifetime when nothing else gives one",
        store("X-A: 1"),
        hit({ after: 55 }),
        miss({ after: 10 }),
      ],
      none("not where Expires is invalid", "Expires: 0"),
      none("not where Cache-Control gives a lifetime", "Cache-Control: max-age=0"),
      none("no-store", "Cache-Control: no-store"),
      none("private", "Cache-Control: private"),
      none("no-cache", "Cache-Control: no-cache"),
      ["for a request with a cookie", store("X-A: 1", { request: "Cookie: a=b" }), miss()],
      ["not 403", store("X-A: 1", { status: 403 }), miss()],
    ],
  },
  {
    rule: "statuses, errors that an administrator lists",
    settings: { statuses: [200, 400, 405, 414, 500, 501, 502, 503, 504] },
    better: [400, 405, 414, 500, 501, 502, 503, 504].map((status): Row => [
      `${status}`,
      store("Cache-Control: max-age=3600", { status }),
      hit({ expect: { status } }),
    ]),
  },
];
