// Finds the object for each role in an application: its own, an existing one to adopt, or a new one.
import { type ApplicationPart, type PartCollection, referenceOf } from "../model/application.ts";
import { ApiError } from "../model/error.ts";
import type { Route } from "../model/route.ts";
import { matchedPaths } from "../snapshot/matched-paths.ts";
import type { Draft } from "../control/draft.ts";
import { labelOf } from "../control/reference.ts";
import { PartIndex } from "./part-index.ts";
import { type PluginPart, pluginParts } from "./plugin-parts.ts";
import { localName, selfSignedName, targetRole } from "./wanted-parts.ts";
import type { Planned } from "./planned-part.ts";

export interface FinderOptions {
  readonly draft: Draft;
  readonly application: Planned;
  readonly parts: readonly ApplicationPart[];
  /** Adopt existing objects; otherwise they cause an error. */
  readonly adopt: boolean;
  /** Default: one of the draft as it is. */
  readonly index?: PartIndex;
}

export class PartFinder {
  readonly #options: FinderOptions;
  readonly #index: PartIndex;
  readonly #ids = new Map<string, string>();
  readonly #own: ReadonlySet<string>;

  constructor(options: FinderOptions) {
    this.#options = options;
    this.#index = options.index ?? new PartIndex(options.draft.config);
    this.#own = new Set(options.parts.flatMap((part) => referenceOf(part)?.id ?? []));
  }

  /** Throws a 409 with the conflicting object. */
  readonly idOf = (role: string, collection: PartCollection): string => {
    const known = this.#ids.get(role);
    if (known !== undefined) return known;
    const part = this.#options.parts.find((other) => other.role === role);
    const id = (part && referenceOf(part)?.id) ?? this.#existing(role) ?? Bun.randomUUIDv7();
    this.#ids.set(role, id);
    if (collection === "routes") this.#requireFreeHosts(id);
    return id;
  };

  #existing(role: string): string | undefined {
    const { application } = this.#options;
    switch (role) {
      case "service":
        return this.#take(
          "services",
          this.#index.byName("services", application.name) ?? this.#routedService(),
        );
      case "route":
        return this.#take("routes", this.#route(application.name, application.domains));
      case "local_route":
        return this.#take("routes", this.#route(localName(application.name), []));
      case "certificate":
        return this.#certificate(this.#index.byName("certificates", application.name), "acme");
      case "self_signed":
        return this.#certificate(
          this.#index.byName("certificates", selfSignedName(application.name)),
          "self_signed",
        );
      case "local":
        return this.#certificate(
          this.#index.byName("certificates", localName(application.name)),
          "local_ca",
        );
      default: {
        const row = pluginParts.find((each) => each.role === role);
        return row === undefined ? this.#target(role) : this.#plugin(row);
      }
    }
  }

  /** A target of the application's own service is its own, also a manually created one. */
  #target(role: string): string | undefined {
    const service = this.idOf("service", "services");
    if (!this.#options.draft.config.services.has(service)) return undefined;
    return this.#index.targetsOf(service).find((target) => targetRole(target) === role)?.id;
  }

  #route(name: string, domains: readonly string[]): string | undefined {
    const { routes } = this.#options.draft.config;
    const named = this.#index.byName("routes", name);
    if (named !== undefined) return named;
    const there = [...routes.values()].filter((route) => this.#isForeign(route, domains));
    if (!this.#options.adopt) return there[0]?.id;
    const [first, second] = there.filter(matchesEverything);
    if (first === undefined || second === undefined) return first?.id;
    const labels = [first, second].map(({ id }) => this.#label("routes", id));
    throw new ApiError(
      409,
      `${labels.join(" and ")} serve names of the application: only one of them can become its route`,
    );
  }

  /** Adopts the service of an adopted route unless other routes use it. */
  #routedService(): string | undefined {
    const { draft, application, adopt, parts } = this.#options;
    if (!adopt || parts.length > 0) return undefined;
    const route = draft.config.routes.get(this.#route(application.name, application.domains) ?? "");
    const id = route?.service_id ?? null;
    if (id === null || this.#index.ownerOf(id) !== undefined) return undefined;
    const routes = [...draft.config.routes.values()].filter((other) => other.service_id === id);
    return routes.length === 1 ? id : undefined;
  }

  #certificate(id: string | undefined, source: string): string | undefined {
    const found = this.#options.draft.config.certificates.get(id ?? "");
    if (found === undefined || found.source === source) return this.#take("certificates", id);
    const label = this.#label("certificates", found.id);
    throw new ApiError(
      409,
      `${label} exists already; use it with https.mode "certificate", or rename the application`,
    );
  }

  #plugin({ plugin: name, scope }: PluginPart): string | undefined {
    const scopes = { service_id: null, route_id: null, consumer_id: null };
    const id =
      scope === "service_id" ? this.idOf("service", "services") : this.idOf("route", "routes");
    const wanted = { ...scopes, [scope]: id };
    const found = this.#index
      .pluginsNamed(name)
      .find(
        (plugin) =>
          plugin.service_id === wanted.service_id &&
          plugin.route_id === wanted.route_id &&
          plugin.consumer_id === null,
      );
    return this.#take("plugins", found?.id);
  }

  #take(collection: PartCollection, id: string | undefined): string | undefined {
    if (id === undefined || this.#own.has(id)) return id;
    const { application, adopt } = this.#options;
    const label = this.#label(collection, id);
    const owner = this.#index.ownerOf(id);
    // What it had before it was imported again is its own.
    if (owner !== undefined && owner.name !== application.name)
      throw new ApiError(409, `${label} belongs to application "${owner.name}"`);
    if (!adopt) throw new ApiError(409, `${this.#reason(collection, id)}; ?adopt=1 adopts it`);
    return id;
  }

  #reason(collection: PartCollection, id: string): string {
    const label = this.#label(collection, id);
    const route = collection === "routes" ? this.#options.draft.config.routes.get(id) : undefined;
    if (route === undefined || route.name === this.#options.application.name)
      return `${label} exists already`;
    const shared = route.hosts.find((host) => this.#has(host)) ?? "";
    return `${label} serves ${shared} already`;
  }

  /** The application has a route: no other one may match all requests of a new name. */
  #requireFreeHosts(id: string): void {
    const { draft, application, adopt } = this.#options;
    const made = this.#options.parts.flatMap(({ fields }) => fields["hosts"] ?? []);
    const served = [...made, ...(draft.config.routes.get(id)?.hosts ?? [])].map((host) =>
      String(host).toLowerCase(),
    );
    const added = application.domains.filter((domain) => !served.includes(domain));
    if (added.length === 0) return;
    for (const route of draft.config.routes.values()) {
      if (route.id === id || !this.#isForeign(route, added)) continue;
      if (adopt && !matchesEverything(route)) continue;
      const owner = this.#index.ownerOf(route.id);
      const whose = owner === undefined ? "" : ` of application "${owner.name}"`;
      const shared = route.hosts.find((host) => added.includes(host.toLowerCase()));
      throw new ApiError(
        409,
        `${this.#label("routes", route.id)}${whose} serves ${shared ?? ""} already`,
      );
    }
  }

  #isForeign(route: Route, domains: readonly string[]): boolean {
    if (!route.hosts.some((host) => domains.includes(host.toLowerCase()))) return false;
    const { managed_by } = this.#options.application;
    // Of a container that is gone: it stays, switched off, because a person's object refers to it.
    if (managed_by !== undefined && route.managed_by === managed_by && !route.enabled) return false;
    return !this.#own.has(route.id) && ![...this.#ids.values()].includes(route.id);
  }

  #has(host: string): boolean {
    return this.#options.application.domains.includes(host.toLowerCase());
  }

  #label(collection: PartCollection, id: string): string {
    return labelOf(this.#options.draft.config, { collection, id });
  }
}

/** A route that matches only some requests can coexist with another one for the same names. */
function matchesEverything(route: Route): boolean {
  const conditions = [route.methods, route.headers, route.query, route.cookies].flat();
  const narrows = conditions.length + route.client_cidrs.length + route.listener_ids.length > 0;
  const hasAllPaths =
    matchedPaths(route).length === 0 ||
    route.paths.some(({ type, value }) => type === "prefix" && value === "/");
  return !narrows && hasAllPaths && route.protocols.length === 2;
}
