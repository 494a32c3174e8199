// A route as one worker uses it; knows no request and no socket.
import type { Route } from "../model/route.ts";
import { stripPrefix } from "../http/request-target.ts";
import { matchedPaths } from "../snapshot/matched-paths.ts";
import { compileCidrs } from "../net/cidr.ts";
import type { Series } from "../shared-memory/traffic-metrics.ts";
import { type Chain, PluginSet } from "./plugin/plugin-set.ts";

export interface RouteRuntime {
  readonly id: string;
  readonly route: Route;
  /** Whether it takes the path as the client has sent it. */
  readonly isRaw: boolean;
  /** The counters of its requests; set with the first one. */
  series: Series | null;
  /** Prefixes that may be stripped or replaced, longest first; empty when nothing is. */
  readonly prefixes: readonly string[];
  /** Replaces the prefix; null: the prefix is stripped. */
  readonly replacement: string | null;
  /** Whether the gateway names the prefix that it strips to targets. */
  readonly namesPrefix: boolean;
  readonly rewrite: { readonly regex: RegExp; readonly to: string } | null;
  /** Null: only the service's timeouts apply. */
  readonly timeouts: Route["timeouts"] | null;
  /** Whether a client at this address bypasses maintenance. */
  bypassesMaintenance(address: string): boolean;
  /** Status of the redirect to HTTPS, 0 for none. */
  readonly redirectStatus: number;
  /** Whether the route may respond itself: with that redirect or in maintenance. */
  readonly mayRespond: boolean;
  /** Cache of `chainOf`, which every request calls. */
  readonly plugins: { set: PluginSet; chain: Chain | null };
}

/** The plugin chain of the route in this set; null: none. */
export function chainOf(runtime: RouteRuntime, set: PluginSet): Chain | null {
  const { plugins } = runtime;
  if (plugins.set !== set) {
    plugins.set = set;
    plugins.chain = set.chainFor({ routeId: runtime.id, serviceId: runtime.route.service_id });
  }
  return plugins.chain;
}

/** The prefix that is stripped from the path or replaced; undefined: none is. */
export const changedPrefix = ({ prefixes }: RouteRuntime, path: string): string | undefined =>
  prefixes.find((prefix) => stripPrefix(path, prefix) !== null);

/** Runs once for each version of a route. */
export function routeRuntime(route: Route): RouteRuntime {
  const prefixes = route.paths.filter((path) => path.type === "prefix").map((path) => path.value);
  const { https_redirect: redirect } = route;
  const redirectStatus = redirect === false ? 0 : redirect === true ? 308 : redirect;
  // Without a path the route matches every path, as the prefix / does.
  if (matchedPaths(route).length === 0 && route.prefix_rewrite !== null) prefixes.push("/");
  const usesPrefix = route.strip_path || route.prefix_rewrite !== null;
  const overrides = Object.values(route.timeouts).some((value) => value !== null);
  return {
    id: route.id,
    route,
    isRaw: route.path_handling === "raw",
    series: null,
    prefixes: usesPrefix ? prefixes.sort((a, b) => b.length - a.length) : [],
    replacement: route.prefix_rewrite,
    namesPrefix: usesPrefix && route.prefix_rewrite === null && prefixes.length > 0,
    rewrite:
      route.path_rewrite === null
        ? null
        : { regex: new RegExp(route.path_rewrite.regex), to: route.path_rewrite.to },
    timeouts: overrides ? route.timeouts : null,
    bypassesMaintenance: compileCidrs(route.maintenance?.bypass_cidrs ?? []),
    redirectStatus,
    mayRespond: redirectStatus > 0 || route.maintenance !== null,
    plugins: { set: PluginSet.empty, chain: null },
  };
}
