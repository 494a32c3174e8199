// Servers for nginx, and requests for them with what may differ in the gateway.
import type { Asked } from "./judge.ts";
import { choosingCases, choosingServers } from "./nginx-choices.ts";

/** `LISTEN`, `ONE`, `TWO` and `AUTH` stand for addresses. */
export const servers = `
map $http_upgrade $connection_upgrade { default upgrade; '' close; }
upstream pair { server ONE weight=2; server ONE2 backup; }
limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/m;
server {
  listen LISTEN; server_name matchers.test;
  location / { proxy_pass http://ONE; proxy_set_header Host $host; add_header X-Level root; }
  location = /exact { proxy_pass http://TWO; }
  location ^~ /static/ { proxy_pass http://TWO; }
  location ~ \\.php$ { proxy_pass http://TWO; }
  location ~* \\.(jpg|png)$ { proxy_pass http://TWO; add_header X-Level images; add_header X-More "$host always" always; }
  location /deep/er/ { proxy_pass http://TWO; }
  location /deep { proxy_pass http://ONE; }
}
server {
  listen LISTEN; server_name paths.test;
  location / { proxy_pass http://ONE/base/; }
  location /same/ { proxy_pass http://ONE/same/; }
  location /api/ { proxy_pass http://ONE/v2/; }
  location /strip/ { proxy_pass http://ONE/; }
  location /bare { proxy_pass http://ONE/v3; }
  location /slash { proxy_pass http://ONE/; }
  location /glue/ { proxy_pass http://ONE/v4; }
  location = /one { proxy_pass http://ONE/two; }
  location /cut/ { rewrite ^/cut/(.*)$ /new/$1 break; proxy_pass http://ONE; }
  location /whole { rewrite ^/whole /fixed break; proxy_pass http://ONE; }
  location ~ ^/user/([a-z]+)/(.*)$ { proxy_pass http://ONE/people/$1/$2$is_args$args; }
  location /set/ { set $app ONE; proxy_pass http://$app; }
}
server {
  listen LISTEN; server_name guarded.test *.guarded.test;
  location / { proxy_pass http://ONE; }
  location /admin { deny all; proxy_pass http://ONE; }
  location /office/ { allow 127.0.0.2; deny all; proxy_pass http://ONE; }
  location = /secret { return 403; }
  location ~ /\\.git { deny all; }
  location /methods { limit_except GET { deny all; } proxy_pass http://ONE; }
  location /login { auth_basic "Private"; auth_basic_user_file root/users; proxy_pass http://ONE; }
  location /either { satisfy any; allow 127.0.0.2; deny all; auth_basic "Private"; auth_basic_user_file root/users; proxy_pass http://ONE; }
  location /hidden { internal; proxy_pass http://ONE; }
  location /public { auth_basic off; proxy_pass http://TWO; }
}
server {
  listen LISTEN; server_name php.guarded-by-type.test;
  location / { proxy_pass http://ONE; }
  location ~ \\.php$ { deny all; }
}
server {
  listen LISTEN; server_name closed.test;
  auth_basic "Private"; auth_basic_user_file root/users;
  location / { proxy_pass http://ONE; proxy_set_header Authorization ""; }
  location /open/ { auth_basic off; proxy_pass http://TWO; }
  location = /health { auth_basic off; proxy_pass http://TWO; }
}
server {
  listen LISTEN; server_name asked.test;
  location / { auth_request /check; auth_request_set $user $upstream_http_remote_user; proxy_set_header Remote-User $user; proxy_pass http://ONE; }
  location = /check { internal; proxy_pass http://AUTH/check; proxy_pass_request_body off; proxy_set_header Content-Length ""; }
  location /free { proxy_pass http://TWO; }
}
server {
  listen LISTEN; server_name moved.test;
  rewrite ^/old/(.*)$ /new/$1 permanent;
  rewrite ^/gone$ https://elsewhere.test/x? redirect;
  location / { return 301 https://$host$request_uri; }
  location /text { return 200 "hello $host"; }
  location /plain { default_type application/json; return 200 '{"ok":true}'; add_header X-Kind plain; }
  location /none { return 204; }
  location /teapot { return 418; }
  location /there { return 302 /elsewhere; }
  location = /url { return https://url.test/a?b=c; }
}
server {
  listen LISTEN; server_name headers.test;
  proxy_set_header Host fixed.internal;
  proxy_set_header X-Fixed "a b";
  proxy_set_header X-Path $uri;
  add_header X-Server yes;
  proxy_hide_header X-Upstream;
  location / { proxy_pass http://ONE; }
  location /own { proxy_set_header X-Own $request_method; proxy_pass http://ONE; }
  location /add { add_header X-Own added; proxy_pass http://ONE; }
  location /drop { proxy_set_header X-Client ""; proxy_pass http://ONE; }
}
server {
  listen LISTEN; server_name ~^(?<sub>[a-z]+)\\.regex\\.test$;
  location / { proxy_pass http://TWO; }
}
server { listen LISTEN; server_name start.*; location / { proxy_pass http://TWO; } }
server { listen LISTEN; server_name *.wild.test; location / { proxy_pass http://ONE; } location = /only { return 403; } }
server { listen LISTEN; server_name a.wild.test; location / { proxy_pass http://TWO; } }
server { listen LISTEN; server_name .dot.test; location / { proxy_pass http://pair; proxy_set_header Host $host; } }
server {
  listen LISTEN; server_name certbot.test www.certbot.test;
  if ($host = www.certbot.test) { return 301 https://$host$request_uri; }
  return 404;
}
server {
  listen LISTEN; server_name ifs.test;
  location / { if ($request_method = OPTIONS) { return 204; } proxy_pass http://ONE; }
  location /odd { if ($http_x_token != "right") { return 403; } proxy_pass http://ONE; }
}
server {
  listen LISTEN; server_name nested.test;
  location /app { proxy_pass http://ONE; location /app/admin { deny all; } location ~ \\.cgi$ { deny all; } }
  location ^~ /media/ { proxy_pass http://TWO; }
  location /media/private { deny all; }
  location ~ \\.cgi$ { proxy_pass http://TWO; }
}
server { listen LISTEN; server_name limited.test; location / { limit_req zone=slow burst=2 nodelay; proxy_pass http://ONE; } }
server { listen LISTEN; server_name files.test; root /srv/www; location /api { proxy_pass http://ONE; } location / { try_files $uri $uri/ =404; } }
server { listen LISTEN; server_name app.files.test; location / { try_files $uri @app; } location @app { proxy_pass http://ONE; proxy_set_header Host $host; } }
server { listen LISTEN; server_name lua.test; more_unknown; location / { proxy_pass http://ONE; } }
${choosingServers}`;

/** nginx does not start with it: only the gateway gets it. */
export const UNKNOWN = "more_unknown;";

export interface Case extends Asked {
  /** Why the gateway does something else; it must not be more open all the same. */
  readonly differs?: string;
}

/** Lines of a password file with the hashes of "secret" that nginx compares besides bcrypt. */
export const oldUsers = [
  "apr:$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0",
  "one:$1$saltsalt$9xy1btjgzLYfb7hivXtC//",
  "five:$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
  "six:$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1",
  "sha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
  "ssha:{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0",
  "plain:{PLAIN}secret",
].join("\n");

const login = `Authorization: Basic ${btoa("bob:secret")}\r\n`;
const wrong = `Authorization: Basic ${btoa("bob:wrong")}\r\n`;

const of = (host: string, ...paths: readonly string[]): readonly Case[] =>
  paths.map((path) => ({ host, path }));

const differing = (host: string, differs: string, ...paths: readonly string[]): readonly Case[] =>
  paths.map((path) => ({ host, path, differs }));

/** Spellings of the paths above. */
export const ATTACKS: readonly string[] = [
  ...[
    "/admin",
    "/office/",
    "/secret",
    "/hidden",
    "/login",
    "/open/",
    "/health",
    "/app/admin",
    "/private",
    "/v1",
    "/mine/",
    "/closed/",
  ].flatMap((path) => {
    const bare = path.replace(/\/$/, "");
    const [, first = "", rest = ""] = /^\/(.)(.*)$/.exec(bare) ?? [];
    const escaped = `%${first.charCodeAt(0).toString(16)}`;
    return [
      ...[
        bare,
        `${bare}/`,
        `/${bare}`,
        `/${escaped}${rest}`,
        `${bare}x`,
        `${bare}/x`,
        bare.toUpperCase(),
      ],
      ...[`${bare};x`, `${bare};x/y`, `/;x${bare}`, `${bare}%2Fx`, `${bare}%5Cx`, `${bare}%20`],
      ...[`/x/..${bare}`, `${bare}/..;/x`, `/.${bare}`, `${bare}/../y`, `${bare}?x`, `/?${bare}`],
      ...[
        `${bare}%0A`,
        `${bare}%3Bx`,
        `\\${bare.slice(1)}`,
        `${bare}//x`,
        `${bare}/.`,
        `${bare}#x`,
      ],
    ];
  }),
  ...[
    "/a.php",
    "/a.php;x",
    "/a;.php",
    "/a.php%0A",
    "/a.PHP",
    "/x.cgi",
    "/app/x.cgi;y",
    "/app;x/y.cgi",
  ],
  ...[
    "/.git",
    "/.git;x",
    "/x;/.git",
    "/;x/.git",
    "/%2egit",
    "/.git%2Fx",
    "/public;x/a",
    "/public/a",
  ],
  ...[
    "/api/../x",
    "/api;x/y",
    "//api/x",
    "/cut;x/y",
    "//cut/x",
    "/media/private",
    "/media;x/private",
  ],
];

export const cases: readonly Case[] = [
  ...of("matchers.test", "/", "/x", "/exact", "/exact/", "/static/a.php", "/static/a.png"),
  ...of("matchers.test", "/a.php", "/a.PHP", "/x/a.JPG", "/a.jpg?x=1", "/deep", "/deep/er/x"),
  ...of("matchers.test", "/deep/x", "/deep/er/x.png", "/index.php/x"),
  ...differing("matchers.test", "nginx takes it for the prefix", "/deeper"),
  ...of("paths.test", "/", "/x?y=1", "/api/", "/api/x", "/api/x?y=%20", "/strip/", "/strip/a/b"),
  ...of("paths.test", "/bare", "/bare/x", "/slash", "/slash/x", "/glue/", "/glue/x", "/one"),
  ...of("paths.test", "/one?x=1", "/cut/a/b", "/cut/", "/whole/x", "/user/bob/a/b?c=d", "/set/x?y"),
  ...of("paths.test", "/same/x", "/api/caf%C3%A9", "/api/a%20b"),
  ...of("guarded.test", "/", "/admin", "/admin/", "/admin/x", "/adminx", "/%61dmin", "//admin"),
  ...of(
    "guarded.test",
    "/x/../admin",
    "/admin/../x",
    "/ADMIN",
    "/Admin/x",
    "/./admin",
    "/admin%2Fx",
  ),
  ...of("guarded.test", "/office/", "/office/x", "/secret", "/secret/x", "/.git/config", "/a/.git"),
  ...of("guarded.test", "/methods", "/hidden", "/hidden/x", "/public", "/public/x", "/login"),
  ...of("sub.guarded.test", "/", "/admin", "//admin/"),
  ...["/office/x", "/either"].map((path) => ({ host: "guarded.test", path, from: "127.0.0.2" })),
  ...["/login", "/either", "/office/x", "/loginx"].map((path) => ({
    ...{ host: "guarded.test", path, fields: login },
  })),
  { host: "guarded.test", path: "/login", fields: wrong },
  ...["apr", "one", "five", "six", "sha", "ssha", "plain"].flatMap((name) =>
    ["secret", "wrong"].map((password) => ({
      host: "guarded.test",
      path: "/login",
      fields: `Authorization: Basic ${btoa(`${name}:${password}`)}\r\n`,
    })),
  ),
  { host: "guarded.test", path: "/methods", method: "POST" },
  { host: "guarded.test", path: "/methods", method: "HEAD" },
  ...of("php.guarded-by-type.test", "/", "/a.php", "/a.php/x", "/a%2Ephp", "/a.php%0A"),
  ...differing("php.guarded-by-type.test", "paths that resemble others", "/a;.php", "/a//b"),
  ...of("closed.test", "/", "/open", "/open?x=1", "/open/", "/open/x", "/health", "/health/"),
  ...differing(
    "closed.test",
    "paths that resemble others",
    "/open/a//b",
    "/open;x/a",
    "/health;x",
    "//health",
  ),
  { host: "closed.test", path: "/x", fields: login },
  ...of("asked.test", "/", "/check", "/free"),
  { host: "asked.test", path: "/x", fields: "Authorization: Bearer right\r\nRemote-User: eve\r\n" },
  { host: "asked.test", path: "/x", fields: "Remote-User: eve\r\n" },
  ...of("moved.test", "/", "/x?y=1", "/old/a?b=c", "/gone?x", "/text", "/plain", "/none"),
  ...of("moved.test", "/teapot", "/there", "/url"),
  ...of("headers.test", "/", "/own", "/add"),
  ...differing("headers.test", "$uri is not decoded", "/x%20y"),
  { host: "headers.test", path: "/drop", fields: "X-Client: mine\r\nX-Fixed: mine\r\n" },
  ...of("x.regex.test", "/"),
  ...of("START.anything", "/"),
  ...of("b.wild.test", "/", "/only"),
  ...of("a.wild.test", "/", "/only"),
  ...of("dot.test", "/"),
  ...of("x.dot.test", "/"),
  ...of("certbot.test", "/x"),
  ...of("www.certbot.test", "/x"),
  ...of("ifs.test", "/"),
  { host: "ifs.test", path: "/", method: "OPTIONS" },
  {
    host: "ifs.test",
    path: "/odd",
    fields: "X-Token: right\r\n",
    differs: "the condition is unknown, and may deny",
  },
  ...of("nested.test", "/app", "/app/x", "/app/admin", "/app/adminx", "/app/x.cgi", "/x.cgi"),
  ...of("nested.test", "/media/x.cgi", "/media/private", "/media/private/x.jpg"),
  ...differing("nested.test", "closed, because files are not served", "/media/privatex.cgi"),
  ...of("files.test", "/api/x"),
  ...differing("files.test", "files are not served", "/", "/index.html"),
  ...of("app.files.test", "/x"),
  ...differing("lua.test", "an unknown directive may deny", "/"),
  ...choosingCases,
];
