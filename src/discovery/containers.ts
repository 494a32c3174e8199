// Running containers as sites: which are one service, and whose labels they have; sends no request.
import type { Discovered, ContainerContext } from "./container-context.ts";
import type { Document } from "../control/body.ts";
import type { LabelDialect } from "../model/discovery.ts";
import type { Steps } from "../pace.ts";
import type { Owner } from "./claims.ts";
import { Definitions } from "./definitions.ts";
import type { ListedContainer } from "./docker-client.ts";
import {
  dynamicOf,
  type ForeignContainer,
  type ForeignGroup,
  foreignSite,
} from "./foreign-labels.ts";
import { readLabels } from "../import/compose/own-labels.ts";
import { ownSites } from "./own-labels.ts";
import { exposedPorts, reachOf } from "./reach.ts";
import { keyOfContainer } from "./renames.ts";
import { inTraefiksOrder, type RankedSite } from "./route-order.ts";
import type { Site } from "./site.ts";

interface Group {
  readonly owner: Owner;
  readonly name: string;
  readonly dialect: LabelDialect;
  readonly members: readonly ListedContainer[];
}

const nameOf = ({ Names: [name = ""], Id }: ListedContainer): string =>
  name.replace(/^\//, "") || Id.slice(0, 12);

/** The sites of all containers, those with claims first, and what cannot be served. */
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
  const groups = inOrderOfClaims(groupsOf(inOrder, discovered), context);
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

/** Compose's project and service, or Swarm's service; null: none. */
function composedOf({
  Labels: labels,
}: ListedContainer): (Owner & { readonly name: string }) | null {
  const {
    "com.docker.compose.project": project,
    "com.docker.compose.service": service,
    "com.docker.swarm.service.name": swarm,
  } = labels ?? {};
  if (project !== undefined && service !== undefined)
    return {
      key: `compose ${project}/${service}`,
      realm: `compose ${project}`,
      name: `${project}-${service}`,
    };
  return swarm === undefined
    ? null
    : { key: `swarm ${swarm}`, realm: `swarm ${swarm}`, name: swarm };
}

/** Who has what a container claims. */
export function ownerOf(container: ListedContainer): Owner {
  const key = keyOfContainer(nameOf(container));
  return composedOf(container) ?? { key, realm: key };
}

/** Containers of one service of compose or Swarm serve together; all others alone, also with equal labels. */
function groupsOf(
  containers: readonly ListedContainer[],
  { rules, environments }: Discovered,
): readonly Group[] {
  const groups = new Map<string, Group & { readonly members: ListedContainer[] }>();
  for (const container of containers) {
    const dialect = dialectOf(container, environments.get(container.Id), rules.labels);
    if (dialect === null) continue;
    const owner = ownerOf(container);
    const name = composedOf(container)?.name ?? nameOf(container);
    const group = groups.get(owner.key) ?? { owner, name, dialect, members: [] };
    group.members.push(container);
    groups.set(owner.key, group);
  }
  return [...groups.values()];
}

/** First who has claims; before anything was claimed, who is served. Then by age. */
function inOrderOfClaims(groups: readonly Group[], context: ContainerContext): readonly Group[] {
  const { claims, served } = context;
  const holders = claims.holders();
  const isServed = (container: ListedContainer) => {
    const reach = reachOf(container, null, context);
    if (typeof reach === "string") return false;
    const ports = exposedPorts(container);
    return ports.length === 0
      ? served.has(reach.host)
      : ports.some((port) => served.has(`${reach.host} ${reach.portOf(port)}`));
  };
  const isFirst = ({ owner, members }: Group) =>
    holders.has(owner.key) || (served.size > 0 && members.some(isServed));
  const first = new Set(groups.filter(isFirst));
  return [...first, ...groups.filter((group) => !first.has(group))];
}

const fromOf = (members: readonly ListedContainer[]) =>
  `container ${members.map(nameOf).join(", ")}`;

function sitesOfOwn(group: Group, context: ContainerContext): readonly Site[] {
  const { owner, name, members } = group;
  const { plugins, rules, claims } = context;
  const labels = readLabels(members[0]?.Labels ?? {}, { plugins, allowedPlugins: rules.plugins });
  const sites = ownSites(
    { name: labels.name ?? name, from: fromOf(members), labels, members },
    context,
  );
  const root = claims.rootOf(owner);
  return withOthersSaid(
    sites.map((site, index) => ({
      ...site,
      owner: { ...owner, root: index === 0 ? root : `${root} ${index}`, definitions: [] },
    })),
    group,
    context,
  );
}

/** Labels of proxies only. */
const meantOf = ({ Labels, Id }: ListedContainer, { environments }: Discovered): unknown =>
  Object.entries({ ...Labels, ...environments.get(Id) })
    .filter(([key]) => /^(?:sluice\.|traefik\.|caddy|VIRTUAL_|LETSENCRYPT_)/i.test(key))
    .toSorted();

/** Says which containers of a service have other labels than the first one. */
function withOthersSaid(
  [first, ...rest]: readonly Site[],
  { members: [decides, ...others] }: Group,
  context: ContainerContext,
): readonly Site[] {
  if (first === undefined || decides === undefined) return [];
  const own = meantOf(decides, context);
  const unlike = others.filter((other) => !Bun.deepEquals(meantOf(other, context), own));
  const problems = unlike.map(
    (other) => `${nameOf(other)} has other labels than ${nameOf(decides)}, which decides`,
  );
  return [{ ...first, problems: [...first.problems, ...problems] }, ...rest];
}

interface ReadGroup {
  readonly group: Group;
  readonly foreign: ForeignGroup;
  readonly own: NonNullable<ReturnType<typeof dynamicOf>>;
}

/** Those of other proxies, whose routers may name what another container defines. */
function* foreignOf(
  groups: readonly Group[],
  context: ContainerContext,
): Steps<ReadonlyMap<Group, readonly RankedSite[]>> {
  const found = new Map<Group, readonly RankedSite[]>();
  const read: ReadGroup[] = [];
  const { rules, plugins, regex, sharedPorts, claims, source } = context;
  for (const group of groups) {
    const { dialect, name, members, owner } = group;
    yield;
    if (dialect === "sluice") continue;
    const from = fromOf(members);
    const reached = members.map((container) => reachedBy(container, context));
    const foreign = {
      name,
      from,
      dialect,
      root: `${source} ${claims.rootOf(owner)}`,
      members: reached.filter((one) => typeof one !== "string"),
    };
    const own = dynamicOf(foreign, rules.expose_by_default);
    const problems = reached.filter((one) => typeof one === "string");
    if (own !== null) read.push({ group, foreign, own });
    else if (foreign.members.length === 0)
      found.set(group, [
        {
          site: { from, document: {}, problems, owner: { ...owner, root: "", definitions: [] } },
          ranked: [],
        },
      ]);
  }
  const definitions = new Definitions(
    read.map(({ group, own }) => ({ owner: group.owner, dynamic: own.dynamic })),
  );
  const realms = Map.groupBy(read, ({ group }) => group.owner.realm);
  for (const { group, foreign, own } of read) {
    const realm = realms.get(group.owner.realm) ?? [];
    const { others, problems } = definitions.for(group.owner, own.dynamic);
    const { site, ranked } = yield* foreignSite(foreign, own, {
      rules,
      plugins,
      regex,
      others,
      sharedPorts,
      members: realm.flatMap((one) => one.foreign.members),
    });
    const owner = {
      ...group.owner,
      root: claims.rootOf(group.owner),
      definitions: definitions.claimsOf(group.owner, own.dynamic),
    };
    const whole = { ...site, owner, problems: [...problems, ...site.problems] };
    found.set(
      group,
      withOthersSaid([whole], group, context).map((each) => ({ site: each, ranked })),
    );
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
