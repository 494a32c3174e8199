// Converts rewrite to the path rewrite of a route; knows no location.
import { portable } from "../expression.ts";
import type { Content, ContentOptions } from "./content.ts";
import { wholePathExpression } from "./paths.ts";
import { redirectOf } from "./responses.ts";
import { type Directive, type Level, shownPlace } from "./tree.ts";
import { hasVariables, withFixed } from "./variables.ts";

export interface Rewrite {
  readonly kind: "rewrite";
  readonly regex: string;
  readonly to: string;
  readonly what: string;
}

export type RewriteReading =
  | Rewrite
  /** `path`: the expression of nginx. */
  | { readonly kind: "redirect"; readonly path: string; readonly content: Content }
  /** `path`: the requests that it would change; null: unknown. `again`: their new path, for which nginx selects a location. */
  | { readonly kind: "lost"; readonly path: string | null; readonly again: Rewrite | null };

export function rewriteOf(
  directive: Directive,
  level: Level,
  options: ContentOptions,
): RewriteReading {
  const [source = "", replacement = "", flag] = directive.args;
  const path = portable(source) === null ? null : source;
  const redirect = redirectOf(directive, level, options);
  if (redirect !== null && path !== null) return { kind: "redirect", path, content: redirect };
  const regex = wholePathExpression(source);
  const to = replacementOf(withFixed(replacement, level));
  if (regex === null || to === null || (flag !== "break" && flag !== "last"))
    return { kind: "lost", path, again: null };
  const what = `rewrite at ${shownPlace(directive.place)}`;
  const found = { kind: "rewrite", regex, to, what } as const;
  return flag === "break" ? found : { kind: "lost", path, again: found };
}

/** Null: it has variables or a query. */
function replacementOf(text: string): string | null {
  const bare = text.replaceAll(/\$\{?([1-9])\}?/g, "");
  return hasVariables(bare) || text.includes("?") || text === ""
    ? null
    : text.replaceAll(/\$\{([1-9])\}/g, "$$$1");
}
