// Containers with labels as sites: which are one service, where they are reached, what they may have; sends no request.
import type { Document } from "../control/body.ts";
import type { Discovery } from "../model/discovery.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { ListedContainer } from "./docker-client.ts";
import { type LabelledSite, type ReadLabels, readLabels } from "./labels.ts";
import type { Site } from "./site.ts";

export interface ContainerContext {
  readonly rules: Discovery["docker"];
  readonly plugins: PluginCatalogue;
  /** Host name of the machine; in a container, Docker sets it to the beginning of the container's id. */
  readonly hostname: string;
  /** Ids of containers that are about to stop. */
  readonly stopping: ReadonlySet<string>;
}

interface Group {
  readonly name: string;
  readonly labels: ReadLabels;
  readonly members: readonly ListedContainer[];
}

const nameOf = ({ Names: [name = ""], Id }: ListedContainer): string =>
  name.replace(/^\//, "") || Id.slice(0, 12);

/** The sites of all containers, the oldest first, and what cannot be served. */
export function sitesOf(
  containers: readonly ListedContainer[],
  context: ContainerContext,
): readonly Site[] {
  const own = containers.find(
    ({ Id }) => context.hostname.length >= 12 && Id.startsWith(context.hostname),
  );
  const inOrder = containers.toSorted((a, b) => a.Created - b.Created || (a.Id < b.Id ? -1 : 1));
  return groupsOf(inOrder, context).flatMap((group) => ofGroup(group, own, context));
}

/** Containers of one service of compose or Swarm, or with equal labels, serve together. */
function groupsOf(
  containers: readonly ListedContainer[],
  { rules, plugins }: ContainerContext,
): readonly Group[] {
  const groups = new Map<
    string,
    { name: string; labels: ReadLabels; members: ListedContainer[] }
  >();
  for (const container of containers) {
    const labels = container.Labels ?? {};
    const ours = Object.entries(labels).filter(([key]) => /^sluice\./i.test(key));
    if (ours.length === 0) continue;
    const project = labels["com.docker.compose.project"];
    const service = labels["com.docker.compose.service"];
    const swarm = labels["com.docker.swarm.service.name"];
    const composed =
      project === undefined || service === undefined ? swarm : `${project}-${service}`;
    const key = composed ?? JSON.stringify(ours.toSorted());
    const group = groups.get(key);
    if (group !== undefined) group.members.push(container);
    else {
      const read = readLabels(labels, { plugins, allowedPlugins: rules.plugins });
      groups.set(key, {
        name: read.name ?? composed ?? nameOf(container),
        labels: read,
        members: [container],
      });
    }
  }
  return [...groups.values()];
}

function ofGroup(
  group: Group,
  own: ListedContainer | undefined,
  context: ContainerContext,
): readonly Site[] {
  const { labels, members, name } = group;
  const isOn = labels.isEnabled ?? (context.rules.expose_by_default && labels.sites.length > 0);
  if (!isOn) return [];
  const from = `container ${members.map(nameOf).join(", ")}`;
  const broken =
    labels.problems.length > 0 ? [{ from, document: {}, problems: labels.problems }] : [];
  if (labels.sites.length === 0 && broken.length === 0)
    return [
      {
        from,
        document: {},
        problems: ["label sluice.host is missing: it names the host of the site"],
      },
    ];
  return [
    ...broken,
    ...labels.sites.map((site) => {
      const numbered = site.number === "" ? name : `${name}-${site.number}`;
      return ofSite({ ...group, name: numbered, from, site }, own, context);
    }),
  ];
}

function ofSite(
  {
    name,
    from,
    site,
    members,
    labels,
  }: Group & { readonly from: string; readonly site: LabelledSite },
  own: ListedContainer | undefined,
  context: ContainerContext,
): Site {
  const { rules, stopping } = context;
  const foreign =
    rules.host_suffixes.length === 0
      ? undefined
      : site.hosts.find((host) => !isBelow(host, rules.host_suffixes));
  if (foreign !== undefined)
    return {
      from,
      document: {},
      problems: [`the settings do not allow labels to use the host ${foreign}`],
    };
  const problems: string[] = [];
  const targets: Document[] = [];
  for (const container of members) {
    const found = addressOf(container, { port: site.port, network: labels.network, own }, rules);
    if (typeof found === "string") problems.push(`${nameOf(container)}: ${found}`);
    else targets.push({ ...found, ...stateOf(container, stopping) });
  }
  if (targets.length === 0) return { from, document: {}, problems };
  const https = httpsOf(site, rules, problems);
  return { from, document: documentOf(name, site, { targets, https }), problems };
}

/** Unhealthy ones get no traffic, and those that stop no new requests. */
function stateOf({ Id, Status }: ListedContainer, stopping: ReadonlySet<string>): Document {
  if (/\((?:unhealthy|health: starting)\)/.test(Status)) return { enabled: false };
  return stopping.has(Id) ? { weight: 0 } : {};
}

const isBelow = (host: string, suffixes: readonly string[]) =>
  suffixes.some((suffix) => {
    const end = suffix.toLowerCase();
    return host === end || host.endsWith(`.${end}`);
  });

function httpsOf(
  { hosts, https }: LabelledSite,
  { certificate_suffixes: allowed }: Discovery["docker"],
  problems: string[],
): "auto" | "acme" | "off" {
  if (https === "off") return "off";
  const refused = hosts.find((host) => !isBelow(host, allowed));
  if (refused === undefined) return https ?? "auto";
  if (https !== null)
    problems.push(
      `no certificate for ${refused}: the settings list no domain for certificates that it is below`,
    );
  return "off";
}

/** An application where it says everything, else a service with a route. */
function documentOf(
  name: string,
  site: LabelledSite,
  {
    targets,
    https,
  }: { readonly targets: readonly Document[]; readonly https: "auto" | "acme" | "off" },
): Site["document"] {
  const { hosts, path, scheme, healthPath, plugins } = site;
  if (path === null && healthPath === null && scheme === "http" && plugins.length === 0)
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

interface Place {
  readonly host: string;
  readonly port: number;
}

/** Where the gateway reaches a container; a sentence when it does not. */
function addressOf(
  container: ListedContainer,
  {
    port: wanted,
    network,
    own,
  }: {
    readonly port: number | null;
    readonly network: string | null;
    readonly own: ListedContainer | undefined;
  },
  rules: Discovery["docker"],
): Place | string {
  const tcp = container.Ports.filter(({ Type }) => Type === "tcp");
  const exposed = [...new Set(tcp.map(({ PrivatePort }) => PrivatePort))].toSorted((a, b) => a - b);
  const port = wanted ?? (exposed.length === 1 ? exposed[0] : undefined);
  if (port === undefined)
    return exposed.length === 0
      ? "it exposes no port: add the label sluice.port"
      : `it exposes the ports ${exposed.join(", ")}: choose one by the label sluice.port`;
  const addresses = container.NetworkSettings?.Networks ?? {};
  const chosen = network ?? rules.network;
  if (chosen !== null) {
    const address = ipOf(addresses[chosen]);
    return address === null
      ? `it has no address in the network ${chosen}; its networks: ${Object.keys(addresses).join(", ") || "none"}`
      : { host: address, port };
  }
  const isRemote = !rules.endpoint?.startsWith("unix:");
  const shared = own === undefined ? null : Object.keys(own.NetworkSettings?.Networks ?? {});
  // On the machine itself, a process reaches the addresses of all bridges.
  if (!isRemote || shared !== null)
    for (const [name, entry] of Object.entries(addresses)) {
      const address = ipOf(entry);
      if (address !== null && (shared === null || shared.includes(name)))
        return { host: address, port };
    }
  const isHost = container.HostConfig?.NetworkMode === "host";
  const published = isHost
    ? port
    : tcp.find(({ PrivatePort, PublicPort }) => PrivatePort === port && PublicPort !== undefined)
        ?.PublicPort;
  if (published === undefined)
    return `the gateway shares no network with it, and port ${port} is not published`;
  const remote = isRemote
    ? URL.parse((rules.endpoint ?? "").replace(/^tcp:/, "http:"))?.hostname
    : undefined;
  return { host: rules.published_address ?? remote ?? "127.0.0.1", port: published };
}

const ipOf = (
  entry: { readonly IPAddress?: string; readonly GlobalIPv6Address?: string } | undefined,
): string | null => entry?.IPAddress || entry?.GlobalIPv6Address || null;
