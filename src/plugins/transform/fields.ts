// Changes header fields and query parameters; knows no body.
import type { RequestContext, UpstreamRequest } from "../../pdk/context.ts";
import { compileTemplate, type Template } from "../../pdk/template.ts";
import { fieldEscape } from "./replacement.ts";
import type { HeaderChanges, QueryChanges } from "./settings.ts";

type Change<T> = (what: T, context: RequestContext) => void;

const compiled = (values: Readonly<Record<string, string>>): [string, Template][] =>
  Object.entries(values).map(([name, value]) => [name, compileTemplate(value, fieldEscape)]);

/** Field values have no surrounding white space. */
const fill = (value: Template, context: RequestContext) => value(context).trim();

/** Null: no change. */
export function compileRequestHeaders(changes: HeaderChanges): Change<UpstreamRequest> | null {
  const { remove } = changes;
  const [set, add] = [compiled(changes.set), compiled(changes.add)];
  const rename = Object.entries(changes.rename);
  if (set.length + add.length + remove.length + rename.length === 0) return null;
  return (upstream, context) => {
    for (const name of remove) upstream.removeHeader(name);
    for (const [from, to] of rename) {
      const value = upstream.header(from);
      if (value === null) continue;
      upstream.removeHeader(from);
      upstream.setHeader(to, value);
    }
    for (const [name, value] of set) upstream.setHeader(name, fill(value, context));
    for (const [name, value] of add) upstream.addHeader(name, fill(value, context));
  };
}

/** Null: no change. */
export function compileResponseHeaders(changes: HeaderChanges): Change<Headers> | null {
  const { remove } = changes;
  const [set, add] = [compiled(changes.set), compiled(changes.add)];
  const rename = Object.entries(changes.rename);
  if (set.length + add.length + remove.length + rename.length === 0) return null;
  return (headers, context) => {
    for (const name of remove) headers.delete(name);
    for (const [from, to] of rename) {
      const values =
        from.toLowerCase() === "set-cookie" ? headers.getSetCookie() : [headers.get(from)];
      headers.delete(from);
      for (const [at, value] of values.entries()) {
        if (value === null) continue;
        if (at === 0) headers.set(to, value);
        else headers.append(to, value);
      }
    }
    for (const [name, value] of set) headers.set(name, fill(value, context));
    for (const [name, value] of add) headers.append(name, fill(value, context));
  };
}

/** Builds the new query; null: no change. */
export function compileQuery(
  changes: QueryChanges,
): ((query: string, context: RequestContext) => string) | null {
  const remove = new Set(changes.remove);
  const rename = new Map(Object.entries(changes.rename));
  const set = Object.entries(changes.set).map(
    ([name, value]) => [name, compileTemplate(value)] as const,
  );
  const add = Object.entries(changes.add).map(
    ([name, value]) => [name, compileTemplate(value)] as const,
  );
  if (remove.size + rename.size + set.length + add.length === 0) return null;
  const replaced = new Set(Object.keys(changes.set));
  return (query, context) => {
    const parts: string[] = [];
    for (const part of query.split("&")) {
      if (part === "") continue;
      const equals = part.indexOf("=");
      const name = decoded(equals < 0 ? part : part.slice(0, equals));
      if (remove.has(name)) continue;
      const next = rename.get(name) ?? name;
      if (replaced.has(next)) continue;
      // Keeps the encoding of parameters that are not renamed.
      parts.push(next === name ? part : encoded(next) + (equals < 0 ? "" : part.slice(equals)));
    }
    for (const [name, value] of [...set, ...add])
      parts.push(`${encoded(name)}=${encoded(value(context))}`);
    return parts.join("&");
  };
}

const encoded = (text: string) => encodeURIComponent(text.toWellFormed());

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll("+", " "));
  } catch {
    return name;
  }
}
