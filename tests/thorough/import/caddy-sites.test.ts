// Sites of Caddy in the JSON of several versions: what they become, and what the report says of them.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { missingHosts } from "../../support/caddy-hosts.ts";
import { type Anything, convertWith } from "../../unit/import/samples.ts";

const proxy = (dial = "app:80", rest: object = {}) => ({
  handler: "reverse_proxy",
  upstreams: [{ dial }],
  ...rest,
});
const subroute = (...routes: object[]) => ({ handler: "subroute", routes });

async function made(routes: readonly object[], server: object = {}, apps: object = {}) {
  const srv0 = { listen: [":443"], routes, ...server };
  const { document, report } = await convertWith("caddy", {
    apps: { http: { servers: { srv0 } }, ...apps },
  });
  const inOrder = [...(document.routes ?? [])].sort((a, b) => b.priority - a.priority);
  const plugins = (route: Anything): Anything[] =>
    (document.plugins ?? []).filter((plugin: Anything) => plugin.route_id === route.id);
  return { document, report, routes: inOrder as readonly Anything[], plugins };
}

const at = (host: string, ...handle: object[]) => ({
  match: [{ host: [host] }],
  handle,
  terminal: true,
});

const isClosed = (route: Anything) => route.maintenance !== undefined;

describe("a wildcard site", () => {
  const named = (host: string, handle: object[]) => ({
    group: "group3",
    match: [{ host: [host] }],
    handle: [subroute({ handle })],
  });
  const site = at(
    "*.w.test",
    subroute(
      { handle: [{ handler: "encode", encodings: { gzip: {} }, prefer: ["gzip"] }] },
      named("a.w.test", [proxy("a:80")]),
      named("B.w.test", [proxy("b:80")]),
      {
        group: "group3",
        handle: [subroute({ handle: [{ handler: "static_response", abort: true }] })],
      },
    ),
  );

  test("serves each of its hosts, and denies the others", async () => {
    const { routes, plugins } = await made([site]);
    expect(routes.map(({ hosts }) => hosts)).toEqual([["a.w.test"], ["b.w.test"], ["*.w.test"]]);
    expect(routes.some(isClosed)).toBe(false);
    expect(plugins(routes[2]).map(({ config }) => config.status ?? null)).toEqual([null, 403]);
    for (const route of routes) expect(plugins(route)[0].name).toBe("compress");
  });

  test("has one certificate, as in Caddy", async () => {
    const { document } = await made([site]);
    expect(document.certificates.map(({ domains }: Anything) => domains)).toEqual([["*.w.test"]]);
  });
});

describe("a redirect", () => {
  const to = async (location: string, hosts: string[] = ["a.test"], before: object[] = []) => {
    const headers = { Location: [location] };
    const response = { handler: "static_response", status_code: 302, headers };
    const { routes, plugins } = await made([
      { match: [{ host: hosts }], handle: [...before, response] },
    ]);
    return plugins(routes[0])[0];
  };

  test.each([
    ["https://{http.request.host}{http.request.uri}", { scheme: "https" }],
    ["https://b.test{http.request.uri}", { to: "https://b.test", keep_path: true }],
    ["https://www.{http.request.host}{http.request.uri}", { to: "https://www.a.test" }],
    ["https://b.{http.request.host.labels.0}/", { to: "https://b.test/", keep_path: false }],
    ["https://b.test{http.request.uri.path}", { keep_path: true, keep_query: false }],
    ["/app{http.request.orig_uri}", { to: "/app", keep_path: true, keep_query: true }],
    [
      "/login?rd={http.request.scheme}://{http.request.host}{http.request.uri.path}",
      {
        to: "/login?rd=${request.scheme}://a.test${request.path}",
      },
    ],
    ["/in?rd={http.request.uri}&x=1", { to: "/in?rd=${request.target}&x=1", keep_path: false }],
    ["/$x", { to: "/%24x" }],
  ])("to %s", async (location, config) => {
    expect(await to(location)).toMatchObject({ name: "redirect", config });
  });

  test.each([
    ["https://www.{http.request.host}{http.request.uri}", ["a.test", "b.test"]],
    ["https://www.{http.request.host}/", ["*.a.test"]],
    ["https://{http.request.header.X-To}/", ["a.test"]],
    ["https://x.test/{http.regexp.1}", ["a.test"]],
  ])("to %s of %j has no equivalent: 503", async (location, hosts) => {
    expect(await to(location, hosts)).toMatchObject({ name: "respond", config: { status: 503 } });
  });

  test("a path that Caddy changed before is not the client's", async () => {
    const strip = { handler: "rewrite", strip_path_prefix: "/x" };
    const plugin = await to("https://b.test{http.request.uri}", ["a.test"], [strip]);
    expect(plugin).toMatchObject({ name: "respond", config: { status: 503 } });
  });
});

test("a redirect that protects denies requests that are at its destination already", async () => {
  const outside = { not: [{ remote_ip: { ranges: ["10.0.0.0/8"] } }], path: ["/admin*"] };
  const headers = { Location: ["/admin/in"] };
  const { routes, plugins } = await made([
    at(
      "a.test",
      subroute(
        { match: [outside], handle: [{ handler: "static_response", status_code: 302, headers }] },
        { handle: [proxy()] },
      ),
    ),
  ]);
  const found = plugins(routes[0]);
  expect(found.map(({ name, priority }) => [name, priority])).toEqual([
    ["access-policy", null],
    ["redirect", null],
  ]);
  expect(found[0].config.rules).toEqual([{ when: found[1].when, action: "deny" }]);
});

describe("a reverse proxy", () => {
  const service = async (rest: object, dial = "app:80") => {
    const { document, report } = await made([at("a.test", proxy(dial, rest))]);
    return { own: document.services[0], targets: document.targets ?? [], report };
  };

  test.each([
    [":3000", { host: "localhost", port: 3000 }],
    ["tcp6/[::1]:80", { host: "::1", port: 80 }],
    ["unix//run/app.sock", { host: "unix:/run/app.sock" }],
  ])("has the target %s", async (dial, target) => {
    expect((await service({}, dial)).targets).toMatchObject([target]);
  });

  test.each([
    [
      { source: "a", name: "app.internal", port: "9000" },
      { host: "app.internal", port: 9000 },
      "dns",
    ],
    [{ source: "srv", name: "_web._tcp.app.internal" }, { host: "_web._tcp.app.internal" }, "srv"],
    [
      { source: "srv", service: "web", proto: "tcp", name: "app.internal" },
      { host: "_web._tcp.app.internal" },
      "srv",
    ],
  ])("has the targets of the dynamic source %j", async (dynamic_upstreams, target, resolve) => {
    const { own, targets } = await service({ upstreams: [], dynamic_upstreams });
    expect(targets).toMatchObject([target]);
    expect(own.resolve ?? "dns").toBe(resolve);
  });

  test.each([
    [{ flush_interval: -1 }, { response_buffer_bytes: 0 }],
    [
      { load_balancing: { try_duration: "5s", try_interval: 250_000_000 } },
      {
        retries: { count: 2, backoff_ms: 250 },
      },
    ],
    [
      { health_checks: { passive: { unhealthy_request_count: 20 } } },
      {
        max_connections_per_target: 20,
      },
    ],
    [
      { transport: { protocol: "http", keep_alive: { enabled: false } } },
      { keepalive: { size: 0 } },
    ],
    [
      { transport: { protocol: "http", keep_alive: { max_idle_conns_per_host: 7 } } },
      {
        keepalive: { size: 7 },
      },
    ],
    [
      {
        transport: { protocol: "http", tls: {} },
        health_checks: { active: { uri: "/up", expect_status: 2 } },
      },
      { health: { active: { type: "https", path: "/up", expect_statuses: ["200-299"] } } },
    ],
  ])("with %j", async (rest, fields) => {
    expect((await service(rest)).own).toMatchObject(fields);
  });

  test.each([
    [{ root_ca_pool: ["QUJD"] }],
    [{ ca: { provider: "inline", trusted_ca_certs: ["QUJD"] } }],
  ])("trusts the certificates in its transport: %j", async (tls) => {
    const { report } = await made([
      at("a.test", proxy("app:80", { transport: { protocol: "http", tls } })),
    ]);
    // It is no certificate: the gateway rejects the service that has it.
    expect(report).toContainEqual(
      expect.objectContaining({ why: expect.stringContaining("tls.ca_certificates") }),
    );
  });

  test("with a rewrite of its own does not reach other paths", async () => {
    const rewrite = { uri: "/public{http.request.uri}" };
    const { routes } = await made([at("a.test", proxy("app:80", { rewrite }))]);
    expect(routes[0].path_rewrite).toEqual({ regex: "^", to: "/public" });
    const odd = { uri: "/{http.request.host}{http.request.uri.query}" };
    const other = await made([at("a.test", proxy("app:80", { rewrite: odd }))]);
    expect(other.routes.map(isClosed)).toEqual([true]);
  });
});

describe("what the gateway does not do is named with its host", () => {
  const fastcgi = proxy("php:9000", { transport: { protocol: "fastcgi", root: "/srv" } });

  test.each([
    ["php_fastcgi", fastcgi, "FastCGI"],
    ["file_server", { handler: "file_server" }, "does not serve files"],
    ["templates", { handler: "acme_server" }, "no ACME server"],
  ])("%s", async (_, handler, why) => {
    const { routes, plugins, report, document } = await made([at("a.test", handler)]);
    expect(document.services).toBeUndefined();
    expect(plugins(routes[0])).toMatchObject([{ name: "respond", config: { status: 503 } }]);
    const found = report.filter((entry) => entry.why.includes(why));
    expect(found.map(({ level }) => level)).toEqual(["omitted"]);
    expect(found[0]?.what).toContain("a.test");
  });

  test("a certificate of Caddy's own CA", async () => {
    const subjects = ["a.test", "a.example.com"];
    const automation = { policies: [{ subjects, issuers: [{ module: "internal" }] }] };
    const { report, document } = await made([at("a.test", proxy())], {}, { tls: { automation } });
    expect(document.certificates).toMatchObject(
      subjects.map((name) => ({ name, source: "local_ca", domains: [name] })),
    );
    expect(report).toContainEqual({
      level: "changed",
      what: "certificate for a.test",
      why: "the local CA signs it: devices have to trust its root, which is another one than Caddy's",
    });
    const other = report.find(({ what }) => what === "certificate for a.example.com");
    expect(other?.why).toContain("once settings.local_ca.permitted_names has the name");
  });
});

describe("client certificates", () => {
  const policies = (...tls_connection_policies: object[]) => ({ tls_connection_policies });
  const certified = { client_authentication: { mode: "require_and_verify" } };
  const routes = [at("a.test", proxy("a:80")), at("b.test", proxy("b:80"))];
  const closed = async (server: object) => {
    const { routes: found } = await made(routes, server);
    return Object.fromEntries(found.map((route) => [route.hosts[0], isClosed(route)]));
  };

  test.each([
    [[{ match: { sni: ["a.test"] }, ...certified }, {}], { "a.test": true, "b.test": false }],
    [[{ match: { sni: ["*.test"] }, ...certified }, {}], { "a.test": true, "b.test": true }],
    [
      [{ match: { remote_ip: { ranges: ["::/0"] } }, ...certified }],
      { "a.test": true, "b.test": true },
    ],
    [[certified], { "a.test": true, "b.test": true }],
  ])("for %j", async (own, expected) => {
    expect(await closed(policies(...own))).toEqual(expected);
  });
});

describe("named routes", () => {
  const invoke = { handler: "invoke", name: "app" };

  test("are served where they are invoked", async () => {
    const named_routes = { app: { handle: [proxy("app:80")] } };
    const { routes } = await made([at("a.test", invoke), at("b.test", invoke)], { named_routes });
    expect(routes.map(({ hosts, service_id }) => [hosts[0], service_id !== null])).toEqual([
      ["a.test", true],
      ["b.test", true],
    ]);
  });

  test.each([
    ["that are missing", {}],
    ["that invoke themselves", { app: { handle: [invoke, invoke] } }],
  ])("%s allow no client", async (_, named_routes) => {
    const attempt = made([at("a.test", invoke, proxy())], { named_routes });
    const closed = await attempt.then(({ routes }) => routes.every(isClosed)).catch(() => true);
    expect(closed).toBe(true);
  });
});

test("a limit of caddy-ratelimit becomes the plugin rate-limit", async () => {
  const zone = { key: "{http.request.remote.host}", window: "1m", max_events: 100 };
  const handler = { handler: "rate_limit", rate_limits: { login: zone } };
  const { routes, plugins } = await made([at("a.test", handler, proxy())]);
  expect(plugins(routes[0])).toMatchObject([
    {
      name: "rate-limit",
      config: {
        limits: [{ name: "login", requests: 100, window: 60, algorithm: "sliding", key: "ip" }],
      },
    },
  ]);
  const odd = { ...handler, rate_limits: { login: { ...zone, match: [{ path: ["/login"] }] } } };
  expect((await made([at("a.test", odd, proxy())])).routes.every(isClosed)).toBe(true);
});

test.each([
  "a.test {\n\treverse_proxy app:80\n}\n",
  "{\n\temail a@a.test\n}\n\nimport sites/*\n",
  "a.test\nreverse_proxy app:80\n",
  "{$DOMAIN} {\n\trespond ok\n}\n",
])("a Caddyfile is rejected with the command that converts it: %j", async (text) => {
  await expect(convertWith("caddy", text)).rejects.toThrow(
    /^this is a Caddyfile, .* `caddy adapt --config Caddyfile > caddy.json`/,
  );
});

const fixtures = join(import.meta.dir, "../../fixtures/import/caddy");
const newer = readdirSync(fixtures).filter((name) => name.endsWith(".json"));

test.each(newer)("no host of %s is lost", async (name) => {
  const text = readFileSync(join(fixtures, name), "utf8");
  const { document, report } = await convertWith("caddy", text);
  expect(missingHosts(JSON.parse(text), { document, report })).toEqual([]);
});
