// Extracts parameters and forms for validation; knows no schema and no document.
import type { RequestContext } from "../../pdk/context.ts";
import { cookieValue } from "../../pdk/http.ts";
import type { Operation, Parameter } from "./openapi.ts";

/** Parameters by name: a string, or a list when one is repeated. Null: invalid escapes. */
export function formValues(text: string): Record<string, string | string[]> | null {
  const values = new Map<string, string | string[]>();
  for (const part of text.split("&")) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = decoded(equals < 0 ? part : part.slice(0, equals));
    const value = equals < 0 ? "" : decoded(part.slice(equals + 1));
    if (name === null || value === null) return null;
    const before = values.get(name);
    values.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(values);
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null;
  }
}

/** Null: all parameters are valid; otherwise the first invalid one and the reason. */
export function parameterProblem(
  { parameters }: Operation,
  context: RequestContext,
  inPath: ReadonlyMap<string, string>,
): string | null {
  let query: Record<string, string | string[]> | null | undefined;
  for (const parameter of parameters) {
    if (parameter.in === "query" && query === undefined) query = formValues(context.query);
    if (query === null) return "the query is not valid";
    const raw = rawValue(parameter, { context, inPath, query: query ?? {} });
    const problem = valueProblem(parameter, raw);
    if (problem !== null) return `${parameter.in} parameter ${parameter.name} ${problem}`;
  }
  return null;
}

interface Given {
  readonly context: RequestContext;
  readonly inPath: ReadonlyMap<string, string>;
  readonly query: Readonly<Record<string, string | string[]>>;
}

function rawValue({ name, in: place }: Parameter, given: Given): string | string[] | null {
  switch (place) {
    case "path":
      return pathValue(given.inPath.get(name) ?? "");
    case "query":
      return Object.hasOwn(given.query, name) ? (given.query[name] ?? null) : null;
    case "header":
      return given.context.header(name.toLowerCase());
    case "cookie":
      return cookieValue(given.context.header("cookie"), name);
    default:
      return place satisfies never;
  }
}

function pathValue(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}

function valueProblem(parameter: Parameter, raw: string | string[] | null): string | null {
  if (raw === null) return parameter.isRequired ? "is required" : null;
  const { check, isList, separator, isJson } = parameter;
  if (check === null) return null;
  if (isJson) {
    if (Array.isArray(raw)) return "is repeated";
    try {
      return check(JSON.parse(raw));
    } catch {
      return "must be JSON";
    }
  }
  if (isList) {
    const items =
      separator === null ? [raw].flat() : [raw].flat().flatMap((each) => each.split(separator));
    return check(items);
  }
  // Ambiguous.
  return Array.isArray(raw) ? "is repeated" : check(raw);
}
