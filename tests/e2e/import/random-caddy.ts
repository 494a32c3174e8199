// Random configurations of Caddy, each of whose sites denies some requests, and requests that try to bypass it.
import { Random } from "../../support/random.ts";
import type { Asked } from "./judge.ts";

export interface RandomPlaces {
  readonly port: number;
  readonly origins: readonly number[];
  readonly hash: string;
}

interface Route {
  readonly match?: readonly object[];
  readonly handle: readonly object[];
  readonly group?: string;
  readonly terminal?: true;
}

export interface RandomServer {
  listen: string[];
  readonly automatic_https: object;
  readonly routes: readonly Route[];
}

const PATTERNS = [
  ...[
    "/admin/*",
    "/admin",
    "/admin*",
    "/pub/*",
    "/PUB/x*",
    "*.php",
    "*/in/*",
    "/a/*/b",
    "/kik/*",
    "/süß/*",
    "/a/?",
  ],
  ...[
    "/x.",
    "/p%2Fx",
    "/w/%*",
    "/d//x",
    "/",
    "*",
    "/pub/a/*",
    "/a;b*",
    "/[ab]/*",
    "/app/*",
    "/app/admin/*",
  ],
];
const EXPRESSIONS = [
  ...[
    "^/admin",
    "^/pub/[a-z]+$",
    "(?i)^/ADMIN",
    "\\.php$",
    "^/a/[^/]+$",
    "^/(?P<n>pub|admin)/",
    "x",
  ],
];
const HOSTS = ["a.test", "b.test", "*.w.test", "*", "x.w.test", "*.*.test"];
const FIELDS = [
  ...[
    { "X-A": ["foo"] },
    { "X-A": ["f*"] },
    { "X-A": [] },
    { "X-A": null },
    { "x-a": ["foo", "bar"] },
  ],
  ...[{ "X-A": ["*oo"], "X-B": ["*"] }, { Host: ["a.test"] }],
];
const RANGES = [["127.0.0.1"], ["127.0.0.0/8"], ["10.0.0.0/8"], ["127.0.0.2/32", "10.0.0.0/8"]];
const REWRITES = [
  ...[{ strip_path_prefix: "/pub" }, { strip_path_prefix: "/app" }, { method: "GET" }],
  ...[{ uri: "/admin{http.request.uri}" }, { uri: "/pub/x" }],
];
const FIELD_CHANGES = [
  { request: { set: { "X-A": ["foo"] } } },
  { request: { delete: ["X-A"] } },
  { response: { set: { "X-R": ["1"] } } },
];

export const randomServer = (seed: number, places: RandomPlaces): RandomServer =>
  new Maker(new Random(seed), places).server();

class Maker {
  readonly #random: Random;
  readonly #places: RandomPlaces;
  #groups = 0;

  constructor(random: Random, places: RandomPlaces) {
    this.#random = random;
    this.#places = places;
  }

  server(): RandomServer {
    const routes = this.#times(1, 4, () => this.#site());
    const automatic_https = { disable: true };
    return { listen: [`:${this.#places.port}`], automatic_https, routes };
  }

  #times<T>(from: number, below: number, make: () => T): T[] {
    return Array.from({ length: this.#random.between(from, below) }, make);
  }

  #site(): Route {
    const refusal = { handler: "static_response", status_code: 403 };
    const guard: Route = { match: [{ path: ["/guarded/*"] }], handle: [refusal] };
    const subroute = { handler: "subroute", routes: [...this.#routes(0), guard] };
    const isForAll = this.#random.chance(0.15);
    const match = isForAll ? {} : { match: [{ host: [this.#random.pick(HOSTS)] }] };
    return { ...match, handle: [subroute], terminal: true };
  }

  #routes(depth: number): Route[] {
    const random = this.#random;
    const group = random.chance(0.5) ? `g${this.#groups++}` : null;
    return this.#times(1, 5, () => ({
      handle: this.#times(1, random.chance(0.7) ? 2 : 3, () => this.#handler(depth)),
      ...(random.chance(0.75)
        ? { match: this.#times(1, random.chance(0.85) ? 2 : 3, () => this.#matcher(0)) }
        : {}),
      ...(group !== null && random.chance(0.7) ? { group } : {}),
      ...(random.chance(0.15) ? { terminal: true as const } : {}),
    }));
  }

  #handler(depth: number): object {
    const random = this.#random;
    switch (random.between(0, 15)) {
      case 0:
      case 1:
      case 2:
        return this.#password();
      case 3:
      case 4:
      case 5:
      case 6: {
        const dial = `127.0.0.1:${random.pick(this.#places.origins)}`;
        return { handler: "reverse_proxy", upstreams: [{ dial }] };
      }
      case 7:
        return { handler: "static_response", status_code: 403 };
      case 8: {
        const headers = { "X-Open": [`static${random.between(0, 3)}`] };
        return { handler: "static_response", status_code: 200, body: "static", headers };
      }
      case 9:
        return { handler: "static_response", status_code: 302, headers: { Location: ["/x"] } };
      case 10:
        return { handler: "rewrite", ...random.pick(REWRITES) };
      case 11:
        return { handler: "headers", ...random.pick(FIELD_CHANGES) };
      case 12:
        return { handler: "error", status_code: 404 };
      default:
        return depth > 2
          ? this.#password()
          : { handler: "subroute", routes: this.#routes(depth + 1) };
    }
  }

  #password(): object {
    const accounts = [{ username: "bob", password: btoa(this.#places.hash) }];
    const http_basic = { accounts, hash: { algorithm: "bcrypt" } };
    return { handler: "authentication", providers: { http_basic } };
  }

  #matcher(depth: number): object {
    const all = this.#times(1, 3, () => this.#one(depth));
    return Object.assign({}, ...all) as object;
  }

  #one(depth: number): object {
    const random = this.#random;
    switch (random.between(0, 13)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return { path: this.#times(1, 3, () => random.pick(PATTERNS)) };
      case 4:
        return { path_regexp: { pattern: random.pick(EXPRESSIONS) } };
      case 5:
        return { method: random.pick([["GET"], ["POST", "PUT"], ["get"]]) };
      case 6:
        return { header: random.pick(FIELDS) };
      case 7:
        return { header_regexp: { "X-A": { pattern: random.pick(["^f", "o$", "o"]) } } };
      case 8:
        return { query: random.pick([{ k: ["v"] }, { k: ["*"] }, { k: ["v"], l: ["1"] }]) };
      case 9:
        return { remote_ip: { ranges: random.pick(RANGES) } };
      case 10: {
        const methods = "{http.request.method} == 'GET'";
        return {
          expression: random.pick([methods, "{http.request.uri.path}.startsWith('/admin')"]),
        };
      }
      case 11:
        return depth > 1 ? {} : { not: this.#times(1, 3, () => this.#matcher(depth + 1)) };
      default:
        return { host: [random.pick(HOSTS)] };
    }
  }
}

const PATHS = [
  ...[
    "/",
    "/admin",
    "/ADMIN",
    "/admin/",
    "/Admin/x",
    "/admin/x.php",
    "/adm%49n/x",
    "/%61dmin/x",
    "//admin/x",
    "/admin%2Fx",
  ],
  ...[
    "/admin;v=1/x",
    "/admin.",
    "/admin%20",
    "/x/../admin/x",
    "/admin\\x",
    "/adminx",
    "/pub",
    "/pub/",
    "/pub/a",
    "/PUB/XY",
  ],
  ...[
    "/pub;x/a",
    "/pub%2fa",
    "/pub//a",
    "//pub/a",
    "/pub/../admin/x",
    "/pub/..;/admin",
    "/pub%5Ca",
    "/pub/a/b",
    "/x.php",
  ],
  ...[
    "/x.PHP",
    "/x.php.",
    "/x.php/",
    "/x.php;a",
    "/u/in/v",
    "/u/IN/v",
    "/u%2Fin/v",
    "/a/1/b",
    "/a/1/2/b",
    "/A/x/B",
    "/a//b",
  ],
  ...[
    "/a/x",
    "/a/%C3%A9",
    "/kik/x",
    "/%E2%84%AAik/x",
    "/K%C4%B0K/x",
    "/s%C3%BC%C3%9F/x",
    "/S%C3%9C%E1%BA%9E/x",
    "/x.",
    "/x",
  ],
  ...[
    "/p%2Fx",
    "/p/x",
    "/w/a",
    "/w/a%2Fb",
    "/d//x",
    "/d/x",
    "/a;b",
    "/a;bc",
    "/b/x",
    "/c/x",
    "/?k=v",
    "/admin/x?k=v",
  ],
  ...[
    "/pub/a?k=x&k=v",
    "/pub/a?k=v&l=1",
    "/pub/a?l=1",
    "/pub/a?k=v;z",
    "/pub/a?k=v%",
    "/pub/admin/x",
    "/a/pub/x",
    "/a/admin/x",
  ],
  ...[
    "/pub/pub/x",
    "/%2e%2e/admin/x",
    "/pub/a%00",
    "/admin/%zz",
    "/%c3%a4dmin",
    "/a/",
    "/a",
    "/pub/x/",
    "/pub/a/x.php",
  ],
  ...[
    "/app",
    "/app/",
    "/app/admin/x",
    "/APP/ADMIN/x",
    "/app%2Fadmin/x",
    "/app;x/admin/x",
    "/app//admin/x",
    "/guarded/x",
    "/GUARDED/x",
  ],
];
const NAMES = [
  ...[
    "a.test",
    "A.TEST",
    "a.test.",
    "a.test:81",
    "b.test",
    "x.w.test",
    "y.w.test",
    "x.y.w.test",
    "w.test",
    "other",
  ],
  ...["foo.bar.test", "a.test.:81"],
];
const LINES = [
  ...[
    "",
    "",
    "",
    "X-A: foo\r\n",
    "X-A: FOO\r\n",
    "X-A: bar\r\nX-A: foo\r\n",
    "X-A: bar, foo\r\n",
    "X-B: 1\r\n",
  ],
  ...["X-A: fo\r\nX-B: 2\r\n", "X-A: f, bar\r\n", "X-A:\r\n"],
  "Origin: http://o.test\r\nAccess-Control-Request-Method: GET\r\n",
];
const METHODS = ["GET", "GET", "GET", "POST", "OPTIONS", "HEAD", "DELETE", "get"];
const LOGIN = `Authorization: Basic ${btoa("bob:secret")}\r\n`;

export function randomRequests(seed: number, count = 150): readonly Asked[] {
  const random = new Random(seed ^ 0x5bd1e995);
  return Array.from({ length: count }, () => ({
    path: random.pick(PATHS),
    host: random.pick(NAMES),
    method: random.pick(METHODS),
    fields: random.pick(LINES) + (random.chance(0.15) ? LOGIN : ""),
    from: random.pick(["127.0.0.1", "127.0.0.1", "127.0.0.2"]),
  }));
}
