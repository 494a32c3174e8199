// Converts servers: where they listen, the hosts that they serve, and the order in which nginx selects one; knows no plugin.
import type { Document } from "../../control/body.ts";
import { addCertificates } from "./certificates.ts";
import { endpointOf, type Listen, listensOf } from "./listens.ts";
import type { NginxContext } from "./nginx.ts";
import { addSites } from "./routes.ts";
import {
  allNames,
  groupsOf,
  namesOf,
  type RankedGroup,
  type ServerNames,
  withoutTaken,
} from "./server-names.ts";
import { type Site, sitesOf } from "./sites.ts";
import { Level, shownPlace } from "./tree.ts";

interface Server {
  readonly level: Level;
  readonly listens: readonly Listen[];
  readonly names: ServerNames;
  readonly label: string;
  readonly at: number;
}

/** A server at one or several of its addresses. */
interface Virtual {
  readonly server: Server;
  /** `http`, `https`, or another address; both of the first two together. */
  readonly endpoints: readonly string[];
  readonly listen: Listen;
  readonly names: ServerNames;
  readonly isDefault: boolean;
}

export async function addServers(http: Level, context: NginxContext): Promise<void> {
  const { report } = context.output;
  const servers: Server[] = [];
  for (const directive of http.own("server")) {
    const level = new Level(directive, http);
    const label = `server at ${shownPlace(directive.place)}`;
    const names = namesOf(level, report);
    const listens = listensOf(level, report);
    if (listens !== null) servers.push({ level, listens, names, label, at: servers.length });
    else
      report.omitted(
        `${label} (${allNames(names).join(" ") || "without a name"})`,
        "none of its addresses can be imported",
      );
  }
  const placed: Placed[] = [];
  for (const virtual of virtualsOf(servers, context))
    placed.push(...(await placedOf(virtual, servers, context)));
  addPlaced(placed, context);
}

/** Of each endpoint the names that its first server has, and the server for all other hosts. */
function virtualsOf(servers: readonly Server[], { output }: NginxContext): readonly Virtual[] {
  const taken = new Map<string, Set<string>>();
  const defaults = defaultsOf(servers);
  const all = servers.flatMap((server) => {
    const own = new Map(server.listens.map((listen) => [endpointOf(listen), listen]));
    const found = [...own].map(([endpoint, listen]): Virtual => {
      const known = taken.get(endpoint) ?? new Set();
      taken.set(endpoint, known);
      const names = withoutTaken(server.names, known);
      const free = new Set(allNames(names));
      const lost = allNames(server.names).filter((name) => !free.has(name));
      if (lost.length > 0)
        output.report.omitted(
          `server_name ${lost.join(" ")} of ${server.label}`,
          "nginx ignores it: an earlier server has the same name",
        );
      for (const name of allNames(names)) known.add(name);
      return {
        server,
        endpoints: [endpoint],
        listen,
        names,
        isDefault: isDefaultAt({ server, endpoint, names }, defaults.get(endpoint)),
      };
    });
    return merged(found);
  });
  reportOtherHosts(all, output.report);
  return all;
}

/** The server for all other hosts, at each endpoint. */
function defaultsOf(servers: readonly Server[]): ReadonlyMap<string, Default> {
  const found = new Map<string, Default>();
  for (const server of servers)
    for (const listen of server.listens) {
      const endpoint = endpointOf(listen);
      const known = found.get(endpoint);
      if (known === undefined || (listen.isDefault && !known.isExplicit))
        found.set(endpoint, { server, isExplicit: listen.isDefault });
    }
  return found;
}

interface Default {
  readonly server: Server;
  readonly isExplicit: boolean;
}

/** Without the directive the first server serves all other hosts: the gateway does so only where that is its purpose. */
const isDefaultAt = (
  { server, endpoint, names }: { server: Server; endpoint: string; names: ServerNames },
  found: Default | undefined,
): boolean =>
  found?.server === server && (found.isExplicit || isOwn(endpoint) || allNames(names).length === 0);

const isOwn = (endpoint: string): boolean => endpoint !== "http" && endpoint !== "https";

/** One for HTTP and HTTPS where both are the same. */
function merged(all: readonly Virtual[]): readonly Virtual[] {
  const http = all.find(({ endpoints: [one] }) => one === "http");
  const https = all.find(({ endpoints: [one] }) => one === "https");
  if (http === undefined || https === undefined) return all;
  if (http.isDefault !== https.isDefault || !Bun.deepEquals(http.names, https.names)) return all;
  const rest = all.filter((each) => each !== http && each !== https);
  return [{ ...https, endpoints: ["http", "https"] }, ...rest];
}

function reportOtherHosts(all: readonly Virtual[], report: NginxContext["output"]["report"]): void {
  for (const endpoint of ["http", "https"]) {
    const there = all.filter(({ endpoints }) => endpoints.includes(endpoint));
    const [first] = there;
    if (first === undefined || there.some(({ isDefault }) => isDefault)) continue;
    report.changed(
      `unknown hosts over ${endpoint.toUpperCase()}`,
      `${first.server.label} served them: here settings.default_site decides`,
    );
  }
}

interface Placed {
  readonly virtual: Virtual;
  readonly group: RankedGroup;
  readonly sites: readonly Site[];
  readonly fields: Document;
  readonly serverName: string | null;
}

/** Own listeners go first: their requests are of no other server. */
const OWN = 10_000_000;

async function placedOf(
  virtual: Virtual,
  servers: readonly Server[],
  context: NginxContext,
): Promise<readonly Placed[]> {
  const { server, names, isDefault, listen, endpoints } = virtual;
  const { output } = context;
  const others =
    names.suffixes.length === 0
      ? []
      : servers.filter((other) => other !== server).flatMap((other) => allNames(other.names));
  const isElsewhere = endpoints.some(isOwn);
  const groups = groupsOf(names, {
    others,
    at: server.at,
    report: output.report,
    label: server.label,
  });
  const rest: RankedGroup = {
    hosts: [],
    headers: [],
    isDefault: true,
    name: isElsewhere ? `port ${listen.port}` : "default server",
    rank: 0,
  };
  const all = isDefault ? [...groups, rest] : groups;
  if (all.length === 0) {
    const other = allNames(server.names).length > 0;
    if (!other)
      output.report.omitted(server.label, "it has no name, and is not the default server");
    return [];
  }
  const serverName = names.exact[0] ?? null;
  const hosts = {
    exact: names.exact,
    isAll: !isDefault && allNames(names).length === names.exact.length,
  };
  const sites = await sitesOf(server.level, { serverName, hosts }, context);
  if (listen.hasTls) addCertificates(server.level, context);
  const fields = isElsewhere
    ? { listener_ids: [addListener(listen, context)] }
    : endpoints.length === 1
      ? { protocols: endpoints }
      : {};
  return all.map((group) => ({
    virtual,
    group: isElsewhere ? { ...group, rank: group.rank + OWN } : group,
    sites,
    fields,
    serverName,
  }));
}

function addListener(
  { address, port, hasTls }: Listen,
  { output, listeners }: NginxContext,
): string {
  const where = address === null ? `port ${port}` : `${address}, port ${port}`;
  const key = `${where} ${hasTls}`;
  const known = listeners.get(key);
  if (known !== undefined) return known;
  output.report.changed(
    where,
    "became a disabled listener: enable it when nginx no longer listens there",
  );
  const id = output.add(
    "listeners",
    { key, label: where },
    {
      name: output.name("listeners", `nginx-${port}`),
      port,
      protocol: hasTls ? "https" : "http",
      enabled: false,
      ...(address === null ? {} : { address }),
    },
  );
  listeners.set(key, id);
  return id;
}

const LOWEST = -1_000_000;

/** Each rank gets priorities above those of all lower ranks. */
function addPlaced(placed: readonly Placed[], context: NginxContext): void {
  const sizes = new Map<number, number>();
  for (const { group, sites } of placed)
    if (group.rank > 0) sizes.set(group.rank, Math.max(sizes.get(group.rank) ?? 0, sites.length));
  const bases = new Map<number, number>([[0, LOWEST]]);
  let base = 0;
  for (const rank of [...sizes.keys()].toSorted((a, b) => a - b)) {
    bases.set(rank, base);
    base += sizes.get(rank) ?? 0;
  }
  for (const { virtual, group, sites, fields, serverName } of placed)
    addSites(
      sites,
      {
        group,
        fields,
        serverName,
        base: bases.get(group.rank) ?? 0,
        key: `${virtual.server.label} ${virtual.endpoints.join(" ")}`,
      },
      context,
    );
}
