// A route ready to be used by one worker: what it does to a path, a host and a time-out; knows no socket.
import type { Route } from "../model/route.ts";
import { canonicalPath, stripPrefix } from "../http/request-target.ts";
import { compileCidrs } from "../net/cidr.ts";
import type { Series } from "../shared-memory/traffic-metrics.ts";
import type { RoutePlan } from "../snapshot/snapshot.ts";
import type { Chain } from "./plugin/chain.ts";
import { PluginSet } from "./plugin/plugin-set.ts";
import type { RequestContext } from "./request-context.ts";
import type { ServiceRuntime, TargetRuntime } from "./service-runtime.ts";
import type { ExchangeTimeouts } from "./upstream/exchange.ts";

export interface RouteRuntime {
  readonly id: string;
  readonly route: Route;
  /** Where its requests are counted. */
  readonly series: Series;
  /** Prefixes that may be stripped, longest first; empty when nothing is. */
  readonly prefixes: readonly string[];
  readonly rewrite: { readonly regex: RegExp; readonly to: string } | null;
  /** Null when the service's count. */
  readonly timeouts: Route["timeouts"] | null;
  /** Whether a client is served in spite of maintenance. */
  bypassesMaintenance(address: string): boolean;
  /** Status of the redirect to HTTPS, 0 for none. */
  readonly redirectStatus: number;
  /** The plugins of the last set that was asked for; kept here because it is looked up for every request. */
  readonly plugins: { set: PluginSet; chain: Chain | null };
}

/** The plugins that run for the route in this set; null: none. */
export function chainOf(runtime: RouteRuntime, set: PluginSet): Chain | null {
  const { plugins } = runtime;
  if (plugins.set !== set) {
    plugins.set = set;
    plugins.chain = set.chainAt({ routeId: runtime.id, serviceId: runtime.route.service_id });
  }
  return plugins.chain;
}

/** Prepares one version of a route; runs once when it is stored or changed. */
export function routeRuntime(plan: RoutePlan, series: Series): RouteRuntime {
  const { route } = plan;
  const prefixes = route.paths.filter((path) => path.type === "prefix").map((path) => path.value);
  const overrides = Object.values(route.timeouts).some((value) => value !== null);
  return {
    id: plan.id,
    route,
    series,
    prefixes: route.strip_path ? prefixes.sort((a, b) => b.length - a.length) : [],
    rewrite:
      route.path_rewrite === null
        ? null
        : { regex: new RegExp(route.path_rewrite.regex), to: route.path_rewrite.to },
    timeouts: overrides ? route.timeouts : null,
    bypassesMaintenance: compileCidrs(route.maintenance?.bypass_cidrs ?? []),
    redirectStatus:
      route.https_redirect === false
        ? 0
        : route.https_redirect === true
          ? 308
          : route.https_redirect,
    plugins: { set: PluginSet.empty, chain: null },
  };
}

/** Path and query for the request line upstream; null when a rewrite made something that is no path. */
export function upstreamTarget(
  runtime: RouteRuntime,
  service: ServiceRuntime,
  context: RequestContext,
): string | null {
  const base = service.service.path;
  const { edits } = context;
  if (edits !== null && (edits.hasOwnPath || edits.hasOwnQuery))
    return editedTarget(runtime, service, context);
  if (base === "" && runtime.prefixes.length === 0 && runtime.rewrite === null)
    return context.target;
  const path = upstreamPath(runtime, context.path);
  if (path === null) return null;
  const query = context.target.slice(context.target.length - context.query.length - 1);
  return query.startsWith("?") ? joinBase(base, path) + query : joinBase(base, path);
}

/** The target as plugins want it. */
function editedTarget(
  runtime: RouteRuntime,
  service: ServiceRuntime,
  { edits, path: own }: RequestContext,
): string | null {
  if (edits === null) return null;
  const path = edits.hasOwnPath ? edits.path : upstreamPath(runtime, own);
  if (path === null) return null;
  const joined = joinBase(service.service.path, edits.hasOwnPath && path === "/" ? "" : path);
  return edits.query === "" ? joined : `${joined}?${edits.query}`;
}

/** Where nothing follows it, the service's path is sent as it is written: `/app` stays `/app`, and `/app/` stays `/app/`. */
function joinBase(base: string, path: string): string {
  if (path === "") return base === "" ? "/" : base;
  return base.endsWith("/") ? base + path.slice(1) : base + path;
}

/**
 * The path after the route has stripped and rewritten it, "" when nothing is left of it or the client has asked for `/`; null
 * when that is no path.
 */
function upstreamPath(runtime: RouteRuntime, own: string): string | null {
  const path = own === "/" ? "" : withoutPrefix(own, runtime.prefixes);
  if (runtime.rewrite === null) return path;
  const whole = path === "" ? "/" : path;
  const rewritten = whole.replace(runtime.rewrite.regex, runtime.rewrite.to);
  if (rewritten === "" || rewritten === whole) return rewritten === "" ? "" : path;
  return canonicalPath(encodePath(rewritten));
}

function withoutPrefix(own: string, prefixes: readonly string[]): string {
  for (const prefix of prefixes) {
    const stripped = stripPrefix(own, prefix);
    if (stripped !== null) return stripped;
  }
  return own;
}

/** A replacement may hold text that a path cannot; it is escaped, not sent as it is. */
function encodePath(path: string): string {
  const absolute = path.startsWith("/") ? path : `/${path}`;
  return absolute.replace(/[^!$%&-;=@-Z[\]_a-z|~]/gu, (character) => encodeURIComponent(character));
}

/** Host field for a target: the client's, the target's or a name of the service's choice. */
export function upstreamHost(
  path: { readonly route: RouteRuntime; readonly service: ServiceRuntime },
  target: TargetRuntime,
  context: RequestContext,
): string {
  const edited = context.edits?.host ?? null;
  if (edited !== null) return edited;
  const own = path.route.route.preserve_host;
  const mode = own === null ? path.service.service.host_header : own ? "preserve" : "target";
  if (mode === "preserve") return context.rawHost;
  return mode === "target" ? target.authority : mode;
}

/** The service's time-outs with the route's in their place. */
export function exchangeTimeouts(runtime: RouteRuntime, service: ServiceRuntime): ExchangeTimeouts {
  const own = runtime.timeouts;
  if (own === null) return service.timeouts;
  const inherited = service.timeouts;
  return {
    connect: own.connect_timeout ?? inherited.connect,
    response: own.response_timeout ?? inherited.response,
    read: own.read_timeout ?? inherited.read,
    write: own.write_timeout ?? inherited.write,
  };
}

/** Milliseconds for the whole exchange, 0 for no limit. */
export function totalTimeout(runtime: RouteRuntime, service: ServiceRuntime): number {
  return runtime.timeouts?.request_timeout ?? service.service.request_timeout;
}
