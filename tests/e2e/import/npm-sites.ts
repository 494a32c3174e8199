// Hosts of Nginx Proxy Manager, as rows of its database and as the configuration that it writes for nginx.

export interface Location {
  readonly path: string;
  readonly advanced?: string;
  /** What stands behind the address of its target: `/v2`. */
  readonly target?: string;
}

interface List {
  readonly any: boolean;
  readonly users: boolean;
  /** `allow 127.0.0.2` */
  readonly rules: readonly string[];
}

export interface NpmSite {
  readonly why: string;
  /** Without: `n3.test` for the fourth. */
  readonly domain?: string;
  readonly advanced?: string;
  readonly locations?: readonly Location[];
  readonly list?: List;
  readonly isOff?: boolean;
  readonly blocksExploits?: boolean;
}

const list = (any: boolean, users: boolean, ...rules: string[]) => ({
  list: { any, users, rules },
});
const paths = (...locations: Location[]) => ({ locations });
const deny = "deny all;";

export const sites: readonly NpmSite[] = [
  { why: "one path is kept out", ...paths({ path: "/admin", advanced: deny }) },
  { why: "lines for all locations", advanced: deny, ...paths({ path: "/api" }) },
  { why: "users, where one of both is enough", ...list(true, true) },
  { why: "users, where both are asked for", ...list(false, true) },
  { why: "an empty list lets nobody in", ...list(false, false) },
  { why: "a network or a user", ...list(true, true, "allow 127.0.0.2") },
  { why: "a network and a user", ...list(false, true, "allow 127.0.0.2") },
  { why: "a path in any case", ...paths({ path: "~* ^/admin", advanced: deny }) },
  { why: "one path exactly", ...paths({ path: "= /exact", advanced: deny }) },
  {
    why: "a prefix that goes before expressions",
    ...paths({ path: "^~ /admin", advanced: deny }, { path: "~ \\.php$" }),
  },
  { why: "lines in another file", advanced: "include root/snippet;" },
  {
    why: "an open path below one that is not",
    ...paths({ path: "/admin", advanced: deny }, { path: "/admin/open" }),
  },
  { why: "the order of networks", ...list(false, false, "deny 127.0.0.2", "allow all") },
  { why: "harmless lines", advanced: "client_max_body_size 0; # deny all;" },
  { why: "a wildcard", domain: "*.n14.test", ...list(false, false) },
  { why: "a host below it that is off", domain: "off.n14.test", isOff: true },
  { why: "everything by a location", ...paths({ path: "/", advanced: deny }) },
  { why: "a list, and a path", ...list(true, true), ...paths({ path: "/api" }) },
  { why: "methods", advanced: "if ($request_method = POST) { return 403; }" },
  { why: "slashes at the end", ...paths({ path: "/admin/", advanced: deny }) },
  { why: "characters that are no letters", ...paths({ path: "/caf\u00e9", advanced: deny }) },
  { why: "addresses that others say", advanced: "real_ip_header X-Real-IP;" },
  {
    why: "a redirect beside a list",
    ...list(false, true),
    advanced: "location = /.well-known/carddav { return 301 $scheme://$host/dav/; }",
  },
  { why: "a location that redirects", ...paths({ path: "/old/", advanced: "return 302 /new;" }) },
  { why: "a host that redirects", advanced: "return 307 https://new.test$request_uri;" },
  { why: "exploits", blocksExploits: true, ...paths({ path: "/api/" }) },
  {
    why: "headers",
    advanced: "location /api/ { proxy_set_header X-Said $host; proxy_pass http://127.0.0.1:TWO; }",
  },
  { why: "another path at the target", ...paths({ path: "/api/", target: "/v2/" }) },
  {
    why: "a location that is closed in the lines of the host",
    advanced: "location /admin { deny all; proxy_pass http://127.0.0.1:TWO; }",
  },
  { why: "a status", ...paths({ path: "/exact", advanced: "return 410;" }) },
  {
    why: "a path that is forwarded below one that responds",
    ...paths({ path: "/admin", advanced: "return 302 /x;" }, { path: "/admin/open/" }),
  },
];

/** Like "Block Common Exploits", with fewer words. */
const exploits = `
  if ($query_string ~ "union.*select.*\\(|union.*all.*select|concat.*\\(") { return 403; }
  if ($query_string ~ "[a-zA-Z0-9_]=(http://|\\.\\./|/[a-z0-9_.]/)") { return 403; }
  if ($query_string ~ "(<|%3C).*script.*(>|%3E)|base64_(en|de)code\\(.*\\)") { return 403; }
  if ($query_string ~ "\\b(viagra|cialis)\\b") { return 403; }
  if ($http_user_agent ~ "libwww-perl|Go!Zilla") { return 403; }`;

const domainOf = ({ domain }: NpmSite, at: number) => domain ?? `n${at}.test`;

export interface NpmOrigins {
  readonly one: number;
  readonly two: number;
}

const text = (value: string) => `'${value.replaceAll("'", "''")}'`;
const STAMP = "'2024-01-01 10:00:00', '2024-01-01 10:00:00'";

/** Statements that fill a database without any hosts. */
export function rowsOf({ one, two }: NpmOrigins, of = sites): string[] {
  return of.flatMap((site, at) => {
    const id = at + 100;
    const locations = (site.locations ?? []).map(({ path, advanced = "", target = "" }) => ({
      path,
      advanced_config: advanced,
      forward_scheme: "http",
      forward_host: `127.0.0.1${target}`,
      forward_port: two,
    }));
    const values = [
      ...[id, STAMP, 1, 0, text(JSON.stringify([domainOf(site, at)])), text("127.0.0.1"), one],
      ...[site.list === undefined ? 0 : id, 0, 0, 0, site.blocksExploits ? 1 : 0],
      ...[text(linesOf(site, two)), text("{}")],
      ...[0, 0, text("http"), site.isOff ? 0 : 1, text(JSON.stringify(locations)), 0, 0],
    ];
    return [`INSERT INTO proxy_host VALUES (${values.join(", ")})`, ...listRows(site.list, id)];
  });
}

const linesOf = ({ advanced = "" }: NpmSite, two: number) =>
  advanced.replaceAll("TWO", String(two));

function listRows(of: List | undefined, id: number): string[] {
  if (of === undefined) return [];
  const any = of.any ? 1 : 0;
  const rows = [
    `INSERT INTO access_list VALUES (${id}, ${STAMP}, 1, 0, 'list ${id}', '{}', ${any}, 0)`,
  ];
  const auth = `(access_list_id, username, password, meta) VALUES (${id}, 'bob', 'secret', '{}')`;
  if (of.users) rows.push(`INSERT INTO access_list_auth ${auth}`);
  for (const rule of of.rules) {
    const [directive = "", address = ""] = rule.split(" ").map(text);
    const columns = "(access_list_id, address, directive, meta)";
    rows.push(
      `INSERT INTO access_list_client ${columns} VALUES (${id}, ${address}, ${directive}, '{}')`,
    );
  }
  return rows;
}

/** The output of its templates for an access list, in each location. */
function access(of: List | undefined): string {
  if (of === undefined) return "";
  const users = of.users
    ? 'auth_basic "Authorization required"; auth_basic_user_file root/users; proxy_set_header Authorization "";'
    : "";
  const rules = of.rules.map((rule) => `${rule};`).join(" ");
  return `${users} ${rules} deny all; satisfy ${of.any ? "any" : "all"};`;
}

/** Servers for nginx, as its templates make them. */
export function serversOf({ one, two }: NpmOrigins, of = sites): (port: number) => string {
  return (port) =>
    of
      .map((site, at) => {
        if (site.isOff) return "";
        const locations = site.locations ?? [];
        const blocks = site.blocksExploits ? exploits : "";
        const own = locations.map(
          ({ path, advanced = "", target = "" }) =>
            `location ${path} { ${advanced} proxy_pass http://127.0.0.1:${two}${target}; ${access(site.list)} ${blocks} }`,
        );
        const rest = `location / { ${access(site.list)} proxy_pass http://127.0.0.1:${one}$request_uri; }`;
        const hasMain =
          locations.some(({ path }) => path === "/") || /location \/ \{/.test(site.advanced ?? "");
        const all = hasMain ? own : [...own, rest];
        return `server { listen 127.0.0.1:${port}; server_name ${domainOf(site, at)};
          ${blocks} ${linesOf(site, two)}\n ${all.join("\n")} }`;
      })
      .join("\n");
}

export const files = { "index.html": "", users: "bob:{PLAIN}secret\n", snippet: deny };

export const PATHS = [
  ...["/", "/admin", "/admin/", "/admin/x", "/adminx", "/ADMIN", "/Admin/x", "//admin", "/%61dmin"],
  ...["/admin%2Fx", "/admin;x", "/admin;x/y", "/x/../admin", "/admin/..;/x", "/admin/open/x"],
  ...["/admin/openx", "/admin/x.php", "/x.php", "/api", "/api/x", "/apix", "/API", "/exact"],
  ...[
    "/exact/",
    "/exactx",
    "/exact;x",
    "//exact",
    "/caf%C3%A9",
    "/caf%c3%a9/x",
    "/caf\u00c3\u00a9",
  ],
  ...["/admin%5Cx", "/admin%20", "/admin?x", "/?/admin", "/admin#x", "/.;/admin", "/;x/admin"],
  ...["/x;/../admin", "/admin%3Fx", "/admin%00"],
];
