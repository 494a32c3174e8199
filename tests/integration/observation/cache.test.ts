// What a cache did, as the request list, statistics and metrics of a running gateway say, and Cache-Status of the response.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { parseList, Token } from "structured-headers";
import type { CacheOutcome } from "../../../src/model/cache-outcome.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, type ParsedResponse, parseResponse, sendRaw } from "../../support/raw-http.ts";

let gateway: Gateway;
let origin: Origin;
/** Responses by path, one after the other; the last one stays. */
/** At the end of a response: the origin closes the connection. */
const CUT = "(cut)";
const script = new Map<string, string[]>();

beforeAll(async () => {
  gateway = await startGateway({ workers: 2 });
  origin = startOrigin({
    answer: ({ target }, connection) => {
      const responses = script.get(target) ?? [];
      const response = (responses.length > 1 ? responses.shift() : responses[0]) ?? reply();
      if (!response.endsWith(CUT)) return response;
      connection.write(response.slice(0, -CUT.length));
      connection.end();
      return null;
    },
  });
  await gateway.ok("POST", "/api/v1/services", {
    name: "shop",
    retries: { count: 0 },
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  const configs = {
    plain: { bypass_when: { header: { "X-Preview": "*" } }, max_body: 10_000 },
    shared: { cache_authorized: true, ttl_default: 60 },
    hostless: { key: { host: false } },
    tiny: { max_total: 3000, max_body: 3000 },
  };
  for (const [name, config] of Object.entries(configs)) {
    const host = `${name}.test`;
    await gateway.ok("POST", "/api/v1/routes", { name, service_id: "shop", hosts: [host] });
    await gateway.ok("POST", "/api/v1/plugins", {
      name: "response-cache",
      label: name,
      route_id: name,
      config: { ignore_client_no_cache: false, ...config },
    });
  }
});
afterAll(async () => {
  await gateway?.stop();
  origin?.stop();
});

const send = async (path: string, { line = "GET", host = "plain.test", fields = "" } = {}) =>
  parseResponse(
    await sendRaw(
      `${line} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${fields}\r\n`,
      { port: gateway.httpPort },
    ),
  );

type Entry = { readonly path: string; readonly cache: (CacheOutcome & { detail: string }) | null };
/** The records of the path, newest first, as soon as there are as many. */
const recorded = (path: string, count: number) =>
  eventually(async () => {
    const list: Entry[] = await gateway.ok("GET", `/api/v1/requests?q=${path}&limit=500`);
    const found = list.filter((entry) => entry.path === path);
    return found.length < count ? null : found;
  });

/** The record of the request, a moment after its response. */
const recordOf = (id: string) =>
  eventually(async () => {
    const response = await gateway.api("GET", `/api/v1/requests/${id}`);
    return response.ok ? ((await response.json()) as Entry) : null;
  });

const fresh = (fields = "", body = "body", status = "200 OK") =>
  reply(body, { status, headers: `Cache-Control: max-age=60\r\n${fields}` });
/** Stale from the start. */
const stale = (directives: string, fields = 'ETag: "v1"\r\n') =>
  reply("old", { headers: `Cache-Control: max-age=1${directives}\r\nAge: 5\r\n${fields}` });

type Request = Parameters<typeof send>[1];
type Row = [
  name: string,
  expected: Partial<CacheOutcome>,
  responses: readonly string[],
  /** The last one counts. */
  requests: readonly Request[],
];

const GET: Request = {};
const chunked =
  "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
const chunkOf = (size: number) => `${size.toString(16)}\r\n${"x".repeat(size)}\r\n`;
const miss = { status: "miss", fwd: "uri-miss" } as const;
const notStored = (reason: CacheOutcome["reason"]) => ({ ...miss, reason });
const bypass = (reason: CacheOutcome["reason"]) =>
  ({ status: "bypass", fwd: "bypass", reason }) as const;

const rows: Row[] = [
  ["hit", { status: "hit" }, [fresh()], [GET, GET]],
  ["stored", { ...miss, stored: true }, [fresh()], [GET]],
  ["without-body", { ...miss, stored: true }, [fresh("", "", "404 No")], [GET]],
  ["chunked", { ...miss, stored: true }, [`${chunked}${chunkOf(5)}0\r\n\r\n`], [GET]],
  [
    "another-variant",
    { status: "miss", fwd: "vary-miss", stored: true },
    [fresh("Vary: X-Language\r\n")],
    [{ fields: "X-Language: de\r\n" }, { fields: "X-Language: en\r\n" }],
  ],
  [
    "client-wants-newer",
    { status: "miss", fwd: "request", stored: true },
    [fresh()],
    [GET, { fields: "Cache-Control: no-cache\r\n" }],
  ],
  ["expired", { status: "expired", fwd: "stale", stored: true }, [stale(""), fresh()], [GET, GET]],
  [
    "revalidated",
    { status: "revalidated", fwd: "stale", stored: true },
    [stale(""), 'HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: "v1"\r\n\r\n'],
    [GET, GET],
  ],
  [
    "while-revalidating",
    { status: "stale", reason: "stale_while_revalidate" },
    [stale(", stale-while-revalidate=600")],
    [GET, GET],
  ],
  [
    "accepts-stale",
    { status: "stale", reason: "max_stale" },
    [stale("")],
    [GET, { fields: "Cache-Control: max-stale\r\n" }],
  ],
  [
    "failing",
    { status: "stale", fwd: "stale", reason: "stale_if_error" },
    [stale(", stale-if-error=600"), reply("", { status: "503 No" })],
    [GET, GET],
  ],
  [
    "failing-without-response",
    { status: "stale", fwd: "stale", reason: "stale_if_error" },
    [stale(", stale-if-error=600"), "close"],
    [GET, GET],
  ],
  [
    "head-freshens",
    { status: "miss", fwd: "stale", stored: true },
    [stale(""), 'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: "v1"\r\n\r\n'],
    [GET, { line: "HEAD" }],
  ],
  [
    "head-replaces",
    { status: "miss", fwd: "stale", reason: "other_response" },
    [stale(""), 'HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: "v2"\r\n\r\n'],
    [GET, { line: "HEAD" }],
  ],
  [
    "validated-another",
    { status: "revalidated", fwd: "stale", reason: "other_response" },
    [stale(""), 'HTTP/1.1 304 Not Modified\r\nETag: "v2"\r\n\r\n'],
    [GET, GET],
  ],
  ["upgrade", bypass("upgrade"), [fresh()], [{ fields: "Upgrade: websocket\r\n" }]],
  ["head", notStored("head"), [fresh()], [{ line: "HEAD" }]],
  [
    "only-stored",
    { status: "miss", reason: "only_if_cached" },
    [fresh()],
    [{ fields: "Cache-Control: only-if-cached\r\n" }],
  ],
  ["no-response", notStored("no_response"), ["close"], [GET]],
  [
    "incomplete",
    notStored("incomplete"),
    ["HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 50\r\n\r\nx(cut)"],
    [GET],
  ],
  ["error", notStored("status"), [fresh("", "", "503 No")], [GET]],
  [
    "no-store",
    notStored("no_store"),
    [reply("", { headers: "Cache-Control: no-store\r\n" })],
    [GET],
  ],
  [
    "private",
    notStored("private"),
    [reply("", { headers: "Cache-Control: private, max-age=9\r\n" })],
    [GET],
  ],
  [
    "not-understood",
    notStored("not_understood"),
    [reply("", { status: "299 Own", headers: "Cache-Control: max-age=9, must-understand\r\n" })],
    [GET],
  ],
  [
    "without-validator",
    notStored("no_validator"),
    [reply("", { headers: "Cache-Control: max-age=0\r\n" })],
    [GET],
  ],
  ["without-freshness", notStored("no_freshness"), [reply()], [GET]],
  ["cookie", notStored("set_cookie"), [fresh("Set-Cookie: a=b\r\n")], [GET]],
  ["any-variant", notStored("vary_any"), [fresh("Vary: *\r\n")], [GET]],
  [
    "client-host",
    notStored("client_host"),
    [fresh("Location: http://hostless.test/a\r\n")],
    [{ host: "hostless.test" }],
  ],
  ["events", notStored("streaming"), [fresh("Content-Type: text/event-stream\r\n")], [GET]],
  ["too-large", notStored("too_large"), [fresh("", "x".repeat(10_001))], [GET]],
  [
    "too-large-chunked",
    notStored("too_large"),
    [`${chunked}${chunkOf(9000)}${chunkOf(1001)}0\r\n\r\n`],
    [GET],
  ],
  [
    "client-forbids",
    notStored("request_no_store"),
    [fresh()],
    [{ fields: "Cache-Control: no-store\r\n" }],
  ],
  ["no-room", notStored("store_refused"), [fresh("", "x".repeat(2999))], [{ host: "tiny.test" }]],
  [
    "authorized",
    notStored("authorization"),
    [fresh()],
    [{ host: "shared.test", fields: "Authorization: Basic eDp5\r\n" }],
  ],
  [
    "personal",
    notStored("personal"),
    [reply()],
    [{ host: "shared.test", fields: "Cookie: a=b\r\n" }],
  ],
  [
    "range",
    { status: "bypass", fwd: "uri-miss", reason: "range" },
    [fresh()],
    [{ fields: "Range: bytes=0-1\r\n" }],
  ],
  [
    "method",
    { status: "bypass", fwd: "method", reason: "method" },
    [fresh()],
    [{ line: "OPTIONS" }],
  ],
  [
    "unsafe",
    { status: "bypass", fwd: "method", reason: "method" },
    [fresh()],
    [{ line: "DELETE" }],
  ],
  ["with-body", bypass("request_body"), [fresh()], [{ fields: "Content-Length: 2\r\n\r\nab" }]],
  ["condition", bypass("condition"), [fresh()], [{ fields: "X-Preview: 1\r\n" }]],
  ["precondition", bypass("precondition"), [fresh()], [{ fields: 'If-Match: "v1"\r\n' }]],
  ["override", bypass("override"), [fresh()], [{ fields: "X-Original-URL: /a\r\n" }]],
  [
    "credentials",
    bypass("request_authorization"),
    [fresh()],
    [{ fields: "Authorization: Basic eDp5\r\n" }],
  ],
];

/** The member of this gateway in Cache-Status; null: there is none. */
function memberOf(value: string | null): Record<string, unknown> | null {
  const [, parameters] = parseList(value ?? "").at(-1) ?? [];
  if (parameters === undefined) return null;
  const entries = [...(parameters as ReadonlyMap<string, unknown>)];
  return Object.fromEntries(
    entries.map(([name, of]) => [name, of instanceof Token ? of.toString() : of]),
  );
}

/** RFC 9211: the member must not say what the record denies. */
function expectSame(member: Record<string, unknown>, cache: CacheOutcome): void {
  const { hit, fwd = null, stored = false, collapsed = null, detail = null } = member;
  expect({ hit, fwd, collapsed }).toEqual({
    hit: cache.fwd === null ? true : undefined,
    fwd: cache.fwd,
    collapsed: cache.collapsed,
  });
  // All of these bodies have arrived before the response is sent.
  expect(stored).toBe(cache.stored);
  if (detail !== null) expect<unknown>(detail).toBe(cache.reason);
}

describe("the request list and Cache-Status say", () => {
  test.each<Row>(rows)("%s", async (name, expected, responses, requests) => {
    const path = `/row/${name}`;
    script.set(path, [...responses]);
    let last: ParsedResponse | null = null;
    for (const request of requests) last = await send(path, request);
    const { cache } = await recordOf(last?.header("x-request-id") ?? "");
    const header = last?.header("cache-status") ?? null;
    const rest = { fwd: null, stored: false, collapsed: null, reason: null };
    expect<object | null>(cache).toEqual({ ...rest, ...expected, detail: expect.any(String) });
    if (cache === null || header === null) return;
    expectSame(memberOf(header) ?? {}, cache);
    expect(last?.header("x-cache-status")?.toLowerCase()).toBe(cache.status);
  });
});

describe("of requests at the same time", () => {
  const begin = async (path: string) => {
    const before = origin.requests.length;
    const first = send(path);
    await origin.untilRequests(before + 1);
    return { first };
  };
  const statusesOf = (found: readonly Entry[]) =>
    found.map(({ cache }) => cache && { ...cache, detail: undefined });

  test("one gets the response to the other, or waits in vain for one that cannot be stored", async () => {
    for (const [path, response, second] of [
      ["/shared", fresh(), { status: "hit", fwd: "uri-miss", collapsed: true, reason: null }],
      ["/own", reply(), { ...notStored("no_freshness"), collapsed: false }],
    ] as const) {
      const gate = Promise.withResolvers<string>();
      const { answer } = origin;
      origin.answer = () => gate.promise;
      const { first } = await begin(path);
      const other = send(path);
      // Both are in the gateway, and only one at the origin.
      await eventually(async () => {
        const { now } = await gateway.ok("GET", "/api/v1/stats");
        return now.in_flight === 2;
      });
      // A request is counted a moment before it asks the cache; each worker takes a turn for a change.
      await gateway.ok("POST", "/api/v1/consumers", { username: `after${path.replace("/", "-")}` });
      gate.resolve(response);
      await Promise.all([first, other]);
      origin.answer = answer;
      const found = await recorded(path, 2);
      expect(statusesOf(found)).toContainEqual({ stored: false, ...second, detail: undefined });
    }
  });

  test("a response is not stored when its resource is invalidated meanwhile", async () => {
    const gate = Promise.withResolvers<string>();
    const { answer } = origin;
    origin.answer = ({ method }) => (method === "GET" ? gate.promise : reply());
    const { first } = await begin("/changed");
    await send("/changed", { line: "POST", fields: "Content-Length: 0\r\n" });
    gate.resolve(fresh());
    await first;
    origin.answer = answer;
    const found = await recorded("/changed", 2);
    expect(found.map(({ cache }) => cache?.reason).sort()).toEqual(["invalidated", "method"]);
  });
});

test("a response that streams does not claim to be stored before it is", async () => {
  const rest = Promise.withResolvers<void>();
  const { answer } = origin;
  origin.answer = async (_, connection) => {
    connection.write(
      "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nhalf",
    );
    await rest.promise;
    return "rest";
  };
  const client = await connectRaw({ port: gateway.httpPort });
  client.write("GET /streamed HTTP/1.1\r\nHost: plain.test\r\nConnection: close\r\n\r\n");
  await eventually(() => client.received.includes("half"));
  rest.resolve();
  const response = parseResponse(await client.untilClosed());
  origin.answer = answer;
  expect(response.header("cache-status")).toMatch(/^sluice; fwd=uri-miss; ttl=\d+$/);
  const [entry] = await recorded("/streamed", 1);
  expect(entry?.cache).toMatchObject({ ...miss, stored: true, reason: null });
});

test("requests without a cache have none in the list, and lists can be filtered by outcome", async () => {
  await send("/elsewhere", { host: "nowhere.test" });
  expect((await recorded("/elsewhere", 1))[0]?.cache).toBeNull();
  script.set("/filtered", [fresh("Set-Cookie: a=b\r\n")]);
  await send("/filtered");
  await recorded("/filtered", 1);
  const pathsOf = async (query: string) => {
    const found: Entry[] = await gateway.ok("GET", `/api/v1/requests?${query}&q=/filtered`);
    return found.map(({ path }) => path);
  };
  expect(await pathsOf("cache=miss")).toEqual(["/filtered"]);
  expect(await pathsOf("cache=set_cookie")).toEqual(["/filtered"]);
  expect(await pathsOf("cache=hit")).toEqual([]);
  const response = await fetch(`${gateway.admin}/api/v1/requests?cache=none`);
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining("cache: must be hit, stale"),
  ]);
});

test("statistics and metrics count what the cache did, by route and by instance", async () => {
  await gateway.ok("POST", "/api/v1/routes", {
    name: "counted",
    service_id: "shop",
    hosts: ["counted.test"],
  });
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "response-cache",
    label: "counted",
    route_id: "counted",
    config: { bypass_when: { header: { "X-Preview": "*" } }, max_total: 1e6, max_body: 1e5 },
  });
  const request = { host: "counted.test" };
  script.set("/c/ten", [fresh("", "0123456789")]);
  for (let sent = 0; sent < 5; sent++) await send("/c/ten", request);
  await send("/c/ten", { ...request, fields: "Range: bytes=0-3\r\n" });
  await send("/c/ten", { ...request, line: "HEAD" });
  script.set("/c/none", [reply()]);
  for (let sent = 0; sent < 2; sent++) await send("/c/none", request);
  script.set("/c/stale", [stale(""), fresh("", "new")]);
  for (let sent = 0; sent < 2; sent++) await send("/c/stale", request);
  await send("/c/ten", { ...request, fields: "X-Preview: 1\r\n" });
  const counts = { cache_lookups: 11, cache_hits: 6, cache_bytes: 44, requests: 12 };
  const ratio = { cache_hit_ratio: 0.545455 };
  const stats = await eventually(async () => {
    const read = await gateway.ok("GET", "/api/v1/stats?route=counted&range=1h");
    return read.history.total.requests === 12 ? read : null;
  });
  expect(stats.history.total).toMatchObject({ ...counts, ...ratio });
  const named = ({ name }: { readonly name: string }) => name === "counted";
  expect(stats.now.by_route.find(named)).toMatchObject({ ...counts, ...ratio });
  const text = await (await fetch(`${gateway.admin}/metrics`)).text();
  const metrics = readMetrics(text, "prometheus");
  const countOf = (status: string) =>
    metrics.sum("sluice_cache_requests_total", { plugin: "counted", status });
  expect(
    Object.fromEntries(
      ["hit", "stale", "revalidated", "miss", "expired", "bypass"].map((status) => [
        status,
        countOf(status),
      ]),
    ),
  ).toEqual({ hit: 6, stale: 0, revalidated: 0, miss: 4, expired: 1, bypass: 1 });
  expect(metrics.sum("sluice_cache_served_bytes_total", { plugin: "counted" })).toBe(44);
  const store = (name: string) => metrics.sum(`sluice_cache_${name}`, { plugin: "counted" });
  expect([store("entries"), store("limit_bytes"), store("file_bytes")]).toEqual([2, 1_000_000, 0]);
  expect(store("bytes")).toBeGreaterThan(13);
  expect(store("bytes")).toBeLessThan(10_000);
  expect(store("evictions_total")).toBe(0);
});

test("metrics count what a full cache evicts", async () => {
  const count = 40;
  for (let sent = 0; sent < count; sent++) {
    script.set(`/full/${sent}`, [fresh("", "x".repeat(1000))]);
    await send(`/full/${sent}`, { host: "tiny.test" });
  }
  const text = await (await fetch(`${gateway.admin}/metrics`)).text();
  const of = (name: string) =>
    readMetrics(text, "prometheus").sum(`sluice_cache_${name}`, { plugin: "tiny" });
  expect(of("entries")).toBeGreaterThan(0);
  expect(of("entries") + of("evictions_total")).toBe(count);
  expect(of("bytes")).toBeLessThanOrEqual(of("limit_bytes"));
});

test("a global cache is bypassed where no route matches", async () => {
  const { id } = await gateway.ok("POST", "/api/v1/plugins", { name: "response-cache" });
  await send("/unrouted", { host: "nowhere.test" });
  const [entry] = await recorded("/unrouted", 1);
  expect(entry?.cache).toMatchObject(bypass("no_route"));
  await gateway.ok("DELETE", `/api/v1/plugins/${id}`);
});
