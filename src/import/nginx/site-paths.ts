// Chooses the paths of a site's route, and how the route changes paths, so that no site gets requests of a more protected one.
import type { PathMatch } from "../../model/route-match.ts";
import type { Document } from "../../control/body.ts";
import { escaped } from "../expression.ts";
import type { Access } from "./access.ts";
import type { Content } from "./content.ts";
import type { Location } from "./locations.ts";
import {
  isPlainPath,
  literalPath,
  literalStart,
  pathExpression,
  prefixAsSent,
  regexPath,
  regionOf,
  wholePathExpression,
  widerExpression,
  within,
} from "./paths.ts";
import { hasVariables } from "./variables.ts";

/** What a site matches; null: every path. */
export type SitePath = Pick<Location, "kind" | "value" | "isCaseless" | "region" | "holes"> | null;

interface Placed {
  readonly path: SitePath;
  readonly access: Access;
  readonly content: Content;
}

/** A site compared with the others of its server. */
export interface Standing {
  /** Another site lacks one of its protections: it must not match fewer requests. */
  readonly isGuarded: boolean;
  /** It lacks one of another site's: it must not match more. */
  readonly isExposed: boolean;
  /** Whether paths that only resemble its own may belong to a more protected site. */
  readonly deniesAmbiguous: boolean;
}

/** In the order in which they are tried. */
export function standingsOf(sites: readonly Placed[]): readonly Standing[] {
  const kinds = new Map<string, Access>();
  const keyOf = ({ access: { protections } }: Placed) =>
    JSON.stringify(protections === null ? null : [...protections].toSorted());
  for (const site of sites) kinds.set(keyOf(site), site.access);
  const guarded = sites
    .map((site, index) => ({ site, index }))
    .filter(({ site }) => isGuardedAmong(site, kinds));
  return sites.map((site, at) => {
    const isExposed = [...kinds.values()].some((other) => !covers(site.access, other));
    return {
      isGuarded: isGuardedAmong(site, kinds),
      isExposed,
      deniesAmbiguous:
        isExposed &&
        guarded.some(
          ({ site: other, index }) =>
            !covers(site.access, other.access) && mayMixUp(site, other, index > at),
        ),
    };
  });
}

const isGuardedAmong = ({ access }: Placed, kinds: ReadonlyMap<string, Access>): boolean =>
  [...kinds.values()].some((other) => !covers(other, access));

/** Whether clients that one allows have fulfilled all that the other requires. */
function covers({ protections: own }: Access, { protections: wanted }: Access): boolean {
  if (own === null) return true;
  return wanted !== null && [...wanted].every((each) => own.has(each));
}

/** A route compares `/a;b` and `/a` as equal, nginx does not. */
function mayMixUp({ path: open }: Placed, { path, content }: Placed, isLater: boolean): boolean {
  if (path?.kind === "regex" && open?.kind !== "regex") {
    const value = open?.value ?? "/";
    const start = literalStart(path.value);
    const isApart = start !== null && !value.startsWith(start) && !start.startsWith(value);
    if (isApart || (!isLater && LITERAL.test(path.value))) return false;
  }
  if (path?.kind === "regex" || open?.kind === "regex") return path !== null || isLater;
  if (!isLater || open === null) return false;
  if (path === null) return true;
  // `/app` that redirects to `/app/` hides nothing below it.
  const isRedirect =
    content.kind === "response" &&
    content.name === "redirect" &&
    String(content.config["to"]).endsWith(`${path.value}/`);
  return path.kind === "prefix" && !isRedirect && open.value.startsWith(path.value);
}

/** Expressions such as `/\.git`: they match the same with and without parameters in the path. */
const LITERAL =
  /^(?:\(\?i\))?\^?\/(?:\\?\.|[\w/-]|\((?:\?:)?(?:[\w|-]|\\\.)+\))*(?:\(\?!\\?\.?well-known(?:\\?\/)?\))?(?:\.\*)?\$?$/;

export interface ChosenPaths {
  readonly paths: readonly PathMatch[];
  /** Why the route is closed: no route matches exactly the requests of the site; null: it is not. */
  readonly lost: string | null;
}

/** Null: no route can match the site, and others may match its requests. */
export function pathsOf(path: SitePath, { isGuarded, isExposed }: Standing): ChosenPaths | null {
  if (path === null) return { paths: [], lost: null };
  if (path.kind === "regex") return expressionPaths(path, { isGuarded, isExposed });
  const { text, isCut } = literalPath(path.value);
  if (isCut && !isGuarded) return null;
  const lost = isCut && isExposed ? "its path" : null;
  if (path.kind === "exact" && !isCut)
    return {
      lost,
      paths: isPlainPath(text)
        ? [{ type: "exact", value: text }]
        : [regexPath(`^${escaped(text)}$`)],
    };
  if (path.holes.length > 0)
    return { lost, paths: [regexPath(`^${regionOf(path.value, path.holes)}`)] };
  if (text === "/") return { paths: [], lost };
  const isPlain = isPlainPath(text) && !isCut;
  const plain: readonly PathMatch[] = isPlain ? [{ type: "prefix", value: text }] : [];
  // nginx redirects a path without the slash to the one with it.
  if (text.endsWith("/") && !isCut)
    return { lost, paths: isPlain ? plain : [regexPath(`^${escaped(text.slice(0, -1))}(?:/|$)`)] };
  return {
    lost,
    paths: isPlain && !isGuarded ? plain : [...plain, regexPath(`^${escaped(text)}`)],
  };
}

function expressionPaths(
  { value, isCaseless, region }: NonNullable<SitePath>,
  { isGuarded, isExposed }: Pick<Standing, "isGuarded" | "isExposed">,
): ChosenPaths | null {
  const found = pathExpression(value, isCaseless);
  if (found === null) {
    if (!isGuarded) return null;
    const wider = widerExpression(value, isCaseless) ?? [];
    return {
      paths: wider.map((source) => regexPath(within(region, source))),
      lost: "its expression",
    };
  }
  const { plain, over } = found;
  const whole = (source: string) => regexPath(within(region, source));
  if (!isGuarded && !isExposed) return { paths: [whole(plain)], lost: null };
  if (isGuarded) {
    const isSame = over.length === 1;
    return { paths: over.map(whole), lost: isExposed && !isSame ? "its expression" : null };
  }
  const { under } = found;
  return under === null ? null : { paths: [whole(under)], lost: null };
}

export interface PathChange {
  readonly fields: Document;
  /** Whether paths in another spelling would reach the target unchanged: they are denied. */
  readonly isLiteral: boolean;
  readonly lost: string | null;
  /** Whether the target gets the query, unlike in nginx. */
  readonly keepsQuery: boolean;
}

const unchanged: PathChange = { fields: {}, isLiteral: false, lost: null, keepsQuery: false };

const literal = (text: string) => text.replaceAll("$", "$$$$");

const replaced = (regex: string, to: string): PathChange => ({
  ...unchanged,
  fields: { path_rewrite: { regex, to } },
  isLiteral: true,
});

/** The path that the target gets. */
export function pathChangeOf(
  content: Content & { readonly kind: "proxy" },
  path: SitePath,
  paths: readonly PathMatch[],
): PathChange {
  const { rewrite, destination } = content;
  if (rewrite !== null) return replaced(rewrite.regex, rewrite.to);
  const { uri } = destination;
  if (uri === null) return unchanged;
  const [front = "", query] = uri
    .replace(/\$\{?is_args\}?\$\{?(?:args|query_string)\}?$/, "")
    .split(/\?(.*)/s);
  if (query !== undefined) return { ...unchanged, lost: "the query" };
  if (path?.kind === "regex" || /\$\{?\d/.test(front)) return ofExpression(front, uri, path);
  if (hasVariables(front)) return { ...unchanged, lost: "a variable" };
  if (destination.isWhole || path?.kind === "exact")
    return { ...replaced("^[^]*$", literal(front)), isLiteral: false };
  return ofPrefix(path?.value ?? "/", front, paths);
}

function ofExpression(front: string, uri: string, path: SitePath): PathChange {
  const bare = front.replaceAll(/\$\{?\d\}?/g, "");
  if (hasVariables(bare)) return { ...unchanged, lost: "a variable" };
  const to = front.replaceAll(/\$\{(\d)\}/g, "$$$1");
  const regex = path?.kind === "regex" ? wholePathExpression(path.value, path.isCaseless) : null;
  if (regex === null) return { ...unchanged, lost: "a group of an expression" };
  return { ...replaced(regex, to), keepsQuery: !uri.includes("args") };
}

function ofPrefix(value: string, uri: string, paths: readonly PathMatch[]): PathChange {
  if (value === uri) return unchanged;
  const isPlain = paths.length === 0 ? value === "/" : paths[0]?.type === "prefix";
  const isAlike = value.endsWith("/") === uri.endsWith("/");
  const end = value.endsWith("/") && value !== "/" ? "(?:/|$)" : "";
  const start = `${prefixAsSent(value.endsWith("/") && value !== "/" ? value.slice(0, -1) : value)}${end}`;
  if (!isPlain || !isAlike || !isPlainPath(uri))
    return { ...replaced(start, literal(uri)), isLiteral: value !== "/" };
  if (uri === "/") return { ...unchanged, fields: { strip_path: true } };
  const hasMore = paths.some(({ type }) => type === "regex") && !uri.startsWith(value);
  return {
    ...unchanged,
    fields: {
      prefix_rewrite: uri,
      ...(hasMore ? { path_rewrite: { regex: `${start}(?=[^/])`, to: literal(uri) } } : {}),
    },
  };
}
