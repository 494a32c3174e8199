// Configurations of HAProxy: services, addresses, and rules without an equivalent (requests: tests/e2e/import-haproxy).
import { describe, expect, test } from "bun:test";
import { type Anything, convertWith } from "./samples.ts";

async function made(source: string) {
  const { document, report } = await convertWith("haproxy", source);
  const routes: readonly Anything[] = document.routes ?? [];
  return {
    document,
    report,
    routes,
    closed: routes.filter(({ maintenance }) => maintenance !== undefined).map(({ name }) => name),
    plugins: (document.plugins ?? []) as readonly Anything[],
  };
}

const backend = "backend web\n  server s 10.0.0.1:80\n";
const frontend = (lines: string, bind = "*:80") =>
  `defaults\n  mode http\nuserlist users\n  user bob insecure-password secret\nfrontend www\n  bind ${bind}\n${lines}\n  default_backend web\n${backend}`;

test("users keep the hashes of crypt(3)", async () => {
  const hash = `$6$x$${"a".repeat(86)}`;
  const text = frontend("  http-request auth unless { http_auth(users) }").replace(
    "insecure-password secret",
    `password ${hash}\n  user eve password $apr1$x$yyyyyyyyyyyyyyyyyyyyyy`,
  );
  const { document, closed } = await made(text);
  expect(closed).toEqual([]);
  const login = document.plugins.find(({ name }: { name: string }) => name === "basic-auth");
  expect(login.config.users).toEqual([{ username: "bob", password_hash: hash }]);
});

test("a backend becomes a service with targets, health checks and sticky sessions", async () => {
  const { document } = await made(`
defaults
  mode http
  timeout connect 3s
  timeout server 1m
frontend www
  bind :80
  default_backend app
backend app
  balance leastconn
  cookie SRV insert indirect nocache
  option httpchk HEAD /health
  http-check expect status 204
  default-server check inter 5s fall 4 rise 1
  server a 10.0.0.1:8443 ssl verify none weight 20
  server b [fd00::1]:8443 ssl verify required sni str(app.test) backup
  server c app.test:8443 ssl disabled
`);
  expect(document.services).toMatchObject([
    {
      name: "app",
      protocol: "https",
      algorithm: "least_connections",
      sticky: { enabled: true, cookie: "SRV" },
      connect_timeout: 3000,
      response_timeout: 60_000,
      tls: { verify: false },
      health: {
        active: {
          type: "https",
          method: "HEAD",
          path: "/health",
          interval: 5,
          unhealthy_threshold: 4,
          healthy_threshold: 1,
          expect_statuses: ["204"],
        },
      },
    },
  ]);
  expect(document.targets).toMatchObject([
    { host: "10.0.0.1", port: 8443, weight: 20 },
    { host: "fd00::1", port: 8443, weight: 1, priority: 1 },
    { host: "app.test", port: 8443, enabled: false },
  ]);
});

test("routes keep the order of their rules", async () => {
  const { routes } = await made(
    frontend("  use_backend web if { path_beg /a }\n  use_backend web if { hdr(host) -i a.test }"),
  );
  const [byPath, byHost, rest] = routes.map(({ priority = 0 }) => priority);
  expect(byPath).toBeGreaterThan(byHost ?? 0);
  expect(rest).toBe(0);
});

describe("addresses", () => {
  const two = (first: string, second: string) =>
    `defaults\n  mode http\nfrontend a\n  bind ${first}\n  default_backend web\nfrontend b\n  bind ${second}\n  default_backend web\n${backend}`;

  test.each([
    ["*:80", "*:443 ssl crt /x", []],
    [":80", ":8404", ["web-2"]],
    [":80", "127.0.0.1:80", ["web-2"]],
    [":80", "10.0.0.1:80", ["web-2"]],
    ["10.0.0.1:80", "10.0.0.2:80", []],
    [":80", ":443 ssl crt /x ca-file /y verify required", ["web-2"]],
    [":8080", ":8443 ssl crt /x", []],
  ] as [string, string, string[]][])("%s and %s: closed are %j", async (first, second, closed) => {
    expect((await made(two(first, second))).closed).toEqual(closed);
  });

  test("conditions on addresses behind the PROXY protocol close their frontend", async () => {
    const rule = "  http-request deny unless { src 10.0.0.0/8 }";
    expect((await made(frontend(rule, ":80 accept-proxy"))).closed).toEqual(["web"]);
    expect((await made(frontend(rule))).closed).toEqual([]);
  });

  test("a redirect to HTTPS needs no backend", async () => {
    const { routes } = await made(
      `defaults\n  mode http\nfrontend a\n  bind :80\n  http-request redirect scheme https code 301 unless { ssl_fc }\n${backend}`,
    );
    expect(routes).toMatchObject([{ protocols: ["http"], https_redirect: 301, service_id: null }]);
  });
});

describe("rules without an equivalent close the routes", () => {
  test.each([
    "http-request deny if { req.body -m sub x }",
    "http-request deny if { src -f /etc/list }",
    "http-request deny if { path,url_dec -m beg /x }",
    "http-request deny if undefined_acl",
    "http-request allow if { path /x }",
    "http-request lua.check",
    "http-request set-src hdr(x-forwarded-for)",
    "http-request auth unless { http_auth(others) }",
    "http-request auth unless { http_auth_group(users) admins }",
    "http-request set-path /fixed if { path /x }",
    "http-response deny if { res.hdr(x) y }",
    "tcp-request connection accept if { src 10.0.0.1 }",
    "filter spoe engine x",
    "something-new",
  ])("%s", async (line) => {
    const { closed, report } = await made(frontend(`  ${line}`));
    expect(closed).toEqual(["web"]);
    expect(report.some(({ what }) => what.includes("(line 7)"))).toBe(true);
  });
});

describe("other rules do not", () => {
  test.each([
    "http-request set-header X-Forwarded-Proto https if { ssl_fc }",
    "http-request set-header X-Id %[uuid()]",
    "http-request track-sc0 src",
    "http-request deny deny_status 429 if { sc_http_req_rate(0) gt 100 }",
    "http-response set-header X-Frame-Options DENY",
    "http-request capture req.hdr(host) len 10",
    "option forwardfor",
    "compression algo gzip",
    "stats uri /stats",
  ])("%s", async (line) => {
    expect((await made(frontend(`  ${line}`))).closed).toEqual([]);
  });

  test("a header with a value of the request is removed from the client's request", async () => {
    const { plugins } = await made(frontend("  http-request set-header X-Id %[uuid()]"));
    expect(plugins).toMatchObject([
      { name: "transform", config: { request: { headers: { remove: ["X-Id"] } } } },
    ]);
  });

  test("denials of a frontend and of a backend are one policy", async () => {
    const { plugins, closed } = await made(
      `${frontend("  http-request deny if { path_beg /x }")}  http-request deny deny_status 404 if METH_DELETE\n`,
    );
    expect(closed).toEqual([]);
    expect(plugins).toMatchObject([
      {
        name: "access-policy",
        config: {
          deny_status: 404,
          rules: [
            { when: { path: ["~^/x"] }, action: "deny" },
            { when: { method: ["DELETE"] }, action: "deny" },
          ],
        },
      },
    ]);
  });
});

test("TCP frontends become disabled stream routes", async () => {
  const { document } = await made(`
frontend tls
  bind :8443
  mode tcp
  tcp-request inspect-delay 5s
  tcp-request connection reject unless { src 10.0.0.0/8 }
  use_backend mail if { req.ssl_sni -i mail.test }
  default_backend rest
backend mail
  mode tcp
  server s 10.0.0.1:993
backend rest
  mode tcp
  server s 10.0.0.2:443
`);
  expect(document.stream_routes).toMatchObject([
    {
      listen_port: 8443,
      tls_mode: "passthrough",
      sni: ["mail.test"],
      allow: ["10.0.0.0/8"],
      enabled: false,
    },
    { listen_port: 8443, tls_mode: "passthrough", sni: [], enabled: false },
  ]);
});

test.each([
  [
    "X-Forwarded-Scheme https if { ssl_fc }",
    { set: { "X-Forwarded-Scheme": "${request.scheme}" } },
  ],
  [
    "X-Forwarded-Scheme %[ssl_fc,iif(https,http)]",
    { set: { "X-Forwarded-Scheme": "${request.scheme}" } },
  ],
  ["X-Forwarded-Ssl on", { set: { "X-Forwarded-Ssl": "on" } }],
  ["X-Forwarded-Ssl on if { ssl_fc }", { remove: ["X-Forwarded-Ssl"] }],
])("http-request set-header %s", async (line, headers) => {
  const { plugins } = await made(frontend(`  http-request set-header ${line}`));
  expect(plugins.map(({ config }) => config)).toEqual([{ request: { headers } }]);
});
