// Every condition and action of a route, over the wire: which service gets the request, and in what form.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type RouteSketch,
  type RunningDataPlane,
  startDataPlane,
} from "../../support/data-plane.ts";
import { type Origin, type OriginRequest, reply, startOrigin } from "../../support/origin.ts";
import { exchange } from "../../support/raw-exchange.ts";

let origin: Origin;
let gateway: RunningDataPlane;
const stops: (() => unknown)[] = [];

beforeAll(() => {
  origin = startOrigin({ answer: (request) => reply(request.target) });
});
afterAll(async () => {
  for (const stop of stops) await stop();
  origin.stop();
});

type Route = Omit<RouteSketch, "service_id">;

/** A data plane with these routes, each to its own service that returns its name. */
async function serve(
  routes: readonly Route[],
  more: Omit<Parameters<typeof startDataPlane>[0], "routes" | "services"> & {
    service?: object;
  } = {},
): Promise<void> {
  const { service = {}, ...rest } = more;
  gateway = await startDataPlane({
    services: [{ name: "s", targets: [{ port: origin.port }], ...service }],
    routes: routes.map((route) => ({ service_id: "s", ...route })),
    settings: { debug_headers: true },
    ...rest,
  });
  stops.push(gateway.stop);
}

interface Seen {
  readonly route: string | null;
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly request: OriginRequest | undefined;
}

async function get(
  target: string,
  { host = "h", method = "GET", fields = "" } = {},
): Promise<Seen> {
  const before = origin.requests.length;
  const bytes = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n`;
  const { answers } = await exchange(bytes, { port: gateway.port, methods: [method] });
  const answer = answers[0]!;
  return {
    route: answer.header("x-sluice-route"),
    status: answer.status,
    header: answer.header,
    request: origin.requests[before],
  };
}

describe("conditions", () => {
  beforeAll(() =>
    serve([
      { name: "post", hosts: ["methods"], methods: ["POST", "put"] },
      { name: "propfind", hosts: ["methods"], methods: ["PROPFIND"] },
      {
        name: "beta",
        hosts: ["headers"],
        headers: [{ name: "X-Beta", op: "equals", value: "yes" }],
      },
      {
        name: "mobile",
        hosts: ["headers"],
        headers: [{ name: "User-Agent", op: "regex", value: "Mobile" }],
      },
      { name: "with", hosts: ["headers"], headers: [{ name: "X-With", op: "present", value: "" }] },
      {
        name: "without",
        hosts: ["headers"],
        paths: ["/w"],
        headers: [{ name: "X-With", op: "absent", value: "" }],
      },
      { name: "q", hosts: ["query"], query: [{ name: "v", op: "equals", value: "2" }] },
      { name: "q-regex", hosts: ["query"], query: [{ name: "r", op: "regex", value: "^a+$" }] },
      { name: "q-present", hosts: ["query"], query: [{ name: "p", op: "present", value: "" }] },
      { name: "c", hosts: ["cookies"], cookies: [{ name: "group", op: "equals", value: "b" }] },
      { name: "near", hosts: ["cidr"], client_cidrs: ["127.0.0.0/8"] },
      { name: "far", hosts: ["cidr-far"], client_cidrs: ["10.0.0.0/8"] },
      { name: "https", hosts: ["protocol"], protocols: ["https"] },
      { name: "http", hosts: ["protocol-plain"], protocols: ["http"] },
      { name: "listener", hosts: ["listener"], listener_ids: ["listener"] },
      { name: "other-listener", hosts: ["other-listener"], listener_ids: ["other"] },
      { name: "off", hosts: ["off"], enabled: false },
      {
        name: "both",
        hosts: ["both"],
        methods: ["GET"],
        headers: [
          { name: "A", op: "equals", value: "1" },
          { name: "B", op: "equals", value: "2" },
        ],
      },
    ]),
  );

  test.each([
    ["methods", "POST /", "", "post"],
    ["methods", "PUT /", "", "post"],
    ["methods", "GET /", "", null],
    ["methods", "PROPFIND /", "", "propfind"],
    ["headers", "GET /", "X-Beta: yes\r\n", "beta"],
    ["headers", "GET /", "x-beta: yes\r\n", "beta"],
    ["headers", "GET /", "X-Beta: YES\r\n", null],
    ["headers", "GET /", "User-Agent: x Mobile/1\r\n", "mobile"],
    ["headers", "GET /", "X-With:\r\n", "with"],
    ["headers", "GET /w", "", "without"],
    ["query", "GET /?v=2", "", "q"],
    ["query", "GET /?a=1&v=2", "", "q"],
    ["query", "GET /?%76=%32", "", "q"],
    ["query", "GET /?v=1&v=2", "", null],
    ["query", "GET /?v=22", "", null],
    ["query", "GET /?r=aaa", "", "q-regex"],
    ["query", "GET /?r=aab", "", null],
    ["query", "GET /?p", "", "q-present"],
    ["query", "GET /?p=", "", "q-present"],
    ["cookies", "GET /", "Cookie: x=1; group=b\r\n", "c"],
    ["cookies", "GET /", 'Cookie: group="b"\r\n', "c"],
    ["cookies", "GET /", "Cookie: xgroup=b\r\n", null],
    ["cookies", "GET /", "Cookie: group=a; group=b\r\n", null],
    ["cidr", "GET /", "", "near"],
    ["cidr", "GET /", "X-Forwarded-For: 10.0.0.1\r\n", "near"],
    ["cidr-far", "GET /", "X-Forwarded-For: 10.0.0.1\r\n", null],
    ["protocol", "GET /", "", null],
    ["protocol", "GET /", "X-Forwarded-Proto: https\r\n", null],
    ["protocol-plain", "GET /", "", "http"],
    ["listener", "GET /", "", "listener"],
    ["other-listener", "GET /", "", null],
    ["off", "GET /", "", null],
    ["both", "GET /", "A: 1\r\nB: 2\r\n", "both"],
    ["both", "GET /", "A: 1\r\nB: 3\r\n", null],
    ["both", "GET /", "A: 1\r\n", null],
  ])("%s: %s %j goes to %s", async (host, line, fields, route) => {
    const [method = "", target = ""] = line.split(" ");
    const seen = await get(target, { host, method, fields });
    expect(seen.route).toBe(route);
    expect(seen.status).toBe(route === null ? 404 : 200);
    if (route === null) expect(seen.request).toBeUndefined();
  });
});

describe("hosts, paths and the order between routes", () => {
  beforeAll(() =>
    serve([
      { name: "exact-host", hosts: ["a.example.com"] },
      { name: "wild", hosts: ["*.example.com"] },
      { name: "wild-deep", hosts: ["*.deep.example.com"] },
      { name: "any-host" },
      { name: "p-exact", hosts: ["p"], paths: ["=/a/b"] },
      { name: "p-short", hosts: ["p"], paths: ["/a"] },
      { name: "p-long", hosts: ["p"], paths: ["/a/b"] },
      { name: "p-regex", hosts: ["p"], paths: ["~^/a"] },
      { name: "p-regex-only", hosts: ["p"], paths: ["~^/r[0-9]+$"] },
      { name: "low", hosts: ["prio"], paths: ["=/x"], priority: -1 },
      { name: "high", hosts: ["prio"], priority: 5 },
      { name: "fewer", hosts: ["cond"] },
      { name: "more", hosts: ["cond"], methods: ["GET"] },
      { name: "two", hosts: ["two.one", "two.two"], paths: ["/1", "/2"] },
    ]),
  );

  test.each([
    ["a.example.com", "/", "exact-host"],
    ["A.EXAMPLE.COM", "/", "exact-host"],
    ["a.example.com.", "/", "exact-host"],
    ["a.example.com:8080", "/", "exact-host"],
    ["b.example.com", "/", "wild"],
    ["x.y.example.com", "/", "wild"],
    ["B.Example.Com.:1", "/", "wild"],
    ["x.deep.example.com", "/", "wild-deep"],
    ["deep.example.com", "/", "wild"],
    ["example.com", "/", "any-host"],
    ["xexample.com", "/", "any-host"],
    ["127.0.0.1", "/", "any-host"],
    ["p", "/a/b", "p-exact"],
    ["p", "/a/b/c", "p-long"],
    ["p", "/a/bc", "p-short"],
    ["p", "/a", "p-short"],
    ["p", "/a/", "p-short"],
    ["p", "/ab", "p-regex"],
    ["p", "/r12", "p-regex-only"],
    ["p", "/R12", "any-host"],
    ["p", "/A", "any-host"],
    ["prio", "/x", "high"],
    ["cond", "/", "more"],
    ["two.two", "/1/x", "two"],
    ["two.one", "/2", "two"],
    ["two.one", "/3", "any-host"],
  ])("http://%s%s goes to %s", async (host, target, route) => {
    expect((await get(target, { host })).route).toBe(route);
  });
});

describe("what a route does to the request", () => {
  beforeAll(() =>
    serve([
      { name: "strip", hosts: ["strip"], paths: ["/api", "/api/v2"], strip_path: true },
      {
        name: "rewrite",
        hosts: ["rewrite"],
        path_rewrite: { regex: "^/old/(.*)$", to: "/new/$1" },
      },
      {
        name: "rewrite-odd",
        hosts: ["odd"],
        path_rewrite: { regex: "^/(.*)$", to: "/a b?c#d/$1" },
      },
      { name: "rewrite-up", hosts: ["up"], path_rewrite: { regex: "^/x/(.*)$", to: "/../$1" } },
      {
        name: "both",
        hosts: ["both"],
        paths: ["/api"],
        strip_path: true,
        path_rewrite: { regex: "^/v(\\d)", to: "/version/$1" },
      },
      { name: "prefix", hosts: ["prefix"], paths: ["/foo"], prefix_rewrite: "/xyz" },
      { name: "prefix-slash", hosts: ["prefix-slash"], paths: ["/foo/"], prefix_rewrite: "/xyz/" },
      { name: "prefix-root", hosts: ["prefix-root"], paths: ["/foo"], prefix_rewrite: "/" },
      { name: "prefix-all", hosts: ["prefix-all"], prefix_rewrite: "/all" },
      {
        name: "prefix-two",
        hosts: ["prefix-two"],
        paths: ["/a", "/a/b", "=/c"],
        prefix_rewrite: "/x",
        path_rewrite: { regex: "^/x/(\\d)", to: "/number/$1" },
      },
      { name: "preserve", hosts: ["preserve"], preserve_host: true },
      { name: "target", hosts: ["target"], preserve_host: false },
      { name: "inherit", hosts: ["inherit"] },
      { name: "redirect", hosts: ["redirect"], https_redirect: true },
      { name: "redirect-301", hosts: ["redirect-301"], https_redirect: 301 },
    ]),
  );

  test.each([
    ["strip", "/api", "/"],
    ["strip", "/api/", "/"],
    ["strip", "/api/x?q=1", "/x?q=1"],
    ["strip", "/api/v2/x", "/x"],
    ["strip", "/api/v2", "/"],
    ["strip", "/api//x", "//x"],
    ["strip", "/api?", "/?"],
    ["rewrite", "/old/x/y?q", "/new/x/y?q"],
    ["rewrite", "/other", "/other"],
    ["odd", "/x", "/a%20b%3Fc%23d/x"],
    ["both", "/api/v2/x", "/version/2/x"],
    ["prefix", "/foo/bar?q=1", "/xyz/bar?q=1"],
    ["prefix", "/foo", "/xyz"],
    ["prefix", "/foo?q", "/xyz?q"],
    ["prefix", "/foo/", "/xyz/"],
    ["prefix", "/f%6Fo/bar", "/xyz/bar"],
    ["prefix-slash", "/foo/bar", "/xyz/bar"],
    ["prefix-slash", "/foo", "/xyz/"],
    ["prefix-slash", "/foo/", "/xyz/"],
    ["prefix-root", "/foo/bar", "/bar"],
    ["prefix-root", "/foo/", "/"],
    ["prefix-root", "/foo", "/"],
    ["prefix-all", "/", "/all/"],
    ["prefix-all", "/x//y", "/all/x//y"],
    ["prefix-two", "/a/b/1", "/number/1"],
    ["prefix-two", "/a/c", "/x/c"],
    ["prefix-two", "/c", "/c"],
  ])("%s: %s goes upstream as %s", async (host, target, upstream) => {
    expect((await get(target, { host })).request?.target).toBe(upstream);
  });

  test("a rewrite that leaves the root is rejected", async () => {
    const seen = await get("/x/y", { host: "up" });
    expect(seen.status).toBe(400);
    expect(seen.request).toBeUndefined();
  });

  test.each([
    ["preserve", "preserve:81"],
    ["target", null],
    ["inherit", "inherit:81"],
  ])("Host with %s", async (host, expected) => {
    const seen = await get("/", { host: `${host}:81` });
    expect(seen.request?.header("host")).toBe(expected ?? `127.0.0.1:${origin.port}`);
    expect(seen.request?.header("x-forwarded-host")).toBe(`${host}:81`);
  });

  test.each([
    ["redirect", "/a?b", 308, "https://redirect/a?b"],
    ["redirect:8080", "/a", 308, "https://redirect/a"],
    ["redirect-301", "/", 301, "https://redirect-301/"],
  ])("http://%s%s is redirected with %d to %s", async (host, target, status, location) => {
    const seen = await get(target, { host });
    expect(seen.status).toBe(status);
    expect(seen.header("location")).toBe(location);
    expect(seen.request).toBeUndefined();
  });

  test("ACME challenges of the service behind are not redirected", async () => {
    const path = "/.well-known/acme-challenge/of-the-service";
    expect((await get(path, { host: "redirect" })).request?.target).toBe(path);
    for (const other of [`${path}/../../../x`, "/.well-known/acme-challenge", `/x${path}`])
      expect((await get(other, { host: "redirect" })).status).toBe(308);
  });
});

describe("what a service does to the request", () => {
  test.each([
    ["", "/x?q", "/x?q"],
    ["/base", "/x?q", "/base/x?q"],
    ["/base/", "/x", "/base/x"],
    ["/base", "/", "/base"],
    ["/base/", "/", "/base/"],
    ["/base", "/?", "/base?"],
    ["/base", "//", "/base//"],
    ["/base", "/..%2fx", null],
  ])("path %j and %s become %j", async (path, target, upstream) => {
    await serve([{ name: "r" }], { service: { path } });
    expect((await get(target)).request?.target ?? null).toBe(upstream);
  });

  test.each([
    ["/base", "/away", "/base"],
    ["/base", "/away/", "/base/"],
    ["/base", "/away/x?q", "/base/x?q"],
    ["/base/", "/away?q", "/base/?q"],
    ["", "/away", "/"],
    ["/base", "/", "/base"],
  ])("path %j and %s, rewritten to nothing, become %j", async (path, target, upstream) => {
    await serve([{ name: "r", path_rewrite: { regex: "^/away", to: "" } }], { service: { path } });
    expect((await get(target)).request?.target ?? null).toBe(upstream);
  });

  test.each([
    ["preserve", "h"],
    ["target", null],
    ["app.internal", "app.internal"],
  ])("host_header %j", async (mode, host) => {
    await serve([{ name: "r" }], { service: { host_header: mode } });
    expect((await get("/")).request?.header("host")).toBe(host ?? `127.0.0.1:${origin.port}`);
  });
});

describe("max_in_flight_requests at its limit", () => {
  test("requests up to the limit are served, one more gets 503, and later ones pass again", async () => {
    const waiting: (() => void)[] = [];
    const slow = startOrigin({
      answer: (_request, connection) => {
        waiting.push(() => connection.write(reply("ok")));
        return null;
      },
    });
    const limited = await startDataPlane({
      services: [{ name: "s", targets: [{ port: slow.port }] }],
      routes: [{ name: "r", service_id: "s" }],
      settings: { limits: { max_in_flight_requests: 3 } },
    });
    const ask = () => exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n", { port: limited.port });
    const three = [ask(), ask(), ask()];
    await slow.untilRequests(3);
    const fourth = await ask();
    expect(fourth.outcome).toBe("503");
    expect(fourth.answers[0]?.header("proxy-status")).toContain("connection_limit_reached");
    expect(fourth.answers[0]?.header("retry-after")).not.toBeNull();
    for (const answer of waiting.splice(0)) answer();
    expect((await Promise.all(three)).map(({ outcome }) => outcome)).toEqual(["200", "200", "200"]);
    const again = ask();
    await slow.untilRequests(4);
    for (const answer of waiting.splice(0)) answer();
    expect((await again).outcome).toBe("200");
    await limited.stop();
    slow.stop();
  });
});
