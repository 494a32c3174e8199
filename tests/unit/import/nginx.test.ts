// Configurations of nginx as texts: what becomes of each directive (tests/e2e/import-nginx compares with a running nginx).
import { describe, expect, test } from "bun:test";
import { isClosed, made, madeWith, site } from "./nginx-samples.ts";
import { convertWith } from "./samples.ts";

describe("the text", () => {
  test("has quotes, escapes, comments and braces in variables", async () => {
    const { pluginsOf } = await made(`# comment { ; }
      server { listen 80; server_name 'a.test' "b.test"; # the rest
        location "/a b" { return 200 "x\\"y # no comment; \${host}z"; }
        location /c { return 200 'it\\'s;{}'; } }`);
    expect(pluginsOf("a.test a-b").respond.template).toBe('x"y # no comment; ${request.host}z');
    expect(pluginsOf("a.test c").respond.body).toBe("it's;{}");
  });

  test.each([
    ["server { listen 80;", 'unexpected end of file, expecting "}" (line 1, column 20)'],
    ["server { listen 80; }\n}", 'unexpected "}" (line 2, column 1)'],
    ["server {\n  listen 80\n}", 'unexpected "}", expecting ";" after "listen" (line 3, column 1)'],
    ['server { server_name "a', "the string has no end (line 1, column 22)"],
    ['server { server_name "a"b; }', 'unexpected "b" after a string (line 1, column 25)'],
    ["events { ; }", 'unexpected ";" (line 1, column 10)'],
    ["events {}", 'has no block "server"'],
    ["http { include conf.d/*.conf; }", "nginx -T"],
    ["http { access_by_lua_block { if x then { }", 'the block has no "}"'],
  ])("%j is rejected with %j", async (text, message) => {
    const failure = await convertWith("nginx", text).catch((error: Error) => error);
    expect((failure as Error).message).toContain(message);
  });

  test("the file of an error is named", async () => {
    const failure = await madeWith({
      "nginx.conf": "http { include sites/*; }",
      "sites/a": "server {\n listen 80",
    }).catch((error: Error) => error);
    expect((failure as Error).message).toContain("line 2, column 11 of sites/a");
  });

  test("includes are read in their place, and an endless one is rejected", async () => {
    const { route } = await madeWith({
      "nginx.conf": "http { include sites/*; }",
      "sites/a": "server { server_name a.test; location / { include proxy; } }",
      proxy: "proxy_pass http://10.0.0.1; proxy_set_header Host $host;",
    });
    expect(route("a.test").service_id).toBeString();
    await expect(madeWith({ "nginx.conf": "include nginx.conf;" })).rejects.toThrow(/deeper than/);
  });

  test("the output of nginx -T has all files", async () => {
    const { route, says } = await made(`# configuration file /etc/nginx/nginx.conf:
http { include mime.types; include /etc/nginx/sites/*.conf; }
# configuration file /etc/nginx/mime.types:
types { text/html html; }
# configuration file /etc/nginx/sites/a.conf:
server { listen 80; server_name a.test; location / { proxy_pass http://10.0.0.1; } }
# configuration file /etc/nginx/sites/b.conf:
server { listen 80; server_name b.test; include snippets/unknown.conf; location / { proxy_pass http://10.0.0.1; } }
`);
    expect(isClosed(route("a.test"))).toBe(false);
    expect(isClosed(route("b.test"))).toBe(true);
    expect(says).toContain("include snippets/unknown.conf at sites/b.conf:1");
  });
});

describe("an include that is not there closes what it may protect", () => {
  test.each([
    ["include snippets/secure.conf; location / { proxy_pass http://10.0.0.1; }", true],
    ["location / { include snippets/secure.conf; proxy_pass http://10.0.0.1; }", true],
    [
      "include /etc/letsencrypt/options-ssl-nginx.conf; location / { proxy_pass http://10.0.0.1; }",
      false,
    ],
    ["location / { include proxy_params; proxy_pass http://10.0.0.1; }", false],
    ["location /x { include y; return 204; } location / { proxy_pass http://10.0.0.1; }", false],
  ])("%s", async (body, closed) => {
    const { route } = await site(body);
    expect(isClosed(route("a.test"))).toBe(closed);
  });

  test("at the level of http, all servers", async () => {
    const { routes } = await site(
      "location / { proxy_pass http://10.0.0.1; }",
      "include conf.d/*;",
    );
    expect(routes.map(isClosed)).toEqual([true]);
  });

  test("the parameters of Debian set the Host header", async () => {
    const { document } = await site(
      "location / { include proxy_params; proxy_pass http://10.0.0.1; }",
    );
    expect(document.services[0].host_header).toBe("preserve");
  });
});

describe("directives that may deny close their route", () => {
  test.each([
    ["modsecurity on;"],
    ["access_by_lua_block { ngx.exit(403) -- } }\n }"],
    ["js_access main.check;"],
    ["auth_jwt realm;"],
    ["if ($http_x_key != abc) { return 403; }"],
    ["if ($bad) { deny all; }"],
    ["if ($bad) { proxy_pass http://10.0.0.2; }"],
    ["ssl_verify_client on;"],
    ["auth_basic x; auth_basic_user_file users;"],
    ["satisfy any; auth_basic x; auth_basic_user_file users; auth_request /missing;"],
    ["allow 10.0.0.1; deny $all;"],
    ["rewrite ^/x(?<!y)z /a break;"],
    ["rewrite ^/x /y?a=b break;"],
    ["rewrite ^/a /b?c last;"],
  ])("%s", async (lines) => {
    const proxy = "proxy_pass http://10.0.0.1;";
    const { routes } = await site(`location / { ${lines} ${proxy} } location /open { ${proxy} }`);
    const root = routes.filter(({ name }) => !name.startsWith("a.test open"));
    // A rewrite closes the requests that it would change.
    expect(root.some((route) => isClosed(route) || route.service_id === null)).toBe(true);
    expect(isClosed(routes.find(({ name }) => name === "a.test open"))).toBe(false);
    const whole = await site(`${lines} location / { ${proxy} }`);
    expect(whole.routes.some((route) => isClosed(route) || route.service_id === null)).toBe(true);
  });

  test.each([
    ["client_body_timeout 10s; proxy_buffering off; etag off;"],
    ["set $x 1; add_header A b; access_log off;"],
    ["if ($x) { set $y 1; add_header A b; }"],
    ["auth_basic off; allow all;"],
    ["brotli on; more_set_headers 'a: b';"],
  ])("%s does not", async (lines) => {
    const { routes } = await site(`${lines} location / { proxy_pass http://10.0.0.1; }`);
    expect(routes.some(isClosed)).toBe(false);
  });

  test.each([
    ["limit_except GET { auth_basic x; }"],
    ["auth_request /missing;"],
    ["auth_request /loop; set $x $uri; proxy_pass http://$x;"],
    ["try_files $uri =404;"],
  ])("in a location: %s", async (lines) => {
    const { route } = await site(`location /a { ${lines} proxy_pass http://10.0.0.1; }`);
    expect(isClosed(route("a.test a")) || route("a.test a").service_id === null).toBe(true);
  });

  test("addresses behind another proxy", async () => {
    const { route, says } = await site(
      "set_real_ip_from 10.0.0.1; location /a { allow 1.2.3.4; deny all; proxy_pass http://10.0.0.1; } location / { proxy_pass http://10.0.0.1; }",
    );
    expect([isClosed(route("a.test a")), isClosed(route("a.test"))]).toEqual([true, false]);
    expect(says).toContain("trusted_proxies");
  });
});

describe("servers", () => {
  test("names of all kinds, and the ports of the gateway", async () => {
    const { routes } = await made(`
      server { listen 80 default_server; return 444; }
      server { listen 80; listen [::]:80; listen 443 ssl; server_name A.test .b.test; return 404; }
      server { listen 80; server_name *.b.test x.b.test; return 404; }
      server { listen 80; server_name c.* ~^d\\d+\\.test$; return 404; }`);
    const of = (name: string) => routes.find((route) => route.name === name);
    expect(of("a.test").hosts).toEqual(["a.test", "b.test"]);
    expect(of("any.b.test").hosts).toEqual(["*.b.test"]);
    expect(of("c.any").headers[0].value).toBe("^[cC]\\.[^:.]");
    expect(of("d-d-.test").headers[0].value).toStartWith("^[dD]\\d+\\.");
    expect(of("default server")).toMatchObject({ priority: -1_000_000, protocols: ["http"] });
    expect(of("a.test").protocols).toBeUndefined();
  });

  test("other ports and addresses become disabled listeners", async () => {
    const { document, routes } = await made(
      "server { listen 8080; listen 127.0.0.1:80; server_name a.test; location / { proxy_pass http://10.0.0.1; } }",
    );
    expect(document.listeners).toMatchObject([
      { port: 8080, enabled: false, protocol: "http" },
      { port: 80, enabled: false, address: "127.0.0.1" },
    ]);
    expect(routes.every(({ listener_ids: ids }) => ids.length === 1)).toBe(true);
  });

  test("a second server with the same name is ignored, as in nginx", async () => {
    const { routes, says } = await made(
      "server { server_name a.test; return 200 one; } server { server_name a.test; return 200 two; }",
    );
    expect(routes.map(({ name }) => name)).toEqual(["a.test"]);
    expect(says).toContain("an earlier server has the same name");
  });

  test("a server of one host goes before one with a wildcard, whatever its paths", async () => {
    const { route } = await made(`
      server { server_name *.a.test; location = /x { return 404; } location / { return 404; } }
      server { server_name b.a.test; location / { return 204; } }`);
    expect(route("b.a.test").priority).toBeGreaterThan(route("any.a.test x").priority);
  });
});

describe("locations", () => {
  test("their order becomes priorities", async () => {
    const { routes } = await site(`
      location /a { return 204; } location ~ x { return 204; } location = /e { return 204; }
      location ^~ /b { return 204; } location /a/longer { return 204; } location ~* y { return 204; }`);
    const order = routes.toSorted((a, b) => b.priority - a.priority);
    expect(order.map(({ name }) => name)).toEqual([
      ...["a.test e", "a.test b", "a.test x", "a.test y", "a.test a-longer", "a.test a", "a.test"],
    ]);
  });

  test("open ones stay prefixes, protected ones match as nginx does", async () => {
    const { route } = await site(`location / { proxy_pass http://10.0.0.1; }
      location /open { proxy_pass http://10.0.0.2; }
      location /admin { allow 10.0.0.1; deny all; proxy_pass http://10.0.0.1; }`);
    expect(route("a.test open").paths).toEqual([{ type: "prefix", value: "/open" }]);
    expect(route("a.test admin").paths).toContainEqual({ type: "regex", value: "^/admin" });
  });

  test("a longer prefix is left to expressions where nginx tries them", async () => {
    const { route } = await site(
      "location ^~ /a/ { proxy_pass http://10.0.0.1; } location /a/b/ { proxy_pass http://10.0.0.2; } location ~ c { proxy_pass http://10.0.0.3; }",
    );
    expect(route("a.test a").paths).toEqual([{ type: "regex", value: "^/a/(?!b(?:/|$))" }]);
  });

  test("an expression without an equivalent closes only what it may protect", async () => {
    const proxy = "proxy_pass http://10.0.0.1;";
    const guarded = await site(`location / { ${proxy} } location ~ (?<!x)y { deny all; ${proxy} }`);
    expect(guarded.routes.map((one) => [isClosed(one), one.paths?.[0].value])).toEqual([
      [true, "y"],
      [false, undefined],
    ]);
    // Nothing is known of the paths that it matches.
    const wide = await site(`location / { ${proxy} } location ~ (?R)y { deny all; ${proxy} }`);
    expect(wide.routes.some((one) => isClosed(one) && one.paths === undefined)).toBe(true);
    const open = await site(`location / { ${proxy} } location ~ (?<!x)y { ${proxy} }`);
    expect(open.routes.map(isClosed)).toEqual([false]);
    expect(open.says).toContain("no route can match its paths");
  });

  test("files are named, and open nothing", async () => {
    const { route, pluginsOf, says } = await site(
      "root /srv; location / { try_files $uri =404; } location /api { proxy_pass http://10.0.0.1; } location /private { auth_basic x; auth_basic_user_file u; alias /x; }",
    );
    expect([route("a.test").service_id, pluginsOf("a.test").respond.status]).toEqual([null, 503]);
    expect(route("a.test private").service_id).toBeNull();
    expect(says).toContain("does not serve files");
  });
});

describe("proxied requests", () => {
  test("upstream blocks become services with targets", async () => {
    const { document } = await site(
      "location / { proxy_pass http://app; proxy_set_header Host $http_host; }",
      "upstream app { ip_hash; server a:1 weight=3 max_fails=2 fail_timeout=7s; server b backup; server c down; keepalive 3; }",
    );
    expect(document.services).toMatchObject([
      { name: "app", algorithm: "consistent_hash", host_header: "preserve" },
    ]);
    expect(document.services[0].health.passive).toMatchObject({
      consecutive_failures: 2,
      ejection_seconds: 7,
    });
    expect(document.targets).toMatchObject([
      { host: "a", port: 1, weight: 3 },
      { host: "b", port: 80, priority: 1 },
      { host: "c", enabled: false },
    ]);
  });

  test("variables with fixed values are targets, others are named", async () => {
    const { document, says } = await site(
      "set $app jellyfin; location / { set $port 8096; proxy_pass http://$app:$port; } location /x { proxy_pass http://$arg_to; }",
    );
    expect(document.targets).toMatchObject([{ host: "jellyfin", port: 8096 }]);
    expect(says).toContain("http://$arg_to depends on the request");
  });

  test("headers, timeouts, WebSocket, sizes, compression and the cache", async () => {
    const { route, pluginsOf } = await site(
      `client_max_body_size 2m; gzip on; gzip_types text/css; proxy_cache_valid 200 10m;
       location / { proxy_pass http://10.0.0.1; proxy_read_timeout 2m; proxy_set_header Upgrade $http_upgrade;
         proxy_set_header X-A "$host-$request_uri"; proxy_set_header X-B ""; proxy_set_header X-C $remote_user;
         add_header X-D yes always; proxy_hide_header X-E; proxy_cache zone; }`,
    );
    expect(route("a.test")).toMatchObject({
      websocket: true,
      timeouts: { response_timeout: 120_000, read_timeout: 120_000 },
    });
    const own = pluginsOf("a.test");
    expect(own["request-size-limit"].max_body_bytes).toBe(2_097_152);
    expect(own.compress).toMatchObject({ encodings: ["gzip"], types: ["text/html", "text/css"] });
    expect(own["response-cache"].ttl_default).toBe(600);
    expect(own.transform).toEqual({
      request: {
        headers: {
          set: { "X-A": "${request.host}-${request.target}" },
          remove: ["X-B", "X-C"],
        },
      },
      response: { gateway_responses: true, headers: { add: { "X-D": "yes" }, remove: ["X-E"] } },
    });
  });

  test("limits of requests", async () => {
    const { pluginsOf } = await site(
      "location / { limit_req zone=a burst=5 nodelay; limit_conn b 7; proxy_pass http://10.0.0.1; }",
      "limit_req_zone $binary_remote_addr zone=a:1m rate=30r/m; limit_conn_zone $binary_remote_addr zone=b:1m;",
    );
    expect(pluginsOf("a.test")["rate-limit"]).toMatchObject({
      limits: [{ requests: 30, window: 60, burst: 6, algorithm: "token_bucket", key: "ip" }],
      status: 503,
    });
    expect(pluginsOf("a.test")["concurrency-limit"]).toMatchObject({ max: 7, key: "ip" });
  });

  test("texts of the source do not become variables of templates", async () => {
    const { document, says } = await site(
      'location / { proxy_pass http://10.0.0.1; add_header X "${env.SLUICE_ENV_SECRET}"; return 302 https://b.test/$env; }',
    );
    expect(JSON.stringify(document)).not.toContain("env.");
    expect(says).toContain("has no equivalent");
  });
});

test.each([
  ["off", false, false],
  ["default", true, false],
  ["http://10.0.0.1:80/ /", true, false],
  ["http://10.0.0.1:80 $scheme://$host:$server_port/", true, false],
  ["http://10.0.0.1:80/ https://$http_host/", true, false],
  ["http:// https://", true, true],
  ["http://10.0.0.1:80/ /app/", true, true],
  ["http://10.0.0.1:80/ https://other.test/", true, true],
  ["~^http://x(.*)$ $1", true, true],
])("proxy_redirect %s", async (rule, isOn, isReported) => {
  const { document, says } = await site(
    `proxy_redirect ${rule}; location / { proxy_pass http://10.0.0.1:80; }`,
  );
  expect(document.services[0].rewrite_redirects ?? true).toBe(isOn);
  expect(says.includes("proxy_redirect")).toBe(isReported);
});

test("locations with and without proxy_redirect off have services of their own", async () => {
  const { document } = await site(
    "location / { proxy_pass http://10.0.0.1:80; } location /a { proxy_redirect off; proxy_pass http://10.0.0.1:80; }",
  );
  expect(document.services).toHaveLength(2);
});
