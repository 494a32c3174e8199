// Configurations of HAProxy for the comparison with their import, and the requests that are sent to both.
import type { Asked } from "./judge.ts";

export interface HaproxyOrigins {
  readonly one: number;
  readonly two: number;
  readonly three: number;
}

/** Frontends without their `bind`, each in a file of its own. */
export const frontends: readonly string[] = [
  // 0: hosts and paths.
  `
  acl a hdr(host) -i a.test
  acl sub hdr_end(host) -i .sub.test
  acl dom hdr_dom(host) -i dom.test
  acl api path_beg /api
  use_backend two if a api
  use_backend one if a
  use_backend two if sub
  use_backend one if dom { path /exact }
  use_backend two if { hdr_beg(host) -i www. } || { hdr(host) -i other.test }
  use_backend one if { hdr_reg(host) -i ^x[0-9]+\\.test$ }
  default_backend three`,
  // 1: networks.
  `
  acl lan src 127.0.0.2
  acl admin path_beg /admin
  http-request deny if admin !lan
  use_backend one if { hdr(host) -i a.test }
  default_backend three`,
  // 2: only some paths are public.
  `
  acl public path_beg /public
  http-request deny deny_status 401 unless public
  default_backend one`,
  // 3: a password in a backend.
  `
  use_backend guarded if { path_beg /admin }
  default_backend one`,
  // 4: a password for all.
  `
  http-request auth realm all unless { http_auth(users) }
  use_backend two if { path_beg /two }
  default_backend one`,
  // 5: methods, headers and parameters.
  `
  http-request deny if METH_POST { path_beg /read }
  http-request deny if { hdr(x-kind) -i bad worse }
  http-request deny if { url_param(key) -m found }
  use_backend two if { hdr(x-to) two }
  use_backend three if { method DELETE }
  default_backend one`,
  // 6: hosts that are denied, or not.
  `
  http-request deny unless { hdr(host) -i a.test b.test }
  http-request deny if { hdr(host) -i b.test } { path_end .php }
  default_backend one`,
  // 7: expressions.
  `
  http-request deny if { path_reg ^/users/[0-9]+/edit$ }
  http-request deny if { path_sub secret }
  http-request deny if { path_dir hidden }
  use_backend two if { path_reg -i \\.(png|jpg)$ }
  default_backend one`,
  // 8: a rule without an equivalent.
  `
  http-request deny if { req.body -m sub evil }
  default_backend one`,
  // 9: a backend that depends on an unknown condition, beside a password.
  `
  use_backend guarded if { req.cook(area) admin }
  default_backend one`,
  // 10: several conditions that are excluded.
  `
  acl lan src 127.0.0.2
  acl public path_beg /public /open
  http-request deny if !lan !public
  http-request deny if { path /drop }
  default_backend one`,
  // 11: an allowing rule before a denying one.
  `
  http-request allow if { path_beg /free }
  http-request deny if { src 127.0.0.1 }
  default_backend one`,
  // 12: host and path order, where a shorter path comes first.
  `
  use_backend one if { path_beg /a }
  use_backend guarded if { path_beg /a/b }
  use_backend guarded if { hdr(host) -i b.test }
  default_backend two`,
  // 13: rewriting.
  `
  use_backend moved if { path_beg /old }
  default_backend one`,
];

/** A whole file: a frontend that listens on \`bind\`. */
export const fileOf = (
  frontend: string,
  bind: string,
  { one, two, three }: HaproxyOrigins,
): string => `
global
  log 127.0.0.1 local0
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
userlist users
  user bob insecure-password secret
frontend www
  bind ${bind}
${frontend}
backend one
  server s 127.0.0.1:${one}
backend two
  server s 127.0.0.1:${two}
backend three
  balance leastconn
  server s 127.0.0.1:${three}
backend guarded
  http-request auth realm guarded unless { http_auth(users) }
  server s 127.0.0.1:${two}
backend moved
  http-request replace-path ^/old/(.*) /new/\\1
  server s 127.0.0.1:${two}
`;

const HOSTS = [
  ...["a.test", "b.test", "x.sub.test", "sub.test", "dom.test", "www.dom.test", "other.test"],
  ...["www.any.test", "x12.test", "x.test", "nothing.test"],
];

const PATHS = [
  ...[
    "/",
    "/api",
    "/api/x",
    "/apix",
    "/exact",
    "/exact/x",
    "/admin",
    "/adminx",
    "/admin/x",
    "//admin",
  ],
  ...[
    "/%61dmin",
    "/ADMIN",
    "/admin;x",
    "/x/../admin",
    "/public",
    "/publicx",
    "/public/x",
    "/x/public",
  ],
  ...[
    "//public/x",
    "/public/../x",
    "/public;/../x",
    "/two",
    "/two/x",
    "/read",
    "/read/x",
    "/a.php",
  ],
  ...[
    "/users/12/edit",
    "/users//12/edit",
    "/users/12/edit/x",
    "/my-secret/x",
    "/x/hidden/y",
    "/hidden",
  ],
  ...[
    "/hiddenx",
    "/a.PNG",
    "/a.png/x",
    "/drop",
    "/open",
    "/free",
    "/free/x",
    "/a/b",
    "/a/bx",
    "/a%2Fb",
  ],
  ...["/old/x", "/old", "/?key=1", "/?keys=1", "/public%2Fx"],
];

const login = `Authorization: Basic ${btoa("bob:secret")}\r\n`;

export function* requests(): Generator<Asked> {
  for (const host of ["a.test", "b.test", "nothing.test"])
    for (const path of PATHS)
      for (const from of ["127.0.0.1", "127.0.0.2"]) yield { host, path, from };
  for (const host of HOSTS)
    for (const path of ["/", "/api/x", "/exact", "/admin"]) {
      yield { host, path };
      yield { host: `${host}:81`, path };
      yield { host: host.toUpperCase(), path };
    }
  for (const path of ["/", "/admin", "/read", "/two", "/a/b"]) {
    const host = "a.test";
    yield { host, path, fields: login };
    yield { host, path, fields: `Authorization: Basic ${btoa("bob:wrong")}\r\n` };
    for (const method of ["POST", "HEAD", "DELETE", "OPTIONS"]) yield { host, path, method };
    for (const value of ["bad", "BAD", "x, worse", "badly", "two"]) {
      yield { host, path, fields: `X-Kind: ${value}\r\n` };
      yield { host, path, fields: `X-To: ${value}\r\n` };
    }
    yield { host, path, fields: "X-Kind: good\r\nX-Kind: worse\r\n" };
    yield { host, path, fields: "Cookie: area=admin\r\n" };
  }
}
