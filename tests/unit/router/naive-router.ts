// The specification of route order, written as a scan over all routes; shares no code with the router.
import type { RouteSubject } from "../../../src/dataplane/router/compiled-match.ts";
import type { Route, ValueMatch } from "../../../src/model/route.ts";

type Rank = readonly (number | string)[];

export function naiveMatch(routes: readonly Route[], subject: RouteSubject): Route | null {
  let best: { readonly route: Route; readonly rank: Rank } | null = null;
  for (const route of routes) {
    const rank = rankOf(route, subject);
    if (rank !== null && (best === null || isBefore(rank, best.rank))) best = { route, rank };
  }
  return best?.route ?? null;
}

/** Smaller is tried first; null when the route does not match the request. */
function rankOf(route: Route, subject: RouteSubject): Rank | null {
  const host = hostRank(route, subject.host);
  const path = pathRank(route, subject.path);
  const conditions = conditionsOf(route, subject);
  if (!route.enabled || host === null || path === null || conditions.includes(false)) return null;
  return [-route.priority, ...host, ...path, -conditions.length, route.created_at, route.id];
}

function isBefore(a: Rank, b: Rank): boolean {
  const at = a.findIndex((part, index) => part !== b[index]);
  return at >= 0 && a[at]! < b[at]!;
}

function lowest(ranks: readonly (readonly number[])[]): readonly number[] | null {
  return [...ranks].sort((a, b) => a[0]! - b[0]! || a[1]! - b[1]!)[0] ?? null;
}

function hostRank(route: Route, host: string): readonly number[] | null {
  if (route.hosts.length === 0) return [2, 0];
  return lowest(
    route.hosts.flatMap((raw) => {
      const pattern = raw.toLowerCase().replace(/\.$/, "");
      if (pattern === host) return [[0, 0]];
      return pattern.startsWith("*.") && host.endsWith(pattern.slice(1))
        ? [[1, -pattern.length]]
        : [];
    }),
  );
}

function pathRank(route: Route, path: string): readonly number[] | null {
  if (route.paths.length + route.grpc_methods.length === 0) return [3, 0];
  return lowest([
    ...route.grpc_methods.flatMap(({ service, method }) => {
      const [, calledService, calledMethod, ...rest] = path.split("/");
      const isCall = calledService !== "" && calledMethod !== undefined && rest.length === 0;
      if (service === "") return isCall && calledMethod === method ? [[2, 0]] : [];
      if (calledService !== service) return [];
      if (method === "") return [[1, -service.length - 1]];
      return isCall && calledMethod === method ? [[0, 0]] : [];
    }),
    ...route.paths.flatMap(({ type, value }) => {
      if (type === "exact") return path === value ? [[0, 0]] : [];
      if (type === "regex") return new RegExp(value).test(path) ? [[2, 0]] : [];
      const bare = value.replace(/\/$/, "");
      if (bare === "") return [[3, 0]];
      return path === bare || path.startsWith(`${bare}/`) ? [[1, -bare.length]] : [];
    }),
  ]);
}

function conditionsOf(route: Route, subject: RouteSubject): boolean[] {
  const query = new URLSearchParams(subject.query);
  const cookies = new Map(
    (subject.header("cookie") ?? "").split("; ").map((pair) => pair.split("=") as [string, string]),
  );
  return [
    ...(route.methods.length > 0 ? [route.methods.includes(subject.method)] : []),
    ...(route.protocols.length === 1 ? [route.protocols.includes(subject.protocol)] : []),
    ...(route.listener_ids.length > 0 ? [route.listener_ids.includes(subject.listenerId)] : []),
    ...(route.client_cidrs.length > 0
      ? [
          route.client_cidrs.some(
            (cidr) => cidr === "0.0.0.0/0" || cidr === `${subject.clientAddress()}/32`,
          ),
        ]
      : []),
    ...route.headers.map((match) => valueHolds(match, subject.header(match.name.toLowerCase()))),
    ...route.query.map((match) => valueHolds(match, query.get(match.name))),
    ...route.cookies.map((match) => valueHolds(match, cookies.get(match.name) ?? null)),
  ];
}

function valueHolds(match: ValueMatch, value: string | null): boolean {
  if (match.op === "absent") return value === null;
  if (value === null) return false;
  if (match.op === "present") return true;
  return match.op === "equals" ? value === match.value : new RegExp(match.value).test(value);
}
