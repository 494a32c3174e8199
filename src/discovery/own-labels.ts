// Containers with labels of Sluice as objects of the configuration, within the rules of discovery; sends no request.
import type { Document } from "../control/body.ts";
import { isAllowed, mayHave, noCertificate } from "./foreign-labels.ts";
import type { LabelledSite, ReadLabels } from "../import/compose/own-labels.ts";
import { exposedPorts, reachOf } from "./reach.ts";
import type { ContainerContext } from "./container-context.ts";
import type { ListedContainer } from "./docker-client.ts";
import type { Site } from "./site.ts";

export interface OwnGroup {
  readonly name: string;
  readonly from: string;
  readonly labels: ReadLabels;
  readonly members: readonly ListedContainer[];
}

/** Each site of a group of containers, and what cannot be served. */
export function ownSites(group: OwnGroup, context: ContainerContext): readonly Site[] {
  const { labels, name, from } = group;
  const isOn = labels.isEnabled ?? (context.rules.expose_by_default && labels.sites.length > 0);
  if (!isOn) return [];
  const broken = (problems: readonly string[]): Site => ({ from, document: {}, problems });
  const sites = labels.sites.map((site) => {
    const numbered = site.number === "" ? name : `${name}-${site.number}`;
    return siteOf({ ...group, name: numbered }, site, context);
  });
  if (labels.problems.length > 0) return [broken(labels.problems), ...sites];
  return sites.length > 0
    ? sites
    : [broken(["label sluice.host is missing: it names the host of the site"])];
}

function siteOf(group: OwnGroup, site: LabelledSite, context: ContainerContext): Site {
  const { name, from, members, labels } = group;
  const { rules } = context;
  const refused = (problems: readonly string[]): Site => ({ from, document: {}, problems });
  const foreign = site.hosts.find((host) => !mayHave(host, rules));
  if (foreign !== undefined)
    return refused([`the settings do not allow labels to use the host ${foreign}`]);
  const problems: string[] = [];
  const targets = members.flatMap((container): Document[] => {
    const found = placeOf(container, { site, network: labels.network }, context);
    if (typeof found !== "string") return [{ ...found, ...context.stateOf(container) }];
    problems.push(`${context.nameOf(container)}: ${found}`);
    return [];
  });
  if (targets.length === 0) return refused(problems);
  const https = httpsOf(site, context, problems);
  return { from, document: documentOf(name, site, { targets, https }), problems };
}

/** Host and port of a container; a sentence when there is none. */
function placeOf(
  container: ListedContainer,
  { site, network }: { readonly site: LabelledSite; readonly network: string | null },
  context: ContainerContext,
): { readonly host: string; readonly port: number } | string {
  const exposed = exposedPorts(container);
  const wanted = site.port ?? (exposed.length === 1 ? exposed[0] : undefined);
  if (wanted === undefined)
    return exposed.length === 0
      ? "it exposes no port: add the label sluice.port"
      : `it exposes the ports ${exposed.join(", ")}: choose one by the label sluice.port`;
  const reach = reachOf(container, network, context);
  if (typeof reach === "string") return reach;
  const port = reach.portOf(wanted);
  return port === null ? `port ${wanted} is not published` : { host: reach.host, port };
}

type Https = "auto" | "acme" | "off";

function httpsOf(
  { hosts, https }: LabelledSite,
  { rules }: ContainerContext,
  problems: string[],
): Https {
  if (https === "off") return "off";
  const refused = hosts.find((host) => !isAllowed(host, rules.certificate_suffixes, false));
  if (refused === undefined) return https ?? "auto";
  if (https !== null) problems.push(noCertificate(refused));
  return "off";
}

/** An application where it says everything, else a service with a route. */
function documentOf(
  name: string,
  site: LabelledSite,
  { targets, https }: { readonly targets: readonly Document[]; readonly https: Https },
): Site["document"] {
  const { hosts, path, scheme, healthPath, plugins } = site;
  const isPlain = path === null && healthPath === null && plugins.length === 0;
  if (isPlain && scheme === "http")
    return { applications: [{ name, domains: hosts, targets, https: { mode: https } }] };
  const active = { enabled: true, type: "http", path: healthPath ?? "/" };
  return {
    services: [
      {
        name,
        protocol: scheme,
        ...(healthPath === null ? {} : { health: { active } }),
        // The name in a container's certificate is seldom its address.
        ...(scheme === "https" ? { tls: { verify: false } } : {}),
      },
    ],
    targets: targets.map((target) => ({ service_id: name, ...target })),
    routes: [
      {
        name,
        service_id: name,
        hosts,
        paths: path === null || path === "/" ? [] : [{ type: "prefix", value: path }],
        strip_path: site.stripPath,
      },
    ],
    plugins: plugins.map((plugin) => ({
      ...plugin,
      label: `${name} ${plugin.name}`,
      service_id: name,
    })),
    certificates:
      https === "off" ? [] : [{ name: hosts[0] ?? name, source: "acme", domains: hosts }],
  };
}
