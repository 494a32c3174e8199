// The order of Traefik's routers over all containers of a source; knows no label.
import { prioritiesOf, type RankedRoute } from "../import/traefik/order.ts";
import type { Document } from "../control/body.ts";
import { type Site, wantedPlaces } from "./site.ts";

/** A site with the order of its routes in Traefik; empty: its labels are of another proxy, and its routes have their own order. */
export interface RankedSite {
  readonly site: Site;
  readonly ranked: readonly RankedRoute[];
}

/**
 * Routes get priorities as in Traefik, which compares the routers of all containers. Two limits: a wildcard that would precede a
 * host that another container has already refuses its site, because a host stays with the container that has it, and containers with labels of
 * others have no priorities to compare with.
 */
export function inTraefiksOrder(sites: readonly RankedSite[]): readonly Site[] {
  const routes = sites.flatMap(({ site: { document }, ranked }) => {
    const served = new Set((document["routes"] ?? []).map(({ id }) => id));
    return ranked.filter(({ id }) => served.has(id));
  });
  const found = prioritiesOf(routes.map(({ order }) => order));
  const priorities = new Map(routes.map(({ id }, at) => [id, found[at] ?? 0]));
  const older = new Map<string, Site>();
  const others = new Map<string, string>();
  for (const { site, ranked } of sites)
    if (ranked.length === 0) for (const { host } of wantedPlaces(site)) others.set(host, site.from);
  return sites.map(({ site, ranked }) => {
    const refusal = refusalOf(site, priorities, older);
    for (const { host } of wantedPlaces(site)) if (!older.has(host)) older.set(host, site);
    if (ranked.length === 0) return site;
    if (refusal !== null) return { ...site, document: {}, problems: [refusal, ...site.problems] };
    const document = { ...site.document, routes: prioritized(site, priorities) };
    return { ...site, document, problems: [...site.problems, ...mixed(site, priorities, others)] };
  });
}

type Priorities = ReadonlyMap<unknown, number>;
type Hosts = ReadonlyMap<string, string>;

const prioritized = ({ document }: Site, priorities: Priorities): readonly Document[] =>
  (document["routes"] ?? []).map(({ priority: _, ...route }) => {
    const priority = priorities.get(route["id"]) ?? 0;
    return priority === 0 ? route : { ...route, priority };
  });

function refusalOf(
  { document, owner }: Site,
  priorities: Priorities,
  older: ReadonlyMap<string, Site>,
): string | null {
  for (const { id, name, hosts } of document["routes"] ?? []) {
    if ((priorities.get(id) ?? 0) === 0) continue;
    for (const host of hosts as readonly string[]) {
      if (!host.startsWith("*.")) continue;
      const [below, other] =
        [...older].find(
          ([one, site]) => site.owner?.realm !== owner?.realm && one.endsWith(host.slice(1)),
        ) ?? [];
      if (below !== undefined)
        return `route ${String(name)}: ${host} would precede ${below} of ${other?.from}, which has it already: give its router a lower priority`;
    }
  }
  return null;
}

function mixed({ document }: Site, priorities: Priorities, others: Hosts): readonly string[] {
  return (document["routes"] ?? []).flatMap(({ id, name, hosts }) => {
    if ((priorities.get(id) ?? 0) === 0) return [];
    const shared = (hosts as readonly string[]).find((host) => others.has(host));
    if (shared === undefined) return [];
    return [
      `route ${String(name)}: it precedes all of ${others.get(shared)} at ${shared}, whose labels have no priority to compare with`,
    ];
  });
}
