// A model of Kong's router (traditional_compatible, 3.x) with random configurations; independent of the gateway.
import type { Random } from "../../support/random.ts";

export interface KongRoute {
  readonly name: string;
  readonly hosts?: readonly string[];
  readonly paths?: readonly string[];
  readonly methods?: readonly string[];
  readonly headers?: Readonly<Record<string, readonly string[]>>;
  readonly regex_priority?: number;
  readonly strip_path: boolean;
  readonly plugins?: readonly object[];
}

export interface KongRequest {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly lines: readonly (readonly [name: string, value: string])[];
}

const HOSTS = ["a.test", "b.test", "*.test", "a.*", "b.a.test", "*.a.test"];
const PATHS = [
  ...["/", "/a", "/a/", "/a/b", "/ab", "/A", "/b", "/a.b", "/%C3%A9", "/\u00e9/x", "/a/b/c"],
  ...["~/a/\\d+", "~/a/b$", "~/(a|b)/c", "~/a[^/]*x"],
];
const METHODS = [["GET"], ["POST"], ["GET", "POST"]];
const HEADERS = [
  { "x-a": ["one"] },
  { "x-a": ["one", "two"] },
  { "x-a": ["~*^on"] },
  { "x-b": ["Three"] },
  { "x-a": ["one"], "x-b": ["three"] },
];
const PLUGINS = [
  { name: "key-auth" },
  { name: "ip-restriction", config: { allow: ["10.0.0.0/8"] } },
  { name: "openid-connect" },
];
const REQUEST_HOSTS = [
  ...["a.test", "b.test", "c.test", "b.a.test", "a.other", "a.test:8080", "A.test", "x.b.a.test"],
  ...["other", "a.test."],
];
const REQUEST_PATHS = [
  ...["/", "/a", "/a/", "/ab", "/A", "/a/b", "/a/bx", "/a//b", "//a/b", "/%61", "/a%2Fb", "/a;x/b"],
  ...["/a/12", "/a/12x", "/a/b/c/d", "/b/c", "/a/c", "/a.b", "/a%2Eb", "/axb", "/%C3%A9", "/zz"],
  ...["/%c3%a9/x", "/a-x", "/a%40x", "/x/../a", "/b;/c", "/;a/b", "/b%5Cc", "/a%20x", "/a?b"],
];
const VALUES = ["one", "ONE", "two", "onx", "xone", "one, two", ""];

export function randomRoutes(random: Random): KongRoute[] {
  const below = (most: number) => random.between(0, most);
  const some = <T>(list: readonly T[]) =>
    Array.from({ length: 1 + below(2) }, () => random.pick(list));
  return Array.from({ length: 2 + below(4) }, (_, at): KongRoute => {
    const conditions = {
      ...(below(3) > 0 ? { hosts: some(HOSTS) } : {}),
      ...(below(4) > 0 ? { paths: some(PATHS) } : {}),
      ...(below(6) === 0 ? { methods: random.pick(METHODS) } : {}),
      ...(below(6) === 0 ? { headers: random.pick(HEADERS) } : {}),
    };
    return {
      name: `r${at}`,
      strip_path: below(3) === 0,
      ...(Object.keys(conditions).length === 0 ? { paths: ["/"] } : conditions),
      ...(below(5) === 0 ? { regex_priority: below(5) } : {}),
      ...(below(2) === 0 ? { plugins: [random.pick(PLUGINS)] } : {}),
    };
  });
}

export function randomRequest(random: Random): KongRequest {
  const below = (most: number) => random.between(0, most);
  const lines: (readonly [string, string])[] = [];
  if (below(3) === 0) lines.push(["X-A", random.pick(VALUES)]);
  if (below(6) === 0) lines.push(["X-B", random.pick(["three", "THREE", "four"])]);
  if (below(8) === 0) lines.push(["X-A", "one"]);
  const method = below(5) === 0 ? "POST" : "GET";
  return { method, host: random.pick(REQUEST_HOSTS), path: random.pick(REQUEST_PATHS), lines };
}

export function takesHost({ hosts }: KongRoute, host: string): boolean {
  const bare = host.replace(/:\d*$/, "").toLowerCase();
  const sourceOf = (name: string) => name.replaceAll(".", "\\.").replaceAll("*", ".+");
  return hosts === undefined || hosts.some((name) => new RegExp(`^${sourceOf(name)}$`).test(bare));
}

/** Unreserved characters decoded, slashes merged, dot segments resolved. */
const normalized = (path: string): string =>
  new URL(`http://h${path}`).pathname
    .replaceAll(/%[0-9a-f]{2}/gi, (triplet) => {
      const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
      return /[\w\-.~]/.test(character) ? character : triplet.toUpperCase();
    })
    .replaceAll(/\/+/g, "/");

const isRegex = (path: string) => path.startsWith("~");

function takesPath(pattern: string, path: string): boolean {
  if (isRegex(pattern)) return new RegExp(`^(?:${pattern.slice(1)})`).test(path);
  return path.startsWith(pattern.replaceAll(/[^\0-\x7f]+/g, encodeURI));
}

function takesHeaders({ headers = {} }: KongRoute, { lines }: KongRequest): boolean {
  return Object.entries(headers).every(([name, values]) => {
    const own = lines
      .filter(([each]) => each.toLowerCase() === name)
      .map(([, value]) => value.toLowerCase());
    return values.some((value) =>
      own.some((each) =>
        value.startsWith("~*")
          ? new RegExp(value.slice(2)).test(each)
          : each === value.toLowerCase(),
      ),
    );
  });
}

function orderOf(route: KongRoute, path: string | null): number[] {
  const { hosts, paths, methods, headers, regex_priority: priority = 0 } = route;
  const rules = [hosts, paths, methods, headers].filter((each) => each !== undefined).length;
  const isPlain = hosts !== undefined && !hosts.some((host) => host.includes("*"));
  const regex = path !== null && isRegex(path);
  return [
    ...[rules, Number(isPlain), Object.keys(headers ?? {}).length, Number(regex)],
    ...[regex ? priority : 0, path?.length ?? 0],
  ];
}

/** The routes that a request may match: several where Kong defines no order between them. */
export function routed(routes: readonly KongRoute[], request: KongRequest): readonly KongRoute[] {
  const path = normalized(request.path);
  const found = routes.flatMap((route) => {
    const { methods } = route;
    if (!takesHost(route, request.host) || !takesHeaders(route, request)) return [];
    if (methods !== undefined && !methods.includes(request.method)) return [];
    return (route.paths ?? [null])
      .filter((pattern) => pattern === null || takesPath(pattern, path))
      .map((pattern) => ({ route, order: orderOf(route, pattern) }));
  });
  const compare = (a: readonly number[], b: readonly number[]) => {
    const at = a.findIndex((value, index) => value !== b[index]);
    return at === -1 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
  };
  const [first] = found.toSorted((a, b) => compare(b.order, a.order));
  return first === undefined
    ? []
    : found.filter(({ order }) => compare(order, first.order) === 0).map(({ route }) => route);
}
