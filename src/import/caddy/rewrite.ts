// Converts Caddy's handler `rewrite` to the path fields of a route; knows no matcher and no other handler.
import type { PathMatch } from "../../model/route-match.ts";
import type { Document } from "../../control/body.ts";
import { caseless, escaped, portable } from "../expression.ts";
import type { Members } from "../members.ts";
import { hasPlaceholder } from "./placeholders.ts";

export type Rewrite =
  | { readonly kind: "strip"; readonly prefix: string }
  | { readonly kind: "replace"; readonly regex: string; readonly to: string };

export interface Rewriting {
  /** Null: the path is unchanged. */
  readonly rewrite: Rewrite | null;
  readonly method: string | null;
  /** A part without an equivalent: it may restrict clients to some paths of the targets. */
  readonly lost: string | null;
}

const URI = /^([^{}?]*)\{http\.request\.uri(?:\.path)?\}$/;

export function readRewrite(members: Members): Rewriting {
  const found = pathSteps(members);
  const lost = [...found.lost];
  if (members.has("query")) lost.push("query");
  members.omit("query", "the query is unchanged: use the plugin transform");
  const method = members.text("method");
  if (method !== null && hasPlaceholder(method)) lost.push("method");
  const [first = null, ...others] = found.steps;
  const rewrite = others.reduce<Rewrite | null>((one, next) => composed(one, next), first);
  if (first !== null && rewrite === null) lost.push("several rewrites at once");
  const what = lost.length === 0 ? null : `${members.label}: ${lost.join(", ")}`;
  return { rewrite, method: method?.includes("{") === true ? null : method, lost: what };
}

function pathSteps(members: Members): { readonly steps: Rewrite[]; readonly lost: string[] } {
  const steps: Rewrite[] = [];
  const lost: string[] = [];
  const uri = members.text("uri");
  const [, front] = URI.exec(uri ?? "") ?? [];
  if (front !== undefined) steps.push({ kind: "replace", regex: "^", to: literal(front) });
  else if (uri !== null && !hasPlaceholder(uri) && !uri.includes("?"))
    steps.push({ kind: "replace", regex: "^.*$", to: literal(uri) });
  else if (uri !== null) {
    members.changed("uri", "the path is unchanged: the rewrite has no equivalent");
    lost.push(`uri ${uri}`);
  }
  const prefix = members.text("strip_path_prefix");
  if (prefix !== null) steps.push({ kind: "strip", prefix: withSlash(prefix.replace(/\/+$/, "")) });
  const suffix = members.text("strip_path_suffix");
  if (suffix !== null) steps.push({ kind: "replace", regex: `${escaped(suffix)}$`, to: "" });
  for (const each of members.objects("uri_substring")) {
    each.omit("limit", "only the first match is replaced", 1);
    const to = literal(each.text("replace") ?? "");
    steps.push({ kind: "replace", regex: escaped(each.text("find") ?? ""), to });
  }
  for (const each of members.objects("path_regexp")) {
    const regex = portable(each.text("find") ?? "")?.source ?? null;
    const to = each.text("replace") ?? "";
    if (regex === null || /[{}]/.test(to)) lost.push(`path_regexp ${each.text("find")}`);
    else steps.push({ kind: "replace", regex, to });
  }
  const placeholder = [prefix, suffix].find((text) => text !== null && hasPlaceholder(text));
  if (placeholder !== undefined) lost.push(placeholder ?? "");
  return { steps, lost };
}

const withSlash = (prefix: string) => (prefix.startsWith("/") ? prefix : `/${prefix}`);

const literal = (text: string) => text.replaceAll("$", "$$$$");

/** Combines two rewrites in one; null: that is not possible. */
export function composed(first: Rewrite | null, next: Rewrite): Rewrite | null {
  if (first === null) return next;
  if (next.kind !== "replace" || next.regex !== "^") return null;
  if (first.kind === "strip")
    return { kind: "replace", regex: prefixSource(first.prefix), to: next.to };
  return first.regex === "^" ? { kind: "replace", regex: "^", to: next.to + first.to } : null;
}

/** Caddy strips the prefix regardless of case, after merging slashes. */
const prefixSource = (prefix: string): string =>
  `^${prefix
    .split("/")
    .filter((segment) => segment !== "")
    .map((segment) => `/+${caseless(encodeURI(segment))}`)
    .join("")}`;

/** The rewrite as an expression with its replacement. */
export const replacementOf = (rewrite: Rewrite) =>
  rewrite.kind === "replace"
    ? { regex: rewrite.regex, to: rewrite.to }
    : { regex: prefixSource(rewrite.prefix), to: "" };

export function rewriteFields(rewrite: Rewrite | null, paths: readonly PathMatch[]): Document {
  if (rewrite === null) return {};
  const isMatched =
    rewrite.kind === "strip" &&
    paths.length > 0 &&
    paths.every(({ type, value }) => type === "prefix" && value === rewrite.prefix);
  return isMatched ? { strip_path: true } : { path_rewrite: replacementOf(rewrite) };
}
