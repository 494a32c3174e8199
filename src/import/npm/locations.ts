// Reads the locations of proxy hosts, and where each of them forwards to; judges them by what they do, not by their paths.
import { escaped, portable } from "../expression.ts";
import type { Members } from "../members.ts";
import { type Advanced, type OwnLocation, readAdvanced } from "./advanced.ts";

export interface Forward {
  readonly scheme: "http" | "https";
  /** Without brackets. */
  readonly host: string;
  readonly port: number | null;
  /** Without a slash at the end: empty for none. */
  readonly path: string;
  /** Whether the path takes the place of the one that the location matched. */
  readonly replaces: boolean;
  /** As an address for proxy_pass. */
  readonly target: string;
}

export interface Location {
  /** As in nginx, with its modifier. */
  readonly path: string;
  readonly label: string;
  /** Unique in the source. */
  readonly key: string;
  /** Modifier of the nginx location: `=`, `~`, `~*`, `^~` or empty. */
  readonly modifier: string;
  readonly value: string;
  readonly advanced: Advanced;
  /** Whether it may deny access beyond the access list of the host. */
  readonly isProtected: boolean;
  /** Null: nginx responds itself, or nothing is known. */
  readonly forward: Forward | null;
}

const OF_LOCATION = [
  ...["id", "created_on", "modified_on", "path", "advanced_config"],
  ...["forward_scheme", "forward_host", "forward_port"],
];

export function readLocation(source: Members, host: Members): Location {
  const path = source.text("path") ?? "/";
  source.setLabel(`location ${path} of ${host.label}`);
  for (const name of OF_LOCATION) source.raw(name);
  const advanced = readAdvanced(source.text("advanced_config") ?? "");
  return {
    ...matchOf(path),
    label: source.label,
    key: source.path,
    advanced,
    isProtected: advanced.mayDeny || source.hasUnknown(),
    forward: forwardOf(source),
  };
}

/** A location in the nginx directives of the host. */
export function readOwnLocation({ path, advanced }: OwnLocation, host: Members): Location {
  const { proxyPass, mayDeny: isProtected } = advanced;
  const found = { ...matchOf(path), label: `location ${path} of ${host.label}` };
  const key = `${host.path} advanced ${path}`;
  return { ...found, key, advanced, isProtected, forward: targetOf(proxyPass) };
}

function matchOf(path: string): Pick<Location, "path" | "modifier" | "value"> {
  const [, modifier = "", value = "/"] = /^\s*(?:(=|~\*|~|\^~)\s*)?(\S.*)$/.exec(path) ?? [];
  return { path, modifier, value };
}

/** Of a host or a location. */
export function forwardOf(source: Members): Forward {
  const [address = "", ...segments] = (source.text("forward_host") ?? "").split("/");
  const scheme = source.text("forward_scheme") === "https" ? "https" : "http";
  const host = withoutBrackets(address);
  const port = source.number("forward_port");
  const rest = segments.join("/");
  const replaces = segments.length > 0;
  const authority = `${host.includes(":") ? `[${host}]` : host}${port === null ? "" : `:${port}`}`;
  const target = `${scheme}://${authority}${replaces ? `/${rest}` : ""}`;
  return { scheme, host, port, path: pathOf(rest), replaces, target };
}

/** Of `proxy_pass http://app:8080/path`. */
function targetOf(address: string | null): Forward | null {
  const [, scheme, host, port, path] =
    /^(https?):\/\/([\w.-]+|\[[\da-f:.]+\])(?::(\d+))?(\/\S*)?$/i.exec(address ?? "") ?? [];
  if (scheme === undefined || host === undefined) return null;
  const isSecure = scheme.toLowerCase() === "https";
  return {
    scheme: isSecure ? "https" : "http",
    host: withoutBrackets(host),
    port: port === undefined ? (isSecure ? 443 : 80) : Number(port),
    path: pathOf((path ?? "").slice(1)),
    replaces: path !== undefined,
    target: address ?? "",
  };
}

const withoutBrackets = (host: string) => host.replace(/^\[(.*)\]$/, "$1");

function pathOf(text: string): string {
  const path = text.replace(/\/+$/, "");
  return path === "" ? "" : `/${path}`;
}

/** Whether the path alone decides which requests the location matches. */
export const isPlain = ({ modifier, value }: Location): boolean =>
  (modifier === "" || modifier === "=") && /^\/[^\s;{}"'\\]*$/.test(value);

const isExpression = ({ modifier }: Location): boolean => modifier.startsWith("~");

/** Whether it matches what no other location does. */
export const isMain = ({ modifier, value }: Location): boolean => modifier === "" && value === "/";

export interface RouteMatch {
  readonly fields: Readonly<Record<string, unknown>>;
  /** How it differs from nginx; null: it does not. */
  readonly difference: string | null;
}

/** Fields of the route of a location among all of its host. */
export function routeMatchOf(location: Location, all: readonly Location[]): RouteMatch {
  const { modifier, value, isProtected, forward, advanced } = location;
  const expressions = all.filter(isExpression);
  if (isExpression(location)) {
    const regex = modifier === "~*" ? portable(value, true)?.source : value;
    // The first one that matches wins.
    const priority = expressions.length - expressions.indexOf(location);
    return {
      fields: { paths: [{ type: "regex", value: regex ?? value }], priority },
      difference: regex === undefined ? "the path is case-sensitive" : null,
    };
  }
  const aboveExpressions = Math.max(2, expressions.length + 1);
  const isFirst =
    (modifier === "=" && advanced.response !== null) || isWithinResponse(location, all);
  const priority = isFirst ? { priority: aboveExpressions + 1 } : {};
  if (modifier === "=")
    return { fields: { paths: [{ type: "exact", value }], ...priority }, difference: null };
  const prefix = value.replace(/\/+$/, "") || "/";
  // What nginx does not forward matches every path that begins with it, as in nginx, which redirects to a trailing slash.
  if (isProtected || advanced.response !== null) {
    const end = prefix !== "/" && value.endsWith("/") ? "(?:/|$)" : "";
    const paths = [{ type: "regex", value: `^${escaped(comparable(prefix))}${end}` }];
    return { fields: { paths, priority: aboveExpressions, ...priority }, difference: null };
  }
  return {
    fields: {
      paths: [{ type: "prefix", value: prefix }],
      strip_path: forward?.replaces === true,
      ...priority,
    },
    difference:
      value === "/" || value.endsWith("/") ? null : "matches whole segments of its path only",
  };
}

/** Whether nginx prefers the location to a shorter one that only responds, and no other one precedes both. */
export const isWithinResponse = ({ value }: Location, all: readonly Location[]): boolean =>
  !all.some((other) => other.isProtected || (isExpression(other) && other.advanced.response)) &&
  all.some(
    (other) =>
      other.advanced.response !== null &&
      isPlain(other) &&
      other.modifier === "" &&
      value.replace(/\/$/, "").length > other.value.length &&
      value.startsWith(other.value),
  );

/** The path as routes normalize it. */
const comparable = (path: string): string =>
  path
    .replaceAll(/[^\0-\x7f]+/g, (characters) => encodeURI(characters.toWellFormed()))
    .replaceAll(/[/\\]+/g, "/")
    .replace(/;.*$/, "");

/** What a route of the host needs. */
export interface Part {
  readonly label: string;
  readonly key: string;
  readonly name: string;
  readonly forward: Forward | null;
  readonly advanced: Advanced;
  /** Fields that decide which requests it matches. */
  readonly match: Readonly<Record<string, unknown>>;
  readonly isProtected: boolean;
  /** Whether to deny paths that only resemble its own. */
  readonly isStrict: boolean;
}
