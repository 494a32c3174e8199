// Files and labels of Traefik: forms, names, entry points and priorities (requests: tests/integration/transfer/import-traefik).
import { describe, expect, test } from "bun:test";
import { hostExpression } from "../../../src/import/traefik/hosts.ts";
import { labelsToDynamic } from "../../../src/import/traefik/labels.ts";
import { mergeDynamic } from "../../../src/import/traefik/merge.ts";
import { prioritiesOf } from "../../../src/import/traefik/order.ts";
import { parseRule } from "../../../src/import/traefik/rule.ts";
import { type Anything, convertWith } from "./samples.ts";

async function made(source: unknown) {
  const { document, report } = await convertWith("traefik", source);
  const routes: readonly Anything[] = document.routes ?? [];
  return {
    document,
    report,
    route: (name: string): Anything => routes.find((each) => each.name === name),
    closed: routes.filter(({ maintenance }) => maintenance !== undefined).map(({ name }) => name),
  };
}

const service = { loadBalancer: { servers: [{ url: "http://127.0.0.1:8080" }] } };
const withRouters = (routers: object, rest: object = {}) => ({
  http: { routers, services: { web: service }, ...rest },
});

describe("labels of a container", () => {
  const container = { name: "web", address: "172.17.0.2", port: 80 };
  const read = (labels: Record<string, string>) => labelsToDynamic(labels, container);

  test("become the form of a file, regardless of case", () => {
    const { dynamic, problems, isEnabled } = read({
      "traefik.enable": "True",
      "Traefik.HTTP.Routers.shop.Rule": "Host(`a.test`)",
      "traefik.http.routers.shop.entrypoints": "web, websecure",
      "traefik.http.routers.shop.tls": "true",
      "traefik.http.routers.shop.tls.domains[0].main": "a.test",
      "traefik.http.routers.shop.tls.domains[0].sans": "b.test,c.test",
      "traefik.http.routers.shop.priority": "7",
      "traefik.http.services.shop.loadbalancer.server.port": "8080",
      "traefik.http.services.shop.loadbalancer.sticky.cookie": "true",
      "traefik.http.middlewares.head.headers.customrequestheaders.X-Kind": "a,b",
      "com.example.other": "x",
    });
    expect({ problems, isEnabled }).toEqual({ problems: [], isEnabled: true });
    expect(dynamic).toEqual({
      http: {
        routers: {
          shop: {
            rule: "Host(`a.test`)",
            entryPoints: ["web", "websecure"],
            priority: 7,
            service: "shop",
            tls: { domains: [{ main: "a.test", sans: ["b.test", "c.test"] }] },
          },
        },
        services: {
          shop: {
            loadBalancer: { sticky: { cookie: {} }, servers: [{ url: "http://172.17.0.2:8080" }] },
          },
        },
        middlewares: { head: { headers: { customRequestHeaders: { "X-Kind": "a,b" } } } },
      },
    });
  });

  test("without a service use the name and the port of the container", () => {
    const { dynamic } = read({ "traefik.http.routers.a.rule": "Host(`a.test`)" });
    expect(dynamic).toMatchObject({
      http: {
        routers: { a: { service: "web" } },
        services: { web: { loadBalancer: { servers: [{ url: "http://172.17.0.2:80" }] } } },
      },
    });
  });

  test("of TCP have servers with addresses", () => {
    const { dynamic } = labelsToDynamic(
      {
        "traefik.tcp.routers.db.rule": "HostSNI(`*`)",
        "traefik.tcp.services.db.loadbalancer.server.port": "5432",
      },
      { ...container, address: "fd00::2" },
    );
    expect(dynamic).toMatchObject({
      tcp: {
        routers: { db: { service: "db" } },
        services: { db: { loadBalancer: { servers: [{ address: "[fd00::2]:5432" }] } } },
      },
    });
  });

  const rule = { "traefik.http.routers.a.rule": "Host(`a.test`)" };
  test.each([
    [{ "traefik.http.services.a.loadbalancer.server.port": "x", ...rule }, "no valid port"],
    [{ "traefik.enable": "true" }, "no label of web defines a router"],
    [{ "traefik.http.routers.a.entrypoints": "web" }, "the router a of web has no rule"],
    [{ "traefik.frontend.rule": "Host:a.test" }, "is of Traefik 1"],
    [{ "traefik.http.routers.a.priority": "high", ...rule }, "must be a number"],
    [
      {
        ...rule,
        "traefik.http.services.x.loadbalancer.server.port": "1",
        "traefik.http.services.y.loadbalancer.server.port": "2",
      },
      "names none of the services x, y",
    ],
  ] as [Record<string, string>, string][])("%j: %s", (labels, says) => {
    expect(read(labels).problems.join("\n")).toContain(says);
  });

  test("of other programs are no labels of Traefik", () => {
    expect(read({ "caddy.reverse_proxy": "x", traefikish: "y" })).toEqual({
      dynamic: {},
      problems: [],
      isEnabled: null,
    });
  });

  test("of two containers with one service join their servers", () => {
    const labels = { "traefik.http.routers.a.rule": "Host(`a.test`)" };
    const both = ["172.17.0.2", "172.17.0.3"].map(
      (address) => labelsToDynamic(labels, { ...container, address }).dynamic,
    );
    const { dynamic, conflicts } = mergeDynamic(both);
    expect(conflicts).toEqual([]);
    expect((dynamic as Anything).http.services.web.loadBalancer.servers).toHaveLength(2);
    const other = { http: { routers: { a: { rule: "Host(`b.test`)" } } } };
    expect(mergeDynamic([...both, other]).conflicts).toEqual(["http.routers.a"]);
  });
});

test.each([
  ["Host(`a`) && Path(`/b`)", 1],
  ["Host(`a`) || Host(`b`)", 2],
  ["(Host(`a`) || Host(`b`)) && (Path(`/a`) || Path(`/b`))", 4],
  ["!(Host(`a`) || Host(`b`))", 1],
  ['Host("a")', 1],
] as const)("%s has %d alternatives", (rule, count) => {
  expect(parseRule(rule)).toHaveLength(count);
});

test.each([
  "",
  "Host(`a`",
  "Host(a)",
  "Host(`a`) Host(`b`)",
  "Host(`a`) &&",
  "&& Host(`a`)",
  "`a`",
])("the rule %j is rejected with a reason", (rule) => {
  expect(parseRule(rule)).toEqual(expect.stringContaining("its rule"));
});

test("a rule with very many alternatives is rejected", () => {
  const half = Array.from({ length: 30 }, (_, at) => `Path(\`/${at}\`)`).join(" || ");
  expect(parseRule(`(${half}) && (${half})`)).toEqual(expect.stringContaining("more than 64"));
  expect(parseRule("(".repeat(1000))).toEqual(expect.stringContaining("nested too deeply"));
});

test.each([
  { source: "^(www\\.)?a\\.test$", hosts: ["a.test", "www.a.test"], header: false },
  { source: "^(?:a|b)\\.test$", hosts: ["a.test", "b.test"], header: false },
  { source: "^.+\\.a\\.test$", hosts: ["*.a.test"], header: false },
  { source: "^[a-z]+\\.a\\.test$", hosts: ["*.a.test"], header: true },
  { source: "{sub:[a-z]+}.a.test", hosts: ["*.a.test"], header: true },
  { source: ".+", hosts: [], header: false },
  { source: "{any:.*}", hosts: [], header: false },
  { source: "a\\.test", hosts: [], header: true },
  { source: "^a\\.test$|^b\\.test$", hosts: [], header: true },
])("the host expression $source matches $hosts", ({ source, hosts, header }) => {
  const found = hostExpression(source);
  expect(found?.hosts.toSorted()).toEqual([...hosts]);
  expect(found?.header !== null).toBe(header);
});

test("an expression without an equivalent is unknown", () => {
  expect(hostExpression("^(?<!x)a$")).toBeNull();
});

describe("priorities", () => {
  const route = (
    rank: number,
    hosts: string[],
    path?: string,
    type: "prefix" | "regex" = "prefix",
  ) => ({
    rank,
    hosts,
    paths: path === undefined ? [] : [{ type, value: path }],
    protocols: ["http"],
    conditions: 0,
  });

  test.each([
    ["longer paths precede anyway", [route(30, ["a"], "/x"), route(10, ["a"])], [0, 0]],
    ["a host precedes any host", [route(30, ["a"]), route(10, [])], [0, 0]],
    ["any host before a host", [route(30, []), route(10, ["a"])], [1, 0]],
    ["a shorter path first", [route(30, ["a"]), route(10, ["a"], "/x")], [1, 0]],
    [
      "expressions have no order",
      [route(30, ["a"], "^/xy", "regex"), route(20, ["a"], "^/x", "regex"), route(10, ["a"])],
      [1, 0, 0],
    ],
    ["other hosts do not matter", [route(30, ["a"]), route(10, ["b"], "/x")], [0, 0]],
    ["a chain", [route(30, []), route(20, ["*.a"]), route(10, ["x.a"])], [2, 1, 0]],
  ] as const)("%s", (_, routes, expected) => {
    expect(prioritiesOf(routes)).toEqual([...expected]);
  });
});

describe("files", () => {
  test("TOML and YAML give the same result", async () => {
    const toml = `
# dynamic
[http.routers.a]
  rule = "Host(\`a.test\`)"
  service = "web"
[http.services.web.loadBalancer]
  [[http.services.web.loadBalancer.servers]]
    url = "http://127.0.0.1:8080"
`;
    const routers = { a: { rule: "Host(`a.test`)", service: "web" } };
    const yaml = Bun.YAML.stringify(withRouters(routers), null, 2);
    const [one, other] = [await made(toml), await made(yaml)];
    expect(one.document).toEqual(other.document);
    expect(one.route("a")).toMatchObject({ hosts: ["a.test"], protocols: ["http", "https"] });
  });

  test("the static configuration decides schemes, redirects and certificates", async () => {
    const { document, route, closed } = await made({
      entryPoints: {
        plain: { address: ":80", http: { redirections: { entryPoint: { to: "tls" } } } },
        tls: { address: ":443", http: { tls: { certResolver: "le" } } },
        lan: { address: ":8443" },
      },
      certificatesResolvers: {
        le: { acme: { email: "a@a.test", caServer: "https://ca.test/dir" } },
      },
      ...withRouters({
        a: { rule: "Host(`a.test`)", service: "web", entryPoints: ["tls"] },
        b: { rule: "Host(`b.test`)", service: "web", entryPoints: ["lan"] },
      }),
    });
    expect(route("a")).toMatchObject({ protocols: ["http", "https"], https_redirect: 301 });
    expect(closed).toEqual(["b"]);
    expect(document.certificates).toMatchObject([{ domains: ["a.test"], source: "acme" }]);
    expect(document.acme_accounts).toMatchObject([
      { email: "a@a.test", directory_url: "https://ca.test/dir" },
    ]);
  });

  test("users keep the hashes that Traefik compares, and others are named", async () => {
    const md5 = "$apr1$saltsalt$yyyyyyyyyyyyyyyyyyyyyy";
    const sha = "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=";
    const users = [`a:${md5}`, `b:${sha}`, `c:$6$x$${"a".repeat(86)}`, "d:$apr1$x$y"];
    const { document, closed } = await made(
      withRouters(
        { a: { rule: "Host(`a.test`)", service: "web", middlewares: ["login"] } },
        { middlewares: { login: { basicAuth: { users } } } },
      ),
    );
    expect(closed).toEqual([]);
    expect(document.plugins[0].config.users).toEqual([
      { username: "a", password_hash: md5 },
      { username: "b", password_hash: sha },
    ]);
  });

  test("addresses of clients behind a proxy close the routes that ask for them", async () => {
    const { closed } = await made({
      entryPoints: { web: { address: ":80", forwardedHeaders: { trustedIPs: ["10.0.0.0/8"] } } },
      ...withRouters(
        {
          a: { rule: "Host(`a.test`)", service: "web", middlewares: ["lan"] },
          b: { rule: "Host(`b.test`) && ClientIP(`10.0.0.1`)", service: "web" },
          c: { rule: "Host(`c.test`)", service: "web" },
        },
        { middlewares: { lan: { ipAllowList: { sourceRange: ["10.0.0.0/8"] } } } },
      ),
    });
    expect(closed).toEqual(["a", "b"]);
  });

  test.each([
    ["basicAuth without a user", { basicAuth: { usersFile: "/users" } }],
    ["an unknown setting", { basicAuth: { users: [], mode: "x" } }],
    [
      "addresses from a header",
      { ipAllowList: { sourceRange: ["10.0.0.0/8"], ipStrategy: { depth: 1 } } },
    ],
    ["an invalid network", { ipAllowList: { sourceRange: ["nonsense"] } }],
    ["an unknown type", { somethingNew: { a: 1 } }],
    ["two types", { compress: {}, stripPrefix: { prefixes: ["/a"] } }],
    ["no type", {}],
    [
      "headers by expression",
      { forwardAuth: { address: "http://a", authResponseHeadersRegex: "^X" } },
    ],
    ["hosts", { headers: { allowedHosts: ["a.test"] } }],
    ["a loop", { chain: { middlewares: ["it"] } }],
  ])("a protection that is lost closes the route: %s", async (_, it) => {
    const { closed } = await made(
      withRouters(
        { a: { rule: "Host(`a.test`)", service: "web", middlewares: ["it"] } },
        { middlewares: { it } },
      ),
    );
    expect(closed).toEqual(["a"]);
  });

  test.each([
    ["errors", { errors: { status: ["500"], service: "web", query: "/" } }],
    ["compress", { compress: {} }],
    ["circuitBreaker", { circuitBreaker: { expression: "x" } }],
    ["rateLimit", { rateLimit: { average: 10 } }],
  ])("others leave it open: %s", async (_, it) => {
    const { closed } = await made(
      withRouters(
        { a: { rule: "Host(`a.test`)", service: "web", middlewares: ["it"] } },
        { middlewares: { it } },
      ),
    );
    expect(closed).toEqual([]);
  });

  describe("circuitBreaker", () => {
    const breaker = async (expression: string, more: object = {}) => {
      const { document, report, closed } = await made(
        withRouters(
          { a: { rule: "Host(`a.test`)", service: "web", middlewares: ["it"] } },
          { middlewares: { it: { circuitBreaker: { expression, ...more } } } },
        ),
      );
      expect(closed).toEqual([]);
      const config = document.plugins?.[0]?.config ?? null;
      const isNamed = report.some(
        ({ what, why }) => what.startsWith('middleware "it"') && why.includes("no equivalent"),
      );
      expect(isNamed).toBe(config === null);
      return config;
    };

    test.each([
      ["NetworkErrorRatio() > 0.30", { error_ratio: 0.3, statuses: [502, 504], min_requests: 1 }],
      ["NetworkErrorRatio() >= 1", { error_ratio: 1 }],
      [
        "ResponseCodeRatio(500, 503, 0, 600) > 0.25",
        { error_ratio: 0.25, statuses: [500, 501, 502] },
      ],
      [
        "LatencyAtQuantileMS(50.0) > 100",
        { latency_ms: 100, latency_quantile: 0.5, error_ratio: 1, statuses: [] },
      ],
      [
        "LatencyAtQuantileMS(90) > 20 || NetworkErrorRatio() > 0.1",
        { latency_ms: 20, latency_quantile: 0.9, error_ratio: 0.1, min_requests: 1 },
      ],
    ])("%s", async (expression, config) => {
      expect(await breaker(expression)).toMatchObject({ ...config, open_for: 10 });
    });

    test("the whole class of 5xx, its duration and its status", async () => {
      const more = { fallbackDuration: "30s", responseCode: 429, recoveryDuration: "5s" };
      const config = await breaker("ResponseCodeRatio(500, 600, 0, 600) > 0.25", more);
      expect(config).toMatchObject({ open_for: 30, response: { status: 429 } });
      expect(config.statuses).toHaveLength(100);
      expect(config.statuses.at(-1)).toBe(599);
    });

    test.each([
      "NetworkErrorRatio() > 0.3 && LatencyAtQuantileMS(50) > 100",
      "NetworkErrorRatio() > 0.3 || ResponseCodeRatio(500, 600, 0, 600) > 0.25",
      "!(NetworkErrorRatio() > 0.3)",
      "NetworkErrorRatio() < 0.3",
      "NetworkErrorRatio() > 0",
      "NetworkErrorRatio() > 1.1",
      "ResponseCodeRatio(500, 600, 200, 600) > 0.25",
      "ResponseCodeRatio(400, 600, 0, 600) > 0.25",
      "ResponseCodeRatio(600, 500, 0, 600) > 0.25",
      "LatencyAtQuantileMS(100.0) > 100",
      "",
    ])("stays named: %s", async (expression) => {
      expect(await breaker(expression)).toBeNull();
    });
  });

  test("errors is named, because its pages come from a service", async () => {
    const { document, report } = await made(
      withRouters(
        { a: { rule: "Host(`a.test`)", service: "web", middlewares: ["it"] } },
        {
          middlewares: {
            it: { errors: { status: ["500-599"], service: "web", query: "/{status}" } },
          },
        },
      ),
    );
    expect(document.plugins ?? []).toEqual([]);
    expect(report.find(({ what }) => what.startsWith('middleware "it"'))).toMatchObject({
      level: "omitted",
      why: expect.stringContaining("error-pages"),
    });
  });

  test("streams keep their ports and are disabled", async () => {
    const { document, report } = await made({
      entryPoints: {
        pg: { address: ":5432" },
        dns: { address: ":53/udp" },
        tls: { address: ":8443" },
      },
      tcp: {
        routers: {
          db: { rule: "HostSNI(`*`)", entryPoints: ["pg"], service: "db", middlewares: ["lan"] },
          mail: {
            rule: "HostSNI(`mail.test`)",
            entryPoints: ["tls"],
            service: "db",
            tls: { passthrough: true },
          },
          lost: { rule: "HostSNI(`*`)", entryPoints: ["nowhere"], service: "db" },
        },
        services: { db: { loadBalancer: { servers: [{ address: "10.0.0.1:5432" }] } } },
        middlewares: { lan: { ipAllowList: { sourceRange: ["10.0.0.0/8"] } } },
      },
      udp: {
        routers: { dns: { entryPoints: ["dns"], service: "dns" } },
        services: { dns: { loadBalancer: { servers: [{ address: "10.0.0.2:53" }] } } },
      },
    });
    expect(document.stream_routes).toMatchObject([
      { listen_port: 5432, protocol: "tcp", allow: ["10.0.0.0/8"], enabled: false },
      { listen_port: 8443, tls_mode: "passthrough", sni: ["mail.test"], enabled: false },
      { listen_port: 53, protocol: "udp", enabled: false },
    ]);
    expect(report).toContainEqual(
      expect.objectContaining({ level: "omitted", what: 'TCP router "lost"' }),
    );
  });

  test("every router, service and middleware is in the report", async () => {
    const { report } = await made(
      withRouters(
        { a: { rule: "Host(`a.test`)", service: "web" }, b: { rule: "Nonsense(", service: "web" } },
        { services: { web: service, idle: service }, middlewares: { idle: { compress: {} } } },
      ),
    );
    const named = report.map(({ level, what }) => `${level} ${what}`);
    for (const entry of [
      'imported router "a"',
      'imported service "web"',
      'omitted router "b"',
      'omitted service "idle"',
      'omitted middleware "idle"',
    ])
      expect(named).toContain(entry);
  });
});
