// Finds the locations of a server in the order in which nginx prefers them; knows no route and no content.
import { type Directive, Level, shownPlace } from "./tree.ts";
import { escaped } from "../expression.ts";
import { literalPath, pathExpression, regionOf, within } from "./paths.ts";

export type LocationKind = "exact" | "prefix" | "regex";

export interface Location {
  readonly kind: LocationKind;
  /** The path or the expression. */
  readonly value: string;
  readonly isCaseless: boolean;
  readonly level: Level;
  /** `location /api at nginx.conf:12` */
  readonly label: string;
  /** Expressions for the beginning of the path: nested locations, and longer prefixes that it must not match; null: none. */
  readonly region: string | null;
  /** Longer prefixes for which expressions are tried, unlike for this one. */
  readonly holes: readonly string[];
}

export interface Locations {
  /** The first that matches decides. */
  readonly inOrder: readonly Location[];
  readonly named: ReadonlyMap<string, Level>;
  /** With a region that has no equivalent. */
  readonly unsupported: readonly { readonly label: string; readonly level: Level }[];
}

interface Found extends Omit<Location, "region" | "holes"> {
  readonly parent: Found | null;
  /** Whether expressions are not tried after it. */
  readonly isFinal: boolean;
  readonly at: number;
}

export function locationsOf(server: Level): Locations {
  const named = new Map<string, Level>();
  const all: Found[] = [];
  const unsupported: Locations["unsupported"][number][] = [];
  const walk = (level: Level, parent: Found | null) => {
    for (const directive of level.own("location")) {
      const inner = new Level(directive, level);
      const found = readLocation(directive, inner, { parent, at: all.length });
      if (found === null) {
        const [name = ""] = directive.args;
        if (name.startsWith("@")) named.set(name, inner);
        else unsupported.push({ label: labelOf(directive), level: inner });
        continue;
      }
      all.push(found);
      walk(inner, found);
    }
  };
  walk(server, null);
  const prefixes = unique(all.filter(({ kind }) => kind === "prefix"));
  return {
    named,
    unsupported,
    inOrder: [
      ...unique(all.filter(({ kind }) => kind === "exact")).map((one) => ({
        ...one,
        region: null,
        holes: [],
      })),
      ...all
        .filter((one) => one.kind === "regex" && outerPrefix(one) !== null)
        .toSorted((a, b) => depthOf(b) - depthOf(a) || a.at - b.at)
        .map((one) => ({ ...one, region: regionOfNested(one, prefixes), holes: [] })),
      ...longestFirst(prefixes.filter(({ isFinal }) => isFinal)).map((one) => ({
        ...one,
        region: null,
        holes: holesOf(one, prefixes),
      })),
      ...expressions(all.filter((one) => one.kind === "regex" && outerPrefix(one) === null)),
      ...longestFirst(prefixes.filter(({ isFinal }) => !isFinal)).map((one) => ({
        ...one,
        region: null,
        holes: [],
      })),
    ],
  };
}

const labelOf = ({ args, place }: Directive): string =>
  `location ${args.join(" ")} at ${shownPlace(place)}`;

function readLocation(
  directive: Directive,
  level: Level,
  { parent, at }: { readonly parent: Found | null; readonly at: number },
): Found | null {
  const { args } = directive;
  // `~*\.php$` is the same as `~* \.php$`.
  const [first = "", second] = args;
  const [, glued = "", rest = first] =
    second === undefined ? (/^(=|\^~|~\*|~)?(.*)$/s.exec(first) ?? []) : [];
  const modifier = second === undefined ? glued : first;
  const value = second ?? rest;
  const common = { value, level, label: labelOf(directive), parent, at };
  const isFinal = parent === null ? modifier === "^~" : topOf(parent).isFinal;
  switch (modifier) {
    case "=":
      return { ...common, kind: "exact", isCaseless: false, isFinal };
    case "~":
    case "~*":
      return { ...common, kind: "regex", isCaseless: modifier === "~*", isFinal };
    case "":
    case "^~":
      return value.startsWith("/") || value === ""
        ? { ...common, value: value || "/", kind: "prefix", isCaseless: false, isFinal }
        : null;
    default:
      return null;
  }
}

const topOf = (one: Found): Found => (one.parent === null ? one : topOf(one.parent));
const depthOf = (one: Found): number => (one.parent === null ? 0 : 1 + depthOf(one.parent));

/** The innermost prefix around a location. */
function outerPrefix({ parent }: Found): Found | null {
  if (parent === null) return null;
  return parent.kind === "regex" ? outerPrefix(parent) : parent;
}

/** Whether one location is inside of the other. */
const isInside = (one: Found, outer: Found): boolean =>
  one.parent === outer || (one.parent !== null && isInside(one.parent, outer));

/** nginx rejects a duplicate. */
const unique = (all: readonly Found[]): readonly Found[] => [
  ...Map.groupBy(all, ({ value }) => value)
    .values()
    .flatMap(([first]) => (first === undefined ? [] : [first])),
];

const longestFirst = (all: readonly Found[]): readonly Found[] =>
  all.toSorted((a, b) => b.value.length - a.value.length);

const isBelow = (inner: Found, outer: Found): boolean =>
  inner.value.length > outer.value.length && inner.value.startsWith(outer.value);

const holesOf = (one: Found, prefixes: readonly Found[]): readonly string[] =>
  prefixes.filter((other) => !other.isFinal && isBelow(other, one)).map(({ value }) => value);

/** Where nginx tries a nested expression. */
function regionOfNested(one: Found, prefixes: readonly Found[]): string {
  const outer = outerPrefix(one);
  if (outer === null) return "";
  if (outer.kind === "exact") return `^${escaped(literalPath(outer.value).text)}$`;
  const others = prefixes.filter((other) => isBelow(other, outer) && !isInside(other, outer));
  return `^${regionOf(
    outer.value,
    others.map(({ value }) => value),
  )}`;
}

/** Whether nginx may choose the location for an internal request, once it has not chosen an earlier one. */
export function mayMatch(
  { kind, value, isCaseless, region, holes }: Location,
  path: string,
): boolean {
  if (kind === "exact") return path === value;
  if (kind === "prefix")
    return path.startsWith(value) && !holes.some((hole) => path.startsWith(hole));
  const found = pathExpression(value, isCaseless);
  return found === null || new RegExp(within(region, found.plain)).test(path);
}

/** Paths that the expression of a location matches. */
function expressionRegion({ value, isCaseless }: Found): string | null {
  const source = pathExpression(value, isCaseless)?.plain;
  return source === undefined ? null : `[^]*?(?:${source})`;
}

/** A nested one goes before the one around it. */
function expressions(all: readonly Found[]): readonly Location[] {
  const emit = (parent: Found | null): readonly Location[] =>
    all
      .filter((one) => one.parent === parent)
      .flatMap((one) => [
        ...emit(one),
        { ...one, region: parent === null ? null : expressionRegion(parent), holes: [] },
      ]);
  return emit(null);
}
