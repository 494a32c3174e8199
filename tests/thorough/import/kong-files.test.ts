// Declarative files of Kong in the shapes of public ones: which of them the import accepts, and what becomes of their parts.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Anything, convertWith } from "../../unit/import/samples.ts";

const fixtures = join(import.meta.dir, "../../fixtures/import/kong");
const files = readdirSync(fixtures);
const read = (name: string) => readFileSync(join(fixtures, name), "utf8");

test(`of ${files.length} shapes of public files, at least 95 % are accepted`, async () => {
  const rejected: string[] = [];
  for (const name of files)
    await convertWith("kong", read(name)).catch((error: Error) =>
      rejected.push(`${name}: ${error.message}`),
    );
  expect(files.length).toBeGreaterThan(40);
  expect(rejected.slice(Math.floor(files.length * 0.05))).toEqual([]);
});

async function made(source: unknown) {
  const { document, report } = await convertWith("kong", source);
  const routes = (document.routes ?? []) as readonly Anything[];
  return {
    document,
    report,
    route: (name: string): Anything => routes.find((each) => each.name === name),
    routes: [...routes].sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0)),
    closed: routes.filter(({ maintenance }) => maintenance !== undefined).map(({ name }) => name),
    plugins: (document.plugins ?? []) as readonly Anything[],
  };
}

const sample = (name: string) => made(read(name));

/** One service `s` with one route `r` that has the plugin. */
const withPlugin = (name: string, config: object) =>
  made({
    services: [
      {
        name: "s",
        host: "s.test",
        routes: [{ name: "r", paths: ["/"], plugins: [{ name, config }] }],
      },
    ],
  });

describe("a file without a version", () => {
  test.each([
    ["deck-workspace-no-version.yaml", "2.1"],
    ["regex-paths-3.x.yaml", "3.0"],
  ])("%s is read as %s", async (name, version) => {
    const { report } = await sample(name);
    expect(report).toContainEqual({
      level: "changed",
      what: "_format_version",
      why: `is missing: the file is read as ${version}`,
    });
  });
});

describe("defaults of decK", () => {
  test("fill in what services, routes, upstreams and targets do not set", async () => {
    const { document, route } = await sample("deck-defaults.yaml");
    const [a, b] = document.services;
    expect(a).toMatchObject({
      algorithm: "least_connections",
      connect_timeout: 5000,
      retries: { count: 1 },
      tags: ["from-defaults"],
      health: { active: { path: "/health", interval: 5 } },
    });
    // A URL has its own protocol and port.
    expect(b).toMatchObject({ protocol: "https", path: "/base", retries: { count: 3 } });
    const targets = document.targets.map(({ host, port, weight }: Anything) => [
      host,
      port,
      weight,
    ]);
    expect(targets).toEqual([
      ["10.0.0.1", 80, 7],
      ["10.0.0.2", 80, 1],
      ["b.test", 443, 100],
    ]);
    expect(route("a")).toMatchObject({ https_redirect: 301, preserve_host: true });
    expect(route("a").strip_path ?? false).toBe(false);
    expect(route("b").strip_path).toBe(true);
  });

  test("apply to routes beside services", async () => {
    expect((await sample("deck-defaults-lists.yaml")).route("a").protocols).toEqual(["http"]);
  });
});

describe("rate-limiting-advanced", () => {
  test("becomes the plugin rate-limit", async () => {
    const { plugins } = await sample("rate-limits-by-tier.yaml");
    expect(plugins[0]).toMatchObject({
      name: "rate-limit",
      config: {
        limits: [
          { name: "window-60", requests: 100, window: 60, algorithm: "sliding", key: "consumer" },
          { name: "window-3600-2", requests: 1000, window: 3600 },
        ],
        headers: "off",
        message: "slow down",
      },
    });
  });
});

describe("openid-connect", () => {
  test("becomes the plugin oidc with its login", async () => {
    const { plugins, closed } = await sample("konnect.yaml");
    expect(closed).toEqual([]);
    expect(plugins[0]).toMatchObject({
      name: "oidc",
      config: {
        issuer: "https://idp.test/realms/a",
        client_id: "kong",
        redirect_path: "/oidc/get",
        unauth_action: "auth",
        bearer_allowed: false,
        headers: {},
      },
    });
  });

  test("for Bearer tokens has no login", async () => {
    const { plugins, closed } = await sample("oidc-bearer.yaml");
    expect(closed).toEqual([]);
    expect(plugins[0].config).toMatchObject({
      issuer: "https://idp.test/realms/a",
      unauth_action: "deny",
      bearer_allowed: true,
      bearer_audience: ["api"],
      groups_claim: "realm_access.roles",
      allowed_groups: ["staff"],
    });
  });

  const base = { issuer: "https://idp.test", client_id: ["kong"] };
  test.each([
    ["scopes", { ...base, scopes_required: ["a"] }],
    ["roles", { ...base, roles_required: ["a"] }],
    ["consumers", { ...base, consumer_claim: ["sub"] }],
    ["two groups at once", { ...base, groups_required: ["a b"] }],
    ["an audience of the login", { ...base, audience_required: ["a"] }],
    ["two clients", { ...base, client_id: ["a", "b"] }],
    ["a client in a vault", { ...base, client_id: ["{vault://env/id}"] }],
    ["no issuer", { client_id: ["a"] }],
    ["an issuer without TLS", { ...base, issuer: "http://idp.test" }],
    ["passwords alone", { ...base, auth_methods: ["password"] }],
    ["opaque tokens alone", { ...base, auth_methods: ["introspection"] }],
    ["an unknown setting", { ...base, claims_required_by_us: "x" }],
  ])("closes its route if it requires what the plugin oidc cannot: %s", async (_, config) => {
    expect((await withPlugin("openid-connect", config)).closed).toEqual(["r"]);
  });

  test("in front of a redirect closes it", async () => {
    const plugins = [
      { name: "openid-connect", config: base },
      { name: "redirect", config: { location: "https://a.test/secret" } },
    ];
    const { closed } = await made({
      services: [{ name: "s", host: "s.test", plugins, routes: [{ name: "r", paths: ["/"] }] }],
    });
    expect(closed).toEqual(["r"]);
  });
});

describe("request-validator", () => {
  test("with Kong's schema becomes the plugin request-validation", async () => {
    const { plugins, closed } = await sample("request-validator-kong.yaml");
    expect(closed).toEqual([]);
    expect(plugins[0]).toMatchObject({
      name: "request-validation",
      config: {
        body_schema: {
          type: "object",
          properties: { user_name: { type: "string" }, tier: { enum: ["standard", "vip"] } },
          required: ["user_name"],
          additionalProperties: false,
        },
        content_types: ["application/json"],
        verbose_errors: true,
      },
    });
  });

  test("with JSON Schema too, and with parameters", async () => {
    const { plugins } = await sample("request-validator-draft4.yaml");
    expect(plugins[0].config).toMatchObject({
      body_schema: { required: ["amount"] },
      query_schema: { type: "object", properties: { page: { type: "integer" } }, required: [] },
    });
  });

  const parameter = (place: string) => ({
    parameter_schema: [{ name: "id", in: place, required: true, schema: '{"type":"string"}' }],
  });
  test.each([
    ["a parameter in the path", parameter("path")],
    ["Lua patterns", { body_schema: '[{"a": {"type": "string", "match": "%a+"}}]' }],
    ["no JSON", { body_schema: "v2" }],
    [
      "a limit of draft 4",
      { version: "draft4", body_schema: '{"minimum": 1, "exclusiveMinimum": true}' },
    ],
    ["dependencies", { version: "draft7", body_schema: '{"dependencies": {"a": ["b"]}}' }],
  ])("closes its route: %s", async (_, config) => {
    expect((await withPlugin("request-validator", config)).closed).toEqual(["r"]);
  });
});

describe("WebSocket routes", () => {
  test("serve handshakes only", async () => {
    const { document, route } = await sample("websocket.yaml");
    expect(document.services.map(({ protocol, path }: Anything) => [protocol, path])).toEqual([
      ["https", ""],
      ["http", "/socket"],
    ]);
    const upgrade = {
      name: "Upgrade",
      op: "regex",
      value: "^[wW][eE][bB][sS][oO][cC][kK][eE][tT]$",
    };
    expect(route("chat")).toMatchObject({ headers: [upgrade], https_redirect: 308 });
    expect(route("live")).toMatchObject({ headers: [upgrade], protocols: ["http", "https"] });
  });
});

describe("expressions", () => {
  test("become routes in the order of their priorities", async () => {
    const { routes, closed } = await sample("expressions.yaml");
    expect(closed).toEqual([]);
    expect(routes.map(({ name }) => name)).toEqual(["beta", "api", "api 2", "mock", "mock or 2"]);
    const [beta, api, , mock, secure] = routes;
    expect(beta).toMatchObject({ headers: [{ name: "x-beta", op: "regex", value: "^1$" }] });
    expect(api).toMatchObject({
      hosts: ["api.test"],
      methods: ["GET"],
      paths: [{ type: "prefix", value: "/v1" }],
    });
    expect(mock.paths).toEqual([{ type: "regex", value: "^/mock$" }]);
    expect(secure).toMatchObject({ paths: [], protocols: ["https"] });
  });

  test("with raw texts and several methods are one route", async () => {
    const { routes } = await sample("expressions-regex.yaml");
    expect(routes).toMatchObject([
      { name: "raw", methods: ["GET", "HEAD"], paths: [{ type: "regex", value: "^/users/\\d+$" }] },
    ]);
  });

  const guarded = (expression: string) =>
    made({
      services: [
        {
          name: "s",
          host: "s.test",
          routes: [
            { name: "guarded", expression, plugins: [{ name: "key-auth" }] },
            { name: "open", hosts: ["a.test"], paths: ["/"] },
          ],
        },
      ],
    });

  test("beside routes without their protection match at least what Kong matches", async () => {
    const { closed, route } = await guarded('http.host == "a.test" && http.path ^= "/admin"');
    expect(closed).toEqual([]);
    expect(route("guarded")).toMatchObject({ paths: [{ type: "regex", value: "^/admin" }] });
    expect(route("guarded").priority).toBeGreaterThan(route("open").priority);
  });

  test.each([
    ["a negation", '!(http.path == "/a")'],
    ["another comparison", 'http.path != "/a"'],
    ["a port", "net.dst.port == 8443"],
    ["a parameter", 'http.queries.a == "b"'],
    ["a name of TLS", 'tls.sni == "a.test"'],
    ["a field twice", 'http.path ^= "/a" && http.path ~ "b"'],
    ["a choice at the top of an expression", 'http.path ~ "^/a|/b"'],
    ["a path in lower case", 'lower(http.path) ^= "/a"'],
    ["no expression", 'http.path == "/a" &&'],
    [
      "too many alternatives",
      Array.from({ length: 65 }, (_each, at) => `http.path == "/${at}"`).join(" || "),
    ],
    ["depth", `${"(".repeat(60)}http.path == "/a"${")".repeat(60)}`],
  ])("with %s close what they protected", async (_, expression) => {
    expect((await guarded(expression)).closed).toEqual(["open"]);
  });
});

test("a condition of a plugin that sets headers closes its scope: it would set them for all requests", async () => {
  const source = (name: string, config: object) => ({
    services: [{ name: "s", host: "s.test", routes: [{ name: "r", paths: ["/"] }] }],
    plugins: [{ name, config, condition: 'http.path == "/a"' }],
  });
  const add = { add: { headers: ["X-Admin:yes"] } };
  expect((await made(source("request-transformer", add))).closed).toEqual(["r"]);
  expect((await made(source("key-auth", {}))).closed).toEqual([]);
});
