// Who serves which host: what others serve is theirs, and of two sites for one place the first one has it; knows no source.
import { labelOf } from "../control/reference.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Steps } from "../pace.ts";
import { type Place, placesOf, type Site, streamPlacesOf, wantedPlaces } from "./site.ts";

/** The places of all objects that a source does not manage, and of its sites so far. */
export class Places {
  /** Hosts of HTTP routes of others, each with its route. */
  readonly #others = new Map<string, string>();
  /** Server names of stream routes of others. */
  readonly #otherStreams = new Map<string, string>();
  /** Those at the ports of HTTPS listeners, where they take the connections of HTTP routes. */
  readonly #otherSecure = new Map<string, string>();
  /** Of the sites so far: `shop.example.com/api`, hosts, `shop.example.com 443`, and server names at the ports of HTTPS listeners. */
  readonly #places = new Map<string, string>();
  readonly #hosts = new Map<string, string>();
  readonly #streams = new Map<string, string>();
  readonly #secure = new Map<string, string>();
  readonly #securePorts: ReadonlySet<number>;

  constructor({ listeners }: Pick<GatewayConfig, "listeners">) {
    const secure = [...listeners.values()].filter((one) => one.enabled && one.protocol === "https");
    this.#securePorts = new Set(secure.map(({ port }) => port));
  }

  *addOthers(config: GatewayConfig, owner: string): Steps<void> {
    const isOther = (one: { readonly managed_by?: string; readonly enabled: boolean }) =>
      one.managed_by !== owner && one.enabled;
    for (const route of config.routes.values()) {
      yield;
      if (!isOther(route)) continue;
      for (const { host } of placesOf(route))
        if (host !== "*" && !this.#others.has(host))
          this.#others.set(host, labelOf(config, { collection: "routes", id: route.id }));
    }
    for (const route of config.stream_routes.values()) {
      yield;
      if (!isOther(route)) continue;
      const label = labelOf(config, { collection: "stream_routes", id: route.id });
      for (const { host, port } of streamPlacesOf(route)) {
        this.#otherStreams.set(host, label);
        if (this.#securePorts.has(port)) this.#otherSecure.set(host, label);
      }
    }
  }

  /** Why a site cannot have its places, a sentence; null: it can. */
  problemOf(site: Site): string | null {
    const places = wantedPlaces(site);
    const streams = (site.document["stream_routes"] ?? []).flatMap(streamPlacesOf);
    const taken =
      takenBy(places, this.#others) ??
      takenBy(places, this.#otherSecure) ??
      takenBy(streams, this.#others) ??
      takenBy(streams, this.#otherStreams);
    if (taken !== undefined)
      return `${taken.host} is served by ${taken.by}, which this source does not manage`;
    for (const { host, path } of places) {
      const by = this.#places.get(`${host}${path}`) ?? this.#secure.get(host);
      if (by !== undefined) return `${host}${path} is served already, by ${by}`;
    }
    for (const { host, port } of streams) {
      const ofHttp = this.#securePorts.has(port) ? this.#hosts.get(host) : undefined;
      const by = ofHttp ?? this.#streams.get(`${host} ${port}`);
      if (by !== undefined) return `${host} at port ${port} is served already, by ${by}`;
    }
    return null;
  }

  /** The site has its places. */
  claim(site: Site): void {
    const { from, document } = site;
    for (const { host, path } of wantedPlaces(site)) {
      this.#places.set(`${host}${path}`, from);
      this.#hosts.set(host, from);
    }
    for (const { host, port } of (document["stream_routes"] ?? []).flatMap(streamPlacesOf)) {
      this.#streams.set(`${host} ${port}`, from);
      if (this.#securePorts.has(port)) this.#secure.set(host, from);
    }
  }
}

interface Taken {
  readonly host: string;
  readonly by: string;
}

/** The first host of others that the places would take requests of, also by a wildcard above it; undefined: none. */
function takenBy(
  places: readonly Pick<Place, "host">[],
  others: ReadonlyMap<string, string>,
): Taken | undefined {
  const taken = (host: string): Taken => ({ host, by: others.get(host) ?? "" });
  for (const { host } of places) {
    if (others.has(host)) return taken(host);
    if (!host.startsWith("*.")) continue;
    const below = [...others.keys()].find((other) => other.endsWith(host.slice(1)));
    if (below !== undefined) return taken(below);
  }
  return undefined;
}
