// What Caddy denies stays denied after the import: cases without a running Caddy (tests/e2e/import-caddy compares with one).
import { describe, expect, test } from "bun:test";
import { plugins } from "../../support/plugins.ts";
import { type Anything, convertWith } from "./samples.ts";

const HASH = "$2b$05$MhkTtlyhT7jGs040w89tq.moFGeyONR4LfL4X3wzJe7AffwYOLTo6";
const proxy = (port = 9001) => ({
  handler: "reverse_proxy",
  upstreams: [{ dial: `127.0.0.1:${port}` }],
});
const password = {
  handler: "authentication",
  providers: { http_basic: { accounts: [{ username: "bob", password: HASH }] } },
};
const refusal = { handler: "static_response", status_code: 403 };
const onPath = (...path: string[]) => [{ path }];
const site = (...routes: object[]) => [
  {
    match: [{ host: ["a.test"] }],
    handle: [{ handler: "subroute", routes }],
    terminal: true,
  },
];

interface Made {
  /** By priority, the highest first. */
  readonly routes: readonly Anything[];
  readonly of: (route: Anything) => readonly Anything[];
  readonly document: Anything;
  readonly report: readonly { readonly what: string; readonly why: string }[];
}

async function made(routes: readonly object[], server: object = {}): Promise<Made> {
  const srv0 = { listen: [":80"], routes, ...server };
  const { document, report } = await convertWith("caddy", {
    apps: { http: { servers: { srv0 } } },
  });
  const inOrder = [...(document.routes ?? [])].sort((a, b) => b.priority - a.priority);
  const of = ({ id }: Anything) =>
    (document.plugins ?? []).filter((plugin: Anything) => plugin.route_id === id);
  return { routes: inOrder, of, document, report };
}

const isClosed = (route: Anything) => route.maintenance !== undefined;

describe("the protocol of a reverse proxy", () => {
  const tls = {};
  test.each([
    { transport: { protocol: "http" }, protocol: "http" },
    { transport: { protocol: "http", versions: ["h2c", "2"] }, protocol: "h2c" },
    { transport: { protocol: "http", versions: ["1.1", "2"] }, protocol: "http" },
    { transport: { protocol: "http", versions: ["1.1", "h2c"] }, protocol: "http" },
    { transport: { protocol: "http", versions: ["2"], tls }, protocol: "h2" },
    { transport: { protocol: "http", versions: ["1.1", "2"], tls }, protocol: "https" },
    { transport: { protocol: "http", tls }, protocol: "https" },
  ])("$transport is $protocol", async ({ transport, protocol }) => {
    const { document, report } = await made([{ handle: [{ ...proxy(), transport }] }]);
    expect(document.services[0].protocol ?? "http").toBe(protocol);
    const notes = report.filter(({ why }) => why.includes("if the targets speak gRPC"));
    expect(notes.length).toBe(protocol.startsWith("h2") ? 1 : 0);
  });

  test("a socket for HTTP/2 is h2c", async () => {
    const upstreams = [{ dial: "unix+h2c//run/app.sock" }];
    const { document } = await made([{ handle: [{ ...proxy(), upstreams }] }]);
    expect(document.services[0].protocol).toBe("h2c");
  });
});

describe("where it listens", () => {
  test("a specific address stays one, and its routes are for that listener alone", async () => {
    const { routes, document } = await made([{ handle: [proxy()] }], { listen: ["127.0.0.1:80"] });
    const [listener] = document.listeners;
    expect(listener).toMatchObject({ address: "127.0.0.1", port: 80, enabled: false });
    expect(routes.map(({ listener_ids: ids }) => ids)).toEqual([[listener.id]]);
  });

  test.each([[["unix//run/caddy.sock"]], [[":8080-8090"]], [["intern.example:80"]], [[]]])(
    "%j is no address that the gateway can listen on: its routes are closed",
    async (listen) => {
      const { routes } = await made([{ handle: [proxy()] }], { listen });
      expect(routes.every(isClosed)).toBe(true);
    },
  );

  test("a port with TLS and no redirect is not served without TLS", async () => {
    const automatic_https = { disable_redirects: true };
    const { routes } = await made([{ handle: [proxy()] }], { listen: [":443"], automatic_https });
    expect(routes[0]).toMatchObject({ protocols: ["https"] });
    expect(routes[0]).not.toHaveProperty("https_redirect");
  });

  test("routes of one listener precede those of all, and deny what they do not serve", async () => {
    const { document } = await convertWith("caddy", {
      apps: {
        http: {
          servers: {
            a: { listen: [":80"], routes: [{ handle: [proxy()] }] },
            b: {
              listen: [":8080"],
              routes: [{ match: onPath("/admin/*"), handle: [password, proxy(9002)] }],
            },
          },
        },
      },
    });
    const [first, rest, all] = [...document.routes].sort((x, y) => y.priority - x.priority);
    expect([first.listener_ids.length, rest.listener_ids.length, all.listener_ids]).toEqual([
      ...[1, 1, undefined],
    ]);
    expect(document.plugins.find((each: Anything) => each.route_id === rest.id).config).toEqual({
      status: 404,
    });
  });
});

describe("client addresses from headers", () => {
  const inside = { remote_ip: { ranges: ["10.0.0.0/8"] } };
  test.each([
    [inside, { trusted_proxies: { source: "static", ranges: ["10.0.0.0/8"] } }],
    [{ client_ip: { ranges: ["10.0.0.0/8"] } }, { trusted_proxies: { source: "static" } }],
    [inside, { listener_wrappers: [{ wrapper: "proxy_protocol" }] }],
    [{ remote_ip: { ranges: ["10.0.0.0/8"], forwarded: true } }, {}],
    [{ remote_ip: { ranges: ["fe80::/10%eth0"] } }, {}],
    [{ remote_ip: { ranges: ["{env.LAN}"] } }, {}],
  ])("%j with %j allows no client", async (matcher, server) => {
    const { routes } = await made([{ match: [matcher], handle: [proxy()] }], server);
    expect(routes.every(isClosed)).toBe(true);
    const negated = await made(
      [{ match: [{ not: [matcher] }], handle: [refusal] }, { handle: [proxy()] }],
      server,
    );
    const [, ...others] = negated.routes;
    expect(negated.of(negated.routes[0])[0]?.config.status ?? 403).toBe(403);
    expect(others.length).toBeGreaterThan(0);
  });

  test("an empty list of ranges trusts no proxy", async () => {
    const matcher = { remote_ip: { ranges: [] } };
    expect((await made([{ match: [matcher], handle: [proxy()] }])).routes).toEqual([]);
  });

  test("addresses of connections stay unchanged", async () => {
    const { routes } = await made([{ match: [inside], handle: [proxy()] }]);
    expect(routes[0]).toMatchObject({ client_cidrs: ["10.0.0.0/8"] });
    expect(isClosed(routes[0])).toBe(false);
  });
});

describe("a password", () => {
  test("is required for CORS preflight requests too, where there is no consumer", async () => {
    const { routes, of } = await made(site({ handle: [password, proxy()] }));
    expect(of(routes[0])[0]).toMatchObject({
      name: "basic-auth",
      config: { consumers: false, run_on_preflight: true, hide_credentials: false },
    });
  });

  test.each([
    ["bcrypt of a cost that is too high", `$2b$17$${"a".repeat(53)}`],
    ["scrypt", btoa("scrypt")],
    ["a placeholder", "{env.HASH}"],
  ])("that cannot be imported closes the route: %s", async (_, hash) => {
    const accounts = [{ username: "bob", password: hash }];
    const handler = { handler: "authentication", providers: { http_basic: { accounts } } };
    const { routes } = await made(site({ handle: [handler, proxy()] }));
    expect(routes.every(isClosed)).toBe(true);
  });

  test("list that differs in another place closes what both cover: one plugin has one list", async () => {
    const other = structuredClone(password);
    const [account] = other.providers.http_basic.accounts;
    if (account !== undefined) account.username = "eve";
    const { routes } = await made(
      site(
        { match: onPath("/a/*"), handle: [password] },
        { match: onPath("/b/*"), handle: [other] },
        { handle: [proxy()] },
      ),
    );
    expect(routes.map(isClosed)).toEqual([true]);
  });

  test("list that is the same in several places is one plugin", async () => {
    const { routes, of } = await made(
      site(
        { match: onPath("/a/*"), handle: [password] },
        { match: onPath("/b/*"), handle: [password] },
        { handle: [proxy()] },
      ),
    );
    expect(routes.map(isClosed)).toEqual([false]);
    expect(of(routes[0])[0].when).toEqual({ path: ["~^/[aA]/", "~^/[bB]/"] });
  });

  test("in front of a static response is required for it; in front of a redirect closes the route", async () => {
    const answer = { handler: "static_response", status_code: 200, body: "inside" };
    const guarded = await made(site({ handle: [password, answer] }));
    expect(guarded.of(guarded.routes[0]).find(({ name }) => name === "respond")).toMatchObject({
      priority: 1,
      config: { after_authentication: true },
    });
    const redirect = { ...answer, status_code: 302, headers: { Location: ["/secret-place"] } };
    expect((await made(site({ handle: [password, redirect] }))).routes.every(isClosed)).toBe(true);
  });
});

describe("forward authentication", () => {
  const asked = (more: object = {}, handle_response: unknown = null) => ({
    handler: "reverse_proxy",
    upstreams: [{ dial: "127.0.0.1:9091" }],
    rewrite: { method: "GET", uri: "/verify" },
    handle_response: handle_response ?? [
      {
        match: { status_code: [2] },
        routes: [
          {
            handle: [
              {
                handler: "headers",
                request: {
                  set: {
                    "Remote-User": ["{http.reverse_proxy.header.Remote-User}"],
                    "X-Groups": ["{http.reverse_proxy.header.Remote-Groups}"],
                  },
                },
              },
            ],
          },
        ],
      },
    ],
    ...more,
  });

  test("a header that is copied under another name is removed from the client's request", async () => {
    const { routes, of } = await made(site({ handle: [asked(), proxy()] }));
    const [first, second] = of(routes[0]);
    expect(first).toMatchObject({
      name: "forward-auth",
      config: { response_headers_to_upstream: ["Remote-User"], run_on_preflight: true },
    });
    expect(second).toMatchObject({
      name: "transform",
      config: { request: { headers: { remove: ["X-Groups"] } } },
    });
  });

  test.each([
    ["says more to it", { headers: { request: { set: { "X-Need": ["admins"] } } } }, null],
    ["lets others in", {}, [{ match: { status_code: [2, 401] }, routes: [] }]],
    ["lets everybody in", {}, [{ routes: [] }]],
    [
      "does something else",
      {},
      [{ match: { status_code: [2] }, routes: [{ handle: [{ handler: "x" }] }] }],
    ],
    ["asks in another way", { rewrite: { method: "POST", uri: "/verify" } }, null],
    [
      "asks somewhere that is not known",
      { rewrite: { method: "GET", uri: "/{http.vars.x}" } },
      null,
    ],
  ])("what %s closes the route", async (_, more, responses) => {
    const { routes } = await made(site({ handle: [asked(more, responses), proxy()] }));
    expect(routes.every(isClosed)).toBe(true);
  });

  test("a matcher on a header that it sets does not match the client's header", async () => {
    const { routes } = await made(
      site(
        { handle: [asked()] },
        { match: [{ header: { "Remote-User": ["boss"] } }], handle: [proxy(9002)] },
        { handle: [proxy()] },
      ),
    );
    for (const route of routes)
      expect(route.headers.some(({ name }: Anything) => name === "Remote-User")).toBe(false);
    expect(isClosed(routes[0])).toBe(true);
  });
});

describe("headers", () => {
  test("that Caddy sets and the gateway cannot are removed from the client's request", async () => {
    const set = {
      "X-Webauth-User": ["{http.auth.user.id}"],
      "X-Client": ["{http.request.remote.host}"],
      "X-Real-IP": ["{http.request.remote.host}"],
      "X-Forwarded-Proto": ["https"],
    };
    const request = { set, delete: ["X-Admin", "Connection"] };
    const handler = { ...proxy(), headers: { request } };
    const { routes, of, report } = await made(site({ handle: [password, handler] }));
    expect(of(routes[0]).find(({ name }) => name === "transform").config).toEqual({
      request: {
        headers: {
          set: { "X-Client": "${client.address}" },
          remove: ["X-Admin", "X-Webauth-User"],
        },
      },
    });
    expect(JSON.stringify(report)).toContain("X-Real-IP");
  });

  test("that are removed by a pattern close the route, here and in front of it", async () => {
    const headers = { request: { delete: ["X-Auth-*"] } };
    const inProxy = await made(site({ handle: [{ ...proxy(), headers }] }));
    expect(inProxy.routes.map(isClosed)).toEqual([true]);
    const before = await made(site({ handle: [{ handler: "headers", ...headers }, proxy()] }));
    expect(before.routes.map(isClosed)).toEqual([true]);
  });

  test("that cannot be removed close the route", async () => {
    const headers = { request: { delete: ["not a name"] } };
    const { routes } = await made(site({ handle: [{ ...proxy(), headers }] }));
    expect(routes.map(isClosed)).toEqual([true]);
  });

  test.each([
    [[], "present"],
    [null, "absent"],
    [["*"], "present"],
  ])("with %j are %s", async (values, op) => {
    const match = [{ header: { "X-A": values } }];
    const { routes } = await made(site({ match, handle: [proxy()] }));
    expect(routes[0].headers).toEqual([{ name: "X-A", op, value: "" }]);
  });
});

describe("rewrites", () => {
  test.each([
    ["with a query", { uri: "/public?x=1" }],
    ["by a placeholder", { uri: "/{http.vars.x}" }],
    ["by what the client has asked for at first", { uri: "/public{http.request.orig_uri}" }],
    ["by an expression that is not known here", { path_regexp: [{ find: "(?=a)", replace: "" }] }],
    ["by several at once", { strip_path_suffix: ".x", path_regexp: [{ find: "a", replace: "b" }] }],
    ["of the query", { query: { delete: ["admin"] } }],
  ])("%s close the route: they may restrict clients to a part of it", async (_, rewrite) => {
    const { routes } = await made(site({ handle: [{ handler: "rewrite", ...rewrite }, proxy()] }));
    expect(routes.every(isClosed)).toBe(true);
  });

  test("that strip a prefix and add another one are combined", async () => {
    const { routes } = await made(
      site({
        match: onPath("/api/*"),
        handle: [
          { handler: "rewrite", strip_path_prefix: "/api" },
          { handler: "rewrite", uri: "/v1{http.request.uri}" },
          proxy(),
        ],
      }),
    );
    expect(routes[0].path_rewrite).toEqual({ regex: "^/+[aA][pP][iI]", to: "/v1" });
  });

  test("of some paths and of the method are plugins, without which the route is closed", async () => {
    const routes = site(
      { match: onPath("/old/*"), handle: [{ handler: "rewrite", uri: "/new{http.request.uri}" }] },
      { handle: [{ handler: "rewrite", method: "GET" }, proxy()] },
    );
    const whole = await made(routes);
    expect(whole.of(whole.routes[0]).map(({ config, when }) => [config.request, when])).toEqual([
      [{ path_rewrite: { regex: "^", to: "/new" } }, { path: ["~^/[oO][lL][dD]/"] }],
      [{ method: "GET" }, null],
    ]);
    const source = { apps: { http: { servers: { a: { listen: [":80"], routes } } } } };
    const without = await convertWith(
      "caddy",
      source,
      plugins.filter(({ name }) => name !== "transform"),
    );
    expect(without.document.routes.every(isClosed)).toBe(true);
  });
});

describe("what the importer does not know", () => {
  test.each(["crowdsec", "invoke", "rate_limit"])(
    "a handler %s closes the routes behind it",
    async (handler) => {
      const { routes } = await made(
        site({ handle: [{ handler, name: "x" }] }, { handle: [proxy()] }),
      );
      expect(routes.every(isClosed)).toBe(true);
    },
  );

  test("a matcher in front of a password requires the password of all clients", async () => {
    const match = [{ vars: { x: ["1"] } }];
    const { routes, of } = await made(site({ match, handle: [password] }, { handle: [proxy()] }));
    expect(routes.map(isClosed)).toEqual([false]);
    expect(of(routes[0])[0].when).toBeNull();
  });

  test("a matcher in front of a service closes it if it may identify clients", async () => {
    const match = [{ vars: { x: ["1"] } }];
    const about = await made(site({ match, handle: [proxy()] }, { handle: [proxy(9002)] }));
    expect(about.routes.map(isClosed)).toEqual([true, false]);
    const file = [{ file: { try_files: ["x"] } }];
    const other = await made(site({ match: file, handle: [proxy()] }, { handle: [proxy(9002)] }));
    expect(other.routes.map(isClosed)).toEqual([false]);
  });

  test("an expression that is too slow matches every path with the same beginning", async () => {
    const { routes } = await made(
      site({ match: onPath("/a*b*c"), handle: [refusal] }, { handle: [proxy()] }),
    );
    expect(routes[0].paths).toEqual([{ type: "regex", value: "^/[aA]" }]);
  });
});

describe("a route that the gateway cannot import", () => {
  test("stays closed if it denied clients", async () => {
    const match = [{ header: { "not a name": ["x"] } }];
    const { routes } = await made(
      site({ match, handle: [password, proxy()] }, { handle: [proxy(9002)] }),
    );
    expect(routes.map(isClosed)).toEqual([true]);
  });

  test("does not affect other hosts", async () => {
    const match = [{ header: { "not a name": ["x"] } }];
    const { routes } = await made([
      ...site({ match, handle: [password, proxy()] }, { handle: [proxy(9002)] }),
      { match: [{ host: ["b.test"] }], handle: [proxy()], terminal: true },
    ]);
    expect(routes.map((route) => [route.hosts, isClosed(route)])).toEqual([
      [["a.test"], true],
      [["b.test"], false],
    ]);
  });
});

describe("where no access is denied", () => {
  test("paths have a simple form that ignores case, as Caddy does", async () => {
    const { routes } = await made(
      site(
        {
          match: onPath("/api/*"),
          handle: [{ handler: "rewrite", strip_path_prefix: "/api" }, proxy(9002)],
        },
        { match: onPath("/1/*", "/2"), handle: [proxy()] },
      ),
    );
    expect(routes[0]).toMatchObject({
      name: "a.test api",
      hosts: ["a.test"],
      paths: [{ type: "regex", value: "^/[aA][pP][iI]/" }],
      path_rewrite: { regex: "^/+[aA][pP][iI]", to: "" },
      headers: [],
    });
    expect(routes[1].paths).toEqual([
      { type: "prefix", value: "/1" },
      { type: "exact", value: "/2" },
    ]);
  });

  test("names below a wildcard have routes of their own", async () => {
    const { routes } = await made([
      {
        match: [{ host: ["*.w.test"] }],
        handle: [
          {
            handler: "subroute",
            routes: [
              { match: [{ host: ["x.w.test"] }], handle: [proxy()] },
              { handle: [proxy(9002)] },
            ],
          },
        ],
      },
    ]);
    expect(routes.map(({ hosts }) => hosts)).toEqual([["x.w.test"], ["*.w.test"]]);
  });
});

test("a password in nested subroutes is required behind them as well", async () => {
  let routes: object[] = [{ handle: [password] }];
  for (let depth = 0; depth < 10; depth++) routes = [{ handle: [{ handler: "subroute", routes }] }];
  const { routes: found, of } = await made(site(...routes, { handle: [proxy()] }));
  expect(of(found[0]).map(({ name }) => name)).toEqual(["basic-auth"]);
});

describe("layer 4 proxies", () => {
  const to = { handler: "proxy", upstreams: [{ dial: ["127.0.0.1:5432"] }] };
  const streams = async (listen: string, ...routes: object[]) => {
    const servers = { db: { listen: [listen], routes } };
    const { document, report } = await convertWith("caddy", { apps: { layer4: { servers } } });
    const isLost = report.some(({ why }) => why.includes("could not be imported"));
    return { made: (document.stream_routes ?? []) as readonly Anything[], isLost };
  };

  test("listen on the same addresses only", async () => {
    for (const [listen, address] of [
      ["127.0.0.1:5432", "127.0.0.1"],
      ["tcp/[::1]:5432", "::1"],
      [":5432", undefined],
    ] as const) {
      const { made, isLost } = await streams(listen, { handle: [to] });
      expect([made[0].listen_address, made[0].enabled, isLost]).toEqual([address, false, false]);
    }
  });

  test.each([
    ["db.internal:5432", { handle: [to] }],
    [":5432", { match: [{ tls: { sni: ["a.test"], alpn: ["db"] } }], handle: [to] }],
    [":5432", { match: [{ tls: {} }], handle: [to] }],
    [
      ":5432",
      {
        handle: [
          { handler: "tls", connection_policies: [{ client_authentication: { mode: "require" } }] },
          to,
        ],
      },
    ],
  ])("report that access control is lost: %s %j", async (listen, route) => {
    expect((await streams(listen, route)).isLost).toBe(true);
  });

  test("report that a route in front of them is lost", async () => {
    const blocked = {
      match: [{ remote_ip: { ranges: ["192.0.2.0/24"] } }],
      handle: [{ handler: "close" }],
    };
    const { made, isLost } = await streams(":5432", blocked, { handle: [to] });
    expect([made.length, isLost]).toEqual([1, true]);
    expect((await streams(":5432", { handle: [to] }, blocked)).isLost).toBe(false);
  });
});
