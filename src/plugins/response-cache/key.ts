// By what requests are told apart: everything that reaches the target and could change its answer for all; knows no answer.
import type { RequestContext } from "../../pdk/context.ts";
import { hyphenated, queryValue } from "../../pdk/http.ts";
import { RecentMap } from "../../pdk/recent-map.ts";
import type { Config } from "./settings.ts";

export interface CacheKey {
  readonly key: string;
  /** `host/path?query`, as people and unsafe requests name it. */
  readonly resource: string;
  /** As it counts, and as it goes upstream. */
  readonly query: string;
}

/**
 * Fields by which frameworks change the method or the path of a request, and which nobody would think of in Vary. An answer to
 * a request that holds one belongs to this request alone.
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
  // Where a proxy before the target shows another answer for a hop less.
  "max-forwards",
] as const;

/** What a trusted proxy says of the client's request, and applications put into links. Others cannot send it upstream. */
const FROM_TRUSTED_PROXY = ["x-forwarded-prefix", "x-forwarded-ssl", "x-forwarded-scheme"] as const;

/** Beside those: HTTP allows it for every request, and many applications believe it. */
const MAY_REROUTE = new Set<string>(OVERRIDES);

/** Whether the request says in a field of its own that it is another one. */
export function isOverridden({ headers }: RequestContext): boolean {
  for (const name in headers) {
    // Applications take x_host for it too.
    const first = name.charCodeAt(0);
    if (first !== 120 && first !== 109) continue;
    if (MAY_REROUTE.has(hyphenated(name))) return true;
  }
  return false;
}

/** Paths whose keys are remembered: to make one, and to look for it, costs more than to find it again. */
const RECENT_PATHS = 1000;
/** Characters that such a path has at most: clients choose paths, and `max_total` does not count what is remembered here. */
const LONGEST_RECENT_PATH = 256;

/** A key with what it was made of beside the path, where there was nothing else. */
interface RecentKey {
  readonly host: string;
  readonly clientHost: string;
  readonly scheme: string;
  readonly port: string;
  readonly routeId: string | undefined;
  readonly place: CacheKey;
}

export interface KeyMaker {
  /** Null: nobody can tell whether another request is the same. */
  keyOf(context: RequestContext): CacheKey | null;
  /** How answers for this are named. */
  resourceOf(target: {
    readonly host: string;
    readonly path: string;
    readonly query: string;
  }): string;
  /** The name of an answer by the address that somebody has asked for, which may hold parameters that do not count. */
  named(address: string): string;
}

/** Prepares the making of keys. Parts are separated by what none of them can hold. */
export function keyMaker({ key: own }: Pick<Config, "key">): KeyMaker {
  const query = queryFilter(own.query_include, own.query_exclude);
  const headers = own.headers.map((name) => name.toLowerCase());
  const nameOf = (target: { host: string; path: string; counted: string }) => {
    const place = (own.host ? target.host : "") + (own.path ? target.path : "/");
    return target.counted === "" ? place : `${place}?${target.counted}`;
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
      return known.place;
    const place = wholeKeyOf(context);
    const routeId = route?.id;
    if (place !== null) recent.set(path, { host, clientHost, scheme, port, routeId, place });
    return place;
  };
  const wholeKeyOf = (context: RequestContext): CacheKey | null => {
    const { upstream, host } = context;
    const counted = query(upstream.query);
    const resource = nameOf({ host, path: upstream.path, counted });
    // The scheme and the port go upstream too, and applications make links of them.
    let key = `${resource}\n${context.scheme} ${context.port} ${context.route?.id}`;
    // The host as the client wrote it: with a port, or in capitals, it would end up in links.
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
      if (mark < 0) return address;
      const counted = query(address.slice(mark + 1));
      return address.slice(0, mark) + (counted === "" ? "" : `?${counted}`);
    },
  };
}

/** Whether nothing but host, path, scheme, port and route can tell the request apart from others. */
const isOfAddress = (context: RequestContext): boolean =>
  context.upstream.query === "" &&
  context.upstream.host === null &&
  context.upstream.serviceId === null &&
  context.consumer === null &&
  !context.isAuthenticated &&
  !context.isFromTrustedProxy();

/** Field values hold no line breaks, but a value that is absent must not look like an empty one. */
const escaped = (value: string | null) => (value === null ? "" : `=${value}`);

/** Null: somebody who was recognised but has no name. */
function whoOf({ consumer, credentialId, isAuthenticated, groups }: RequestContext): string | null {
  if (consumer === null && !isAuthenticated) return "";
  if (consumer === null && credentialId === null) return null;
  // A name from outside may hold anything.
  const who = consumer === null ? [null, credentialId] : [consumer.id];
  return `\n${JSON.stringify([...who, groups])}`;
}

/** The parameters that count, as they were written and in their order. */
function queryFilter(
  include: readonly string[] | null,
  exclude: readonly string[],
): (query: string) => string {
  if (include === null && exclude.length === 0) return (query) => query;
  const names = include ?? exclude;
  const isWanted = (part: string) =>
    part !== "" && names.some((name) => queryValue(part, name) !== null) === (include !== null);
  return (query) => (query === "" ? "" : query.split("&").filter(isWanted).join("&"));
}
