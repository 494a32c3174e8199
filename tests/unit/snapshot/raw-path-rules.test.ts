// What else the gateway may have beside a route that takes paths as they came, whatever change brings it.
import { describe, expect, test } from "bun:test";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import type { Plugin } from "../../../src/model/plugin.ts";
import { compile } from "../../../src/snapshot/compile.ts";
import type { Compiled } from "../../../src/snapshot/compile-context.ts";
import { at, configOf, context, listener, route, service } from "../control/fixture.ts";

const { plugins: catalogue } = context;

const compiled = (config: GatewayConfig, previous: Compiled | null = null) =>
  compile(config, previous, { ...context, revision: 1 });

function issuesOf(config: GatewayConfig, previous: GatewayConfig | null = null): string[] {
  const before = previous === null ? null : compiled(previous);
  if (before !== null && "issues" in before) throw new Error(JSON.stringify(before.issues));
  const result = compiled(config, before);
  if (!("issues" in result)) return [];
  return result.issues.map(
    ({ collection, id, path, message }) => `${collection}/${id} ${path}: ${message}`,
  );
}

const HOSTS = ["s3.example.com"];
const raw = (fields: object = {}) =>
  route("r", { name: "store", hosts: HOSTS, service_id: "s", path_handling: "raw", ...fields });
const own = (id: string, fields: object = {}) =>
  listener(id, { port: 9000 + id.charCodeAt(0), ...fields });

const plugin = (name: string, fields: Partial<Plugin> = {}): Plugin => ({
  id: "p",
  created_at: at,
  updated_at: at,
  name,
  label: null,
  service_id: null,
  route_id: null,
  consumer_id: null,
  stream_route_id: null,
  config: catalogue.get(name)?.example ?? {},
  priority: null,
  when: null,
  on_error: null,
  enabled: true,
  tags: [],
  description: "",
  ...fields,
});

// The same objects in every world, so that only what a test changes has changed.
const services = [service("s"), service("other")];
const listeners = [own("a")];
const routes = [raw()];

type Parts = Parameters<typeof configOf>[0];

const world = (parts: Parts = {}, added: readonly Plugin[] = []): GatewayConfig => ({
  ...configOf({ services, listeners, routes, ...parts }),
  plugins: new Map(added.map((each) => [each.id, each])),
});

const rest = (fields: object) => route("o", { name: "rest", service_id: "s", ...fields });

describe("a raw route itself", () => {
  test.each([
    [{ hosts: [] }, "hosts", "no host"],
    [{ paths: [{ type: "prefix", value: "/x" }] }, "paths[0]", "a prefix"],
    [{ paths: [{ type: "exact", value: "/" }] }, "paths[0]", "an exact path"],
    [{ paths: [{ type: "regex", value: "^/" }] }, "paths[0]", "a regular expression"],
    [{ grpc_methods: [{ service: "a.B", method: "" }] }, "grpc_methods", "a gRPC service"],
    [{ strip_path: true }, "strip_path", "stripping"],
    [{ prefix_rewrite: "/x" }, "prefix_rewrite", "another prefix"],
    [{ path_rewrite: { regex: "a", to: "b" } }, "path_rewrite", "a rewrite"],
  ])("%j is refused at %s: %s", (fields, path) => {
    const issues = issuesOf(world({ routes: [raw(fields)] }));
    expect(issues).toEqual([expect.stringContaining(`routes/r ${path}: `)]);
    expect(issues[0]).toContain('path_handling "raw"');
    expect(issuesOf(world({ routes: [raw({ ...fields, path_handling: "canonical" })] }))).toEqual(
      [],
    );
  });

  test.each([
    [{}],
    [{ paths: [{ type: "prefix", value: "/" }] }],
    [{ hosts: ["*.s3.example.com", "s3.example.com"] }],
    [{ methods: ["GET", "PUT"], headers: [{ name: "x", op: "present", value: "" }] }],
  ])("%j is accepted", (fields) => {
    expect(issuesOf(world({ routes: [raw(fields)] }))).toEqual([]);
  });
});

describe("a service with a path", () => {
  const withPath = [service("s", { path: "/base" }), service("other")];
  test("is refused, at what has changed", () => {
    expect(issuesOf(world({ services: withPath }))).toEqual([
      expect.stringContaining('routes/r path_handling: service "s" has the path /base'),
    ]);
    const issues = issuesOf(world({ services: withPath }), world());
    expect(issues).toEqual([
      expect.stringContaining('services/s path: route "store" takes raw paths: service "s" has'),
    ]);
  });

  test("is refused where a plugin may choose it", () => {
    const split = plugin("traffic-split", {
      config: { rules: [{ targets: [{ service_id: "other", weight: 1 }] }] },
    });
    const other = [service("s"), service("other", { path: "/base" })];
    expect(issuesOf(world({}, [split]))).toEqual([]);
    expect(issuesOf(world({ services: other }, [split]))).toEqual([
      expect.stringContaining('service "other" has the path /base'),
    ]);
    const ofOther = plugin("waf-lite", { id: "q", service_id: "other", config: {} });
    expect(issuesOf(world({}, [ofOther]))).toEqual([]);
    expect(issuesOf(world({}, [ofOther, split]))).toEqual([
      expect.stringContaining('plugin waf-lite "q" reads the path'),
    ]);
  });
});

describe("listeners", () => {
  test.each([
    [{ engine: "bun" }, "engine"],
    [{ protocol: "https", http3: true }, "http3"],
    [{ protocol: "https", http3: true, engine: "bun" }, "http3"],
  ])("%j is refused", (fields, path) => {
    const bad = world({ listeners: [...listeners, own("b", fields)] });
    expect(issuesOf(bad)).toEqual([
      expect.stringContaining('routes/r path_handling: listener "b" does not know'),
    ]);
    expect(issuesOf(bad, world())).toEqual([
      expect.stringContaining(
        `listeners/b ${path}: route "store" takes raw paths: listener "b" does not`,
      ),
    ]);
  });

  test("that no request for the route reaches are no matter", () => {
    for (const [fields, own_] of [
      [{ engine: "bun", hosts: ["other.example.com"] }, {}],
      [{ engine: "bun", enabled: false }, {}],
      [{ engine: "bun" }, { listener_ids: ["a"] }],
    ] as const)
      expect(
        issuesOf(world({ listeners: [own("a"), own("b", fields)], routes: [raw(own_)] })),
      ).toEqual([]);
  });
});

describe("other routes with paths", () => {
  const path = { paths: [{ type: "prefix", value: "/admin" }] };
  test.each([
    [{ hosts: HOSTS, ...path }, {}, "the same host"],
    [{ hosts: ["S3.Example.com"], ...path }, {}, "in another case"],
    [{ hosts: HOSTS, grpc_methods: [{ service: "a.B", method: "" }] }, {}, "by gRPC method"],
    [{ hosts: ["*.example.com"], priority: 1, ...path }, {}, "a wildcard that precedes"],
    [{ priority: 1, ...path }, {}, "any host that precedes"],
    [{ hosts: ["a.s3.example.com"], ...path }, { hosts: ["*.s3.example.com"] }, "below"],
    [path, { methods: ["GET"] }, "what the raw route does not match by its method"],
    [{ hosts: HOSTS, ...path, methods: ["PUT"] }, { methods: ["GET"] }, "another method"],
  ])("%j beside %j is refused: %s", (fields, own_) => {
    const first = raw(own_);
    const bad = world({ routes: [first, rest(fields)] });
    expect(issuesOf(bad)).toEqual([
      expect.stringContaining('routes/r path_handling: route "rest" matches some of its hosts'),
    ]);
    expect(issuesOf(bad, world({ routes: [first] }))).toEqual([
      expect.stringContaining('routes/o paths: route "store" takes raw paths: route "rest" match'),
    ]);
  });

  test.each([
    [{ hosts: ["app.example.com"], ...path }, {}, "another host"],
    [{ hosts: HOSTS, enabled: false, ...path }, {}, "disabled"],
    [{ hosts: ["*.example.com"], ...path }, {}, "a wildcard behind the exact host"],
    [path, {}, "any host, behind"],
    [path, { listener_ids: ["a"] }, "any host, behind on its listeners"],
    [{ hosts: HOSTS, ...path }, { priority: 1 }, "a lower priority"],
    [{ hosts: HOSTS, ...path, protocols: ["http"] }, { protocols: ["https"] }, "other schemes"],
    [{ hosts: HOSTS, ...path, listener_ids: ["b"] }, { listener_ids: ["a"] }, "other listeners"],
    [{ hosts: HOSTS, methods: ["POST"] }, { methods: ["GET"] }, "no path"],
  ])("%j beside %j is accepted: %s", (fields, own_) => {
    const listeners = [own("a"), own("b", { protocol: "https" })];
    expect(issuesOf(world({ listeners, routes: [raw(own_), rest(fields)] }))).toEqual([]);
  });

  test("a change that makes an unchanged route raw no more, or disables it, ends the rules", () => {
    const before = world();
    for (const next of [raw({ enabled: false }), raw({ path_handling: "canonical" })]) {
      const changed = world({ routes: [next, rest({ hosts: HOSTS, ...path })] });
      expect(issuesOf(changed, before)).toEqual([]);
    }
  });
});

describe("plugins", () => {
  const readers = [...catalogue.values()].filter(({ ignoresPath }) => ignoresPath !== true);

  test("that decide by the path, or send it where it decides, are these", () => {
    expect(readers.map(({ name }) => name).toSorted()).toEqual([
      "forward-auth",
      "grpc-web",
      "hmac-auth",
      "mirror",
      "oidc",
      "redirect",
      "request-validation",
      "response-cache",
      "script",
      "transform",
      "waf-lite",
    ]);
  });

  test.each(readers.map(({ name }) => name))("%s is refused in every scope", (name) => {
    for (const scope of [{}, { service_id: "s" }, { route_id: "r" }]) {
      const [issue = ""] = issuesOf(world({}, [plugin(name, scope)])).filter((each) =>
        each.includes("path_handling"),
      );
      expect(issue).toStartWith(`routes/r path_handling: plugin ${name} "p" reads the path`);
      expect(issue).toContain('when: {"not": {"host": ["s3.example.com"]}}');
    }
  });

  test("are refused where they are written later, at the plugin", () => {
    expect(issuesOf(world({}, [plugin("waf-lite", { config: {} })]), world())).toEqual([
      expect.stringContaining('plugins/p : route "store" takes raw paths: plugin waf-lite "p"'),
    ]);
  });

  const rules = (when: object) => ({ rules: [{ name: "x", when, action: "deny" }] });
  test.each([
    ["access-log", { when: { path: ["/x"] } }],
    ["access-log", { when: { not: { ambiguous_path: false } } }],
    ["access-policy", { config: rules({ path: ["/admin"] }) }],
    ["access-policy", { config: rules({ cidr: ["10.0.0.0/8"], not: { path: ["/x"] } }) }],
  ])("%s with %j has a condition on the path", (name, fields) => {
    const added = plugin(name, { config: {}, ...fields });
    expect(issuesOf(world({}, [added]))).toEqual([
      expect.stringContaining(`plugin ${name} "p" has a condition on the path`),
    ]);
  });

  test.each([
    [{ service_id: "other" }, {}, "of another service"],
    [{ enabled: false }, {}, "disabled"],
    [{ when: { host: ["app.example.com"] } }, {}, "for another host"],
    [{ when: { not: { host: HOSTS } } }, {}, "that excludes the host"],
    [{ when: { not: { host: ["*.example.com"] } } }, {}, "that excludes a wildcard of it"],
    [{ when: { not: { host: HOSTS }, path: ["/x"] } }, {}, "with more conditions"],
  ])("waf-lite %j is no matter", (fields) => {
    expect(issuesOf(world({}, [plugin("waf-lite", { config: {}, ...fields })]))).toEqual([]);
  });

  test.each([
    [{ when: { not: { host: HOSTS, method: ["GET"] } } }, "excluded for some requests only"],
    [{ when: { not: { host: ["app.example.com"] } } }, "another host is excluded"],
    [{ when: { host: ["*.example.com"] } }, "a wildcard that holds it"],
  ])("waf-lite %j is refused: %s", (fields) => {
    expect(issuesOf(world({}, [plugin("waf-lite", { config: {}, ...fields })]))).toHaveLength(1);
  });

  test("unknown ones count as readers", () => {
    expect(issuesOf(world({}, [plugin("no-such-plugin")])).join()).toContain("reads the path");
  });
});
