// What if, map and rewrite of nginx choose: hosts, targets, redirects and other locations (tests/e2e/import-nginx compares).
import { describe, expect, test } from "bun:test";
import { isClosed, made, site } from "./nginx-samples.ts";
import type { Anything } from "./samples.ts";

const PROXY = "location / { proxy_pass http://10.0.0.1; }";

const server = (names: string, body: string, more = "") =>
  made(`${more} server { listen 80; server_name ${names}; ${body} }`);

const ordered = (routes: readonly Anything[]) =>
  routes.toSorted((one, other) => other.priority - one.priority);

describe("conditions on the host", () => {
  const hostsOf = async (condition: string, names = "a.test www.a.test b.test") => {
    const { routes, says } = await server(
      names,
      `if (${condition}) { return 301 https://$host$request_uri; } ${PROXY}`,
    );
    const all = ordered(routes);
    return { says, hosts: all.length > 1 ? all[0].hosts : [], isClosed: all.some(isClosed) };
  };

  test.each([
    ["$host = www.a.test", ["www.a.test"]],
    ["$host != a.test", ["www.a.test", "b.test"]],
    ["$host ~ ^www\\.", ["www.a.test"]],
    ["$host ~* ^WWW\\.", ["www.a.test"]],
    ["$host !~ ^www\\.", ["a.test", "b.test"]],
    ["$host !~* A\\.TEST$", ["b.test"]],
    ["$host ~ nothing", []],
    ['$host ~ "^(?:www\\.)?a\\.test$"', ["a.test", "www.a.test"]],
  ])("%s", async (condition, hosts) => {
    expect(await hostsOf(condition)).toMatchObject({ hosts, isClosed: false });
  });

  test.each([
    ["$host ~ ^WWW"],
    ["$host ~ (?<!x)a"],
    ["$http_host != a.test"],
    ["$hostname = a.test"],
    ["$host ~ '^a b$'"],
  ])("%s closes the routes", async (condition) => {
    expect((await hostsOf(condition)).isClosed).toBe(true);
  });

  test("a group of the expression is part of the redirect", async () => {
    const { document } = await server(
      "a.test www.a.test www.b.test",
      `if ($host ~ ^www\\.(.+)$) { return 301 https://$1$request_uri; } ${PROXY}`,
    );
    const to = (document.plugins as Anything[]).map(({ config }) => config.to);
    expect(to.slice(0, 2)).toEqual([
      "https://a.test${request.target}",
      "https://b.test${request.target}",
    ]);
  });

  test("names that are not listed are compared as a header", async () => {
    const { routes } = await server(
      "*.a.test",
      `if ($host !~ ^[a-c]\\.a\\.test$) { return 403; } ${PROXY}`,
    );
    const [{ value }] = ordered(routes)[0].headers;
    const denied = ["d.a.test", "aa.a.test", "d.a.test:80"].map((host) =>
      new RegExp(value).test(host),
    );
    const others = ["a.a.test", "B.a.test:8080", "c.a.test."].map((host) =>
      new RegExp(value).test(host),
    );
    expect([denied, others]).toEqual([
      [true, true, true],
      [false, false, false],
    ]);
    const part = await server(
      "*.a.test",
      `if ($host ~ ^(.+)\\.a\\.test$) { return 301 https://$1.test/; } ${PROXY}`,
    );
    expect(part.says).toContain("the redirect has a part of the host");
    expect(ordered(part.routes)[0].service_id).toBeNull();
  });

  test("a rewrite in it has its own paths", async () => {
    const { routes } = await server(
      "a.test b.test",
      `location / { if ($host = b.test) { rewrite ^/x$ https://b.test/y permanent; } proxy_pass http://10.0.0.1; }`,
    );
    expect(ordered(routes)[0]).toMatchObject({
      hosts: ["b.test"],
      paths: [{ type: "regex", value: "^/x(?:%0A)?$" }],
    });
  });
});

describe("maps of hosts", () => {
  const mapped = (entries: string, names = "a.test b.test *.c.test") =>
    server(names, "location / { proxy_pass http://$to; }", `map $host $to { ${entries} }`);

  test("each entry is a route with its target", async () => {
    const { document, routes, says } = await mapped(
      "hostnames; default d:1; B.test b:1; *.c.test c:1; *.x.c.test x:1; ~^y\\. y:1; other.test o:1;",
    );
    const targetOf = (route: Anything) =>
      document.targets.find(({ service_id: id }: Anything) => id === route.service_id).host;
    expect(ordered(routes).map((route) => [targetOf(route), route.hosts])).toEqual([
      ["b", ["b.test"]],
      ["x", ["*.x.c.test"]],
      ["c", ["*.c.test"]],
      ["y", ["a.test", "b.test", "*.c.test"]],
      ["d", ["a.test", "b.test", "*.c.test"]],
    ]);
    expect(routes.some(isClosed)).toBe(false);
    expect(says).not.toContain("variables of maps are not supported");
  });

  test("protections hold for each", async () => {
    const { routes } = await server(
      "a.test b.test",
      "location / { allow 10.0.0.1; deny all; proxy_pass http://$to; } location /open { proxy_pass http://o; }",
      "map $host $to { a.test a:1; default d:1; }",
    );
    expect(routes).toHaveLength(3);
    const { document } = await server(
      "a.test b.test",
      "location / { allow 10.0.0.1; deny all; proxy_pass http://$to; }",
      "map $host $to { a.test a:1; default d:1; }",
    );
    const policies = document.plugins.filter(({ name }: Anything) => name === "access-policy");
    expect(policies).toHaveLength(2);
  });

  test("an upstream block may be the value, and the whole URL", async () => {
    const { document } = await server(
      "a.test",
      "location / { proxy_pass $to; }",
      "upstream up { server u:1; } map $host $to { a.test http://up; default http://d:1; }",
    );
    expect(document.targets).toMatchObject([{ host: "u" }, { host: "d" }]);
  });

  test.each([
    ["a.test a:1; \\b.test b:1; default d:1;"],
    ["a.test a:1 more; default d:1;"],
    ["a.test a:1; include hosts.map; default d:1;"],
    ["hostnames; mail.* m:1; default d:1;"],
    ["*.c.test c:1; default d:1;"],
    ["~^(.+)\\.test$ $1:1; default d:1;"],
    ["~(?<!x)a a:1; default d:1;"],
  ])("%s closes the route and names the map", async (entries) => {
    const { routes, says } = await mapped(entries);
    expect(routes.every((route) => route.service_id === null || isClosed(route))).toBe(true);
    expect(says).toContain("depends on the request, by the map at nginx.conf:1");
  });

  test("without a value for the rest, the rest is closed", async () => {
    const { routes } = await mapped("a.test a:1;", "a.test b.test");
    expect(ordered(routes).map((route) => [route.hosts, route.service_id === null])).toEqual([
      [["a.test"], false],
      [["a.test", "b.test"], true],
    ]);
  });

  test("of something else close the route", async () => {
    const { route, says } = await site(
      "location / { proxy_pass http://$to; }",
      "map $remote_addr $to { 10.0.0.1 a:1; default b:1; }",
    );
    expect(route("a.test").service_id).toBeNull();
    expect(says).toContain("variables of maps are not supported");
  });
});

describe("maps of paths", () => {
  const moved = (entries: string, body = "return 301 $new;") =>
    site(`if ($new) { ${body} } ${PROXY}`, `map $uri $new { ${entries} }`);

  test("each entry is a redirect", async () => {
    const { document, routes } = await moved(
      "/old /new; ~^/p/(.*)$ /posts/$1; ~*^/Q$ https://q.test;",
    );
    const redirects = ordered(routes)
      .map(({ id }) => document.plugins.find((each: Anything) => each.route_id === id)?.config)
      .slice(0, 3);
    expect(redirects).toEqual([
      { to: "/new", status: 301, keep_path: false, keep_query: false },
      { to: "/posts/$1", regex: "^/p/(.*)$", status: 301, keep_query: false },
      { to: "https://q.test", status: 301, keep_path: false, keep_query: false },
    ]);
    expect(new RegExp(ordered(routes)[0].paths[0].value).test("/OLD")).toBe(true);
  });

  test("hundreds of entries are hundreds of redirects", async () => {
    const entries = Array.from({ length: 300 }, (_, at) => `/old/page-${at}.html /new/${at};`);
    const { routes } = await moved(entries.join(" "));
    expect(routes).toHaveLength(301);
  });

  test.each([
    [
      "/old /new;",
      "return 308 https://$host$new;",
      { status: 308, to: "https://${request.host}/new" },
    ],
    ["/old /new;", "return $new;", { status: 302, to: "/new" }],
    ["/old https://n.test/;", "return $new;", { status: 302, to: "https://n.test/" }],
    ["/old /new;", "rewrite ^ $new permanent;", { status: 301, to: "/new", keep_query: true }],
  ])("%s with %s", async (entries, body, config) => {
    const { document } = await moved(entries, body);
    expect(document.plugins[0].config).toMatchObject(config);
  });

  test.each([
    ["/old /new; default /all;", "return 301 $new;"],
    ["/old ''; ~^/o /new;", "return 301 $new;"],
    ["/o%20ld /new;", "return 301 $new;"],
    ["/old /new;", "return 403;"],
    ["/old /new;", "return 301 /same;"],
    ["/old /new;", "rewrite ^/x $new permanent;"],
    ["/old $cookie_x$unknown;", "return 301 $new;"],
    ["~(?<!x)y /new;", "return 301 $new;"],
  ])("%s with %s closes the routes", async (entries, body) => {
    const { routes, says } = await moved(entries, body);
    expect(routes.some(isClosed)).toBe(true);
    expect(says).toContain("if at nginx.conf:1 denied access and could not be imported");
  });
});

describe("rewrites to another location", () => {
  const rewritten = async (rewrite: string, locations: string) => {
    const { routes, document, route } = await site(`${rewrite} ${locations}`);
    const [first] = ordered(routes);
    const target = document.targets?.find(
      ({ service_id: id }: Anything) => id === first.service_id,
    );
    return { first, target: target?.host ?? null, document, route };
  };

  test.each([
    ["rewrite ^/v1/(.*)$ /api/$1 last;", "/api/$1", "api"],
    ["rewrite ^/v1$ /one last;", "/one", "one"],
    ["rewrite ^/v1/(.*)$ /base/$1 last;", "/to/$1", "base"],
    ["rewrite ^/v1/(.*)$ /other/$1 last;", "/other/$1", "root"],
  ])("%s", async (rewrite, to, host) => {
    const { first, target } = await rewritten(
      rewrite,
      "location /api/ { proxy_pass http://api; } location = /one { proxy_pass http://one; } location /base/ { proxy_pass http://base/to/; } location / { proxy_pass http://root; }",
    );
    expect([target, first.path_rewrite.to]).toEqual([host, to]);
  });

  test("the protections are those of the other location", async () => {
    const { first, document } = await rewritten(
      "rewrite ^/v1/(.*)$ /api/$1 last;",
      "location /api/ { allow 10.0.0.1; deny all; proxy_pass http://api; } location / { proxy_pass http://root; }",
    );
    const own = document.plugins.filter(({ route_id: id }: Anything) => id === first.id);
    expect(JSON.stringify(own)).toContain("10.0.0.1");
  });

  test.each([
    ["an expression", "location ~ \\.php$ { deny all; }"],
    ["a longer prefix", "location /api/admin { deny all; }"],
    ["an exact location", "location = /api/x { deny all; }"],
    ["an internal location", "location ^~ /api/ { internal; proxy_pass http://api; }"],
    [
      "another rewrite",
      "location ^~ /api/ { rewrite ^/api/(.*) /$1 break; proxy_pass http://api; }",
    ],
    ["a condition", "location ^~ /api/ { if ($http_x) { return 403; } proxy_pass http://api; }"],
    ["files", "location ^~ /api/ { root /srv; }"],
  ])("%s closes the requests", async (_, location) => {
    const { first } = await rewritten(
      "rewrite ^/v1/(.*)$ /api/$1 last;",
      `${location} location / { proxy_pass http://root; }`,
    );
    expect(first.service_id === null || isClosed(first)).toBe(true);
  });

  test("an expression that cannot match the new path does not", async () => {
    const { target } = await rewritten(
      "rewrite ^/v1/(.*)$ /api/$1 last;",
      "location ~ ^/static/ { deny all; } location / { proxy_pass http://root; }",
    );
    expect(target).toBe("root");
  });
});

describe("maps of TLS names", () => {
  const streamed = (entries: string) =>
    made(`stream { upstream web { server w:443; }
      map $ssl_preread_server_name $name { ${entries} }
      server { listen 443; ssl_preread on; proxy_pass $name; } }`);

  test("each target is a stream route", async () => {
    const { document } = await streamed("hostnames; .a.test web; b.test b:443; default d:443;");
    expect(document.stream_routes).toMatchObject([
      { sni: ["a.test", "*.a.test"], tls_mode: "passthrough", enabled: false },
      { sni: ["b.test"], tls_mode: "passthrough" },
      { tls_mode: "none" },
    ]);
    expect(document.targets.map(({ host }: Anything) => host)).toEqual(["w", "b", "d"]);
  });

  test.each([
    ["*.a.test web;"],
    ["hostnames; mail.* web;"],
    ["~a web;"],
    ["a.test $x;"],
    ["include names.map;"],
  ])("%s is named with its place", async (entries) => {
    const { document, says } = await streamed(entries);
    expect(document.stream_routes ?? []).toEqual([]);
    expect(says).toContain("stream on 443 at nginx.conf:3");
  });
});
