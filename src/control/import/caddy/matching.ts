// Caddy's matchers as conditions of a route, or of a plugin; knows no handler.
import type { Document } from "../../body.ts";
import type { Members } from "../members.ts";
import { escaped } from "./placeholders.ts";

/** Conditions of a route. An empty list stands for any. */
export interface Match {
  readonly hosts: readonly string[];
  readonly paths: readonly PathMatch[];
  readonly methods: readonly string[];
  readonly headers: readonly ValueMatch[];
  readonly query: readonly ValueMatch[];
  readonly client_cidrs: readonly string[];
  readonly protocols: readonly string[];
}

interface PathMatch {
  readonly type: "prefix" | "exact" | "regex";
  readonly value: string;
}

interface ValueMatch {
  readonly name: string;
  readonly op: "equals" | "regex" | "present" | "absent";
  readonly value: string;
}

export const anything: Match = {
  ...{ hosts: [], paths: [], methods: [], headers: [], query: [], client_cidrs: [], protocols: [] },
};

/** Null for matchers that no route has, which the caller reports. */
export function readMatch(members: Members): Match | null {
  const known = ["host", "path", "path_regexp", "method", "header", "header_regexp", "query"];
  const all = [...known, "remote_ip", "client_ip", "protocol"];
  if (members.names.some((name) => !all.includes(name))) return null;
  const protocol = members.text("protocol");
  if (protocol !== null && protocol !== "http" && protocol !== "https") return null;
  const regex = members.object("path_regexp");
  const pattern = regex?.text("pattern") ?? null;
  regex?.raw("name");
  const paths = members.texts("path").map(pathOf);
  if (paths.length > 0) members.changed("path", "upper and lower case differ");
  if (paths.length > 0 && pattern !== null) return null;
  return {
    hosts: members.texts("host").map((host) => host.toLowerCase()),
    paths: pattern === null ? paths : [{ type: "regex", value: pattern }],
    methods: members.texts("method"),
    headers: [
      ...valuesOf(members.object("header")),
      ...patternsOf(members.object("header_regexp")),
    ],
    query: valuesOf(members.object("query")),
    client_cidrs: rangesOf(members),
    protocols: protocol === null ? [] : [protocol],
  };
}

const rangesOf = (members: Members): string[] =>
  ["remote_ip", "client_ip"].flatMap((name) => {
    const matcher = members.object(name);
    matcher?.leaveOut("forwarded", "trusted_proxies decides", false);
    return matcher?.texts("ranges").flatMap(networksOf) ?? [];
  });

const PRIVATE = ["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.1/8", "fd00::/8", "::1"];

const networksOf = (range: string) => (range === "private_ranges" ? PRIVATE : [range]);

/** `*` at the end stands for whatever begins so, at the start for whatever ends so. */
function pathOf(path: string): PathMatch {
  if (path === "*" || path === "/*") return { type: "prefix", value: "/" };
  if (/^[^*]*\/\*$/.test(path)) return { type: "prefix", value: path.slice(0, -2) };
  if (!path.includes("*")) return { type: "exact", value: path };
  const parts = path.split("*").map(escaped);
  const source = parts.join(path.startsWith("*") || path.endsWith("*") ? ".*" : "[^/]*");
  const open = path.endsWith("*") ? source.replace(/\.\*$/, "") : `${source}$`;
  return { type: "regex", value: path.startsWith("*") ? open.replace(/^\.\*/, "") : `^${open}` };
}

/** By name, each with the values of which one is enough. Null stands for absent. */
function valuesOf(members: Members | null): ValueMatch[] {
  if (members === null) return [];
  return members.names.map((name): ValueMatch => {
    if (members.raw(name) === null) return { name, op: "absent", value: "" };
    const values = members.texts(name);
    const [first = ""] = values;
    if (values.length === 0) return { name, op: "absent", value: "" };
    if (values.includes("*")) return { name, op: "present", value: "" };
    if (values.length === 1 && !first.includes("*")) return { name, op: "equals", value: first };
    const sources = values.map((value) => value.split("*").map(escaped).join(".*"));
    return { name, op: "regex", value: `^(?:${sources.join("|")})$` };
  });
}

function patternsOf(members: Members | null): ValueMatch[] {
  if (members === null) return [];
  return members.names.flatMap((name): ValueMatch[] => {
    const regex = members.object(name);
    regex?.raw("name");
    const pattern = regex?.text("pattern") ?? null;
    return pattern === null ? [] : [{ name, op: "regex", value: pattern }];
  });
}

/** Both conditions at once; null when a route cannot say so. */
export function both(outer: Match, inner: Match): Match | null {
  const pick = <T>(a: readonly T[], b: readonly T[]) => (b.length === 0 ? a : b);
  const isNested = inner.paths.every((path) => outer.paths.some((other) => lies(path, other)));
  if (outer.paths.length > 0 && !isNested) return null;
  const isTwice = (["hosts", "methods", "client_cidrs", "protocols"] as const).some(
    (name) => outer[name].length > 0 && inner[name].some((value) => !outer[name].includes(value)),
  );
  if (isTwice) return null;
  return {
    hosts: pick(outer.hosts, inner.hosts),
    paths: pick(outer.paths, inner.paths),
    methods: pick(outer.methods, inner.methods),
    headers: [...outer.headers, ...inner.headers],
    query: [...outer.query, ...inner.query],
    client_cidrs: pick(outer.client_cidrs, inner.client_cidrs),
    protocols: pick(outer.protocols, inner.protocols),
  };
}

const lies = (path: PathMatch, other: PathMatch): boolean =>
  (path.type === other.type && path.value === other.value) ||
  (other.type === "prefix" &&
    path.type !== "regex" &&
    (other.value === "/" ||
      path.value === other.value ||
      path.value.startsWith(`${other.value}/`)));

/** The same for a plugin; null when there is nothing to ask. */
export function conditionOf(match: Match): Document | null {
  const paths = match.paths.map(({ type, value }) =>
    type === "exact" ? `=${value}` : type === "regex" ? `~${value}` : value,
  );
  const values = (list: readonly ValueMatch[]) =>
    Object.fromEntries(
      list.map(({ name, op, value }) => [
        name,
        op === "present" ? "*" : op === "absent" ? null : op === "regex" ? `~${value}` : value,
      ]),
    );
  const parts = {
    ...(match.hosts.length === 0 ? {} : { host: match.hosts }),
    ...(paths.length === 0 ? {} : { path: paths }),
    ...(match.methods.length === 0 ? {} : { method: match.methods }),
    ...(match.headers.length === 0 ? {} : { header: values(match.headers) }),
    ...(match.query.length === 0 ? {} : { query: values(match.query) }),
    ...(match.client_cidrs.length === 0 ? {} : { cidr: match.client_cidrs }),
  };
  return Object.keys(parts).length === 0 ? null : parts;
}

/** What a matcher with `not` asks for; null when it cannot be said. */
export function readNegated(members: Members): { readonly when: Document } | null {
  if (!members.has("not")) return null;
  const not = members.objects("not");
  const [only] = not;
  const negated = only === undefined || not.length > 1 ? null : readMatch(only);
  if (negated === null || negated.protocols.length > 0) return null;
  const rest = readMatch(without(members, "not"));
  const when = conditionOf(negated);
  if (rest === null || rest.protocols.length > 0 || when === null) return null;
  return { when: { ...conditionOf(rest), not: when } };
}

const without = (members: Members, name: string): Members => members.copyWithout(name);
