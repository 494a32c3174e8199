// Combines the middlewares of a router that change the path to one rewrite of a route; knows no router.
import type { Document } from "../../control/body.ts";
import { escaped, portable } from "../expression.ts";
import type { Members } from "../members.ts";
import type { Converted } from "./middlewares.ts";

export type PathStep =
  | { readonly kind: "strip"; readonly prefixes: readonly string[] }
  | { readonly kind: "add"; readonly prefix: string }
  | { readonly kind: "replace"; readonly regex: string; readonly to: string };

type PathMatch = { readonly type: string; readonly value: string };

/** Null: several rewrites have no equivalent together. */
export function rewriteFields(
  steps: readonly PathStep[],
  paths: readonly PathMatch[],
): Document | null {
  const [first, second, ...others] = steps;
  if (first === undefined) return {};
  if (others.length > 0) return null;
  if (second === undefined) {
    if (first.kind === "strip" && stripsPaths(first.prefixes, paths)) return { strip_path: true };
    return { path_rewrite: replacementOf(first) };
  }
  if (first.kind === "strip" && second.kind === "add")
    return {
      path_rewrite: {
        regex: `^(?:${prefixSource(first.prefixes)}/?|/)`,
        to: literal(`${second.prefix}/`),
      },
    };
  // The expression of the second one sees a path that only the first one makes.
  return second.kind === "replace" && second.regex === "^.*$"
    ? { path_rewrite: replacementOf(second) }
    : null;
}

/** Whether the route strips just the prefix that it matches. */
const stripsPaths = (prefixes: readonly string[], paths: readonly PathMatch[]): boolean =>
  paths.length > 0 &&
  paths.every(({ type, value }) => type === "prefix" && prefixes.includes(value)) &&
  // A longer path that a prefix in front of it in the list strips only in part.
  prefixes.every(
    (prefix) => !paths.some(({ value }) => value !== prefix && value.startsWith(prefix)),
  );

function replacementOf(step: PathStep): { readonly regex: string; readonly to: string } {
  switch (step.kind) {
    case "strip":
      // Traefik also strips /api of /apix, and sends /x.
      return { regex: `^${prefixSource(step.prefixes)}/?`, to: "/" };
    case "add":
      return { regex: "^", to: literal(step.prefix) };
    case "replace":
      return { regex: step.regex, to: step.to };
    default:
      return step satisfies never;
  }
}

const prefixSource = (prefixes: readonly string[]): string =>
  `(?:${prefixes
    .map((prefix) =>
      prefix
        .split("/")
        .filter((segment) => segment !== "")
        .map((segment) => `/+${escaped(segment)}`)
        .join(""),
    )
    .join("|")})`;

const literal = (text: string) => text.replaceAll("$", "$$$$");

/** A replacement of Go: `${1}` and `$1` are groups. */
export const goReplacement = (text: string): string =>
  text.replaceAll(/\$\{(\d)\}/g, "$$$1").replaceAll(/\$(?![1-9$])/g, "$$$$");

const slashed = (path: string) => (path.startsWith("/") ? path : `/${path}`);

export const rewriting: Readonly<Record<string, (settings: Members) => Converted>> = {
  stripPrefix: (settings) => {
    const prefixes = settings
      .texts("prefixes")
      .map((prefix) => slashed(prefix).replace(/\/+$/, ""));
    settings.omit("forceSlash", "a path is never empty", true);
    const known = prefixes.filter((prefix) => prefix !== "");
    if (known.length === 0) return {};
    const path = { kind: "strip", prefixes: known } as const;
    const [only] = known;
    if (known.length > 1 || only === undefined) {
      settings.changed(
        "prefixes",
        "the application gets X-Forwarded-Prefix only where the route strips the prefix that it matches",
      );
      return { path };
    }
    // Traefik names the stripped prefix to the application, also where a regular expression strips it here.
    const headers = { set: { "X-Forwarded-Prefix": only } };
    return { path, plugins: [{ name: "transform", config: { request: { headers } } }] };
  },
  stripPrefixRegex: (settings) => {
    const sources = settings
      .texts("regex")
      .map((text) => portable(text.replace(/^\^/, ""))?.source);
    const known = sources.filter((source) => source !== undefined);
    if (known.length < sources.length || known.length === 0)
      return { lost: `an expression of ${settings.label}` };
    return { path: { kind: "replace", regex: `^(?:${known.join("|")})/?`, to: "/" } };
  },
  addPrefix: (settings) => {
    const prefix = slashed(settings.text("prefix") ?? "").replace(/\/+$/, "");
    return prefix === "" ? {} : { path: { kind: "add", prefix } };
  },
  replacePath: (settings) => ({
    path: { kind: "replace", regex: "^.*$", to: literal(slashed(settings.text("path") ?? "")) },
  }),
  replacePathRegex: (settings) => {
    const regex = portable(settings.text("regex") ?? "")?.source;
    const to = settings.text("replacement") ?? "";
    if (regex === undefined) return { lost: `the expression of ${settings.label}` };
    return { path: { kind: "replace", regex, to: goReplacement(to) } };
  },
};
