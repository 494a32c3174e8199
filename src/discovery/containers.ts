// Running containers as sites: which are one service, and whose labels they have; sends no request.
import type { Document } from "../control/body.ts";
import type { SharedPorts } from "../import/traefik/entry-points.ts";
import { mergeDynamic } from "../import/traefik/merge.ts";
import type { Discovery, LabelDialect } from "../model/discovery.ts";
import type { TextCheck } from "../model/object-rules.ts";
import type { Steps } from "../pace.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { ListedContainer } from "./docker-client.ts";
import {
  dynamicOf,
  type ForeignContainer,
  type ForeignGroup,
  foreignSite,
} from "./foreign-labels.ts";
import { readLabels } from "./labels.ts";
import { ownSites } from "./own-labels.ts";
import { exposedPorts, reachOf } from "./reach.ts";
import { inTraefiksOrder, type RankedSite } from "./route-order.ts";
import type { Site } from "./site.ts";

export interface Discovered {
  readonly rules: Discovery["docker"];
  readonly plugins: PluginCatalogue;
  /** Host name of the machine; in a container, Docker sets it to the beginning of the container's id. */
  readonly hostname: string;
  /** Ids of containers that are about to stop. */
  readonly stopping: ReadonlySet<string>;
  /** Variables of a container by its id, where they are read. */
  readonly environments: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly sharedPorts: SharedPorts;
  readonly regex: TextCheck;
}

export interface ContainerContext extends Discovered {
  /** The container that the gateway itself runs in; undefined: none. */
  readonly own: ListedContainer | undefined;
  readonly nameOf: (container: ListedContainer) => string;
  /** Fields of its targets. */
  readonly stateOf: (container: ListedContainer) => Document;
}

interface Group {
  readonly name: string;
  readonly dialect: LabelDialect;
  readonly members: readonly ListedContainer[];
}

const nameOf = ({ Names: [name = ""], Id }: ListedContainer): string =>
  name.replace(/^\//, "") || Id.slice(0, 12);

/** The sites of all containers, the oldest first, and what cannot be served. */
export function* sitesOf(
  containers: readonly ListedContainer[],
  discovered: Discovered,
): Steps<readonly Site[]> {
  const { hostname, stopping } = discovered;
  const context: ContainerContext = {
    ...discovered,
    own: containers.find(({ Id }) => hostname.length >= 12 && Id.startsWith(hostname)),
    nameOf,
    stateOf: (container) => stateOf(container, stopping),
  };
  const inOrder = containers.toSorted((a, b) => a.Created - b.Created || (a.Id < b.Id ? -1 : 1));
  const groups = groupsOf(inOrder, discovered);
  const foreign = yield* foreignOf(groups, context);
  const sites: RankedSite[] = [];
  for (const group of groups) {
    if (group.dialect === "sluice")
      for (const site of sitesOfOwn(group, context)) sites.push({ site, ranked: [] });
    else sites.push(...(foreign.get(group) ?? []));
    yield;
  }
  return inTraefiksOrder(sites);
}

/** The language of a container's labels, the first of the settings that it uses; null: none. */
export function dialectOf(
  { Labels: labels }: ListedContainer,
  environment: Readonly<Record<string, string>> | undefined,
  dialects: readonly LabelDialect[],
): LabelDialect | null {
  const has = (pattern: RegExp) => Object.keys(labels ?? {}).some((key) => pattern.test(key));
  const uses: Readonly<Record<LabelDialect, () => boolean>> = {
    sluice: () => has(/^sluice\./i),
    traefik: () => has(/^traefik\./i),
    caddy: () => has(/^caddy(?:_\d+)?(?:\.|$)/),
    "nginx-proxy": () => Object.keys(environment ?? {}).some((name) => /^VIRTUAL_HOST/.test(name)),
  };
  return dialects.find((dialect) => uses[dialect]()) ?? null;
}

/** Unhealthy ones get no traffic, and those that stop no new requests. */
function stateOf({ Id, Status }: ListedContainer, stopping: ReadonlySet<string>): Document {
  if (/\((?:unhealthy|health: starting)\)/.test(Status)) return { enabled: false };
  return stopping.has(Id) ? { weight: 0 } : {};
}

/** Containers of one service of compose or Swarm, or with equal labels, serve together. */
function groupsOf(
  containers: readonly ListedContainer[],
  { rules, environments }: Discovered,
): readonly Group[] {
  const groups = new Map<
    string,
    { name: string; dialect: LabelDialect; members: ListedContainer[] }
  >();
  for (const container of containers) {
    const environment = environments.get(container.Id);
    const dialect = dialectOf(container, environment, rules.labels);
    if (dialect === null) continue;
    const labels = container.Labels ?? {};
    const project = labels["com.docker.compose.project"];
    const service = labels["com.docker.compose.service"];
    const swarm = labels["com.docker.swarm.service.name"];
    const composed =
      project === undefined || service === undefined ? swarm : `${project}-${service}`;
    const own = Object.entries({ ...labels, ...environment }).filter(([key]) =>
      /^(?:sluice\.|traefik\.|caddy|VIRTUAL_|LETSENCRYPT_)/i.test(key),
    );
    const key = composed ?? JSON.stringify(own.toSorted());
    const group = groups.get(key) ?? { name: composed ?? nameOf(container), dialect, members: [] };
    group.members.push(container);
    groups.set(key, group);
  }
  return [...groups.values()];
}

const fromOf = (members: readonly ListedContainer[]) =>
  `container ${members.map(nameOf).join(", ")}`;

function sitesOfOwn({ name, members }: Group, context: ContainerContext): readonly Site[] {
  const { plugins, rules } = context;
  const labels = readLabels(members[0]?.Labels ?? {}, { plugins, allowedPlugins: rules.plugins });
  return ownSites({ name: labels.name ?? name, from: fromOf(members), labels, members }, context);
}

/** Those of other proxies, whose routers may name what another container defines. */
function* foreignOf(
  groups: readonly Group[],
  context: ContainerContext,
): Steps<ReadonlyMap<Group, readonly RankedSite[]>> {
  const found = new Map<Group, readonly RankedSite[]>();
  const read: {
    readonly group: Group;
    readonly foreign: ForeignGroup;
    readonly own: NonNullable<ReturnType<typeof dynamicOf>>;
  }[] = [];
  for (const group of groups) {
    const { dialect, name, members } = group;
    yield;
    if (dialect === "sluice") continue;
    const from = fromOf(members);
    const reached = members.map((container) => reachedBy(container, context));
    const foreign = {
      name,
      from,
      dialect,
      members: reached.filter((one) => typeof one !== "string"),
    };
    const own = dynamicOf(foreign, context.rules.expose_by_default);
    const problems = reached.filter((one) => typeof one === "string");
    if (own !== null) read.push({ group, foreign, own });
    else if (foreign.members.length === 0)
      found.set(group, [{ site: { from, document: {}, problems }, ranked: [] }]);
  }
  const { dynamic: others } = mergeDynamic(read.map(({ own }) => own.dynamic));
  const addresses = new Set(
    read.flatMap(({ foreign }) => foreign.members.map(({ address }) => address)),
  );
  for (const { group, foreign, own } of read) {
    const all = { ...context, others, addresses };
    found.set(group, [yield* foreignSite(foreign, own, all)]);
    yield;
  }
  return found;
}

function reachedBy(
  container: ListedContainer,
  context: ContainerContext,
): ForeignContainer | string {
  const name = nameOf(container);
  const reach = reachOf(container, null, context);
  if (typeof reach === "string") return `${name}: ${reach}`;
  return {
    name,
    labels: container.Labels ?? {},
    environment: context.environments.get(container.Id) ?? {},
    address: reach.host,
    port: exposedPorts(container)[0] ?? null,
    portOf: reach.portOf,
    state: context.stateOf(container),
  };
}
