// Changes members of JSON documents by path, and preserves numbers exactly; knows no request and no response.
import type { RequestContext } from "../../pdk/context.ts";
import { compileTemplate } from "../../pdk/template.ts";
import type { JsonChanges } from "./settings.ts";

/** Changes a document in place, or returns another one. */
export type JsonChange = (document: unknown, context: RequestContext) => unknown;

type Container = Record<string, unknown> | unknown[];

const MAX_DEPTH = 32;

/** `a.b.0`, or `/a.b/0` with `~1` for a slash and `~0` for a tilde (RFC 6901). */
const segmentsOf = (path: string): string[] =>
  path.startsWith("/")
    ? path
        .slice(1)
        .split("/")
        .map((each) => each.replaceAll("~1", "/").replaceAll("~0", "~"))
    : path.split(".");

export function pathProblem(path: string): string | null {
  const segments = segmentsOf(path);
  if (segments.length > MAX_DEPTH) return "is too deep";
  if (segments.includes("__proto__")) return "must not contain __proto__";
  return segments.includes("") ? "has an empty name" : null;
}

/** Null: no change. */
export function compileJsonChanges({ set, remove, rename }: JsonChanges): JsonChange | null {
  const removals = remove.map(segmentsOf);
  const renames = Object.entries(rename).map(
    ([from, to]) => [segmentsOf(from), segmentsOf(to)] as const,
  );
  const values = Object.entries(set).map(
    ([path, value]) => [segmentsOf(path), compileValue(value)] as const,
  );
  if (removals.length + renames.length + values.length === 0) return null;
  return (document, context) => {
    if (!isContainer(document)) return document;
    for (const path of removals) take(document, path);
    for (const [from, to] of renames) {
      const value = take(document, from);
      if (value !== undefined) put(document, to, value);
    }
    for (const [path, value] of values) put(document, path, value(context));
    return document;
  };
}

/** Renders templates in strings, also inside of lists and objects. */
function compileValue(value: unknown): (context: RequestContext) => unknown {
  if (typeof value === "string") return compileTemplate(value);
  if (Array.isArray(value)) {
    const items = value.map(compileValue);
    return (context) => items.map((item) => item(context));
  }
  if (typeof value !== "object" || value === null) return () => value;
  const members = Object.entries(value).map(
    ([name, member]) => [name, compileValue(member)] as const,
  );
  return (context) => Object.fromEntries(members.map(([name, member]) => [name, member(context)]));
}

const isContainer = (value: unknown): value is Container =>
  typeof value === "object" && value !== null && !JSON_RAW.isRawJSON(value);

const indexOf = (segment: string) => (/^(?:0|[1-9]\d{0,8})$/.test(segment) ? Number(segment) : -1);

function childOf(container: Container, segment: string): unknown {
  if (Array.isArray(container)) return container[indexOf(segment)];
  return Object.hasOwn(container, segment) ? container[segment] : undefined;
}

/** Undefined: absent. */
function take(document: Container, path: readonly string[]): unknown {
  let at: unknown = document;
  for (const segment of path.slice(0, -1)) {
    if (!isContainer(at)) return undefined;
    at = childOf(at, segment);
  }
  if (!isContainer(at)) return undefined;
  const last = path.at(-1) ?? "";
  const value = childOf(at, last);
  if (value === undefined) return undefined;
  if (Array.isArray(at)) at.splice(indexOf(last), 1);
  else delete at[last];
  return value;
}

/** Creates missing objects; lists only grow by one at their end; other values are not replaced by objects. */
function put(document: Container, path: readonly string[], value: unknown): void {
  let at: Container = document;
  for (const segment of path.slice(0, -1)) {
    let next = childOf(at, segment);
    if (next === undefined) {
      next = {};
      if (!assign(at, segment, next)) return;
    }
    if (!isContainer(next)) return;
    at = next;
  }
  assign(at, path.at(-1) ?? "", value);
}

function assign(container: Container, segment: string, value: unknown): boolean {
  if (!Array.isArray(container)) {
    container[segment] = value;
    return true;
  }
  const index = indexOf(segment);
  if (index < 0 || index > container.length) return false;
  container[index] = value;
  return true;
}

/** ECMAScript 2026; not in the types yet. */
const JSON_RAW = JSON as unknown as {
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
};

type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

/** Numbers that would lose digits, such as 64-bit ids, keep their source text. */
const keepNumbers: Reviver = (_, value, context) =>
  typeof value === "number" && context?.source !== undefined && String(value) !== context.source
    ? JSON_RAW.rawJSON(context.source)
    : value;

/** Throws on invalid JSON. */
export const parseJson = (text: string): unknown =>
  JSON.parse(text, keepNumbers as (key: string, value: unknown) => unknown);
