// Which listeners can have which engine, and that no route for gRPC is without one, whatever change takes it away.
import { describe, expect, test } from "bun:test";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import type { Plugin } from "../../../src/model/plugin.ts";
import { definePlugin, httpScopes } from "../../../src/pdk/definition.ts";
import * as fields from "../../../src/pdk/fields.ts";
import { catalogueOf } from "../../../src/pdk/catalogue.ts";
import { compile } from "../../../src/snapshot/compile.ts";
import type { Compiled } from "../../../src/snapshot/compile-context.ts";
import { at, configOf, context, listener, route, service } from "../control/fixture.ts";

const grpcWeb = definePlugin({
  name: "grpc-web",
  summary: "Stands for the plugin",
  description: "x",
  group: "traffic",
  order: 390,
  phases: ["request"],
  scopes: [...httpScopes],
  onError: "closed",
  config: fields.config({}),
  create: () => ({}),
  example: {},
});
const plugins = catalogueOf([grpcWeb]);

function issuesOf(config: GatewayConfig, previous: GatewayConfig | null = null): string[] {
  const before = previous === null ? null : compiled(previous);
  const result = compile(config, before, { ...context, plugins, revision: 9 });
  if (!("issues" in result)) return [];
  return result.issues.map(
    ({ collection, id, path, message }) => `${collection}/${id} ${path}: ${message}`,
  );
}

function compiled(config: GatewayConfig): Compiled {
  const result = compile(config, null, { ...context, plugins, revision: 1 });
  if ("issues" in result) throw new Error(JSON.stringify(result.issues));
  return result;
}

const http = (id: string, fields: object = {}) =>
  listener(id, { port: id.charCodeAt(0) + 8000, engine: "bun", ...fields });
const https = (id: string, fields: object = {}) => http(id, { protocol: "https", ...fields });
const calls = service("calls", { protocol: "grpc" });
const toCalls = (fields: object = {}) => route("r", { service_id: "calls", ...fields });

const pluginOf = (fields: Partial<Plugin>): Plugin => ({
  id: "p",
  created_at: at,
  updated_at: at,
  name: "grpc-web",
  label: null,
  service_id: null,
  route_id: null,
  consumer_id: null,
  stream_route_id: null,
  config: {},
  priority: null,
  when: null,
  on_error: null,
  enabled: true,
  tags: [],
  description: "",
  ...fields,
});

const withPlugin = (config: GatewayConfig, fields: Partial<Plugin> = {}): GatewayConfig => ({
  ...config,
  plugins: new Map([["p", pluginOf(fields)]]),
});

describe("a listener", () => {
  test.each<{ why: string; fields: object; issue: string | null }>([
    { why: "with our own engine, plain", fields: { engine: "sluice" }, issue: null },
    {
      why: "with our own engine, TLS and client certificates over HTTP/2",
      fields: { protocol: "https", engine: "sluice", client_auth: "require", client_ca: null },
      issue: "client_ca: is required with client_auth",
    },
    {
      why: "with our own engine and HTTP/3",
      fields: { protocol: "https", engine: "sluice", http3: true },
      issue: null,
    },
    ...[
      { protocol: "https", client_auth: "request", client_ca: null },
      { protocol: "https", strict_sni: true },
      { proxy_protocol: true, trusted_proxies: ["10.0.0.0/8"] },
      { max_connections: 1 },
      { max_connections_per_address: 1 },
    ].map((fields) => {
      const field = Object.keys(fields).find((name) => !/^(protocol|trusted)/.test(name));
      return {
        why: `of Bun with ${field}`,
        fields: { engine: "bun", ...fields },
        issue: `${field}: needs engine "sluice"`,
      };
    }),
  ])("$why", ({ fields, issue }) => {
    const issues = issuesOf(configOf({ listeners: [http("l", fields)] }));
    if (issue === null) expect(issues).toEqual([]);
    else expect(issues[0]).toContain(`listeners/l ${issue}`);
  });

  test("shares its port only with listeners of the same engine", () => {
    const shared = { protocol: "https", port: 443, hosts: ["a.test"] };
    const config = configOf({
      listeners: [
        listener("a", { ...shared, engine: "sluice" }),
        listener("b", { ...shared, engine: "bun", hosts: ["b.test"] }),
      ],
    });
    expect(issuesOf(config)).toContainEqual(
      expect.stringContaining('listeners/b engine: must be as that of listener "a"'),
    );
  });
});

describe("a gRPC health check", () => {
  const checked = (protocol: string, enabled = true) =>
    configOf({
      services: [service("s", { protocol, health: { active: { enabled, type: "grpc" } } })],
    });

  test.each(["h2", "h2c", "grpc", "grpcs"])("is for the protocol %s", (protocol) => {
    expect(issuesOf(checked(protocol))).toEqual([]);
  });

  test("is not for HTTP/1.1", () => {
    expect(issuesOf(checked("http"))).toEqual([
      "services/s health.active.type: grpc needs a service with HTTP/2: its protocol must be h2, h2c, grpc or grpcs",
    ]);
    expect(issuesOf(checked("http", false))).toEqual([]);
  });
});

describe("a route for gRPC is accepted", () => {
  test.each<{ why: string; config: GatewayConfig }>([
    {
      why: "with a listener of our own engine",
      config: configOf({
        services: [calls],
        listeners: [http("a"), http("b", { engine: "sluice" })],
        routes: [toCalls()],
      }),
    },
    {
      why: "with a TLS listener for its host",
      config: configOf({
        services: [service("calls", { protocol: "grpcs" })],
        listeners: [https("a", { engine: "sluice", hosts: ["*.a.test"] })],
        routes: [toCalls({ hosts: ["b.a.test"], listener_ids: ["a"] })],
      }),
    },
    {
      why: "with a listener below its wildcard",
      config: configOf({
        services: [calls],
        listeners: [http("a", { engine: "sluice", hosts: ["x.b.test"] })],
        routes: [toCalls({ hosts: ["*.B.test"] })],
      }),
    },
    {
      why: "while the listener that it names is disabled",
      config: configOf({
        services: [calls],
        listeners: [http("a", { engine: "sluice", enabled: false })],
        routes: [toCalls({ listener_ids: ["a"] })],
      }),
    },
    {
      why: "while it is disabled itself",
      config: configOf({
        services: [calls],
        listeners: [http("a")],
        routes: [toCalls({ enabled: false })],
      }),
    },
    ...[{}, { service_id: "calls" }, { route_id: "r" }].map((scope) => ({
      why: `with the plugin grpc-web ${Object.keys(scope)[0] ?? "globally"}`,
      config: withPlugin(
        configOf({ services: [calls], listeners: [http("a")], routes: [toCalls()] }),
        scope,
      ),
    })),
    {
      why: "as plain HTTP/2, which any listener can serve",
      config: configOf({
        services: [service("calls", { protocol: "h2c" })],
        listeners: [http("a")],
        routes: [toCalls()],
      }),
    },
  ])("$why", ({ config }) => {
    expect(issuesOf(config)).toEqual([]);
  });
});

describe("a route for gRPC is rejected", () => {
  const none =
    'routes/r service_id: service "calls" speaks gRPC, which no enabled listener with this route\'s hosts and protocols serves';
  test.each<{ why: string; config: GatewayConfig; issue: string }>([
    {
      why: "without a listener",
      config: configOf({ services: [calls], routes: [toCalls()] }),
      issue: none,
    },
    {
      why: "with Bun's engine only",
      config: configOf({ services: [calls], listeners: [http("a")], routes: [toCalls()] }),
      issue: none,
    },
    {
      why: "with an engine without HTTP/2",
      config: configOf({
        services: [calls],
        listeners: [http("a", { engine: "sluice", http2: false })],
        routes: [toCalls()],
      }),
      issue: none,
    },
    {
      why: "with an engine for other hosts",
      config: configOf({
        services: [calls],
        listeners: [http("a", { engine: "sluice", hosts: ["a.test"] })],
        routes: [toCalls({ hosts: ["b.test", "*.a.test"] })],
      }),
      issue: none,
    },
    {
      why: "with an engine for the other scheme",
      config: configOf({
        services: [calls],
        listeners: [http("a", { engine: "sluice" })],
        routes: [toCalls({ protocols: ["https"] })],
      }),
      issue: none,
    },
    {
      why: "with an engine on a disabled listener",
      config: configOf({
        services: [calls],
        listeners: [http("a", { engine: "sluice", enabled: false })],
        routes: [toCalls()],
      }),
      issue: none,
    },
    {
      why: "with one of its listeners without an engine",
      config: configOf({
        services: [calls],
        listeners: [http("a", { engine: "sluice" }), http("b")],
        routes: [toCalls({ listener_ids: ["a", "b"] })],
      }),
      issue:
        'routes/r listener_ids[1]: service "calls" speaks gRPC, which listener "b" does not serve: give it engine "sluice" with http2, or add',
    },
    ...[{ route_id: "other" }, { enabled: false }, { service_id: "other" }].map((fields) => ({
      why: `with grpc-web of ${JSON.stringify(fields)}`,
      config: withPlugin(
        configOf({
          services: [calls, service("other")],
          listeners: [http("a")],
          routes: [toCalls(), route("other")],
        }),
        fields,
      ),
      issue: none,
    })),
  ])("$why", ({ config, issue }) => {
    expect(issuesOf(config)).toEqual([expect.stringContaining(issue)]);
  });
});

describe("the engine of a route for gRPC cannot be taken away", () => {
  const full = http("a", { engine: "sluice" });
  const before = configOf({
    services: [calls],
    listeners: [full],
    routes: [toCalls({ hosts: ["a.test"] })],
  });
  const browser = withPlugin(
    configOf({ services: [calls], listeners: [http("b")], routes: [toCalls()] }),
  );
  test.each<{ why: string; from?: GatewayConfig; to: object; at: string }>([
    ...[
      { field: "engine", fields: {} },
      { field: "http2", fields: { engine: "sluice", http2: false } },
      { field: "enabled", fields: { engine: "sluice", enabled: false } },
      { field: "hosts", fields: { engine: "sluice", hosts: ["x.test"] } },
    ].map(({ field, fields }) => ({
      why: `by ${field} of the listener`,
      to: { listeners: new Map([["a", http("a", fields)]]) },
      at: `listeners/a ${field}: route "r" needs it`,
    })),
    {
      why: "by removing the listener",
      to: { listeners: new Map() },
      at: 'routes/r service_id: service "calls" speaks gRPC',
    },
    {
      why: "by the protocol of the service",
      from: configOf({
        services: [service("calls")],
        listeners: [http("b")],
        routes: [toCalls()],
      }),
      to: { services: new Map([["calls", calls]]) },
      at: 'services/calls protocol: route "r" needs it',
    },
    {
      why: "by disabling grpc-web",
      from: browser,
      to: { plugins: new Map([["p", pluginOf({ enabled: false })]]) },
      at: 'plugins/p enabled: route "r" needs it',
    },
    {
      why: "by removing grpc-web",
      from: browser,
      to: { plugins: new Map() },
      at: 'routes/r service_id: service "calls" speaks gRPC',
    },
  ])("$why", ({ from = before, to, at: place }) => {
    const issues = issuesOf({ ...from, ...to }, from);
    expect(issues).toEqual([expect.stringContaining(place)]);
  });

  test("a change of something else checks no route again", () => {
    expect(
      issuesOf(
        {
          ...before,
          services: new Map([
            ["calls", calls],
            ["x", service("x")],
          ]),
        },
        before,
      ),
    ).toEqual([]);
  });
});
