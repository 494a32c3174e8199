// The cache key: everything that reaches the target and could change its response; knows no response.
import type { RequestContext } from "../../pdk/context.ts";
import { hyphenated, queryValue } from "../../pdk/http.ts";
import { RecentMap } from "../../pdk/recent-map.ts";
import type { Config } from "./settings.ts";

export interface CacheKey {
  readonly key: string;
  /** `host/path?query`, as in purges and unsafe requests. */
  readonly resource: string;
  /** The query in the key and upstream. */
  readonly query: string;
}

/**
 * Headers by which frameworks change the method or the path of a request, without naming them in Vary. A request with one
 * bypasses the cache.
 */
const OVERRIDES = [
  "x-http-method-override",
  "x-http-method",
  "x-method-override",
  "x-original-url",
  "x-original-uri",
  "x-rewrite-url",
  "x-original-host",
  "x-host",
  "x-forwarded-path",
  "x-forwarded-uri",
  "x-forwarded-method",
  // A proxy before the target may respond itself when the hop count runs out.
  "max-forwards",
] as const;

/** Headers of trusted proxies about the client's request, which applications use in links. Other clients cannot send them. */
const FROM_TRUSTED_PROXY = ["x-forwarded-prefix", "x-forwarded-ssl", "x-forwarded-scheme"] as const;

/** Allowed in every request, and trusted by many applications. */
const MAY_REROUTE = new Set<string>(OVERRIDES);

/** Whether a header overrides the method or the path. */
export function isOverridden({ headers }: RequestContext): boolean {
  for (const name in headers) {
    // Applications may read x_host as the same header.
    const first = name.charCodeAt(0);
    if (first !== 120 && first !== 109) continue;
    if (MAY_REROUTE.has(hyphenated(name))) return true;
  }
  return false;
}

/** Cached keys by path: building and hashing a key costs more than the lookup. */
const RECENT_PATHS = 1000;
/** Longest cached path: clients choose paths, and `max_total` does not count this cache. */
const LONGEST_RECENT_PATH = 256;

/** A key with its other parts, when it depends on nothing else. */
interface RecentKey {
  readonly host: string;
  readonly clientHost: string;
  readonly scheme: string;
  readonly port: string;
  readonly routeId: string | undefined;
  readonly cacheKey: CacheKey;
}

export interface KeyMaker {
  /** Null: requests cannot be compared. */
  keyOf(context: RequestContext): CacheKey | null;
  /** The name of a resource, for invalidation. */
  resourceOf(target: {
    readonly host: string;
    readonly path: string;
    readonly query: string;
  }): string;
  /** The name of a resource by a requested URL, which may have parameters outside of the key. */
  named(address: string): string;
}

/** Compiles the key. The separators cannot occur in the parts. */
export function keyMaker({ key: own }: Pick<Config, "key">): KeyMaker {
  const query = queryFilter(own.query_include, own.query_exclude);
  const headers = own.headers.map((name) => name.toLowerCase());
  const nameOf = (target: { host: string; path: string; counted: string }) => {
    const resource = (own.host ? target.host : "") + (own.path ? target.path : "/");
    return target.counted === "" ? resource : `${resource}?${target.counted}`;
  };
  const recent = new RecentMap<string, RecentKey>(RECENT_PATHS);
  const isPlain = headers.length === 0 && own.cookies.length === 0;
  const keyOf = (context: RequestContext): CacheKey | null => {
    const { path } = context.upstream;
    if (!isPlain || path.length > LONGEST_RECENT_PATH || !isOfAddress(context))
      return wholeKeyOf(context);
    const { host, clientHost, scheme, port, route } = context;
    const known = recent.get(path);
    if (
      known !== undefined &&
      known.host === host &&
      known.clientHost === clientHost &&
      known.scheme === scheme &&
      known.port === port &&
      known.routeId === route?.id
    )
      return known.cacheKey;
    const cacheKey = wholeKeyOf(context);
    const routeId = route?.id;
    if (cacheKey !== null) recent.set(path, { host, clientHost, scheme, port, routeId, cacheKey });
    return cacheKey;
  };
  const wholeKeyOf = (context: RequestContext): CacheKey | null => {
    const { upstream, host } = context;
    const counted = query(upstream.query);
    const resource = nameOf({ host, path: upstream.path, counted });
    // The scheme and the port go upstream too, and applications make links of them.
    let key = `${resource}\n${context.scheme} ${context.port} ${context.route?.id}`;
    // The host as sent, with port and case: applications use it in links.
    if (own.host && context.clientHost !== host) key += ` ${context.clientHost}`;
    if (upstream.host !== null || upstream.serviceId !== null)
      key += `\nto ${upstream.host} ${upstream.serviceId}`;
    if (context.isFromTrustedProxy())
      for (const name of FROM_TRUSTED_PROXY) key += `\n${escaped(context.header(name))}`;
    for (const name of headers) key += `\n${escaped(upstream.header(name))}`;
    for (const name of own.cookies) key += `\n${escaped(context.cookie(name))}`;
    if (!own.consumer) return { key, resource, query: counted };
    const who = whoOf(context);
    return who === null ? null : { key: key + who, resource, query: counted };
  };
  return {
    keyOf,
    resourceOf: (target) => nameOf({ ...target, counted: query(target.query) }),
    named(address) {
      const mark = address.indexOf("?");
      const end = mark < 0 ? address.length : mark;
      const slash = address.indexOf("/");
      const plain = own.path ? address.slice(0, end) : `${address.slice(0, Math.max(0, slash))}/`;
      const counted = query(address.slice(end + 1));
      return counted === "" ? plain : `${plain}?${counted}`;
    },
  };
}

/** Whether the key depends only on host, path, scheme, port and route. */
const isOfAddress = (context: RequestContext): boolean =>
  context.upstream.query === "" &&
  context.upstream.host === null &&
  context.upstream.serviceId === null &&
  context.consumer === null &&
  !context.isAuthenticated &&
  !context.isFromTrustedProxy();

/** Header values have no line breaks; an absent value must differ from an empty one. */
const escaped = (value: string | null) => (value === null ? "" : `=${value}`);

/** Null: authenticated without an id. */
function whoOf({ consumer, credentialId, isAuthenticated, groups }: RequestContext): string | null {
  if (consumer === null && !isAuthenticated) return "";
  if (consumer === null && credentialId === null) return null;
  // External names may have any characters.
  const who = consumer === null ? [null, credentialId] : [consumer.id];
  return `\n${JSON.stringify([...who, groups])}`;
}

/** The parameters of the key, unchanged and in order. */
function queryFilter(
  include: readonly string[] | null,
  exclude: readonly string[],
): (query: string) => string {
  if (include === null && exclude.length === 0) return (query) => query;
  const names = include ?? exclude;
  const isIncluded = (part: string) =>
    part !== "" && names.some((name) => queryValue(part, name) !== null) === (include !== null);
  return (query) => (query === "" ? "" : query.split("&").filter(isIncluded).join("&"));
}
