// Scans JSON Schemas before compilation for external references and regular expressions; knows no validator.

export interface Spot {
  /** Relative to the scanned value: `properties.name.pattern`. */
  readonly path: string;
  readonly source: string;
}

/** Maximum number of values in a schema; YAML aliases could otherwise expand a few bytes to millions. */
const MAX_NODES = 200_000;
const MAX_DEPTH = 200;
const MAX_REGEXES = 500;

/** Keywords whose member names are chosen by the author, and are no keywords. */
const MAPS: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"],
  ...["dependentRequired", "schemas", "responses", "requestBodies", "headers", "paths"],
  ...["content", "callbacks", "pathItems", "securitySchemes", "links", "mapping", "encoding"],
]);

/** Keywords with examples and values instead of schemas. */
const VALUES: ReadonlySet<string> = new Set(["example", "examples", "const", "enum", "default"]);

/** The members of an object that are not schemas, depending on its location. */
export const isMap = (name: string): boolean => MAPS.has(name);
export const holdsValues = (name: string): boolean => VALUES.has(name) || name.startsWith("x-");

interface Found {
  readonly regexes: Spot[];
  readonly problems: { readonly path: string; readonly message: string }[];
}

/** The references, patterns and problems of a schema, or of a document with schemas. */
export function lookThrough(document: unknown): Found {
  const found: Found = { regexes: [], problems: [] };
  let nodes = 0;
  const tooBig = () => {
    if (found.problems.every(({ message }) => message !== TOO_BIG))
      found.problems.push({ path: "", message: TOO_BIG });
  };
  const walk = (value: unknown, at: { path: string; depth: number; isMap: boolean }): void => {
    if (typeof value !== "object" || value === null || nodes > MAX_NODES) return;
    if (at.depth > MAX_DEPTH) return tooBig();
    for (const [name, member] of Object.entries(value)) {
      nodes++;
      if (nodes > MAX_NODES) return tooBig();
      const path = at.path === "" ? name : `${at.path}.${name}`;
      const isKeyword = !at.isMap && !Array.isArray(value);
      if (isKeyword && holdsValues(name)) continue;
      if (isKeyword) inspect(name, member, { path, found });
      const inMap = isKeyword && isMap(name);
      // Its member names are regular expressions.
      if (isKeyword && name === "patternProperties" && typeof member === "object")
        for (const source of Object.keys(member ?? {})) found.regexes.push({ path, source });
      walk(member, { path, depth: at.depth + 1, isMap: inMap });
    }
  };
  walk(document, { path: "", depth: 0, isMap: false });
  if (found.regexes.length > MAX_REGEXES)
    found.problems.push({ path: "", message: `holds more than ${MAX_REGEXES} patterns` });
  return found;
}

const TOO_BIG = "is too large or too deep";

/** Of one schema with all that it refers to: compilation takes up to 130 µs for each value, and blocks its thread. */
const MAX_COMPILED = 2_000;

/** Texts that compilation skips. */
const ANNOTATIONS: ReadonlySet<string> = new Set(["title", "description", "$comment"]);

/** `values`: of the schema, without descriptions, and of what it refers to in `root`, each reference once. Stops above the limit of one schema. */
export function sizeOf(
  schema: unknown,
  root: unknown,
): { readonly values: number; readonly problem: string | null } {
  const seen = new Set<string>();
  const open: unknown[] = [schema];
  let values = 0;
  while (open.length > 0 && values <= MAX_COMPILED) {
    const value = open.pop();
    if (typeof value !== "object" || value === null) continue;
    for (const [name, member] of Object.entries(value)) {
      if (typeof member === "string" && ANNOTATIONS.has(name)) continue;
      values++;
      open.push(member);
      const isReference = (name === "$ref" || name === "$dynamicRef") && typeof member === "string";
      if (!isReference || seen.has(member)) continue;
      seen.add(member);
      open.push(valueAt(root, member));
    }
  }
  const most = MAX_COMPILED.toLocaleString("en");
  const problem =
    values > MAX_COMPILED ? `holds more than ${most} values, with all that it refers to` : null;
  return { values, problem };
}

/** The value at the pointer in a reference; undefined: there is none. */
function valueAt(root: unknown, reference: string): unknown {
  let found = root;
  for (const raw of reference.slice(reference.indexOf("#")).split("/").slice(1)) {
    const name = decodePointer(raw);
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name))
      return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}

export const decodeSafely = (segment: string): string => {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
};

/** A segment of a JSON pointer in a URI (RFC 6901 section 6). */
export const decodePointer = (raw: string): string =>
  decodeSafely(raw).replaceAll("~1", "/").replaceAll("~0", "~");

function inspect(
  name: string,
  value: unknown,
  { path, found }: { readonly path: string; readonly found: Found },
): void {
  if (typeof value !== "string") return;
  if (name === "pattern") found.regexes.push({ path, source: value });
  if ((name === "$ref" || name === "$dynamicRef") && !value.startsWith("#"))
    found.problems.push({ path, message: "refers to another document, which is not fetched" });
  if (name === "$id" && !value.startsWith("#"))
    found.problems.push({
      path,
      message: "is not supported: references start at the document itself",
    });
  if (name === "$schema" && !/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/.test(value))
    found.problems.push({ path, message: "must be that of JSON Schema 2020-12" });
}

/** Longest text for patterns with quadratic cost. */
export const MAX_UNCHECKED_TEXT = 2048;

/**
 * Whether an expression has at most quadratic cost, judged by its syntax alone: no repeated groups, no backreferences, no
 * lookarounds, and few unbounded quantifiers. For documents that are fetched at run time, when there is no time for a full
 * analysis.
 */
export function isPlainPattern(source: string): boolean {
  const flat = source
    .replaceAll(/\\[1-9]|\\k/g, "(?=")
    .replaceAll(/\\./gs, "x")
    .replaceAll(/\[[^\]]*\]/g, "x");
  if (/\)(?:[*+]|\{)|\(\?(?:[=!]|<[=!])/.test(flat)) return false;
  const endless = flat.match(/[*+]|\{\d*,\}/g)?.length ?? 0;
  return endless + (flat.startsWith("^") ? 0 : 1) <= 2;
}
