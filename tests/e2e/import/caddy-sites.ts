// Typical sites of a Caddyfile, each of which denies some requests, and the requests that try to bypass it.
import type { Asked } from "./judge.ts";

/** Ports of origins, a port to listen on and the hash of a password. */
export interface Places {
  readonly port: number;
  readonly one: number;
  readonly two: number;
  readonly auth: number;
  readonly hash: string;
}

interface Site {
  readonly why: string;
  /** Without the block's name, which is the host and the port. */
  readonly lines: (places: Places) => string;
  /** Default: one host, `<number>.test`. */
  readonly names?: readonly string[];
}

const auth = (where: string, { hash }: Places) => `basicauth ${where} {\nbob ${hash}\n}`;

export const sites: readonly Site[] = [
  {
    why: "a password in front of a path",
    lines: (places) => `${auth("/admin/*", places)}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "a password in front of one path, of an ending and of whatever holds a word",
    lines: (places) =>
      `${auth("/admin", places)}\n@end path *.secret\nhandle @end {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.one}\n}\n@mid path */mid/* /g/*/info /k?k /[ab]/x\nhandle @mid {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\nreverse_proxy 127.0.0.1:${places.two}\n}`,
  },
  {
    why: "a password in front of everything but some paths",
    lines: (places) =>
      `@in {\nnot path /public/* /kik\n}\n${auth("@in", places)}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "open paths in front of a password",
    lines: (places) =>
      `handle /public/* {\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle /süß {\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.two}\n}`,
  },
  {
    why: "a prefix that is taken off in front of a path with a password",
    lines: (places) =>
      `handle_path /app/* {\n${auth("/admin/*", places)}\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\nrespond 404\n}`,
  },
  {
    why: "a prefix that is taken off wherever it is",
    lines: (places) =>
      `uri strip_prefix /app\n${auth("/admin/*", places)}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "a rewrite of some paths in front of a password",
    lines: (places) =>
      `rewrite /old/* /admin{uri}\n${auth("/admin/*", places)}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "a rewrite that keeps clients in a part of the application",
    lines: (places) => `rewrite * /public{uri}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "a refusal for a path",
    lines: ({ one }) => `respond /admin/* "no" 403\nabort /kik\nreverse_proxy 127.0.0.1:${one}`,
  },
  {
    why: "networks that get in",
    lines: ({ one }) =>
      `@out not remote_ip 127.0.0.2/32\nrespond @out 403\nreverse_proxy 127.0.0.1:${one}`,
  },
  {
    why: "networks that get in at a path",
    lines: ({ one, two }) =>
      `@in {\npath /admin/*\nremote_ip 127.0.0.2/32\n}\nhandle @in {\nreverse_proxy 127.0.0.1:${one}\n}\nhandle /admin/* {\nrespond 403\n}\nhandle {\nreverse_proxy 127.0.0.1:${two}\n}`,
  },
  {
    why: "networks that need no password",
    lines: (places) =>
      `@far not remote_ip 127.0.0.2/32\n${auth("@far", places)}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "methods that need a password",
    lines: (places) =>
      `@write method POST PUT DELETE\n${auth("@write", places)}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "methods that do not",
    lines: (places) =>
      `@read method GET HEAD\nhandle @read {\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.two}\n}`,
  },
  {
    why: "a header field that opens",
    lines: (places) =>
      `@key header X-Key foo\nhandle @key {\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.two}\n}`,
  },
  {
    why: "a header field that needs a password",
    lines: (places) =>
      `@staff header X-Key f*\n${auth("@staff", places)}\n@more header_regexp X-More ^a+$\nhandle @more {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\nreverse_proxy 127.0.0.1:${places.two}\n}`,
  },
  {
    why: "a parameter that needs a password",
    lines: (places) => `@q query k=v\n${auth("@q", places)}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "a parameter that opens",
    lines: (places) =>
      `@q query k=v\nhandle @q {\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.two}\n}`,
  },
  {
    why: "expressions on paths",
    lines: (places) =>
      `@re path_regexp ^/admin/\n${auth("@re", places)}\n@any path_regexp (?i)^/KIK$\nrespond @any 403\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "an expression on paths that opens",
    lines: (places) =>
      `@re path_regexp ^/public/[a-z]+$\nhandle @re {\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.two}\n}`,
  },
  {
    why: "conditions that only Caddy has",
    lines: (places) =>
      `@cel expression {path}.startsWith('/admin')\n${auth("@cel", places)}\nreverse_proxy 127.0.0.1:${places.one}`,
  },
  {
    why: "conditions that only Caddy has, which open",
    lines: (places) =>
      `@cel expression {path}.startsWith('/public')\nhandle @cel {\nreverse_proxy 127.0.0.1:${places.one}\n}\nhandle {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.two}\n}`,
  },
  {
    why: "another server that is asked",
    lines: ({ auth: port, one }) =>
      `forward_auth /admin/* 127.0.0.1:${port} {\nuri /verify\ncopy_headers X-User\n}\nreverse_proxy 127.0.0.1:${one}`,
  },
  {
    why: "who somebody is, said by another server",
    lines: ({ auth: port, one, two }) =>
      `route {\nforward_auth 127.0.0.1:${port} {\nuri /verify\ncopy_headers X-User\n}\n@boss header X-User boss\nhandle @boss {\nreverse_proxy 127.0.0.1:${one}\n}\nhandle {\nreverse_proxy 127.0.0.1:${two}\n}\n}`,
  },
  {
    why: "handlers in an order of their own",
    lines: (places) =>
      `route {\nrespond /public/* "open" 200\nroute /admin/* {\n${auth("*", places)}\n}\nreverse_proxy 127.0.0.1:${places.one}\n}`,
  },
  {
    why: "an answer behind a password",
    lines: (places) => `${auth("*", places)}\nheader X-Open page\nrespond "inside"`,
  },
  {
    why: "a list that does not serve everything",
    lines: ({ one, two }) =>
      `handle /admin/* {\nreverse_proxy /admin/open/* 127.0.0.1:${one}\n}\nhandle {\nreverse_proxy 127.0.0.1:${two}\n}`,
  },
  {
    why: "files, which are not served here",
    lines: ({ one }) =>
      `handle /admin/* {\nfile_server\n}\nhandle {\nreverse_proxy 127.0.0.1:${one}\n}`,
  },
  {
    why: "all names of a domain",
    names: ["*.w.test"],
    lines: (places) =>
      `@x host x.w.test\nhandle @x {\n${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.one}\n}\n@y host y.w.test\nhandle @y {\nreverse_proxy 127.0.0.1:${places.two}\n}\nhandle {\nrespond 403\n}`,
  },
  {
    why: "a wildcard site with a block for each name",
    names: ["*.v.test"],
    lines: (places) =>
      `header X-Frame-Options DENY\n@a host a.v.test\nhandle @a {\nreverse_proxy 127.0.0.1:${places.one}\n}\n@b host B.v.test\nhandle @b {\n${auth("/admin/*", places)}\nhandle_path /app/* {\nreverse_proxy 127.0.0.1:${places.two}\n}\nhandle {\nreverse_proxy 127.0.0.1:${places.one}\n}\n}\n@c host c.v.test\nhandle @c {\n@far not remote_ip 127.0.0.2/32\nabort @far\nreverse_proxy 127.0.0.1:${places.two}\n}\nhandle {\nabort\n}`,
  },
  {
    why: "a wildcard site whose names are conditions of proxies",
    names: ["*.u.test"],
    lines: (places) =>
      `@a {\nhost a.u.test\nnot path /admin/*\n}\nreverse_proxy @a 127.0.0.1:${places.one}\n@b {\nhost b.u.test\nremote_ip 127.0.0.2/32\n}\nreverse_proxy @b 127.0.0.1:${places.two}`,
  },
  {
    why: "a login of another server in front of everything but its own pages",
    lines: ({ auth: port, one, two }) =>
      `route {\nreverse_proxy /public/* 127.0.0.1:${two}\nforward_auth 127.0.0.1:${port} {\nuri /outpost/auth\ncopy_headers X-User X-Groups>X-Role\n}\nreverse_proxy 127.0.0.1:${one}\n}`,
  },
  {
    why: "a login whose response Caddy changes",
    lines: ({ auth: port, one }) =>
      `forward_auth 127.0.0.1:${port} {\nuri /verify\n@error status 401\nhandle_response @error {\nredir * /login\n}\n}\nreverse_proxy 127.0.0.1:${one}`,
  },
  {
    why: "a redirect that protects",
    lines: ({ one }) =>
      `@admin {\nnot remote_ip 127.0.0.2/32\npath /admin*\n}\nredir @admin /\nreverse_proxy 127.0.0.1:${one}`,
  },
  {
    why: "files of PHP beside a proxy",
    lines: ({ one }) =>
      `root * /srv\nreverse_proxy /public/* 127.0.0.1:${one}\n@forbidden path /admin/* /kik\nrespond @forbidden 404\nphp_fastcgi 127.0.0.1:${one}\nfile_server`,
  },
  {
    why: "a redirect to a page that it protects too",
    lines: ({ one }) =>
      `@admin {\nnot remote_ip 127.0.0.2/32\npath /admin*\n}\nredir @admin /admin/in\nreverse_proxy 127.0.0.1:${one}`,
  },
  {
    why: "everything else",
    names: [""],
    lines: (places) => `${auth("*", places)}\nreverse_proxy 127.0.0.1:${places.two}`,
  },
];

const namesOf = ({ names }: Site, at: number) => names ?? [`s${at}.test`];

export const caddyfile = (places: Places): string =>
  [
    "{\nauto_https off\n}",
    ...sites.map((site, at) => {
      const addresses = namesOf(site, at).map((name) => `http://${name}:${places.port}`);
      return `${addresses.join(", ")} {\n${site.lines(places)}\n}`;
    }),
  ].join("\n");

const PATHS = [
  ...[
    "/",
    "/admin",
    "/ADMIN",
    "/admin/",
    "/Admin/x",
    "/aDMIN",
    "/adminx",
    "/admin/x?k=v",
    "/admin?k=v",
  ],
  ...[
    "/adm%49n/x",
    "/%61dmin/x",
    "/admin%2Fx",
    "/admin%2fx",
    "/admin%5Cx",
    "/admin\\x",
    "/admin;v=1/x",
  ],
  ...[
    "/admin;",
    "/;/admin/x",
    "//admin/x",
    "///admin//x",
    "/./admin/x",
    "/x/../admin/x",
    "/admin/.",
    "/admin/..",
  ],
  ...[
    "/admin.",
    "/admin%20",
    "/admin%2e",
    "/admin/%2e%2e/x",
    "/adm%C4%B0n/x",
    "/%E2%84%AAik",
    "/kik",
    "/KIK",
    "/k%C3%A9k",
  ],
  ...[
    "/public",
    "/public/",
    "/public/a",
    "/PUBLIC/A",
    "/public/a/b",
    "/public/../admin/x",
    "/public/..;/admin/x",
  ],
  ...[
    "/public;x/a",
    "/public%2Fa",
    "/public%5Ca",
    "/public\\a",
    "/public//a",
    "//public/a",
    "/publicx",
    "/public/%C3%A9",
  ],
  ...[
    "/app",
    "/app/",
    "/app/x",
    "/APP/x",
    "/app/admin/x",
    "/app/ADMIN/x",
    "/APP/admin/x",
    "/app//admin/x",
  ],
  ...["/app%2Fadmin/x", "/app/admin%2Fx", "/app/app/admin/x", "/old/x", "/OLD/x", "/old/admin/x"],
  ...[
    "/x.secret",
    "/x.SECRET",
    "/x.secret.",
    "/x.secret;a",
    "/x.secret/",
    "/u/mid/v",
    "/u/MID/v",
    "/u%2Fmid/v",
  ],
  ...[
    "/g/1/info",
    "/G/1/INFO",
    "/g/1/2/info",
    "/a/x",
    "/B/X",
    "/c/x",
    "/s%C3%BC%C3%9F",
    "/S%C3%9C%E1%BA%9E",
    "/süß",
  ],
  ...[
    "/?k=v",
    "/?k=x&k=v",
    "/?k=v&x=%zz",
    "/?k=v;x",
    "/?%6b=v",
    "/?K=v",
    "/admin/open/x",
    "/admin/OPEN/x",
    "/admin/in",
    "/x%00",
    "/%zz",
  ],
];

const FIELDS = [
  ...[
    "",
    "X-Key: foo\r\n",
    "X-Key: FOO\r\n",
    "X-Key: bar\r\nX-Key: foo\r\n",
    "X-Key: foo, bar\r\n",
  ],
  ...["X-More: aaa\r\n", "X-More: b\r\nX-More: aa\r\n", "X-User: boss\r\n", "X_User: boss\r\n"],
  "Origin: http://o.test\r\nAccess-Control-Request-Method: GET\r\n",
];

const LOGIN = `Authorization: Basic ${btoa("bob:secret")}\r\n`;

/** Spellings of a name that are equivalent, or only look so. */
const spellings = (name: string) => [
  ...[name, name.toUpperCase(), `${name}:81`, `${name}.`, `${name}.:81`, `x.${name}`],
];

/** All requests for each site: every path, and the other variations one at a time. */
export function requests(): readonly Asked[] {
  const hosts = sites.map((site, at) => namesOf(site, at)[0] ?? "");
  const found: Asked[] = [];
  for (const [at, name] of hosts.entries()) {
    const own = name === "" ? "other.test" : name.replace("*", "x");
    for (const path of PATHS) found.push({ host: own, path });
    for (const path of ["/", "/admin/x", "/ADMIN/x", "/public/a", "/app/admin/x", "/kik"]) {
      for (const host of spellings(own)) found.push({ host, path });
      for (const fields of FIELDS)
        for (const method of ["GET", "POST", "OPTIONS"])
          found.push({ host: own, path, fields, method });
      for (const method of ["HEAD", "DELETE", "PROPFIND", "get"])
        found.push({ host: own, path, method });
      found.push({ host: own, path, from: "127.0.0.2" }, { host: own, path, fields: LOGIN });
      found.push({ host: own, path, from: "127.0.0.2", fields: "X-Forwarded-For: 127.0.0.1\r\n" });
      found.push({ host: own, path, fields: "X-Forwarded-For: 127.0.0.2\r\n" });
      found.push({ host: own, path, fields: `${LOGIN}X-User: boss\r\n` });
    }
    if (at % 5 === 0)
      for (const host of ["y.w.test", "x.y.w.test", "w.test", "", "[::1]", "1.2.3.4"])
        found.push({ host, path: "/" });
  }
  return found;
}
