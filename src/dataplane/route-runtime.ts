// A route ready to be used by one worker; knows no request and no socket.
import type { Route } from "../model/route.ts";
import { compileCidrs } from "../net/cidr.ts";
import type { Series } from "../shared-memory/traffic-metrics.ts";
import { type Chain, PluginSet } from "./plugin/plugin-set.ts";

export interface RouteRuntime {
  readonly id: string;
  readonly route: Route;
  /** Where its requests are counted; found with the first one. */
  series: Series | null;
  /** Prefixes that may be stripped or replaced, longest first; empty when nothing is. */
  readonly prefixes: readonly string[];
  /** What takes the place of a prefix; null: nothing, it is stripped. */
  readonly replacement: string | null;
  readonly rewrite: { readonly regex: RegExp; readonly to: string } | null;
  /** Null when the service's count. */
  readonly timeouts: Route["timeouts"] | null;
  /** Whether a client is served in spite of maintenance. */
  bypassesMaintenance(address: string): boolean;
  /** Status of the redirect to HTTPS, 0 for none. */
  readonly redirectStatus: number;
  /** Whether the route may respond by itself: with that redirect, or because it is in maintenance. */
  readonly mayRespond: boolean;
  /** The plugins of the last set that was asked for; kept here because it is looked up for every request. */
  readonly plugins: { set: PluginSet; chain: Chain | null };
}

/** The plugins that run for the route in this set; null: none. */
export function chainOf(runtime: RouteRuntime, set: PluginSet): Chain | null {
  const { plugins } = runtime;
  if (plugins.set !== set) {
    plugins.set = set;
    plugins.chain = set.chainFor({ routeId: runtime.id, serviceId: runtime.route.service_id });
  }
  return plugins.chain;
}

/** Prepares one version of a route; runs once when it is stored or changed. */
export function routeRuntime(route: Route): RouteRuntime {
  const prefixes = route.paths.filter((path) => path.type === "prefix").map((path) => path.value);
  const { https_redirect: redirect } = route;
  const redirectStatus = redirect === false ? 0 : redirect === true ? 308 : redirect;
  // Without a path the route matches every path, as the prefix / does.
  if (route.paths.length === 0 && route.prefix_rewrite !== null) prefixes.push("/");
  const usesPrefix = route.strip_path || route.prefix_rewrite !== null;
  const overrides = Object.values(route.timeouts).some((value) => value !== null);
  return {
    id: route.id,
    route,
    series: null,
    prefixes: usesPrefix ? prefixes.sort((a, b) => b.length - a.length) : [],
    replacement: route.prefix_rewrite,
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
