// Caddy's handler `rewrite` as the path fields of a route.
import type { Document } from "../../body.ts";
import type { Members } from "../members.ts";
import type { Match } from "./matching.ts";
import { escaped, hasPlaceholder } from "./placeholders.ts";

export type Rewrite =
  | { readonly kind: "strip"; readonly prefix: string }
  | { readonly kind: "replace"; readonly regex: string; readonly to: string };

const URI = /^([^{}?]*)\{http\.request\.(?:orig_)?uri(?:\.path)?\}$/;

/** Null for what a route cannot do, which is reported. */
export function readRewrite(members: Members): Rewrite | null {
  members.leaveOut("method", "the method stays as it is: use the plugin transform");
  members.leaveOut("query", "the query stays as it is: use the plugin transform");
  const found: Rewrite[] = [];
  const prefix = members.text("strip_path_prefix");
  if (prefix !== null) found.push({ kind: "strip", prefix: prefix.replace(/\/+$/, "") });
  const suffix = members.text("strip_path_suffix");
  if (suffix !== null) found.push({ kind: "replace", regex: `${escaped(suffix)}$`, to: "" });
  for (const each of members.objects("path_regexp"))
    found.push({ kind: "replace", regex: each.text("find") ?? "", to: each.text("replace") ?? "" });
  for (const each of members.objects("uri_substring")) {
    each.leaveOut("limit", "the first one is replaced", 1);
    const to = literal(each.text("replace") ?? "");
    found.push({ kind: "replace", regex: escaped(each.text("find") ?? ""), to });
  }
  const uri = members.text("uri");
  const [, front] = URI.exec(uri ?? "") ?? [];
  if (front !== undefined) found.push({ kind: "replace", regex: "^", to: literal(front) });
  else if (uri !== null && !hasPlaceholder(uri) && !uri.includes("?"))
    found.push({ kind: "replace", regex: "^.*$", to: literal(uri) });
  else if (uri !== null) members.changed("uri", "the path stays as it is: it has no counterpart");
  if (found.length > 1) members.changed("rewrite", "only the first of several rewrites is done");
  return found[0] ?? null;
}

const literal = (text: string) => text.replaceAll("$", "$$$$");

export function rewriteFields(rewrite: Rewrite | null, { paths }: Match): Document {
  if (rewrite === null) return {};
  if (rewrite.kind === "replace") return { path_rewrite: { regex: rewrite.regex, to: rewrite.to } };
  const { prefix } = rewrite;
  const isMatched = paths.every(({ type, value }) => type === "prefix" && value === prefix);
  if (paths.length > 0 && isMatched) return { strip_path: true };
  return { path_rewrite: { regex: `^${escaped(prefix)}(?:/|$)`, to: "/" } };
}
