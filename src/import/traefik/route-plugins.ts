// Collects the plugins of a route from middlewares and its service: one of each kind; knows no middleware.
import { type Document, isDocument } from "../../control/body.ts";
import type { NamedConversion } from "./middlewares.ts";
import type { PathStep } from "./rewrite.ts";
import type { UsedService } from "./services.ts";

export interface RoutePlugin {
  readonly name: string;
  readonly config: Document;
  readonly when?: Document;
  readonly protects: boolean;
  readonly what: string;
  /** Unique among the plugins of the route. */
  readonly key: string;
}

export interface RoutePlugins {
  readonly plugins: readonly RoutePlugin[];
  readonly fields: Document;
  readonly path: readonly PathStep[];
  /** Protections that could not be converted. */
  readonly lost: readonly string[];
  readonly omitted: readonly { readonly what: string; readonly why: string }[];
}

/** Their settings of several middlewares apply together. */
const MERGED: ReadonlySet<string> = new Set(["transform", "rate-limit", "security-headers"]);

/** Run before the plugin redirect in Traefik, and after it here. */
const authentication: ReadonlySet<string> = new Set([
  "basic-auth",
  "forward-auth",
  "ip-restriction",
]);

export function pluginsOf(
  converted: readonly NamedConversion[],
  service: UsedService | null,
): RoutePlugins {
  const found = new Map<string, RoutePlugin>();
  const lost = converted.flatMap((one) => one.lost ?? []);
  const omitted: { readonly what: string; readonly why: string }[] = [];
  const ofService = (service?.plugins ?? []).map(({ what, ...plugin }): NamedConversion => ({
    what,
    plugins: [plugin],
  }));
  let isAuthenticated = false;
  let isRewritten = false;
  for (const { what, plugins = [], path } of [...converted, ...ofService]) {
    isRewritten ||= path !== undefined;
    for (const { name, config, when, protects = false } of plugins) {
      const condition = when === undefined ? {} : { when };
      const known = found.get(name);
      if (name === "redirect" && isAuthenticated) lost.push("authentication before a redirect");
      // The server would decide about another path.
      if (name === "forward-auth" && isRewritten) lost.push(`${what} behind a rewrite`);
      isAuthenticated ||= authentication.has(name);
      if (known === undefined) {
        found.set(name, { name, config, ...condition, protects, what, key: name });
        continue;
      }
      if (Bun.deepEquals(known.config, config)) continue;
      if (MERGED.has(name)) {
        const both = `${known.what} and ${what}`;
        const isProtection = known.protects || protects;
        const merged = together(known.config, config) as Document;
        found.set(name, { ...known, config: merged, protects: isProtection, what: both });
      } else if (protects) lost.push(`${what}, the second of its kind`);
      else omitted.push({ what, why: `a route has one plugin ${name}` });
    }
  }
  return {
    plugins: [...found.values()],
    fields: Object.fromEntries(
      converted.flatMap(({ fields }) => (fields === undefined ? [] : Object.entries(fields))),
    ),
    path: converted.flatMap(({ path }) => path ?? []),
    lost,
    omitted,
  };
}

/** Members of both; lists follow each other, and of two values the later one applies. */
function together(first: unknown, next: unknown): unknown {
  if (Array.isArray(first) && Array.isArray(next)) {
    const items: readonly unknown[] = [...(first as unknown[]), ...(next as unknown[])];
    return items.map((item, at) =>
      isDocument(item) && "requests" in item ? { ...item, name: `limit-${at + 1}` } : item,
    );
  }
  if (!isDocument(first) || !isDocument(next)) return next ?? first;
  const names = [...new Set([...Object.keys(first), ...Object.keys(next)])];
  return Object.fromEntries(names.map((name) => [name, together(first[name], next[name])]));
}
