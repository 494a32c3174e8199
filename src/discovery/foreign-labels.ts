// Containers with labels or variables of other proxies, as their importers convert them, within the rules of discovery; asks no container.
import { isDocument, type Document } from "../control/body.ts";
import { caddyLabelSites } from "../import/compose/caddy-labels.ts";
import { nginxProxySites } from "../import/compose/nginx-proxy.ts";
import { sitesToDynamic } from "../import/compose/site-routers.ts";
import { dropInvalidSteps } from "../import/drop-invalid.ts";
import { Output } from "../import/output.ts";
import { Report } from "../import/report.ts";
import type { SharedPorts } from "../import/traefik/entry-points.ts";
import { labelsToDynamic } from "../import/traefik/labels.ts";
import { mergeDynamic } from "../import/traefik/merge.ts";
import { convertTraefik } from "../import/traefik/traefik.ts";
import type { Discovery, LabelDialect } from "../model/discovery.ts";
import { ApiError } from "../model/error.ts";
import type { TextCheck } from "../model/object-rules.ts";
import type { Steps } from "../pace.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { RankedSite } from "./route-order.ts";
import type { Site } from "./site.ts";

/** A container, as its labels need it. */
export interface ForeignContainer {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  readonly address: string;
  /** Port where no label names one; null: unknown. */
  readonly port: number | null;
  /** The port at `address` of one of the container; null: it is not reachable. */
  readonly portOf: (port: number) => number | null;
  /** Fields of its targets, such as `enabled`. */
  readonly state: Document;
}

/** Containers of one service. */
export interface ForeignGroup {
  readonly name: string;
  readonly from: string;
  /** What the ids of its objects derive from. */
  readonly root: string;
  readonly dialect: Exclude<LabelDialect, "sluice">;
  readonly members: readonly ForeignContainer[];
}

interface Converted {
  readonly dynamic: Document;
  readonly closed: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
  readonly isEnabled: boolean | null;
}

/** What its labels and variables say in Traefik's form; null: it is not meant to be served. */
export function dynamicOf(
  { members, dialect, name }: ForeignGroup,
  isExposedByDefault: boolean,
): Converted | null {
  // The labels of one count for all: a service is redeployed container by container.
  const { labels = {}, environment = {} } = members[0] ?? {};
  const all = members.map((one) => readLabels(dialect, { ...one, labels, environment, name }));
  const [first] = all;
  if (first === undefined) return null;
  const isOn = first.isEnabled ?? (dialect !== "traefik" || isExposedByDefault);
  if (!isOn) return null;
  const { dynamic } = mergeDynamic(all.map((one) => one.dynamic));
  const { udp, ...rest } = dynamic;
  const isOther = isDocument(udp) && entriesIn(udp, "routers") > 0;
  const problems = isOther
    ? ["UDP routers need ports of their own, which labels cannot open: add stream routes"]
    : [];
  return { ...first, dynamic: rest, problems: [...first.problems, ...problems] };
}

function readLabels(dialect: ForeignGroup["dialect"], container: ForeignContainer): Converted {
  if (dialect === "traefik")
    return { closed: new Map(), ...labelsToDynamic(container.labels, container) };
  const sites =
    dialect === "caddy"
      ? caddyLabelSites(container.labels, container)
      : nginxProxySites(container.environment);
  const { port } = container;
  return { isEnabled: null, ...sitesToDynamic(sites, { ...container, port: port ?? 80 }) };
}

const entriesIn = (part: Document, kind: string): number =>
  isDocument(part[kind]) ? Object.keys(part[kind]).length : 0;

export interface ForeignContext {
  readonly rules: Discovery["docker"];
  readonly plugins: PluginCatalogue;
  /** Services and middlewares of other containers, which its routers may name. */
  readonly others: Document;
  /** Containers that its targets may be: its own, and those of its compose project. */
  readonly members: readonly ForeignContainer[];
  readonly sharedPorts: SharedPorts;
  readonly regex: TextCheck;
}

/** Imports add it, and it only denies. */
const ALWAYS_ALLOWED = ["access-policy"];
/** Objects that a container may have; what else the importers make belongs to an admin. */
const COLLECTIONS = [
  "services",
  "targets",
  "routes",
  "stream_routes",
  "plugins",
  "consumers",
  "credentials",
  "certificates",
];

/** The objects of a group. Whatever the rules do not allow refuses the whole of it, so that no protection is missing. */
export function* foreignSite(
  group: ForeignGroup,
  own: Converted,
  context: ForeignContext,
): Steps<RankedSite> {
  const { from, root } = group;
  const refused = (problems: readonly string[]): RankedSite => ({
    site: { from, document: {}, problems },
    ranked: [],
  });
  const report = new Report();
  const output = new Output(`discovery ${root}`, report, context);
  try {
    const ranked = convertTraefik(withOthers(own.dynamic, context.others), output, {
      closed: own.closed,
      hasSites: true,
      sharedPorts: context.sharedPorts,
    });
    const document = (yield* dropInvalidSteps(output, context.regex)) as Site["document"];
    const problems = [
      ...own.problems,
      ...report
        .finish()
        .filter(
          ({ level, what, why }) =>
            level !== "imported" && !ABOUT_ACME.test(what) && why !== "no router uses it",
        )
        .map(({ what, why }) => `${what}: ${why}`),
    ];
    const refusal = refusalOf(document, context);
    if (refusal !== null) return refused([refusal, ...problems]);
    const found = within(document, context);
    const site = { from, document: found.document, problems: [...problems, ...found.problems] };
    return { site, ranked: group.dialect === "traefik" ? ranked : [] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return refused([error.message, ...own.problems]);
  }
}

const ABOUT_ACME = /^(?:account |certificate for )/;

/** Traefik finds services and middlewares of other containers. Its own definitions come first, and its routers alone. */
function withOthers(own: Document, others: Document): Document {
  const parts = SECTIONS.map((section) => {
    const [mine, theirs] = [asDocument(own[section]), asDocument(others[section])];
    const joined = Object.keys(theirs).map((kind) => [
      kind,
      { ...asDocument(theirs[kind]), ...asDocument(mine[kind]) },
    ]);
    return [section, { ...mine, ...Object.fromEntries(joined) }];
  });
  return Object.fromEntries(parts);
}

const SECTIONS = ["http", "tcp"];

const asDocument = (value: unknown): Document => (isDocument(value) ? value : {});

/** The first thing that labels may not do; null: none. */
function refusalOf(document: Site["document"], { rules, members }: ForeignContext): string | null {
  const { routes = [], stream_routes: streams = [], plugins = [], targets = [] } = document;
  for (const { hosts, sni } of [...routes, ...streams]) {
    const names = (hosts ?? sni ?? []) as readonly string[];
    if (names.length === 0 || names.includes("*")) return "a route of labels needs a host";
    const foreign = names.find((host) => !mayHave(host, rules));
    if (foreign !== undefined) return `the settings do not allow labels to use the host ${foreign}`;
  }
  const plugin = plugins.find(
    ({ name }) => ![...ALWAYS_ALLOWED, ...rules.plugins].includes(String(name)),
  );
  if (plugin !== undefined)
    return `it needs the plugin ${String(plugin["name"])}, which the settings do not allow labels to use`;
  const addresses = new Set(members.map(({ address }) => address));
  const away = targets.find(({ host }) => !addresses.has(String(host)));
  return away === undefined
    ? null
    : `its target ${String(away["host"])} is not the address of a container of its own`;
}

/** Whether the settings let labels use a host, or a wildcard. */
export function mayHave(host: string, rules: Discovery["docker"]): boolean {
  const covers = (name: string) => host.startsWith("*.") && name.endsWith(host.slice(1));
  const { host_suffixes: suffixes, reserved_hosts: reserved } = rules;
  const isReserved = isAllowed(host, reserved, false) || reserved.some(covers);
  return isAllowed(host, suffixes, true) && !isReserved;
}

/** Whether a host is one of the domains, or below. `isAll`: no domain means any. */
export function isAllowed(host: string, suffixes: readonly string[], isAll: boolean): boolean {
  if (suffixes.length === 0) return isAll;
  const name = host.toLowerCase();
  return suffixes.some((suffix) => {
    const end = suffix.toLowerCase();
    return name === end || name.endsWith(`.${end}`);
  });
}

/** Only what a container may have, with its ports and states. */
function within(
  document: Site["document"],
  { rules, members }: ForeignContext,
): Pick<Site, "document" | "problems"> {
  const problems: string[] = [];
  const kept = Object.entries(document).filter(([name]) => COLLECTIONS.includes(name));
  const byAddress = new Map(members.map((member) => [member.address, member]));
  const targets = (document["targets"] ?? []).flatMap((target) => {
    const member = byAddress.get(String(target["host"]));
    if (member === undefined) return [target];
    const port = member.portOf(Number(target["port"]));
    if (port === null)
      problems.push(`${member.name}: port ${String(target["port"])} is not published`);
    return port === null ? [] : [{ ...target, port, ...member.state }];
  });
  const certificates = (document["certificates"] ?? []).flatMap((certificate) => {
    const { domains, acme_account_ids: _, dns_provider_id: __, ...fields } = certificate;
    const foreign = (domains as readonly string[]).find(
      (domain) => !isAllowed(domain, rules.certificate_suffixes, false),
    );
    if (foreign === undefined) return [{ ...fields, domains }];
    problems.push(noCertificate(foreign));
    return [];
  });
  return { document: { ...Object.fromEntries(kept), targets, certificates }, problems };
}

export const noCertificate = (host: string): string =>
  `no certificate for ${host}: the settings list no domain for certificates that it is below`;
