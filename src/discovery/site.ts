// What a source finds: sites as configuration documents; knows no source.
import type { Position } from "../model/json-position.ts";
import type { Document } from "../control/body.ts";
import { portsOf } from "../model/stream-route.ts";
import type { Fact } from "../model/fact.ts";
import type { Claims, Owner, WantedClaim } from "./claims.ts";

/** What one container, or one file, adds to the configuration. */
export interface Site {
  /** In messages: `container web`, `web.yaml`. */
  readonly from: string;
  /** Objects by collection, as in a configuration file. References by name. */
  readonly document: Readonly<Record<string, readonly Document[]>>;
  /** One sentence each about what is not served, or not as its labels say. */
  readonly problems: readonly string[];
  /** Whose it is; absent: files claim nothing. */
  readonly owner?: SiteOwner;
  /** Line, from 1, of `routes[3].hosts[0]`; null: unknown. Absent: it is no file. */
  readonly positionOf?: (path: string) => Promise<Position | null>;
}

export interface SiteOwner extends Owner {
  /** What the ids of its objects derive from: not its name, which may change. */
  readonly root: string;
  /** Definitions that other containers may use. */
  readonly definitions: readonly WantedClaim[];
}

/** The host patterns that a site wants, with paths: `shop.example.com/api`. */
export interface Place {
  readonly host: string;
  /** Empty: all. */
  readonly path: string;
}

interface RouteLike {
  readonly hosts?: unknown;
  readonly paths?: unknown;
}

/** The places of a route. One without hosts has the host `*`. */
export function placesOf({ hosts, paths }: RouteLike): Place[] {
  const names = Array.isArray(hosts) && hosts.length > 0 ? (hosts as unknown[]) : ["*"];
  const list = Array.isArray(paths) && paths.length > 0 ? (paths as unknown[]) : [""];
  return names.flatMap((host) =>
    list.map((path) => ({
      host: String(host).toLowerCase(),
      path: typeof path === "string" ? path : String((path as { value?: unknown }).value ?? ""),
    })),
  );
}

/** The places that a site wants for HTTP. */
export const wantedPlaces = ({ document }: Site): Place[] => [
  ...(document["applications"] ?? []).flatMap(({ domains }) => placesOf({ hosts: domains })),
  ...(document["routes"] ?? []).flatMap(placesOf),
];

/** A TLS server name at a port, all of whose connections a stream route gets. */
export interface StreamPlace {
  readonly host: string;
  readonly port: number;
}

interface StreamLike {
  readonly sni?: unknown;
  readonly listen_port?: unknown;
  readonly port_range?: unknown;
}

/** The places of a stream route; none without server names, which then has the whole port. */
export function streamPlacesOf({ sni, listen_port, port_range }: StreamLike): StreamPlace[] {
  const ports = portsOf({
    listen_port: typeof listen_port === "number" ? listen_port : null,
    port_range: typeof port_range === "string" ? port_range : null,
  });
  const names = Array.isArray(sni) ? (sni as unknown[]).map(String) : [];
  return names.flatMap((name) => ports.map((port) => ({ host: name.toLowerCase(), port })));
}

/** Collections in which an object has its name: an application has a service and a route, too. */
export const namedBy = (collection: string): readonly string[] =>
  collection === "applications"
    ? ["applications", "services", "routes"]
    : NAMED.filter((name) => name === collection);

const NAMED = ["services", "routes", "stream_routes"];

/** What a site needs for itself: its hosts with all their paths, and the names of its objects. */
export function claimsOf({ owner, document }: Site): readonly WantedClaim[] {
  if (owner === undefined) return [];
  const places = [
    ...(document["applications"] ?? []).flatMap(({ domains }) => placesOf({ hosts: domains })),
    ...(document["routes"] ?? []).flatMap((route) => placesOf(route)),
  ];
  const names = (document["stream_routes"] ?? []).flatMap(streamPlacesOf);
  const own = (kind: WantedClaim["kind"], name: string, what: string): WantedClaim => ({
    kind,
    name,
    what,
    holder: kind === "host" ? owner.realm : owner.key,
    content: "",
  });
  return [
    ...[...places, ...names].map(({ host }) => own("host", host, host)),
    ...places.map(({ host, path }) => own("place", `${host}${path}`, `${host}${path}`)),
    ...Object.entries(document).flatMap(([collection, list]) =>
      list.flatMap(({ name }) =>
        namedBy(collection).map((of) =>
          own("name", `${of} ${String(name)}`, `the name ${String(name)}`),
        ),
      ),
    ),
    ...owner.definitions,
  ];
}

/** What the sites that are served claim, to be stored; null: nothing new. */
export function claimedBy(
  sites: readonly Site[],
  refused: ReadonlySet<number>,
  claims: Claims | undefined,
): Fact | null {
  if (claims === undefined) return null;
  const final = claims.again();
  const wanted = sites.flatMap(claimsOf);
  final.releaseNames(wanted);
  for (const [index, site] of sites.entries()) if (!refused.has(index)) final.take(claimsOf(site));
  const lost = sites.filter(
    ({ document }, index) =>
      refused.has(index) || Object.values(document).every(({ length }) => length === 0),
  );
  final.expire(
    wanted,
    lost.flatMap(({ owner }) => owner ?? []),
  );
  return final.fact();
}
