// What is looked for in JSON Schemas before anything is compiled: references that lead out, and regular expressions; knows no validator.

export interface Spot {
  /** Inside of what was looked through: `properties.name.pattern`. */
  readonly path: string;
  readonly source: string;
}

/** Objects and values that a schema may be made of; a text of a few bytes could otherwise be unfolded to millions (YAML aliases). */
const MAX_NODES = 200_000;
const MAX_DEPTH = 200;
const MAX_REGEXES = 500;

/** Members whose own members have names that somebody chose: none of them is a keyword. */
const MAPS: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"],
  ...["dependentRequired", "schemas", "responses", "requestBodies", "headers", "paths"],
  ...["content", "callbacks", "pathItems", "securitySchemes", "links", "mapping", "encoding"],
]);

/** Members that hold examples and values, not schemas. */
const VALUES: ReadonlySet<string> = new Set(["example", "examples", "const", "enum", "default"]);

/** Which members of an object are not schemas, by where it stands. */
export const isMap = (name: string): boolean => MAPS.has(name);
export const holdsValues = (name: string): boolean => VALUES.has(name) || name.startsWith("x-");

interface Found {
  readonly regexes: Spot[];
  readonly problems: { readonly path: string; readonly message: string }[];
}

/** Everything in a schema, or in a document with schemas, that has to be looked at. */
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
      // The names of these are expressions.
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

function inspect(
  name: string,
  value: unknown,
  { path, found }: { readonly path: string; readonly found: Found },
): void {
  if (typeof value !== "string") return;
  if (name === "pattern") found.regexes.push({ path, source: value });
  if ((name === "$ref" || name === "$dynamicRef") && !value.startsWith("#"))
    found.problems.push({ path, message: "leads out of the document, and nothing is fetched" });
  if (name === "$id" && !value.startsWith("#"))
    found.problems.push({
      path,
      message: "cannot be given: references begin at the document itself",
    });
  if (name === "$schema" && !/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/.test(value))
    found.problems.push({ path, message: "must be that of JSON Schema 2020-12" });
}

/** Steps of a matcher that grow with the square of a text are few for one of this length. */
export const MAX_UNCHECKED_TEXT = 2048;

/**
 * Whether an expression takes no more than the square of its text's length, seen from its form alone: no group is repeated,
 * nothing refers back or looks around, and hardly anything is repeated without an end. For documents that are fetched while
 * traffic flows, where no time is left to judge one in earnest.
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
