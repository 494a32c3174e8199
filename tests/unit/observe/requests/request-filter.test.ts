// Filters of recent requests: what each matches, and which fields are rejected by name.
import { describe, expect, test } from "bun:test";
import {
  createRequestFilter,
  type FilterWords,
} from "../../../../src/observe/requests/request-filter.ts";
import type { RequestView } from "../../../../src/observe/requests/request-view.ts";
import { configOf, service } from "../../control/fixture.ts";

const config = configOf({ services: [service("s-1", { name: "shop" })] });

const view: RequestView = {
  id: "01a1fd89-78aa-7153-806c-000000000015",
  kind: "http",
  time: "2026-01-01T00:00:00.000Z",
  client: "10.1.2.3",
  method: "GET",
  scheme: "http",
  host: "a.example.com",
  path: "/items?token=***",
  status: 404,
  route: { id: "r-1", name: "items" },
  service: { id: "s-1", name: "shop" },
  target: { id: "t-1", address: "10.9.9.9:80" },
  consumer: "ann",
  attempts: 1,
  timings: { queue: null, plugins: null, connect: 0, first_byte: 1, total: 2 },
  bytes_in: 0,
  bytes_out: 5,
  reasons: ["connection_refused"],
  cache: {
    status: "miss",
    fwd: "uri-miss",
    stored: false,
    collapsed: null,
    reason: "set_cookie",
    detail: "The response sets a cookie.",
  },
  grpc: { status: 14, name: "UNAVAILABLE" },
  tls_version: null,
  http_version: null,
  user_agent: "Mozilla",
  truncated: [],
};
const matches = (words: FilterWords, of: Partial<RequestView> = {}) =>
  createRequestFilter(words, config).matches({ ...view, ...of });

describe("a filter matches", () => {
  test.each<[FilterWords, boolean]>([
    [{}, true],
    [{ status: "404" }, true],
    [{ status: "4xx" }, true],
    [{ status: "4XX" }, true],
    [{ status: "400-499" }, true],
    [{ status: "405-499" }, false],
    [{ status: "200, 404" }, true],
    [{ status: "5xx,3xx" }, false],
    [{ host: "A.example.com" }, true],
    [{ host: "*.example.com" }, true],
    [{ host: "*.a.example.com" }, false],
    [{ host: "example.com" }, false],
    [{ route: "r-1" }, true],
    [{ route: "other" }, false],
    [{ service: "shop" }, true],
    [{ service: "s-1" }, true],
    [{ service: "s-2" }, false],
    [{ address: "10.1.2.3" }, true],
    [{ address: "10.0.0.0/8" }, true],
    [{ address: "10.2.0.0/16" }, false],
    [{ address: "2001:db8::/32" }, false],
    [{ cache: "miss" }, true],
    [{ cache: "hit" }, false],
    [{ cache: "set_cookie" }, true],
    [{ cache: "private" }, false],
    [{ kind: "http" }, true],
    [{ kind: "stream" }, false],
    [{ q: "ITEMS" }, true],
    [{ q: "mozil" }, true],
    [{ q: "refused" }, true],
    [{ q: "10.9.9.9" }, true],
    [{ q: "ann" }, true],
    [{ q: "nothing of this" }, false],
    [{ status: "4xx", host: "b.example.com" }, false],
    [{ status: "4xx", q: "items", kind: "http" }, true],
  ])("%j: %p", (words, expected) => {
    expect(matches(words)).toBe(expected);
  });

  test("streams only without conditions on fields that streams lack", () => {
    const stream = { kind: "stream", status: null, host: null, path: null, route: null } as const;
    expect(matches({ kind: "stream" }, stream)).toBe(true);
    expect(matches({ status: "2xx" }, stream)).toBe(false);
    expect(matches({ host: "a.example.com" }, stream)).toBe(false);
    expect(matches({ route: "r-1" }, stream)).toBe(false);
    expect(matches({ cache: "miss" }, { ...stream, cache: null })).toBe(false);
  });
});

test.each<[FilterWords, string]>([
  [{ status: "4" }, "status: must be"],
  [{ status: "499-400" }, "status: must be"],
  [{ status: "abc" }, "status: must be"],
  [{ status: "200," }, "status: must be"],
  [{ status: "6xx" }, "status: must be"],
  [{ status: "" }, "status: must have"],
  [{ address: "10.0.0" }, "address: must be"],
  [{ address: "10.0.0.0/33" }, "address: must be"],
  [{ kind: "udp" }, "kind: must be"],
  [{ cache: "MISS" }, "cache: must be hit, stale, revalidated, miss, expired, bypass, or a reason"],
  [{ cache: "constructor" }, "cache: must be"],
  [{ q: "" }, "q: must have"],
  [{ q: "x".repeat(321) }, "q: must have"],
])("%j is rejected: %s", (words, message) => {
  expect(() => createRequestFilter(words, config)).toThrow(message);
});
