// Expresses sites of labels and variables as Traefik's dynamic configuration, whose converter adds them; knows no label.
import type { Document } from "../../control/body.ts";
import type { LabeledSite } from "./site.ts";

export interface SiteConfiguration {
  /** For `convertTraefik`, with `hasSites`. */
  readonly dynamic: Document;
  /** Routers to close, with the protection that has no equivalent. */
  readonly closed: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
}

interface SiteContainer {
  readonly name: string;
  readonly address: string;
  /** Port of its targets where a site names none. */
  readonly port: number;
}

export function sitesToDynamic(
  sites: readonly LabeledSite[],
  container: SiteContainer,
): SiteConfiguration {
  const routers = new Map<string, Document>();
  const services = new Map<string, Document>();
  const middlewares = new Map<string, Document>();
  const closed = new Map<string, string>();
  const names = new Map<string, string>();
  for (const [at, site] of sites.entries()) {
    const suffix = at === 0 ? "" : `-${at + 1}`;
    const name = `${site.hosts[0] ?? container.name}${site.path ?? ""}`;
    const router = routers.has(name) ? `${name}${suffix}` : name;
    const added = middlewaresOf(site);
    for (const [kind, settings] of Object.entries(added))
      middlewares.set(`${kind} of ${router}`, settings);
    const { address, port, scheme } = site;
    const host = address ?? container.address;
    const url = `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port ?? container.port}`;
    const service = names.get(url) ?? `${container.name}${suffix}`;
    names.set(url, service);
    services.set(service, { loadBalancer: { servers: [{ url }], ...transportOf(site) } });
    routers.set(router, {
      rule: ruleOf(site),
      service,
      entryPoints: [site.https ? "site-https" : "site-http"],
      middlewares: Object.keys(added).map((kind) => `${kind} of ${router}`),
    });
    if (site.lost !== null) closed.set(router, `${site.lost} of ${container.name}`);
  }
  return {
    closed,
    problems: [...new Set(sites.flatMap(({ problems }) => problems))],
    dynamic: {
      http: {
        routers: Object.fromEntries(routers),
        services: Object.fromEntries(services),
        middlewares: Object.fromEntries(middlewares),
        serversTransports: { unverified: { insecureSkipVerify: true } },
      },
    },
  };
}

/** Neither proxy verifies certificates of containers by default. */
const transportOf = ({ scheme }: LabeledSite): Document =>
  scheme === "https" ? { serversTransport: "unverified" } : {};

function ruleOf({ hosts, path }: LabeledSite): string {
  const named = hosts.filter((host) => !host.startsWith("*."));
  const terms = [
    ...named.map((host) => `Host(\`${host}\`)`),
    ...hosts
      .filter((host) => host.startsWith("*."))
      .map((host) => `HostRegexp(\`^.+${host.slice(1).replaceAll(".", "\\.")}$\`)`),
  ];
  const prefix = `PathPrefix(\`${path ?? "/"}\`)`;
  if (terms.length === 0) return prefix;
  const host = terms.length === 1 ? (terms[0] ?? "") : `(${terms.join(" || ")})`;
  return path === null ? host : `${host} && ${prefix}`;
}

function middlewaresOf({ users, headers, path, stripPath }: LabeledSite): Record<string, Document> {
  const logins = users.map(({ username, password_hash: hash }) => `${username}:${hash}`);
  return {
    ...(logins.length === 0 ? {} : { users: { basicAuth: { users: logins } } }),
    ...(headers === undefined ? {} : { headers: { headers: { customRequestHeaders: headers } } }),
    ...(stripPath && path !== null ? { path: { stripPrefix: { prefixes: [path] } } } : {}),
  };
}
