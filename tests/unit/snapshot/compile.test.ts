// The compiler: which objects conflict, with which error, and that an unchanged object costs nothing.
import { describe, expect, test } from "bun:test";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import { compile, warningsOf } from "../../../src/snapshot/compile.ts";
import { diff, diffRoutes } from "../../../src/snapshot/diff.ts";
import {
  compiled,
  configOf,
  context,
  listener,
  route,
  service,
  target,
} from "../control/fixture.ts";

function issuesOf(config: GatewayConfig, previous: GatewayConfig | null = null): string[] {
  const before = previous === null ? null : compiled(previous);
  const result = compile(config, before, { ...context, revision: 9 });
  if (!("issues" in result)) return [];
  return result.issues.map(
    ({ collection, id, path, message, status }) =>
      `${status} ${collection}${id === "" ? "" : `/${id}`} ${path}: ${message}`,
  );
}

const web = service("web");
const inWeb = (id: string, fields: object) => target(id, { service_id: "web", ...fields });

/** These tests do not read the shared memory that it writes. */
const nothingStored = {
  routes: { table: null, upserts: [], removals: [] },
  consumers: null,
  withShared: <T>(plan: T) => plan,
};

describe("a configuration is rejected", () => {
  const uuid = "01a1fc40-e7a0-70e9-b0cd-2502aa065ff2";
  const cases: { why: string; config: GatewayConfig; issue: string }[] = [
    {
      why: "a route refers to a service that does not exist",
      config: configOf({ routes: [route("r", { service_id: "x" })] }),
      issue: '400 routes/r service_id: service "x" does not exist',
    },
    {
      why: "a route refers to a listener that does not exist",
      config: configOf({ routes: [route("r", { listener_ids: ["x"] })] }),
      issue: '400 routes/r listener_ids[0]: listener "x" does not exist',
    },
    {
      why: "a target's service does not exist",
      config: configOf({ targets: [inWeb("t", { host: "a.example" })] }),
      issue: '400 targets/t service_id: service "web" does not exist',
    },
    {
      why: "two services have one name: the later one is reported",
      config: configOf({ services: [service("a", { name: "n" }), service("b", { name: "n" })] }),
      issue: '409 services/b name: service "n" exists already',
    },
    {
      why: "two routes have one name",
      config: configOf({ routes: [route("a", { name: "n" }), route("b", { name: "n" })] }),
      issue: '409 routes/b name: route "n" exists already',
    },
    {
      why: "a name looks like an id, which is ambiguous",
      config: configOf({ services: [service("a", { name: uuid })] }),
      issue: "400 services/a name: must not look like an id",
    },
    {
      why: "two targets of a service are one address, whatever the case of the name",
      config: configOf({
        services: [web],
        targets: [inWeb("a", { host: "a.example" }), inWeb("b", { host: "A.EXAMPLE" })],
      }),
      issue: "409 targets/b host: target a.example:80 exists already in this service",
    },
    {
      why: "a target's host is a URL",
      config: configOf({ services: [web], targets: [inWeb("t", { host: "http://a.example" })] }),
      issue:
        "400 targets/t host: must be a name or an IP address, without scheme, port and brackets",
    },
    {
      why: "a target's host is half an address, which programs read differently",
      config: configOf({ services: [web], targets: [inWeb("t", { host: "127.1" })] }),
      issue: "400 targets/t host: must be a name or an IP address",
    },
    {
      why: "a unix socket has a port",
      config: configOf({ services: [web], targets: [inWeb("t", { host: "unix:/run/a.sock" })] }),
      issue: "400 targets/t port: must be null for a unix socket",
    },
    {
      why: "a target has no port",
      config: configOf({
        services: [web],
        targets: [inWeb("t", { host: "a.example", port: null })],
      }),
      issue: "400 targets/t port: is required",
    },
    {
      why: "a service's Host is no host",
      config: configOf({ services: [service("a", { host_header: "a b" })] }),
      issue:
        '400 services/a host_header: must be "preserve", "target", or a host name with an optional port',
    },
    {
      why: "consistent_hash does not know which header to look at",
      config: configOf({
        services: [service("a", { algorithm: "consistent_hash", hash_on: { source: "header" } })],
      }),
      issue: '400 services/a hash_on.name: is required for the source "header"',
    },
    {
      why: "an HTTP route uses a service that speaks no HTTP",
      config: configOf({
        services: [service("db", { protocol: "tcp" })],
        routes: [route("r", { service_id: "db" })],
      }),
      issue:
        '400 routes/r service_id: service "db" has the protocol tcp, which an HTTP route cannot use',
    },
    {
      why: "a route's client network is none",
      config: configOf({ routes: [route("r", { client_cidrs: ["10.0.0.0/8", "10.0.0.0/33"] })] }),
      issue:
        "400 routes/r client_cidrs[1]: must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32",
    },
    {
      why: "a bypass network is none",
      config: configOf({ routes: [route("r", { maintenance: { bypass_cidrs: ["x"] } })] }),
      issue:
        "400 routes/r maintenance.bypass_cidrs[0]: must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32",
    },
    {
      why: "a route's path is none",
      config: configOf({ routes: [route("r", { paths: ["x"] })] }),
      issue: '400 routes/r paths[0].value: must start with "/"',
    },
    {
      why: "a rewrite could be made to run for ever",
      config: configOf({ routes: [route("r", { path_rewrite: { regex: "^(a+)+$", to: "" } })] }),
      issue: "400 routes/r path_rewrite.regex:",
    },
    {
      why: "trusted proxies are networks",
      config: configOf({ settings: { trusted_proxies: ["proxy.example"] } }),
      issue:
        "400 settings trusted_proxies[0]: must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32",
    },
    {
      why: "a wrong network must not lock all clients out of the management API",
      config: configOf({ settings: { admin_allowed_cidrs: ["10.0.0.1/"] } }),
      issue:
        "400 settings admin_allowed_cidrs[0]: must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32",
    },
    {
      why: "a redirect needs somewhere to go",
      config: configOf({ settings: { default_site: { action: "redirect" } } }),
      issue: '400 settings default_site.to: is required for the action "redirect"',
    },
    {
      why: "two listeners want one port",
      config: configOf({
        listeners: [listener("a", { port: 80 }), listener("b", { port: 80, address: "10.0.0.1" })],
      }),
      issue: '409 listeners/a port: 0.0.0.0 port 80 belongs to listener "b"',
    },
    {
      why: "a listener wants the port of the management API",
      config: configOf({ listeners: [listener("a", { port: 9080 })] }),
      issue: "409 listeners/a port: 0.0.0.0 port 9080 belongs to the management API",
    },
    {
      why: "a listener's address is a name",
      config: configOf({ listeners: [listener("a", { port: 80, address: "localhost" })] }),
      issue: "400 listeners/a address: must be an IP address",
    },
  ];
  test.each(cases)("$why", ({ config, issue }) => {
    expect(issuesOf(config)[0]).toStartWith(issue);
  });
});

describe("the management listener is rejected as a target", () => {
  const hosts = [
    { host: "127.0.0.1", refused: true, why: "its own address" },
    { host: "localhost", refused: true, why: "the name of loopback" },
    { host: "LOCALHOST.", refused: true, why: "in another spelling" },
    { host: "api.localhost", refused: true, why: "RFC 6761: all names below are loopback" },
    { host: "127.9.9.9", refused: true, why: "any address of loopback, seen from a bind to all" },
    { host: "0.0.0.0", refused: true, why: "connects to this machine" },
    { host: "::", refused: true, why: "the same in IPv6" },
    { host: "::1", refused: true, why: "loopback in IPv6" },
    { host: "::ffff:127.0.0.1", refused: true, why: "loopback mapped into IPv6" },
    { host: "10.0.0.1", refused: false, why: "another machine" },
    { host: "localhost.example", refused: false, why: "not below localhost" },
  ];
  test.each(hosts)("$host: $why", ({ host, refused }) => {
    const config = configOf({ services: [web], targets: [inWeb("t", { host, port: 9080 })] });
    const expected = refused
      ? ["400 targets/t host: is the management API itself, which must not be proxied or called"]
      : [];
    expect(issuesOf(config)).toEqual(expected);
    const elsewhere = configOf({ services: [web], targets: [inWeb("t", { host, port: 9081 })] });
    expect(issuesOf(elsewhere)).toEqual([]);
  });
});

describe("an unchanged object is still rejected when", () => {
  const routes = [route("r", { service_id: "web", listener_ids: ["l"] })];
  const listeners = [listener("l", { port: 80 })];
  const targets = [inWeb("t", { host: "a.example" })];
  const before = configOf({ services: [web], routes, listeners, targets });

  test("the service is gone", () => {
    expect(issuesOf({ ...before, services: new Map() }, before)).toEqual([
      '400 targets/t service_id: service "web" does not exist',
      '400 routes/r service_id: service "web" does not exist',
    ]);
  });

  test("the service no longer speaks HTTP", () => {
    const services = new Map([["web", { ...web, protocol: "tcp" as const }]]);
    expect(issuesOf({ ...before, services }, before)[0]).toContain("has the protocol tcp");
  });

  test("the listener is gone", () => {
    expect(issuesOf({ ...before, listeners: new Map() }, before)).toEqual([
      '400 routes/r listener_ids[0]: listener "l" does not exist',
    ]);
  });
});

describe("names", () => {
  test("may be swapped between two objects in one change", () => {
    const before = configOf({ services: [service("a"), service("b")] });
    const after = configOf({
      services: [service("a", { name: "b" }), service("b", { name: "a" })],
    });
    expect(issuesOf(after, before)).toEqual([]);
  });

  test("may be missing more than once", () => {
    const routes = [route("a", { name: null }), route("b", { name: null, paths: ["/b"] })];
    expect(issuesOf(configOf({ routes }))).toEqual([]);
  });
});

describe("a snapshot", () => {
  const full = configOf({
    services: [web, service("off", { enabled: false })],
    targets: [
      inWeb("t1", { host: "a.example" }),
      inWeb("t2", { host: "b.example", enabled: false }),
      inWeb("t3", { host: "c.example", weight: 0 }),
      target("t4", { service_id: "off", host: "d.example" }),
    ],
    routes: [
      route("on", { service_id: "web", paths: ["/on"] }),
      route("off", { service_id: "web", enabled: false }),
    ],
    listeners: [
      listener("http", { port: 80 }),
      listener("https", { port: 443, protocol: "https" }),
      listener("none", { port: 80, enabled: false }),
    ],
  });

  test("holds what is enabled; a disabled service has no target", () => {
    const { snapshot } = compiled(full);
    expect(diffRoutes(undefined, snapshot.routes).upserts.map(({ id }) => id)).toEqual(["on"]);
    expect(snapshot.services.get("web")?.targets.map(({ id }) => id)).toEqual(["t1", "t3"]);
    expect(snapshot.services.get("off")?.targets).toEqual([]);
    expect([...snapshot.listeners.keys()]).toEqual(["http", "https"]);
    expect(snapshot.listeners.get("http")?.tls).toBeNull();
    expect(snapshot.listeners.get("https")?.tls).toBe(context.tls);
  });

  test("keeps the plan of everything that did not change", () => {
    const before = compiled(full);
    const changed = route("on", { service_id: "web", paths: ["/other"] });
    const after = compiled({ ...full, routes: new Map(full.routes).set("on", changed) }, before);
    expect(after.snapshot.services).toBe(before.snapshot.services);
    expect(after.snapshot.listeners).toBe(before.snapshot.listeners);
    expect(after.snapshot.consumers).toBe(before.snapshot.consumers);
    expect(diffRoutes(before.snapshot.routes, after.snapshot.routes)).toEqual({
      upserts: [changed],
      removals: [],
    });
    expect(diff(before.snapshot, after.snapshot, nothingStored)).toEqual({
      base: 1,
      revision: 2,
      services: { upserts: [], removals: [] },
      routes: { upserts: [], removals: [] },
      routeTable: null,
      listeners: { upserts: [], removals: [] },
      streamRoutes: { upserts: [], removals: [] },
      certificates: { upserts: [], removals: [] },
      plugins: { upserts: [], removals: [] },
      consumers: null,
      settings: null,
    });
  });

  test("does not check again what did not change", () => {
    const before = compiled(full);
    let checked = 0;
    const countRoute = () => {
      checked++;
      return [];
    };
    const checks = { ...context.checks, route: countRoute };
    const routes = new Map(full.routes).set("new", route("new", { paths: ["/new"] }));
    compile({ ...full, routes }, before, { ...context, checks, revision: 2 });
    expect(checked).toBe(1);
  });

  test("rebuilds the service whose targets changed, and both when a target moves", () => {
    const before = compiled(full);
    const targets = new Map(full.targets);
    targets.set("t1", target("t1", { service_id: "off", host: "a.example" }));
    const after = compiled({ ...full, targets }, before);
    expect(after.snapshot.services.get("web")?.targets.map(({ id }) => id)).toEqual(["t3"]);
    const fewer = new Map(targets);
    fewer.delete("t3");
    const last = compiled({ ...full, targets: fewer }, after);
    expect(last.snapshot.services.get("web")?.targets).toEqual([]);
    expect(last.snapshot.services.get("off")).toBe(after.snapshot.services.get("off")!);
  });

  test("loses a route that is disabled, and regains it", () => {
    const before = compiled(full);
    const off = { ...full.routes.get("on")!, enabled: false };
    const without = compiled({ ...full, routes: new Map(full.routes).set("on", off) }, before);
    expect(diffRoutes(before.snapshot.routes, without.snapshot.routes)).toEqual({
      upserts: [],
      removals: ["on"],
    });
    const again = compiled(full, without);
    const back = diffRoutes(without.snapshot.routes, again.snapshot.routes);
    expect(back).toEqual({ upserts: [full.routes.get("on")!], removals: [] });
  });

  test("gives https listeners a new certificate when one is stored", () => {
    const before = compiled(full);
    const tls = { cert: "new", key: "new" };
    const after = compile(full, before, { ...context, tls, revision: 2 });
    if ("issues" in after) throw new Error("refused");
    expect(
      diff(before.snapshot, after.snapshot, nothingStored).listeners.upserts.map(({ id }) => id),
    ).toEqual(["https"]);
  });

  test("built from an empty one is a change that contains all objects", () => {
    const { snapshot } = compiled(full);
    const change = diff(null, snapshot, nothingStored);
    expect(change.base).toBeNull();
    expect(change.settings).toBe(full.settings);
    expect(change.services.upserts).toHaveLength(2);
  });
});

describe("a route that another one always hides", () => {
  const open = (id: string, fields: object = {}) =>
    route(id, { hosts: ["A.example"], paths: ["/x", "/y"], ...fields });
  const cases: { why: string; first: object; second: object; hidden: string[] }[] = [
    { why: "is the younger of two that are the same", first: {}, second: {}, hidden: ["second"] },
    {
      why: "is found whatever the order of hosts and paths",
      first: {},
      second: { hosts: ["a.example"], paths: ["/y", "/x"] },
      hidden: ["second"],
    },
    {
      why: "is the older one when the younger has a higher priority",
      first: {},
      second: { priority: 1 },
      hidden: ["first"],
    },
    {
      why: "is not one with more conditions: it is tried first",
      first: {},
      second: { methods: ["GET"] },
      hidden: [],
    },
    {
      why: "is one with more conditions below a higher priority",
      first: { priority: 1 },
      second: { methods: ["GET"] },
      hidden: ["second"],
    },
    {
      why: "is not hidden by one that takes only some requests",
      first: { priority: 1, methods: ["GET"] },
      second: {},
      hidden: [],
    },
    {
      why: "is not hidden by one for the other scheme",
      first: { priority: 1, protocols: ["https"] },
      second: {},
      hidden: [],
    },
    { why: "is not one with another path", first: {}, second: { paths: ["/x"] }, hidden: [] },
    { why: "is not hidden by one that is off", first: { enabled: false }, second: {}, hidden: [] },
    { why: "is no matter when it is off", first: {}, second: { enabled: false }, hidden: [] },
  ];
  test.each(cases)("$why", ({ first, second, hidden }) => {
    const a = open("first", first);
    const b = { ...open("second", second), created_at: "2026-01-02T00:00:00.000Z" };
    const all = configOf({ routes: [a, b] });
    expect([...warningsOf(compiled(all)).keys()]).toEqual(hidden);
    // The same result when the second one is added later, and none after the first one is deleted.
    const grown = compiled(all, compiled(configOf({ routes: [a], settings: {} })));
    expect([...warningsOf(grown).keys()]).toEqual(hidden);
    const alone = compiled({ ...all, routes: new Map([["second", b]]) }, grown);
    expect([...warningsOf(alone).keys()]).toEqual([]);
  });

  test("is named in its warning", () => {
    const b = { ...open("b"), created_at: "2026-01-02T00:00:00.000Z" };
    const warnings = warningsOf(compiled(configOf({ routes: [open("a"), b] })));
    expect([...warnings.values()]).toEqual([
      'route "b" matches no request: route "a" has the same hosts and paths and is tried first',
    ]);
  });
});
