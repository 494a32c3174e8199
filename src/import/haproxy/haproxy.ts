// Converts a configuration of HAProxy: frontends to routes, in the order of their rules; reads no file that it names.
import { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { decodeSource } from "../source-text.ts";
import type { RouteMatch } from "../traefik/match.ts";
import { matchesOf } from "../traefik/match.ts";
import type { NamedConversion } from "../traefik/middlewares.ts";
import type { Router } from "../traefik/routers.ts";
import { addRoutes } from "../traefik/routes.ts";
import type { UsedService } from "../traefik/services.ts";
import { type Bind, bindsOf } from "./binds.ts";
import { type Acls, always, type Condition, conditionOf, readAcls } from "./conditions.ts";
import { readRules, readUserLists, type SectionRules, type UserLists } from "./rules.ts";
import { isHttp, readSections, type Section, settingOf } from "./sections.ts";
import { addBackend } from "./servers.ts";
import { addStreams } from "./streams.ts";
import { ruleOf } from "./terms.ts";

/** Throws a 400 with the line for an invalid configuration. */
export async function convertHaproxy(bytes: Uint8Array, output: Output): Promise<void> {
  const sections = readSections(decodeSource(bytes));
  const users = await readUserLists(sections, output.report);
  omitOthers(sections, output);
  const proxies = sections.filter(({ kind }) => kind === "frontend" || kind === "listen");
  const frontends = proxies.filter(isHttp).map((section) => ({ section, binds: bindsOf(section) }));
  const backends = new Backends(sections, output);
  const reading = { output, users, backends, ports: publicPorts(frontends), frontends };
  const routers = frontends.flatMap((frontend) => readFrontend(frontend, reading));
  addRoutes(routers, backends, output);
  for (const section of proxies.filter((each) => !isHttp(each)))
    addStreams({ section, sections, binds: bindsOf(section) }, output);
  backends.omitUnused();
}

function omitOthers(sections: readonly Section[], { report }: Output): void {
  for (const { kind, name, number } of sections)
    if (!/^(?:defaults|frontend|backend|listen|userlist)$/.test(kind))
      report.omitted(
        `${kind}${name === "" ? "" : ` "${name}"`} (line ${number})`,
        kind === "global"
          ? "the gateway has settings of its own"
          : "the import does not support it",
      );
}

/** Services by the name of their backend. */
class Backends {
  readonly #sections: readonly Section[];
  readonly #output: Output;
  readonly #known = new Map<string, UsedService | null>();

  constructor(sections: readonly Section[], output: Output) {
    this.#sections = sections;
    this.#output = output;
  }

  section(name: string): Section | null {
    const isIt = (section: Section) =>
      section.name === name && (section.kind === "backend" || section.kind === "listen");
    return this.#sections.find(isIt) ?? null;
  }

  use(name: string): UsedService | null {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const section = this.section(name);
    const made = section === null ? null : addBackend(section, this.#output);
    if (section === null) this.#output.report.omitted(`backend "${name}"`, "it is not in the file");
    this.#known.set(name, made);
    return made;
  }

  omitUnused(): void {
    for (const section of this.#sections)
      if (section.kind === "backend" && !this.#known.has(section.name) && isHttp(section))
        this.#output.report.omitted(`backend "${section.name}"`, "no frontend uses it");
  }
}

interface Frontend {
  readonly section: Section;
  readonly binds: readonly Bind[];
}

interface Reading {
  readonly output: Output;
  readonly users: UserLists;
  readonly backends: Backends;
  readonly ports: PublicPorts;
  readonly frontends: readonly Frontend[];
}

interface PublicPorts {
  readonly http: number | null;
  readonly https: number | null;
}

/** The ports that the gateway's listeners for HTTP and HTTPS stand for. */
function publicPorts(frontends: readonly Frontend[]): PublicPorts {
  const binds = frontends.flatMap(({ binds: own }) => own);
  const chosen = (isTls: boolean, usual: readonly number[]): number | null => {
    const ports = [
      ...new Set(
        binds.flatMap((bind) => (bind.isTls === isTls && bind.port !== null ? [bind.port] : [])),
      ),
    ];
    return (
      usual.find((port) => ports.includes(port)) ?? (ports.length === 1 ? (ports[0] ?? null) : null)
    );
  };
  return { http: chosen(false, [80, 8080]), https: chosen(true, [443, 8443]) };
}

function readFrontend({ section, binds }: Frontend, reading: Reading): readonly Router[] {
  const { output, users } = reading;
  const label = `${section.kind} "${section.name}"`;
  const rules = readRules(section, users, output.report);
  if (binds.length === 0) {
    output.report.omitted(label, "it listens nowhere");
    return [];
  }
  const { served, lost } = addressesOf({ section, binds }, rules, reading);
  const protocols = [...new Set(served.map(({ isTls }): Scheme => (isTls ? "https" : "http")))];
  const common = {
    label,
    section,
    rules,
    lost,
    protocols,
    acls: readAcls([...section.defaults, ...section.lines]),
  };
  const uses = usesOf(section, common.acls);
  if (uses.length === 0) {
    const isRedirecting = rules.converted.some(({ fields, plugins }) => fields ?? plugins);
    if (!isRedirecting) {
      output.report.omitted(
        label,
        isStats(section)
          ? "the metrics of the gateway replace its statistics"
          : "it has no backend",
      );
      return [];
    }
    uses.push({ backend: null, condition: always, problem: null, line: section.number });
  }
  return uses.flatMap((use, at) => routersOf({ ...use, rank: uses.length - at }, common, reading));
}

/** The addresses that the gateway's listeners stand for, and protections that others have. */
function addressesOf(
  { section, binds }: Frontend,
  { converted }: SectionRules,
  { output, ports, frontends }: Reading,
): { readonly served: readonly Bind[]; readonly lost: readonly string[] } {
  const label = `${section.kind} "${section.name}"`;
  const served = binds.filter(({ isTls, port }) => port === (isTls ? ports.https : ports.http));
  const lost: string[] = [];
  const isAllInside = frontends.every((one) => one.binds.every(({ isInside }) => isInside));
  if (served.length === 0) lost.push(`the address of ${label}, which is not that of HTTP or HTTPS`);
  else if (!isAllInside && binds.every(({ isInside }) => isInside))
    lost.push(`the address of ${label}, which only clients of a private network reach`);
  if (served.some(({ asksForCertificate }) => asksForCertificate))
    lost.push(`client certificates of ${label}`);
  if (served.some(({ acceptsProxy }) => acceptsProxy)) {
    output.report.changed(label, "it accepts the PROXY protocol: set it in the listener");
    const readsAddresses =
      /"cidr":/.test(JSON.stringify(converted)) ||
      section.lines.some(({ words }) => words.includes("src"));
    if (readsAddresses) lost.push(`addresses of clients behind a proxy, for ${label}`);
  }
  for (const { port } of binds)
    if (served.length > 0 && !served.some((bind) => bind.port === port))
      output.report.changed(label, `its routes are not served on port ${port}: add a listener`);
  for (const file of new Set(binds.flatMap(({ files }) => files)))
    output.report.omitted(
      `certificate ${file} of ${label}`,
      "the import reads no files: upload it here",
    );
  return { served, lost };
}

const isStats = (section: Section): boolean => settingOf(section, "stats") !== null;

type Scheme = "http" | "https";

interface Use {
  readonly backend: string | null;
  readonly condition: Condition;
  /** Why the condition has no equivalent; null: it has. */
  readonly problem: string | null;
  readonly line: number;
}

/** In their order; a listen section uses its own servers at last. */
function usesOf(section: Section, acls: Acls): Use[] {
  const found: Use[] = [];
  for (const { words, number } of section.lines) {
    const [keyword, backend = "", ...rest] = words;
    if (keyword !== "use_backend") continue;
    const condition = conditionOf(rest, acls);
    const problem = backend.includes("%[")
      ? "its backend depends on the request"
      : condition === null
        ? "its condition has too many alternatives"
        : null;
    found.push({ backend, condition: condition ?? always, problem, line: number });
  }
  const [usual] = settingOf(section, "default_backend") ?? [];
  const own = section.lines.some(({ words }) => words[0] === "server") ? section.name : null;
  const last = usual ?? own;
  if (last !== null)
    found.push({ backend: last, condition: always, problem: null, line: section.number });
  return found;
}

interface Common {
  readonly label: string;
  readonly section: Section;
  readonly rules: SectionRules;
  readonly lost: readonly string[];
  readonly protocols: readonly Scheme[];
}

function routersOf(
  use: Use & { readonly rank: number },
  { label: frontend, section, rules, lost, protocols }: Common,
  { output, users, backends }: Reading,
): readonly Router[] {
  const { backend, condition, line, rank } = use;
  const isOwn = backend === section.name && section.kind === "listen";
  const target = backend === null || isOwn ? null : backends.section(backend);
  const inner = target === null ? nothing : readRules(target, users, output.report);
  const what =
    backend === null || isOwn ? frontend : `backend "${backend}" of ${frontend} (line ${line})`;
  const converted: readonly NamedConversion[] = [...rules.converted, ...inner.converted];
  const protections = new Set([...rules.protections, ...inner.protections, ...lost]);
  return bySchemes(condition, protocols).map(({ schemes, rest }, at): Router => {
    const { matches, problem } =
      use.problem === null ? matchesFor(rest) : { matches: [], problem: use.problem };
    const label = at === 0 ? what : `${what}, ${schemes.join()}`;
    return {
      name: backend ?? section.name,
      members: new Members({}, { path: "", label, inner: "" }, output.report),
      label,
      matches,
      hosts: hostsIn(rest),
      problem,
      rank,
      service: backend,
      middlewares: { converted, protections },
      lost,
      schemes: {
        hasTls: false,
        protocols: schemes,
        redirectsToHttps: false,
        certResolver: null,
      },
    };
  });
}

const nothing: SectionRules = { converted: [], protections: [] };

/** Takes `ssl_fc` out of the condition. */
function bySchemes(condition: Condition, protocols: readonly Scheme[]) {
  const found = new Map<string, { schemes: Scheme[]; rest: Condition[number][] }>();
  for (const literals of condition) {
    const schemes = protocols.filter((scheme) =>
      literals.every(
        ({ test, isNegated }) => test.kind !== "ssl" || (scheme === "https") !== isNegated,
      ),
    );
    // Without an address that the gateway serves, the route is closed, but not dropped.
    if (schemes.length === 0 && protocols.length > 0) continue;
    const key = schemes.join();
    const known = found.get(key) ?? { schemes, rest: [] };
    known.rest.push(literals.filter(({ test }) => test.kind !== "ssl"));
    found.set(key, known);
  }
  return [...found.values()];
}

function matchesFor(condition: Condition): Pick<Router, "matches" | "problem"> {
  const rule = ruleOf(condition);
  if (typeof rule === "string") return { matches: [], problem: `${rule} has no equivalent` };
  const matches = matchesOf(rule);
  if (typeof matches === "string") return { matches: [], problem: matches };
  return matches.length === 0
    ? { matches, problem: "its condition matches no request" }
    : { matches: matches.map(withHostHeader), problem: null };
}

/** HAProxy compares the whole header Host: with a port it is another host. */
const withHostHeader = (match: RouteMatch): RouteMatch => {
  const isExact = match.hosts.length > 0 && match.hosts.every((host) => !host.startsWith("*."));
  return isExact ? { ...match, comparesWholeHost: true } : match;
};

/** Hosts of which the condition requires one; empty: any. */
function hostsIn(condition: Condition): readonly string[] {
  const found = condition.map((literals) =>
    literals.flatMap(({ test, isNegated }) =>
      test.kind === "host" && test.match === "exact" && !isNegated ? test.values : [],
    ),
  );
  return found.some(({ length }) => length === 0) ? [] : found.flat();
}
