// What Nginx Proxy Manager denies stays denied after the import: cases without nginx (tests/e2e/import-npm compares with one).
import { describe, expect, test } from "bun:test";
import { readAdvanced } from "../../../src/import/npm/advanced.ts";
import { mayDenyAccess } from "../../../src/import/npm/nginx-lines.ts";
import { groupReport } from "../../../src/import/report.ts";
import { type Anything, convertWith, npmDatabase } from "../../unit/import/samples.ts";

test.each([
  [""],
  ["client_max_body_size 0;"],
  ["# deny all;\nproxy_read_timeout 1h; # don't; deny all"],
  ["proxy_set_header Upgrade $http_upgrade;\n\tproxy_set_header Connection 'upgrade';"],
  ['add_header X-Frame-Options "a; deny all; # {b}";'],
  ["gzip on"],
])("%j denies no access", (text) => expect(mayDenyAccess(text)).toBe(false));

test.each([
  ["deny all;"],
  ["client_max_body_size 0; deny all;"],
  ["client_max_body_size 0;deny all"],
  ["include /data/nginx/custom/authelia.conf;"],
  ["access_by_lua_block { ngx.exit(403) }"],
  ["proxy_set_header Remote-User '';"],
  ["location /x { proxy_pass http://a; }"],
  ['add_header X-A "a # b"; deny all;'],
  ["# don't\ndeny all;\n# it's"],
  ['"deny" all;'],
  ['add_header X "a'],
  ["add_header X a\\; deny all;"],
  ["add_header X a#b; deny all;"],
  ["Deny all;"],
  ["auth_request /outpost;"],
  ["set_real_ip_from 10.0.0.0/8;"],
  ["return 403;"],
  ["location /x { proxy_pass http://a; } }"],
  ["{ deny all; }"],
  ["deny all }"],
])("%j may deny access", (text) => expect(mayDenyAccess(text)).toBe(true));

async function made(...statements: readonly string[]) {
  const { document, report } = await convertWith("npm", npmDatabase(...statements));
  const routes = document.routes as readonly Anything[];
  const of = (host: string) => routes.filter(({ hosts }) => hosts?.includes(host));
  const isClosed = ({ maintenance }: Anything) => maintenance !== undefined;
  const pluginsOf = ({ id }: Anything): Anything =>
    Object.fromEntries(
      document.plugins
        .filter(({ route_id: route }: Anything) => route === id)
        .map(({ name, config }: Anything) => [name, config]),
    );
  return { report, of, closed: (host: string) => of(host).map(isClosed), document, pluginsOf };
}

const location = (advanced: string, path = "/x") =>
  `UPDATE proxy_host SET locations = '${JSON.stringify([
    {
      path,
      advanced_config: advanced,
      forward_scheme: "http",
      forward_host: "127.0.0.1",
      forward_port: 9002,
    },
  ])}' WHERE id = 1`;

describe("an unknown setting", () => {
  test("in a host closes it with its locations", async () => {
    const column = "ALTER TABLE proxy_host ADD COLUMN sso_provider";
    const on = "UPDATE proxy_host SET sso_provider = 'authelia' WHERE id = 1";
    expect((await made(column)).closed("photos.test")).toEqual([false, false]);
    const { closed } = await made(column, on);
    expect([closed("photos.test"), closed("family.test")]).toEqual([[true, true], [false]]);
    const off = "UPDATE proxy_host SET sso_provider = 0";
    expect((await made(column, off)).closed("photos.test")).toEqual([false, false]);
  });

  test("in a location closes the location", async () => {
    const known = await made(location(""));
    expect(known.closed("photos.test")).toEqual([false, false]);
    const unknown = `UPDATE proxy_host SET locations = replace(locations, '"forward_port"', '"sso":true,"forward_port"') WHERE id = 1`;
    expect((await made(location(""), unknown)).closed("photos.test")).toEqual([false, true]);
  });

  test.each<[string, string, string]>([
    [
      "its row",
      "ALTER TABLE access_list ADD COLUMN zz varchar(9)",
      "UPDATE access_list SET zz = 'x'",
    ],
    [
      "a user",
      "ALTER TABLE access_list_auth ADD COLUMN totp varchar(9)",
      "UPDATE access_list_auth SET totp = 'x'",
    ],
    [
      "a table",
      "CREATE TABLE access_list_clientca (id integer)",
      "INSERT INTO access_list_clientca VALUES (1)",
    ],
  ])("in an access list closes the hosts that use it: %s", async (_, alter, change) => {
    const { closed } = await made(alter, change);
    expect([closed("family.test"), closed("photos.test")]).toEqual([[true], [false, false]]);
  });
});

describe("a host that the gateway cannot import", () => {
  const wildcard = `INSERT INTO proxy_host SELECT 90, created_on, modified_on, 1, 0, '["*.test"]', forward_host, forward_port, 0, 0, 0, 0, 0, '', '{}', 0, 0, 'http', 1, null, 0, 0 FROM proxy_host WHERE id = 1`;
  const broken = (table: string, id: number, name: string) =>
    `UPDATE ${table} SET domain_names = '["${name}","a..b"]' WHERE id = ${id}`;

  test.each([
    ["with a list", broken("proxy_host", 2, "family.test"), true],
    [
      "with lines that may deny access",
      broken("proxy_host", 3, "guarded.test").replace(
        "SET",
        "SET advanced_config = 'auth_jwt x;',",
      ),
      true,
    ],
    ["that is gone", broken("dead_host", 1, "gone.test"), true],
    ["that is open", broken("proxy_host", 1, "photos.test"), false],
    ["that is off", broken("proxy_host", 6, "off.test"), false],
  ])("%s does not leave its requests to an open host", async (_, statement, isClosed) => {
    const { closed } = await made(wildcard, statement);
    expect(closed("*.test")).toEqual([isClosed]);
  });
});

test("a location with an invalid path closes its host", async () => {
  const { closed } = await made(location("deny all;", "/a { } location /b"));
  expect(closed("photos.test")[0]).toBe(true);
});

test("a protected path matches every path that begins with it", async () => {
  const { of, closed, pluginsOf } = await made(location("deny all;", "/caf\u00e9/(x)"));
  expect(closed("photos.test")).toEqual([false, false]);
  const [denied] = of("photos.test");
  expect(denied.paths).toEqual([{ type: "regex", value: "^/caf%C3%A9/\\(x\\)" }]);
  expect(pluginsOf(denied)).toMatchObject({
    "access-policy": { rules: [{ when: {}, action: "deny" }] },
  });
});

describe("directives of nginx", () => {
  test("timeouts, sizes, headers and WebSockets have equivalents", () => {
    const read = readAdvanced(`
      client_max_body_size 10m; # a comment
      proxy_read_timeout 1h 30m;
      proxy_send_timeout 600;
      proxy_connect_timeout 500ms;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection "upgrade";
      proxy_set_header X-Origin $scheme://\${host};
      proxy_set_header X-User '';
      add_header X-Frame-Options "SAMEORIGIN; \\"x\\"" always;
      add_header X-Agent $http_user_agent;
      gzip on;
    `);
    expect(read).toEqual({
      mayDeny: false,
      unknown: [],
      timeouts: {
        response_timeout: 5_400_000,
        read_timeout: 5_400_000,
        write_timeout: 600_000,
        connect_timeout: 500,
      },
      maxBody: 10_485_760,
      requestHeaders: {
        set: { "X-Origin": "${request.scheme}://${request.host}" },
        remove: ["X-User"],
      },
      responseHeaders: {
        "X-Frame-Options": 'SAMEORIGIN; "x"',
        "X-Agent": "${request.header.user-agent}",
      },
      isWebsocket: true,
      response: null,
      proxyPass: null,
      locations: [],
      ignored: ["gzip"],
    });
  });

  test.each([
    ["return 301 https://new.test$request_uri;", 301, "https://new.test${request.target}"],
    ["return 302 $scheme://$host/dav;", 302, "${request.scheme}://${request.host}/dav"],
    ["return https://new.test/;", 302, "https://new.test/"],
    ["deny all; return 308 /x;", 308, "/x"],
  ])("%j redirects and denies nothing", (text, status, to) => {
    const { mayDeny, response } = readAdvanced(text);
    expect([mayDeny, response?.config["status"], response?.config["to"]]).toEqual([
      false,
      status,
      to,
    ]);
  });

  test.each([
    ["return 444;"],
    ["return 301 https://$upstream_host/;"],
    ["if ($x) { return 301 https://a.test; }"],
    ["rewrite_by_lua_block { x } return 301 https://a.test;"],
    ["proxy_set_header X-User $remote_user;"],
    ["location @x { return 404; }"],
    ["location /x { root /data; }"],
  ])("%j may deny access", (text) => {
    const { mayDeny, locations } = readAdvanced(text);
    expect(mayDeny || locations.some(({ advanced }) => advanced.mayDeny)).toBe(true);
  });
});

const advanced = (text: string, id = 1) =>
  `UPDATE proxy_host SET advanced_config = '${text.replaceAll("'", "''")}' WHERE id = ${id}`;

describe("locations are judged by what they do", () => {
  test("a redirect below /.well-known denies nothing, and asks for no password", async () => {
    const dav = "location = /.well-known/carddav { return 301 $scheme://$host/dav; }";
    const { of, closed, document } = await made(advanced(dav, 2));
    expect(closed("family.test")).toEqual([false, false]);
    const route = of("family.test")[1];
    expect(route.paths).toEqual([{ type: "exact", value: "/.well-known/carddav" }]);
    const plugins = document.plugins.filter((each: Anything) => each.route_id === route.id);
    expect(plugins.map(({ name }: Anything) => name)).toEqual(["redirect", "waf-lite"]);
  });

  test("a location that forwards is a route with the access list of its host", async () => {
    const text = "location /api/ { proxy_pass http://10.0.0.9:81/v1/; proxy_read_timeout 5m; }";
    const { of, document } = await made(advanced(text, 2));
    const [, route] = of("family.test");
    expect(route).toMatchObject({ paths: [{ type: "prefix", value: "/api" }], strip_path: true });
    const service = document.services.find(({ id }: Anything) => id === route.service_id);
    expect(service).toMatchObject({ path: "/v1", read_timeout: 300_000, connect_timeout: 90_000 });
    const plugins = document.plugins.filter((each: Anything) => each.route_id === route.id);
    expect(plugins.map(({ name }: Anything) => name)).toContain("access-policy");
  });

  test("an unknown directive in one closes only that one", async () => {
    const text = "location /admin { auth_jwt x; proxy_pass http://a; }";
    const { of, closed } = await made(advanced(text));
    expect(closed("photos.test")).toEqual([true, false, false]);
    expect(of("photos.test")[0].paths[0].value).toBe("/admin");
  });

  test("the location / takes the place of the host's target", async () => {
    const { document } = await made(location("", "/"));
    const [application] = document.applications;
    expect(application).toMatchObject({ name: "photos.test", upstream: "http://127.0.0.1:9002" });
  });
});

describe("applications", () => {
  test("hold what their host has, and a closed host is in maintenance", async () => {
    const { document, of, closed, pluginsOf } = await made();
    // Its directives need more than the fields of an application.
    expect(closed("guarded.test")).toEqual([false]);
    expect(pluginsOf(of("guarded.test")[0])).toHaveProperty("forward-auth");
    const unknown = await made(
      "UPDATE proxy_host SET advanced_config = 'auth_jwt x;' WHERE id = 3",
    );
    expect(unknown.document.applications).toContainEqual(
      expect.objectContaining({ name: "guarded.test", maintenance: true }),
    );
    const names = document.applications.map(({ name, maintenance, enabled }: Anything) => [
      name,
      maintenance ?? false,
      enabled,
    ]);
    expect(names).toEqual([
      ["photos.test", false, true],
      ["family.test", false, true],
      ["lan.test", false, true],
      ["off.test", false, false],
    ]);
  });

  test("without a certificate there is no redirect to HTTPS and no HSTS yet", async () => {
    const { document, report, of } = await made();
    expect(document.applications[0].https).toMatchObject({ mode: "certificate", redirect: true });
    expect(of("photos.test").map(({ https_redirect: to }: Anything) => to)).toEqual([false, false]);
    expect(report).toContainEqual({
      level: "changed",
      what: 'proxy host "photos.test, www.photos.test"',
      why: "redirects to HTTPS and sends HSTS, not for subdomains, as soon as its certificate is issued",
    });
  });

  test.each([
    ["~photos", "domains[0]"],
    ["photos.test", "does not cover"],
  ])("a host that one cannot hold becomes single objects: %s", async (name, why) => {
    const statement =
      why === "does not cover"
        ? `UPDATE certificate SET domain_names = '["photos.test"]' WHERE id = 1`
        : `UPDATE proxy_host SET domain_names = '["${name}"]' WHERE id = 1`;
    const { report, document } = await made(statement);
    if (why === "does not cover") {
      expect(document.applications[0].https).toMatchObject({ mode: "off" });
      expect(JSON.stringify(report)).toContain("does not cover all of its names");
    } else {
      expect(document.applications).toHaveLength(3);
      expect(report.map(({ what }) => what)).toContain('proxy host "~photos"');
    }
  });
});

describe("the DNS challenge", () => {
  const challenge = (provider: string, credentials: string, more = "") =>
    `UPDATE certificate SET meta = '${JSON.stringify({
      dns_challenge: true,
      dns_provider: provider,
      dns_provider_credentials: credentials,
      ...(more === "" ? {} : { propagation_seconds: Number(more) }),
    })}' WHERE id <= 2`;

  test.each<[string, string, string, Record<string, unknown>]>([
    ["cloudflare", "# x\ndns_cloudflare_api_token = abc", "cloudflare", { api_token: "abc" }],
    ["duckdns", "dns_duckdns_token=abc", "duckdns", { token: "abc" }],
    ["desec", 'dns_desec_token = "abc"', "desec", { token: "abc" }],
    ["digitalocean", "dns_digitalocean_token = abc", "digitalocean", { api_token: "abc" }],
    ["gandi", "dns_gandi_token=abc", "gandi", { access_token: "abc" }],
    ["hetzner", "dns_hetzner_api_token = abc", "hetzner", { api: "dns-console", api_token: "abc" }],
    [
      "hetzner-cloud",
      "dns_hetzner_cloud_api_token = abc",
      "hetzner",
      { api: "cloud", api_token: "abc" },
    ],
    [
      "ovh",
      "dns_ovh_endpoint = ovh-ca\ndns_ovh_application_key = k\ndns_ovh_application_secret = s\ndns_ovh_consumer_key = c",
      "ovh",
      { endpoint: "ovh-ca", application_key: "k", application_secret: "s", consumer_key: "c" },
    ],
    [
      "rfc2136",
      "dns_rfc2136_server = 192.0.2.1\ndns_rfc2136_port = 5353\ndns_rfc2136_name = key.\ndns_rfc2136_secret = c2VjcmV0\ndns_rfc2136_algorithm = HMAC-SHA512",
      "rfc2136",
      {
        server: "192.0.2.1:5353",
        tsig_key_name: "key.",
        tsig_algorithm: "hmac-sha512",
        tsig_secret: "c2VjcmV0",
      },
    ],
    [
      "route53",
      "[default]\naws_access_key_id=AK\naws_secret_access_key=SK",
      "route53",
      { access_key_id: "AK", secret_access_key: "SK" },
    ],
  ])("of %s", async (provider, credentials, type, config) => {
    const { document } = await made(challenge(provider, credentials, "300"));
    const plain = Object.fromEntries(
      Object.entries(config).map(([name, value]) => {
        const isSecret = /token|secret$|consumer_key|secret_access_key/.test(name);
        return [name, isSecret ? { sealed: { plain: value } } : value];
      }),
    );
    // Two certificates share it.
    expect(document.dns_providers).toMatchObject([
      { type, config: plain, propagation_timeout: 300 },
    ]);
    const providers = document.certificates.map((each: Anything) => each.dns_provider_id);
    expect(new Set(providers)).toEqual(new Set([document.dns_providers[0].id]));
  });

  test("acme-dns is registered in a file beside the database", async () => {
    const files = { "/data/acme.json": { "wild.test": registration } };
    const credentials =
      "dns_acmedns_api_url = http://acme.test/\ndns_acmedns_registration_file = /data/acme.json";
    const statement = challenge("acmedns", credentials).replace("id <= 2", "id = 2");
    const { document } = await convertWith("npm", npmDatabase(statement), undefined, (path) => {
      const content = files[path as keyof typeof files];
      return content === undefined ? null : { text: JSON.stringify(content) };
    });
    expect(document.dns_providers[0]).toMatchObject({
      type: "acme-dns",
      config: { url: "http://acme.test", username: "u", fulldomain: "x.acme.test" },
    });
  });
  const registration = { username: "u", password: "p", fulldomain: "x.acme.test" };

  test.each([
    ["namecheap", "dns_namecheap_username = 1"],
    ["cloudflare", "dns_cloudflare_email = a\ndns_cloudflare_api_key = b"],
    ["__proto__", ""],
  ])("of %s without an equivalent is reported", async (provider, credentials) => {
    const { document, report } = await made(challenge(provider, credentials));
    expect(document.dns_providers).toBeUndefined();
    expect(report.map(({ what }) => what)).toContain(
      `DNS provider ${provider} of certificate "wild"`,
    );
  });
});

describe("access lists", () => {
  const policyOf = (document: Anything) =>
    document.plugins.find(({ name, label }: Anything) => name === "access-policy" && !label);

  test("without a user who has a password deny as nginx does", async () => {
    const none = "UPDATE access_list_auth SET password = ''";
    const any = await made(none);
    expect([any.closed("family.test"), policyOf(any.document).config]).toEqual([
      [false],
      {
        rules: [{ when: { cidr: ["192.0.2.0/24"] }, action: "allow" }],
        default: "deny",
      },
    ]);
    const all = await made(none, "UPDATE access_list SET satisfy_any = 0");
    expect(policyOf(all.document).config).toMatchObject({ rules: [{ action: "deny" }] });
  });

  test("know the last of two users with the same name", async () => {
    const twice = "UPDATE access_list_auth SET username = 'mum', password = 'second' WHERE id = 2";
    const { document } = await made(twice);
    const { config } = document.plugins.find(({ name }: Anything) => name === "basic-auth");
    expect(config.users).toHaveLength(1);
  });
});

test("the report is grouped by cause", async () => {
  const { report } = await made();
  const groups = groupReport(report);
  const whys = groups.map(({ level, why }) => `${level} ${why}`);
  expect(new Set(whys).size).toBe(whys.length);
  expect(groups.flatMap(({ what }) => what)).toHaveLength(report.length);
  const requested = groups.find(({ why }) => why.startsWith("the gateway requests it"));
  expect(requested?.what).toEqual(['certificate "photos.test"', 'certificate "wild"']);
});

test("targets get X-Forwarded-Scheme, as from Nginx Proxy Manager, and what only responds does not", async () => {
  const { document, of } = await made(location("return 404;"));
  const schemes = of("photos.test").map(
    ({ id }) =>
      document.plugins.find(
        ({ name, route_id }: Anything) => name === "transform" && route_id === id,
      )?.config.request.headers.set["X-Forwarded-Scheme"],
  );
  expect(schemes).toEqual(["${request.scheme}", undefined]);
});

describe("directives that need more than fields go through the importer of nginx", () => {
  const advanced = (text: string) =>
    `UPDATE proxy_host SET advanced_config = '${text.replaceAll("'", "''")}' WHERE id = 1`;

  test.each<[string, string, Anything]>([
    ["allow 10.0.0.0/8; deny all;", "access-policy", { default: "continue" }],
    ["auth_request /auth;", "forward-auth", {}],
    ["limit_except GET { deny all; }", "access-policy", {}],
  ])("%s becomes the plugin %s of all its routes", async (text, plugin, config) => {
    const { of, closed, pluginsOf } = await made(advanced(text));
    expect(closed("photos.test")).not.toContain(true);
    for (const route of of("photos.test"))
      if (text.startsWith("limit") === false)
        expect(pluginsOf(route)).toMatchObject({ [plugin]: config });
  });

  test("an access list applies where its template has it, and not in locations that users write", async () => {
    const { of, closed, pluginsOf } = await made(
      advanced("location /x { rewrite ^/x/(.*) /$1 break; proxy_pass http://a:1; }"),
      "UPDATE proxy_host SET access_list_id = 1 WHERE id = 1",
    );
    expect(closed("photos.test")).not.toContain(true);
    const lists = of("photos.test").map((route) => [
      route.paths?.[0].value ?? "/",
      "basic-auth" in pluginsOf(route),
    ]);
    expect(Object.fromEntries(lists)).toEqual({ "/x": false, "/api": true, "/": true });
  });

  test("a host that is off stays off, and unknown settings close all of it", async () => {
    const off = await made(
      advanced("allow 10.0.0.0/8; deny all;"),
      "UPDATE proxy_host SET enabled = 0 WHERE id = 1",
    );
    expect(off.of("photos.test").map(({ enabled }) => enabled)).not.toContain(true);
    const unknown = await made(
      advanced("allow 10.0.0.0/8; deny all;"),
      "ALTER TABLE proxy_host ADD COLUMN client_certificates INTEGER DEFAULT 1",
    );
    expect(unknown.closed("photos.test")).not.toContain(false);
  });

  test("names go before wildcards", async () => {
    const wildcard =
      "INSERT INTO proxy_host SELECT 90, created_on, modified_on, 1, 0, '[\"*.test\"]', forward_host, forward_port, 0, 0, 0, 0, 0, 'location ~ /a { proxy_pass http://b:1; allow 10.0.0.0/8; deny all; }', '{}', 0, 0, 'http', 1, null, 0, 0 FROM proxy_host WHERE id = 1";
    const { of } = await made(wildcard);
    const highest = Math.max(...of("*.test").map(({ priority }) => priority ?? 0));
    for (const host of ["photos.test", "family.test", "guarded.test"])
      for (const { priority = 0 } of of(host)) expect(priority).toBeGreaterThan(highest);
  });
});

describe("custom files", () => {
  const withFiles = async (files: Readonly<Record<string, string>>) => {
    const { document, report } = await convertWith("npm", npmDatabase(), undefined, (path) => {
      const text = files[path.replace("/data/nginx/custom/", "")];
      return text === undefined ? null : { text };
    });
    const routes = document.routes as readonly Anything[];
    return { document, routes, says: JSON.stringify(report) };
  };
  const policies = (document: Anything, id: string) =>
    document.plugins.filter(
      ({ name, route_id: route }: Anything) => name === "access-policy" && route === id,
    );

  test("server_proxy.conf applies to all proxy hosts", async () => {
    const { document, routes } = await withFiles({
      "server_proxy.conf": "allow 10.0.0.0/8; deny all;",
    });
    for (const host of ["photos.test", "family.test", "lan.test"])
      for (const { id, hosts } of routes)
        if (hosts?.includes(host)) expect(policies(document, id)).not.toEqual([]);
  });

  test.each(["http_top.conf", "http.conf"])("%s applies, too", async (name) => {
    const { document, routes } = await withFiles({ [name]: "deny 192.0.2.0/24;" });
    const { id } = routes.find(({ hosts }) => hosts?.includes("photos.test")) ?? {};
    expect(policies(document, id)).not.toEqual([]);
  });

  test("one without an equivalent closes them, and is named with its line", async () => {
    const { routes, says } = await withFiles({ "server_proxy.conf": "# x\nauth_jwt x;" });
    const { maintenance } = routes.find(({ hosts }) => hosts?.includes("photos.test")) ?? {};
    expect(maintenance).toBeDefined();
    expect(says).toContain("auth_jwt at custom/server_proxy.conf:2");
  });

  test("those of streams disable them", async () => {
    const { document, says } = await withFiles({ "server_stream.conf": "deny all;" });
    for (const stream of document.stream_routes) expect(stream.enabled).toBe(false);
    expect(says).toContain("deny at custom/server_stream.conf:1");
  });

  test("harmless ones change nothing", async () => {
    const { document } = await withFiles({
      "server_proxy.conf": "client_max_body_size 1g; access_log off;",
    });
    expect(document.applications.length).toBeGreaterThan(2);
  });

  test("without the folder, the report says that they are missing", async () => {
    const { report } = await convertWith("npm", npmDatabase());
    expect(report.find(({ what }) => what === "custom files of nginx")?.level).toBe("changed");
  });

  test("directives of users name no files elsewhere", async () => {
    const asked: string[] = [];
    await convertWith(
      "npm",
      npmDatabase(
        "UPDATE proxy_host SET advanced_config = 'include /data/../etc/passwd; include /data/nginx/x.conf;' WHERE id = 1",
      ),
      undefined,
      (path) => {
        asked.push(path);
        return null;
      },
    );
    expect(asked).toContain("/data/nginx/x.conf");
    expect(asked.filter((path) => path.includes(".."))).toEqual([]);
  });
});

test("a list of passwords without addresses asks for the password since 2.15, and let nobody in before", async () => {
  const only = "DELETE FROM access_list_client WHERE access_list_id = 1";
  const all = "UPDATE access_list SET satisfy_any = 0 WHERE id = 1";
  const recent = "ALTER TABLE proxy_host ADD COLUMN trust_forwarded_proto INTEGER DEFAULT 0";
  for (const own of ["", "location /x { rewrite ^ /y break; proxy_pass http://a:1; }"]) {
    const lines = `UPDATE proxy_host SET advanced_config = '${own}' WHERE id = 2`;
    const since = await made(only, all, lines, recent);
    for (const route of since.of("family.test").filter(({ paths }) => paths?.[0].value !== "/x")) {
      expect(since.pluginsOf(route)).toHaveProperty("basic-auth");
      expect(JSON.stringify(since.pluginsOf(route)["access-policy"] ?? "")).not.toContain(
        '"when":{},',
      );
    }
    const before = await made(only, all, lines);
    for (const route of before.of("family.test").filter(({ paths }) => paths?.[0].value !== "/x"))
      expect(JSON.stringify(before.pluginsOf(route)["access-policy"])).toMatch(
        /"when":\{\},"action":"deny"|"default":"deny"/,
      );
  }
});
