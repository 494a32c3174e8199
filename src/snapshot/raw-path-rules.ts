// Rules about routes that take paths as they came: nothing else of the gateway may decide by their path; knows no request.
import { normalHost, isOpen, patternsFor } from "./covering.ts";
import type { Condition } from "../model/condition.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Plugin } from "../model/plugin.ts";
import type { Route } from "../model/route.ts";
import type { Steps } from "../pace.ts";
import { textsOf } from "../pdk/fields.ts";
import type { Candidate } from "./candidate.ts";
import { isReachable, overlap } from "./engine-choice.ts";
import { matchedPaths } from "./matched-paths.ts";
import type { PluginCatalogue } from "./plugin-config.ts";
import type { ProblemList } from "./problem.ts";

/** Where something can come into the way. */
const sources = ["routes", "services", "listeners", "plugins"] as const;

/** Why a route cannot take raw paths, and the object that is in the way. */
interface Obstacle {
  readonly collection: (typeof sources)[number];
  readonly id: string;
  readonly path: string;
  /** Follows the name of the route. */
  readonly message: string;
}

/** Reports each obstacle at the object that the change is to blame for: the other one, where only that has changed. */
export function* checkRawRoutes(
  { config, previous, difference }: Candidate,
  plugins: PluginCatalogue,
  list: ProblemList,
): Steps<void> {
  const changed = new Set(difference.routes.upserts);
  const isChanged = ({ collection, id }: Obstacle): boolean =>
    difference[collection].upserts.some((each: { readonly id: string }) => each.id === id);
  const routes = rawRoutesOf(config, previous, difference).filter(({ enabled }) => enabled);
  if (sources.every((name) => difference[name].upserts.length === 0)) return;
  const sharingHosts = hostIndex(routes);
  for (const other of routes.some((each) => changed.has(each)) ? config.routes.values() : changed) {
    if (other.enabled && matchesByPath(other))
      for (const route of sharingHosts(other)) {
        const isNew = changed.has(route) || changed.has(other);
        const found = isNew ? otherRoute(route, other) : null;
        if (found !== null) report(route, found);
      }
    yield;
  }
  for (const route of routes) {
    for (const found of obstaclesOf(route, config, plugins)) {
      report(route, found);
      yield;
    }
  }

  function report(route: Route, found: Obstacle): void {
    const isOther = !changed.has(route) && isChanged(found);
    const { collection, id, path } = isOther
      ? found
      : ({ collection: "routes", id: route.id, path: "path_handling" } as const);
    const label = isOther ? `route "${route.name ?? route.id}" takes raw paths: ` : "";
    list.of(collection, id)(path, label + found.message);
  }
}

/** Those of each configuration, so that a change looks only at the routes that it has. */
const known = new WeakMap<GatewayConfig["routes"], readonly Route[]>();

function rawRoutesOf(
  { routes }: GatewayConfig,
  previous: GatewayConfig | null,
  { routes: change }: Candidate["difference"],
): readonly Route[] {
  const before = previous === null ? undefined : known.get(previous.routes);
  const gone = new Set([...change.removals, ...change.upserts.map(({ id }) => id)]);
  const all =
    before === undefined
      ? [...routes.values()]
      : [...before.filter(({ id }) => !gone.has(id)), ...change.upserts];
  const raw = all.filter(({ path_handling: handling }) => handling === "raw");
  known.set(routes, raw);
  return raw;
}

const matchesByPath = (route: Route): boolean =>
  matchedPaths(route).some(({ type, value }) => type !== "prefix" || value !== "/");

/** Finds those of the routes that have a host in common with another one, without comparing each with each. */
function hostIndex(routes: readonly Route[]): (other: Route) => Iterable<Route> {
  const at = new Map<string, Route[]>();
  const below = new Map<string, Route[]>();
  for (const route of routes)
    for (const host of route.hosts.map(normalHost)) {
      listIn(at, host).push(route);
      for (const pattern of patternsFor(host)) listIn(below, pattern).push(route);
    }
  return ({ hosts }) => {
    if (hosts.length === 0) return routes;
    const found = hosts
      .map(normalHost)
      .flatMap((host) => [
        ...(below.get(host) ?? []),
        ...patternsFor(host).flatMap((pattern) => at.get(pattern) ?? []),
      ]);
    return new Set(found);
  };
}

function listIn(lists: Map<string, Route[]>, key: string): Route[] {
  const list = lists.get(key) ?? [];
  if (list.length === 0) lists.set(key, list);
  return list;
}

/** A route that would get some of the requests by their path: what the gateway matches is not what the target reads. */
function otherRoute(route: Route, other: Route): Obstacle | null {
  const isInTheWay =
    other.id !== route.id &&
    meets(route.protocols, other.protocols) &&
    (route.listener_ids.length === 0 ||
      other.listener_ids.length === 0 ||
      meets(route.listener_ids, other.listener_ids)) &&
    !precedes(route, other);
  if (!isInTheWay) return null;
  return {
    collection: "routes",
    id: other.id,
    path: "paths",
    message: `route "${other.name ?? other.id}" matches some of its hosts by path, and which of both gets a request would depend on how the path is written: give them different hosts`,
  };
}

const meets = <T>(some: readonly T[], others: readonly T[]): boolean =>
  some.some((each) => others.includes(each));

const meetsHosts = (some: readonly string[], others: readonly string[]): boolean =>
  others.length === 0 || some.some((host) => others.some((other) => overlap(host, other)));

/** Whether the other route never gets a request that this one matches, whatever the path: see the order of `Router`. */
function precedes(route: Route, other: Route): boolean {
  // Where its listeners and schemes do not match, its paths are no matter either.
  if (!isOpen({ ...route, listener_ids: [] }) || route.priority < other.priority) return false;
  if (route.priority > other.priority) return true;
  return route.hosts.every((host) =>
    other.hosts.every(
      (each) =>
        !overlap(host, each) || (normalHost(host) !== normalHost(each) && isBelow(host, each)),
    ),
  );
}

/** Whether the pattern matches the host, or all hosts of the pattern `host`. */
const isBelow = (host: string, pattern: string): boolean =>
  patternsFor(normalHost(host)).includes(normalHost(pattern));

function* obstaclesOf(
  route: Route,
  config: GatewayConfig,
  catalogue: PluginCatalogue,
): Generator<Obstacle> {
  for (const listener of config.listeners.values()) {
    const { id, name, engine, http3 } = listener;
    if (!listener.enabled || (engine === "sluice" && !http3) || !isReachable(route, listener))
      continue;
    yield {
      collection: "listeners",
      id,
      path: http3 ? "http3" : "engine",
      message: `listener "${name}" does not know paths as they came: give it engine "sluice" without http3, or name other listeners in listener_ids of the route`,
    };
  }
  const services = new Set([route.service_id]);
  const seen = new Set<string>();
  // A plugin may choose another service, whose plugins then run too.
  for (let before = -1; before !== services.size + seen.size;) {
    before = services.size + seen.size;
    for (const plugin of config.plugins.values()) {
      if (seen.has(plugin.id) || !appliesTo(plugin, route, services)) continue;
      seen.add(plugin.id);
      const definition = catalogue.get(plugin.name);
      const texts = definition === undefined ? [] : textsOf(definition.config, plugin.config);
      for (const { kind, value } of texts) if (kind === "service") services.add(String(value));
      const conditions = texts.filter(({ kind }) => kind === "condition");
      const asksForPath = [plugin.when ?? {}, ...conditions.map(({ value }) => value)].some(
        (each) => hasPath(each as Condition),
      );
      const reason =
        definition?.ignoresPath !== true
          ? "reads the path or may do so"
          : asksForPath
            ? "has a condition on the path"
            : null;
      if (reason !== null)
        yield {
          collection: "plugins",
          id: plugin.id,
          path: "",
          message: `plugin ${plugin.name} "${plugin.label ?? plugin.id}" ${reason}: disable it, apply it to other routes, or exclude the hosts by when: {"not": {"host": ${JSON.stringify(route.hosts)}}}`,
        };
    }
  }
  for (const id of services) {
    const service = config.services.get(id ?? "");
    if (service !== undefined && service.path !== "")
      yield {
        collection: "services",
        id: service.id,
        path: "path",
        message: `service "${service.name}" has the path ${service.path}, out of which paths as they came could climb: use a service without a path`,
      };
  }
}

const appliesTo = (
  plugin: Plugin,
  { id, hosts }: Route,
  services: ReadonlySet<string | null>,
): boolean =>
  plugin.enabled &&
  plugin.stream_route_id === null &&
  (plugin.route_id ?? id) === id &&
  (plugin.service_id === null || services.has(plugin.service_id)) &&
  !isElsewhere(plugin.when, hosts);

/** Whether the condition holds for none of the hosts, whatever the request is. */
function isElsewhere(when: Condition | null, hosts: readonly string[]): boolean {
  if (when === null) return false;
  const { host, not } = when;
  if (host !== undefined && !meetsHosts(hosts, host)) return true;
  const { host: excluded = [], ...others } = not ?? {};
  return (
    Object.keys(others).length === 0 &&
    excluded.length > 0 &&
    hosts.every((each) => excluded.some((pattern) => isBelow(each, pattern)))
  );
}

const hasPath = ({ not, ...own }: Condition): boolean =>
  [own, not ?? {}].some(
    (members) => members.path !== undefined || members.ambiguous_path !== undefined,
  );
