// Converts query parameters and conditional headers of a call to options of the use cases; knows no resource.
import type { QueryEntry } from "../control/list-filter.ts";
import type { Conditions } from "../control/representation.ts";
import type { Written, WriteOptions } from "../control/resource.ts";
import { ApiError } from "../model/error.ts";
import type { Call, Reply } from "./endpoint.ts";
import { shortList } from "../model/short-list.ts";

export function filtersOf(call: Call): readonly QueryEntry[] {
  return [...call.query.entries()];
}

/** Rejects every parameter that is not in `known`: a misspelled `dry_run` must not become a real change. */
export function requireKnownQuery(call: Call, known: readonly string[]): void {
  for (const name of call.query.keys())
    if (!known.includes(name)) throw new ApiError(400, `unknown query parameter "${name}"`);
}

/** Options of a mutation. `extra` are parameters that the caller reads itself. */
export function writeOptionsOf(call: Call, extra: readonly string[] = []): WriteOptions {
  requireKnownQuery(call, ["dry_run", ...extra]);
  return {
    by: call.principal,
    dryRun: flagOf(call, "dry_run"),
    conditions: conditionsOf(call),
  };
}

/** The same for mutations that can change management access. */
export function forcibleOptionsOf(call: Call, extra: readonly string[] = []): WriteOptions {
  return { ...writeOptionsOf(call, ["force", ...extra]), force: flagOf(call, "force") };
}

export function flagOf(call: Call, name: string): boolean {
  const value = call.query.get(name);
  if (value === null || value === "0" || value === "false") return false;
  if (value === "1" || value === "true" || value === "") return true;
  throw new ApiError(400, `${name}: must be 0 or 1`);
}

/** RFC 9110 13.1: If-Match compares strongly, so a weak tag never matches. */
function conditionsOf({ headers, method }: Call): Conditions {
  const ifMatch = headers.get("if-match");
  const tags = [...(ifMatch ?? "").matchAll(/(W\/)?"([^"]*)"/g)]
    .filter(([, weak]) => weak === undefined)
    .map(([, , tag]) => tag ?? "");
  return {
    match: ifMatch === null ? null : ifMatch.trim() === "*" ? "any" : tags,
    onlyIfAbsent: method === "PUT" && headers.get("if-none-match")?.trim() === "*",
  };
}

/** The headers of every response to a mutation. */
export function changeHeaders(
  revision: number,
  { dryRun }: WriteOptions,
  warnings: readonly string[] = [],
): Record<string, string> {
  return {
    "x-config-revision": String(revision),
    ...(dryRun ? { "x-dry-run": "true" } : {}),
    ...(warnings.length > 0 ? { "x-warning": shortList(warnings) } : {}),
  };
}

export function replyWritten(written: Written<unknown>, options: WriteOptions): Reply {
  return {
    body: written.view,
    headers: {
      etag: `"${written.tag}"`,
      ...changeHeaders(written.revision, options, written.warnings),
    },
  };
}

export function replyRead({ view, tag }: { readonly view: unknown; readonly tag: string }): Reply {
  return { body: view, headers: { etag: `"${tag}"` } };
}
