// What Kong denies stays denied after the import: settings without an equivalent (requests: tests/integration/transfer/import-kong).
import { describe, expect, test } from "bun:test";
import { type Anything, convertWith } from "./samples.ts";

const keyAuth = { name: "key-auth" };
const unknown = { name: "openid-connect", config: { issuer: "https://id.test" } };

async function made(source: object) {
  const { document, report } = await convertWith("kong", { _format_version: "3.0", ...source });
  const routes: readonly Anything[] = document.routes ?? [];
  return {
    document,
    report,
    routes,
    route: (name: string): Anything => routes.find((each) => each.name === name),
    closed: routes.filter(({ maintenance }) => maintenance !== undefined).map(({ name }) => name),
    plugins: (document.plugins ?? []) as readonly Anything[],
  };
}

const service = (rest: object) => ({ services: [{ name: "s", host: "s.test", ...rest }] });
const withPlugin = (plugin: object, rest: object = {}) =>
  made({ ...service({ routes: [{ name: "r", paths: ["/"], plugins: [plugin] }] }), ...rest });

describe("gRPC", () => {
  const grpc = { name: "g", host: "g.test", port: 50051 };
  const call = { name: "call", paths: ["/a.B/C"], strip_path: false };

  test.each([
    { protocol: "grpc", scheme: "http" },
    { protocol: "grpcs", scheme: "https" },
  ])("$protocol: the route waits for a listener, which the file cannot name", async (row) => {
    const { protocol, scheme } = row;
    const routes = [{ ...call, protocols: [protocol] }];
    const { document, route, report } = await made({ services: [{ ...grpc, protocol, routes }] });
    expect(document.services[0]).toMatchObject({ name: "g", protocol, tls: { verify: false } });
    expect(route("call")).toMatchObject({
      enabled: false,
      protocols: [scheme],
      paths: [{ type: "prefix", value: "/a.B/C" }],
    });
    expect(route("call").https_redirect ?? false).toBe(false);
    expect(report).toContainEqual({
      level: "changed",
      what: expect.stringContaining('route "call"'),
      why: expect.stringContaining('give a listener for it engine "sluice", then'),
    });
  });

  test("the protocol may be that of a URL", async () => {
    const { document } = await made({ services: [{ name: "g", url: "grpcs://g.test:443" }] });
    expect(document.services[0]).toMatchObject({ protocol: "grpcs" });
  });

  test("a route for it needs a service that speaks it", async () => {
    const { routes, report } = await made(service({ routes: [{ ...call, protocols: ["grpc"] }] }));
    expect(routes).toEqual([]);
    expect(report).toContainEqual(
      expect.objectContaining({ level: "omitted", why: "its service does not speak gRPC" }),
    );
  });

  test("routes that a disabled one protected are closed, and not the disabled one", async () => {
    const routes = [{ ...call, protocols: ["grpc"], hosts: ["a.test"], plugins: [keyAuth] }];
    const { closed } = await made({
      services: [
        { ...grpc, protocol: "grpc", routes },
        { name: "web", host: "web.test", routes: [{ name: "all", hosts: ["a.test"] }] },
      ],
    });
    expect(closed).toEqual(["all"]);
  });
});

describe("a route that is not imported", () => {
  const open = { name: "open", hosts: ["a.test"], paths: ["/"] };
  const other = { name: "other", hosts: ["b.test"], paths: ["/"] };
  const guarded = { name: "guarded", hosts: ["a.test"], paths: ["/admin"], plugins: [keyAuth] };

  test.each([
    ["gRPC", { ...guarded, protocols: ["grpc", "grpcs"] }, ["open"]],
    ["an expression", { ...guarded, hosts: [], expression: "true" }, ["open", "other"]],
    ["a path that the gateway does not take", { ...guarded, paths: ["/a/../b"] }, []],
    ["names that are too many", { ...guarded, hosts: names(200) }, ["open", "other"]],
  ])("closes those that would serve its requests: %s", async (_, route, closed) => {
    const result = await made(service({ routes: [open, other, route] }));
    expect(result.closed).toEqual(closed);
  });

  test("nothing is closed by one that allowed all clients", async () => {
    const { plugins: _, ...route } = { ...guarded, protocols: ["grpc"] };
    expect((await made(service({ routes: [open, other, route] }))).closed).toEqual([]);
  });

  test("its service is not imported either", async () => {
    const { closed } = await made({
      services: [
        { name: "s", host: "s.test", routes: [open, other] },
        { name: "g", host: "g.test", protocol: "amqp", plugins: [keyAuth], routes: [other] },
        { name: "h", host: "h.test", protocol: "amqps" },
      ],
      routes: [{ ...guarded, service: "h" }],
    });
    expect(closed).toEqual(["open", "other"]);
  });

  function names(count: number): string[] {
    return Array.from({ length: count }, (_each, at) => `name-${at}.*`);
  }
});

test.each([
  ["2.1", true],
  ["3.0", false],
])(
  "of the router of %s, kinds of conditions decide before headers: %j",
  async (format, isFirst) => {
    const routes = [
      { name: "hosts", hosts: ["*.a.test"], methods: ["GET"] },
      { name: "headers", paths: ["/"], headers: { "x-a": ["b"] } },
    ];
    const { route } = await made({ ...service({ routes }), _format_version: format });
    expect(route("hosts").priority > route("headers").priority).toBe(isFirst);
  },
);

describe("a plugin", () => {
  test.each([
    ["that is unknown", unknown],
    ["with settings in another place", { name: "ip-restriction", _config: "office" }],
    ["with a setting that is unknown", { ...keyAuth, config: { second_factor: true } }],
    ["with networks that are none", { name: "ip-restriction", config: { allow: ["10.0.0.0/99"] } }],
    [
      "acl, by groups of a token",
      { name: "acl", config: { allow: ["a"], always_use_authenticated_groups: true } },
    ],
    [
      "acl, by consumer groups",
      { name: "acl", config: { deny: ["a"], include_consumer_groups: true } },
    ],
    ["jwt with secrets in base64", { name: "jwt", config: { secret_is_base64: true } }],
    ["that answers some requests", { name: "request-termination", config: { trigger: "x-off" } }],
    [
      "that sends requests elsewhere by what they match",
      { name: "request-transformer", config: { replace: { uri: "/static/$(uri_captures.x)" } } },
    ],
    ["that calls a function", { name: "aws-lambda", config: {} }],
    ["that is custom", { name: "our-auth" }],
  ])("closes its route: %s", async (_, plugin) => {
    expect((await withPlugin(plugin)).closed).toEqual(["r"]);
    // Disabled, it denied no client.
    expect((await withPlugin({ ...plugin, enabled: false })).closed).toEqual([]);
  });

  test.each([["cors"], ["acme"], ["rate-limiting-advanced"], ["zipkin"], ["opentelemetry"]])(
    "that denies no access closes nothing: %s",
    async (name) => expect((await withPlugin({ name })).closed).toEqual([]),
  );

  test("in front of a redirect closes it: the plugin redirect runs before authentication", async () => {
    const redirect = { name: "redirect", config: { location: "https://a.test/secret" } };
    expect((await withPlugin(redirect)).closed).toEqual([]);
    expect((await withPlugin(redirect, { plugins: [keyAuth] })).closed).toEqual(["r"]);
  });

  test("request-termination responds to clients that the others allow", async () => {
    const { plugins } = await withPlugin({ name: "request-termination" });
    expect(plugins[0]).toMatchObject({ name: "respond", config: { after_authentication: true } });
  });

  test("a header whose value cannot be expressed is removed from the client's request", async () => {
    const { plugins } = await withPlugin({
      name: "request-transformer",
      config: { replace: { headers: ["X-User:$(consumer.username)", "X-A:b"] } },
    });
    expect(plugins[0].config.request.headers).toEqual({ set: { "X-A": "b" }, remove: ["X-User"] });
  });
});

test("two ACL groups are never merged", async () => {
  const { document, plugins } = await withPlugin(
    { name: "acl", config: { allow: ["big-spenders", "big  spenders"] } },
    {
      consumers: [
        { username: "a", acls: [{ group: "big spenders" }] },
        { username: "b", acls: [{ group: "big-spenders" }, { group: "big  spenders" }] },
      ],
    },
  );
  const [a, b] = document.consumers.map(({ groups }: Anything) => groups);
  expect([a, b]).toEqual([["big-spenders"], ["big-spenders-2", "big-spenders-3"]]);
  expect(plugins[0].config.allow).toEqual(["big-spenders-2", "big-spenders-3"]);
});

describe("groups of consumers", () => {
  const consumers = [{ username: "in", groups: [{ name: "gold" }] }, { username: "out" }];
  const isOn = (document: Anything) =>
    document.consumers.map(({ username, enabled = true }: Anything) => [username, enabled]);

  test.each([
    ["inside", { consumer_groups: [{ name: "gold", plugins: [unknown] }] }],
    ["beside", { plugins: [{ ...unknown, consumer_group: "gold" }] }],
  ])("a plugin %s denies clients in a group", async (_, source) => {
    const { document } = await made({ consumers, ...source });
    expect(isOn(document)).toEqual([
      ["in", false],
      ["out", true],
    ]);
  });

  test("limits deny no access", async () => {
    const plugin = { name: "rate-limiting-advanced", consumer_group: "gold" };
    const { document } = await made({ consumers, plugins: [plugin] });
    expect(isOn(document).every(([, enabled]: [string, boolean]) => enabled)).toBe(true);
  });
});

describe("a key that expires", () => {
  const ending = (credential: object) =>
    made({
      consumers: [{ username: "a", keyauth_credentials: [{ key: "k", ttl: 60, ...credential }] }],
    });

  test("expires here too", async () => {
    const { document } = await ending({ created_at: 1_700_000_000 });
    expect(document.credentials[0]).toMatchObject({ expires_at: "2023-11-14T22:14:20.000Z" });
  });

  test("is omitted when the file does not say when", async () => {
    const { document, report } = await ending({});
    expect(document.credentials).toBeUndefined();
    expect(report).toContainEqual(expect.objectContaining({ what: 'API key of consumer "a"' }));
  });
});

describe("a stream route", () => {
  const stream = async (rest: object, more: object = {}) => {
    const route = { name: "db", protocols: ["tcp"], destinations: [{ port: 5432 }], ...rest };
    const source = service({ protocol: "tcp", port: 5432, routes: [route] });
    const { document, report } = await made({ ...source, ...more });
    const whys = report.filter(({ what }) => what.includes("db")).map(({ why }) => why);
    return {
      routes: document.stream_routes as readonly Anything[],
      plugins: (document.plugins ?? []) as readonly Anything[],
      isLost: whys.some((why) => why.includes("could not be imported")),
    };
  };
  const restriction = { name: "ip-restriction", config: { allow: ["10.0.0.0/8"] } };

  test("listens on the same addresses only", async () => {
    const { routes } = await stream({ destinations: [{ ip: "127.0.0.1", port: 5432 }] });
    expect(routes[0]).toMatchObject({ listen_address: "127.0.0.1", listen_port: 5432 });
  });

  test("has its plugins, nested and top-level", async () => {
    const inside = await stream({ plugins: [restriction] });
    const beside = await stream({}, { plugins: [{ ...restriction, route: "db" }] });
    for (const { plugins, routes, isLost } of [inside, beside]) {
      expect(plugins.map(({ stream_route_id: id }) => id)).toEqual(routes.map(({ id }) => id));
      expect([plugins[0].name, isLost]).toEqual(["ip-restriction", false]);
    }
  });

  test.each([
    ["a plugin that is unknown", { plugins: [unknown] }],
    ["a plugin that is not for streams", { plugins: [{ name: "acl", config: { allow: ["a"] } }] }],
    ["ports of clients", { sources: [{ ip: "10.0.0.0/8", port: 7 }] }],
    ["ports of clients alone", { sources: [{ port: 7 }] }],
  ])("reports that it lost %s", async (_, rest) => {
    const { routes, isLost } = await stream(rest);
    expect([routes[0].enabled, isLost]).toEqual([false, true]);
  });
});
