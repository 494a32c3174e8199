// Servers for nginx in which if, map and rewrite choose what requests get, and requests for them.
import type { Case } from "./nginx-sites.ts";

/** `LISTEN`, `ONE` and `TWO` stand for addresses. */
export const choosingServers = `
map $host $by_host { hostnames; default TWO; a.mapped.test ONE; .deep.mapped.test ONE; ~^re[0-9]+\\.mapped\\.test$ ONE; }
map $http_host $by_name { A.named.test one.named.test; default ""; }
map $uri $moved { /old.html /new.html; /Blog/One https://blog.test/1?x=y; ~^/posts/([0-9]+)$ /p/$1; ~*^/SHOP$ /store; }
map $request_uri $moved_name { default ""; /gone here; }
map $remote_addr $by_client { 127.0.0.1 ONE; default TWO; }
server {
  listen LISTEN; server_name two.certbot.test www.two.certbot.test other.two.certbot.test;
  if ($host = www.two.certbot.test) {
    return 301 https://$host$request_uri;
  } # managed by Certbot
  if ($host = two.certbot.test) {
    return 301 https://$host$request_uri;
  } # managed by Certbot
  return 404; # managed by Certbot
}
server {
  listen LISTEN; server_name a.mapped.test b.mapped.test *.deep.mapped.test ~^re[0-9]+\\.mapped\\.test$;
  location / { proxy_pass http://$by_host; }
  location /private { deny all; proxy_pass http://$by_host; }
  location /login { auth_basic "Private"; auth_basic_user_file root/users; proxy_pass http://$by_host; }
}
server { listen LISTEN; server_name a.named.test b.named.test; location / { proxy_pass http://$by_name; } location /open { proxy_pass http://ONE; } }
server {
  listen LISTEN; server_name paths.mapped.test;
  if ($moved) { return 301 $moved; }
  location / { proxy_pass http://ONE; }
  location /private { deny all; proxy_pass http://ONE; }
}
server { listen LISTEN; server_name raw.mapped.test; if ($moved_name != "") { return 302 /moved/$moved_name; } location / { proxy_pass http://ONE; } }
server { listen LISTEN; server_name client.mapped.test; location / { proxy_pass http://$by_client; } location /open { proxy_pass http://ONE; } }
server {
  listen LISTEN; server_name groups.hosts.test www.groups.hosts.test;
  if ($host ~* ^WWW\\.(.*)$) { return 301 https://$1$request_uri; }
  location / { proxy_pass http://ONE; }
}
server { listen LISTEN; server_name not.hosts.test www.not.hosts.test; if ($host != not.hosts.test) { return 301 http://not.hosts.test$request_uri; } location / { proxy_pass http://ONE; } }
server { listen LISTEN; server_name *.tenant.test; if ($host !~ ^[a-c]\\.tenant\\.test$) { return 403; } location / { proxy_pass http://ONE; } }
server { listen LISTEN; server_name *.www.test; if ($host ~ ^(.*)\\.www\\.test$) { return 301 https://$1.test$request_uri; } location / { proxy_pass http://ONE; } }
server { listen LISTEN; server_name part.hosts.test www.part.hosts.test; location / { if ($host = www.part.hosts.test) { rewrite ^/only/(.*)$ https://part.test/$1 permanent; } proxy_pass http://ONE; } }
server {
  listen LISTEN; server_name again.test;
  rewrite ^/v1/(.*)$ /service/v2/$1 last;
  location /service/ { proxy_pass http://ONE/base/; }
  location /closed/ { allow 127.0.0.2; deny all; proxy_pass http://TWO; }
  location /login/ { auth_basic "Private"; auth_basic_user_file root/users; proxy_pass http://TWO; }
  location = /gone { return 410; }
  location / { rewrite ^/secret/(.*)$ /closed/$1 last; rewrite ^/mine/(.*)$ /login/$1 last; rewrite ^/short$ /service/long last; rewrite ^/lost$ /gone last; rewrite ^/self/(.*)$ /other/$1 last; proxy_pass http://TWO; }
}
server {
  listen LISTEN; server_name unsure.test;
  rewrite ^/x/(.*)$ /y/$1 last;
  location / { proxy_pass http://ONE; }
  location ~ \\.php$ { deny all; }
}
server { listen LISTEN; server_name loop.test; location / { rewrite ^/(.*)$ /in/$1 last; proxy_pass http://ONE; } location /open { proxy_pass http://ONE; } }
`;

const of = (host: string, ...paths: readonly string[]): readonly Case[] =>
  paths.map((path) => ({ host, path }));

const differing = (host: string, differs: string, ...paths: readonly string[]): readonly Case[] =>
  paths.map((path) => ({ host, path, differs }));

const login = `Authorization: Basic ${btoa("bob:secret")}\r\n`;

export const choosingCases: readonly Case[] = [
  ...["two", "www.two", "other.two", "OTHER.two"].flatMap((name) =>
    of(`${name}.certbot.test`, "/", "/x?y=z"),
  ),
  ...["a", "b", "deep", "x.deep", "x.y.deep", "re1", "A", "re12"].flatMap((name) =>
    of(`${name}.mapped.test`, "/x", "/private/x", "/login"),
  ),
  ...["a", "b", "x.deep", "re1"].map((name) => ({
    host: `${name}.mapped.test`,
    path: "/login/x",
    fields: login,
  })),
  ...differing("a.named.test", "a target that does not resolve", "/"),
  ...differing("b.named.test", "no target", "/"),
  ...of("a.named.test", "/open"),
  ...of(
    "paths.mapped.test",
    "/",
    "/old.html",
    "/OLD.html?x=1",
    "/blog/one",
    "/posts/12",
    "/posts/x",
  ),
  ...of("paths.mapped.test", "/shop", "/shop/x", "/private", "/%6fld.html", "//old.html"),
  ...of("raw.mapped.test", "/", "/gone", "/gone/x"),
  ...differing("raw.mapped.test", "the query is not compared", "/gone?x"),
  ...differing("client.mapped.test", "the map is not imported", "/"),
  ...of("client.mapped.test", "/open"),
  ...of("groups.hosts.test", "/x"),
  ...of("www.groups.hosts.test", "/x?y", "/"),
  ...of("not.hosts.test", "/x"),
  ...of("www.not.hosts.test", "/x?y"),
  ...["a", "c", "d", "a.b", "A"].flatMap((name) => of(`${name}.tenant.test`, "/x")),
  ...differing("a.www.test", "the redirect has a part of the host", "/"),
  ...of("part.hosts.test", "/", "/only/x"),
  ...of("www.part.hosts.test", "/", "/only/x"),
  ...of("again.test", "/", "/v1/a/b?c=d", "/service/x", "/short", "/lost", "/self/x", "/secret/x"),
  ...of("again.test", "/closed/x", "/mine/x", "/login/x", "/secretx", "/v1", "/gone"),
  { host: "again.test", path: "/secret/x", from: "127.0.0.2" },
  { host: "again.test", path: "/mine/x", fields: login },
  ...differing("unsure.test", "an expression may match the new path", "/x/a", "/x/a.php"),
  ...of("unsure.test", "/", "/a.php"),
  ...differing("loop.test", "the new path is rewritten again", "/a"),
];
