// Converts the sites of a server to routes with plugins and services; knows no port.
import type { Document } from "../../control/body.ts";
import type { PathMatch } from "../../model/route-match.ts";
import type { AccessPlugin } from "./access.ts";
import { requestHeadersOf, responseHeadersOf } from "./headers.ts";
import { extrasOf } from "./limits.ts";
import type { NginxContext } from "./nginx.ts";
import { serviceOf, timeoutsOf } from "./proxy.ts";
import { pathChangeOf, pathsOf, type Standing, standingsOf } from "./site-paths.ts";
import type { Site } from "./sites.ts";

/** Hosts of a server that have the same conditions. */
export interface HostGroup {
  readonly hosts: readonly string[];
  /** Conditions on the header Host. */
  readonly headers: readonly Document[];
  /** Whether hosts that no route names reach it. */
  readonly isDefault: boolean;
  /** Its name in those of the routes. */
  readonly name: string;
}

interface Placement {
  readonly group: HostGroup;
  /** Fields of all routes: listeners, schemes. */
  readonly fields: Document;
  /** Priority of the last site. */
  readonly base: number;
  readonly serverName: string | null;
  /** Unique in the source. */
  readonly key: string;
}

interface SitePlace extends Placement {
  readonly standing: Standing;
  readonly priority: number;
  /** Exact paths of the other sites. */
  readonly exact: ReadonlySet<string>;
}

export function addSites(
  sites: readonly Site[],
  placement: Placement,
  context: NginxContext,
): void {
  const standings = standingsOf(sites);
  const exact = new Set(sites.flatMap(({ path }) => (path?.kind === "exact" ? [path.value] : [])));
  for (const [at, site] of sites.entries()) {
    const standing = standings[at] ?? {
      isGuarded: true,
      isExposed: true,
      deniesAmbiguous: true,
    };
    const priority = placement.base + sites.length - 1 - at;
    new RouteMaker(site, { ...placement, standing, priority, exact }, context).add();
  }
}

class RouteMaker {
  readonly #site: Site;
  readonly #place: SitePlace;
  readonly #context: NginxContext;

  constructor(site: Site, place: SitePlace, context: NginxContext) {
    this.#site = site;
    this.#place = place;
    this.#context = context;
  }

  add(): void {
    const { label, path } = this.#site;
    const { group, standing } = this.#place;
    const { output } = this.#context;
    const hosts = this.#hosts();
    if (hosts === null || !this.#hasScheme()) return;
    const chosen = pathsOf(path, standing);
    if (chosen === null) {
      output.report.omitted(
        `${label} for ${group.name}`,
        "no route can match its paths: other routes may match its requests",
      );
      return;
    }
    const name = output.name("routes", `${group.name} ${pathName(path?.value ?? "")}`.trim());
    const { id, lost } = this.#addRoute(name, hosts, chosen.paths);
    this.#addSlashRedirect(name, hosts, chosen.paths);
    for (const what of [...lost, ...(chosen.lost === null ? [] : [`${chosen.lost} of ${label}`])])
      output.loseProtection({ scope: { route_id: id }, what });
  }

  /** Null: none of its hosts is one of the server. */
  #hosts(): readonly string[] | null {
    const { hosts, isDefault, headers } = this.#place.group;
    const wanted = this.#site.conditions.hosts;
    if (wanted === undefined) return hosts;
    if (isDefault || headers.length > 0) return wanted;
    const found = [
      ...new Set([
        ...wanted.filter((host) => hosts.some((own) => covers(own, host))),
        ...hosts.filter((own) => wanted.some((host) => covers(host, own))),
      ]),
    ];
    return found.length === 0 ? null : found;
  }

  #addRoute(name: string, hosts: readonly string[], paths: readonly PathMatch[]) {
    const { content, access, conditions, label, key, path, level } = this.#site;
    const { group, fields, priority, standing, serverName, key: serverKey } = this.#place;
    const { output } = this.#context;
    const routeLabel = `route ${name}`;
    const options = { serverName, report: output.report };
    const isProxied = content.kind === "proxy";
    const headers = isProxied ? requestHeadersOf(content.level, options) : null;
    const serviceId =
      isProxied && headers !== null
        ? serviceOf({ ...content, host: headers.host }, this.#context)
        : null;
    const change = isProxied ? pathChangeOf(content, path, paths) : null;
    const id = output.add(
      "routes",
      { key: `${serverKey} ${group.name} ${key}`, label: routeLabel, protects: standing.isGuarded },
      {
        name,
        service_id: serviceId,
        priority,
        ...(hosts.length === 0 ? {} : { hosts }),
        ...this.#headers(),
        ...(paths.length === 0 ? {} : { paths }),
        ...fields,
        ...(conditions.methods === undefined ? {} : { methods: conditions.methods }),
        ...this.#protocols(),
        ...change?.fields,
        ...(isProxied ? { websocket: headers?.isWebSocket ?? false, ...timeoutsOf(level) } : {}),
      },
    );
    const lost = [...access.lost];
    if (content.kind === "closed") {
      output.report.omitted(
        `${label} for ${group.name}`,
        `${content.why}: responds with ${content.status}`,
      );
      this.#plugin(id, { name: "respond", config: { status: content.status }, what: label });
      return { id, lost: [] };
    }
    output.report.imported(routeLabel, `made from ${label}`);
    if (content.kind === "response") {
      this.#addResponse(id, content);
      const isGiving = content.name === "respond" && Number(content.config["status"]) < 300;
      return { id, lost: isGiving ? lost : [] };
    }
    if (content.level !== level)
      output.report.changed(
        label,
        "files are not served: all requests go to the target of try_files",
      );
    if (serviceId === null) lost.push(`proxy_pass of ${label}`);
    if (change?.lost != null) lost.push(`${change.lost} in proxy_pass of ${label}`);
    if (change?.keepsQuery === true)
      output.report.changed(routeLabel, "the target gets the query of the request");
    this.#addPolicies(id, access.plugins, change?.isLiteral ?? false);
    for (const extra of extrasOf(level, { isProxied, context: this.#context }))
      this.#plugin(id, { ...extra, protects: false });
    const changes = headers?.changes ?? null;
    const response = responseHeadersOf(content.level, options);
    this.#addTransform(id, { request: changes, add: response.add, remove: response.remove });
    return { id, lost };
  }

  /** nginx redirects `/open` to `/open/`; without the route, `/open` would be open where `/` is not. */
  #addSlashRedirect(name: string, hosts: readonly string[], paths: readonly PathMatch[]): void {
    const { path, content, key, label } = this.#site;
    const { group, fields, priority, standing, key: serverKey } = this.#place;
    const value = path?.value ?? "";
    const isNeeded = standing.isExposed && content.kind === "proxy" && paths[0]?.type === "prefix";
    if (!isNeeded || path?.kind !== "prefix" || !value.endsWith("/")) return;
    if (this.#place.exact.has(value.slice(0, -1))) return;
    const { output } = this.#context;
    const own = output.name("routes", `${name} slash`);
    const routeLabel = `route ${own}`;
    const id = output.add(
      "routes",
      { key: `${serverKey} ${group.name} ${key} slash`, label: routeLabel, protects: true },
      {
        name: own,
        priority,
        ...(hosts.length === 0 ? {} : { hosts }),
        ...this.#headers(),
        paths: [{ type: "exact", value: value.slice(0, -1) }],
        ...fields,
      },
    );
    output.report.imported(routeLabel, `made from ${label}: redirects to the path with a slash`);
    output.plugin({
      name: "redirect",
      config: { to: value.replaceAll("$", "%24"), status: 301, keep_path: false },
      protects: true,
      key: `${serverKey} ${group.name} ${key} slash`,
      what: `redirect of ${routeLabel}`,
      scope: { route_id: id },
    });
  }

  #hasScheme(): boolean {
    const own = this.#place.fields["protocols"] as readonly string[] | undefined;
    const { protocols } = this.#site.conditions;
    return (
      own === undefined || protocols === undefined || protocols.some((one) => own.includes(one))
    );
  }

  #headers(): Document {
    const { group } = this.#place;
    const all = [...group.headers, ...(this.#site.conditions.headers ?? [])];
    const headers = [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];
    return headers.length === 0 ? {} : { headers };
  }

  #protocols(): Document {
    const { protocols } = this.#site.conditions;
    const own = this.#place.fields["protocols"] as readonly string[] | undefined;
    if (protocols === undefined || own !== undefined) return {};
    return { protocols };
  }

  #addResponse(id: string, content: Site["content"] & { readonly kind: "response" }): void {
    const { label, level } = this.#site;
    const { report } = this.#context.output;
    const { name, config } = content;
    const { add } = responseHeadersOf(level, { serverName: this.#place.serverName, report });
    if (name === "redirect") {
      this.#addTransform(id, { request: null, add, remove: [] });
      this.#plugin(id, { name, config, what: label });
      return;
    }
    const isFixed = ([, value]: readonly [string, string]) => !value.includes("${");
    const [fixed, others] = [isFixed, (one: readonly [string, string]) => !isFixed(one)].map(
      (test) => Object.fromEntries(Object.entries(add).filter(test)),
    );
    this.#addTransform(id, { request: null, add: others ?? {}, remove: [] });
    // The type of the body is often set this way.
    const headers = { ...(config["headers"] as Document), ...canonical(fixed ?? {}) };
    this.#plugin(id, { name, config: { ...config, headers }, what: label });
  }

  #addPolicies(id: string, plugins: readonly AccessPlugin[], isLiteral: boolean): void {
    const { label } = this.#site;
    const isAmbiguous = this.#place.standing.deniesAmbiguous || isLiteral;
    const policy = plugins.find(({ name }) => name === "access-policy");
    const rules = (policy?.config["rules"] ?? []) as readonly Document[];
    if (isAmbiguous) {
      const why = "paths with parameters, repeated or escaped slashes get 403";
      this.#context.output.report.changed(label, why);
    }
    const first = isAmbiguous ? [{ when: { ambiguous_path: true }, action: "deny" }] : [];
    const all = [...first, ...rules];
    if (all.length > 0 || policy !== undefined)
      this.#plugin(id, {
        name: "access-policy",
        config: { ...policy?.config, rules: all },
        what: policy?.what ?? `similar paths of ${label}`,
        protects: true,
      });
    for (const plugin of plugins)
      if (plugin !== policy) this.#plugin(id, { ...plugin, protects: true });
  }

  #addTransform(
    id: string,
    {
      request,
      add,
      remove,
    }: {
      readonly request: Document | null;
      readonly add: Readonly<Record<string, string>>;
      readonly remove: readonly string[];
    },
  ): void {
    const response = {
      ...(Object.keys(add).length > 0 ? { add } : {}),
      ...(remove.length > 0 ? { remove } : {}),
    };
    const config = {
      ...(request === null ? {} : { request: { headers: request } }),
      ...(Object.keys(response).length > 0 ? { response: { headers: response } } : {}),
    };
    if (Object.keys(config).length === 0) return;
    // Without it, clients could send headers that identify them.
    const protects = request !== null;
    this.#plugin(id, {
      name: "transform",
      config,
      what: `headers of ${this.#site.label}`,
      protects,
    });
  }

  #plugin(
    id: string,
    { name, config, what, protects = true }: AccessPlugin & { readonly protects?: boolean },
  ): void {
    const { group, key } = this.#place;
    this.#context.output.plugin({
      name,
      config,
      protects,
      key: `${key} ${group.name} ${this.#site.key}`,
      what: `${what} for ${group.name}`,
      scope: { route_id: id },
    });
  }
}

const covers = (host: string, other: string): boolean =>
  host === other || (host.startsWith("*.") && other.endsWith(host.slice(1)));

const canonical = (headers: Readonly<Record<string, string>>): Document =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name.toLowerCase() === "content-type" ? "Content-Type" : name,
      value,
    ]),
  );

/** The path in the name of a route. */
const pathName = (value: string): string =>
  value
    .replaceAll(/[^A-Za-z0-9._~-]+/g, "-")
    .replace(/^[-.]+|-+$/g, "")
    .slice(0, 40);
