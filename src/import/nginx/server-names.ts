// Converts the names of a server to groups of hosts; knows no site.
import { normalizeHost } from "../../http/authority.ts";
import { regexProblem } from "../../snapshot/regex-safety.ts";
import type { Report } from "../report.ts";
import { caseless, portable } from "../expression.ts";
import { outsideClasses } from "./paths.ts";
import type { HostGroup } from "./routes.ts";
import { type Level, shownPlace } from "./tree.ts";
import { storedNameOf } from "../../model/host-name.ts";

export interface ServerNames {
  readonly exact: readonly string[];
  /** `example.com` for `*.example.com`. */
  readonly suffixes: readonly string[];
  /** `mail` for `mail.*`. */
  readonly starts: readonly string[];
  /** Without `~`. */
  readonly expressions: readonly string[];
}

export const allNames = ({
  exact,
  suffixes,
  starts,
  expressions,
}: ServerNames): readonly string[] => [
  ...exact,
  ...suffixes.map((suffix) => `*.${suffix}`),
  ...starts.map((start) => `${start}.*`),
  ...expressions.map((expression) => `~${expression}`),
];

/** Reports names that no route can have. */
export function namesOf(server: Level, report: Report): ServerNames {
  const exact = new Set<string>();
  const suffixes = new Set<string>();
  const starts = new Set<string>();
  const expressions = new Set<string>();
  for (const { args, place } of server.own("server_name"))
    for (const raw of args) {
      const name = storedNameOf(raw).toLowerCase();
      const omit = (why: string) =>
        report.omitted(`server_name ${raw} at ${shownPlace(place)}`, why);
      if (raw.startsWith("~")) expressions.add(raw.slice(1));
      else if (name === "" || /^[_-]+$/.test(name)) continue;
      else if (name.startsWith("*.") && isHost(name.slice(2))) suffixes.add(name.slice(2));
      else if (name.startsWith(".") && isHost(name.slice(1))) {
        exact.add(name.slice(1));
        suffixes.add(name.slice(1));
      } else if (name.endsWith(".*") && isHost(name.slice(0, -2))) starts.add(name.slice(0, -2));
      else if (isHost(name)) exact.add(name);
      else omit(name.includes("$") ? "it has variables" : "is not a host name");
    }
  return {
    exact: [...exact],
    suffixes: [...suffixes],
    starts: [...starts],
    expressions: [...expressions],
  };
}

export const isHost = (name: string): boolean =>
  normalizeHost(name) !== null && !/:\d*$/.test(name);

/** Without the names that an earlier server has. */
export function withoutTaken(names: ServerNames, taken: ReadonlySet<string>): ServerNames {
  const free =
    (prefix: string, end = "") =>
    (name: string) =>
      !taken.has(`${prefix}${name}${end}`);
  return {
    exact: names.exact.filter(free("")),
    suffixes: names.suffixes.filter(free("*.")),
    starts: names.starts.filter(free("", ".*")),
    expressions: names.expressions.filter(free("~")),
  };
}

export interface RankedGroup extends HostGroup {
  /** Groups of a higher rank are tried first. */
  readonly rank: number;
}

const EXACT = 5_000_000;
const SUFFIX = 3_000_000;
const START = 2_000_000;

/** `others`: all names of other servers. `at`: position of the server in the file. */
export function groupsOf(
  { exact, suffixes, starts, expressions }: ServerNames,
  {
    others,
    at,
    report,
    label,
  }: {
    readonly others: readonly string[];
    readonly at: number;
    readonly report: Report;
    readonly label: string;
  },
): readonly RankedGroup[] {
  const isAlone = (suffix: string) => !others.some((other) => other.endsWith(`.${suffix}`));
  const merged = exact.length > 0 ? suffixes.filter(isAlone) : [];
  const wild = suffixes.filter((suffix) => !merged.includes(suffix));
  const common = { headers: [], isDefault: false };
  const hosts = [...exact, ...merged.map((suffix) => `*.${suffix}`)];
  return [
    ...(hosts.length === 0 ? [] : [{ ...common, hosts, name: hosts[0] ?? "", rank: EXACT }]),
    ...wild.map((suffix) => ({
      ...common,
      hosts: [`*.${suffix}`],
      name: `*.${suffix}`,
      rank: SUFFIX + suffix.split(".").length,
    })),
    ...starts.map((start) => ({
      ...common,
      hosts: [],
      headers: [hostCondition(`^${caseless(`${start}.`)}[^:.]`)],
      name: `${start}.any`,
      rank: START + start.split(".").length,
    })),
    ...expressions.flatMap((expression): RankedGroup[] => {
      const source = hostExpression(expression);
      if (source !== null) {
        const name = expression.replaceAll(/[^A-Za-z0-9.]+/g, "-").replaceAll(/^[-.]+|[-.]+$/g, "");
        return [
          { ...common, hosts: [], headers: [hostCondition(source)], name, rank: START - 1 - at },
        ];
      }
      report.omitted(
        `server_name ~${expression} of ${label}`,
        "the expression has no equivalent: add its hosts to the routes",
      );
      return [];
    }),
  ];
}

export const hostCondition = (value: string) => ({ name: "host", op: "regex", value });

/** For a header Host, with its port and a dot at the end; without a lookahead, which is slow to check. */
export function hostExpression(expression: string): string | null {
  const found = portable(expression, true)?.source;
  if (found === undefined) return null;
  const source = outsideClasses(found, /\$/g, "\\.?(?::\\d*)?$");
  return source.length <= 1000 && regexProblem(source) === null ? source : null;
}
