// Reads map blocks, whose variables decide about targets and redirects; knows no route.
import type { Conditions } from "./content.ts";
import { hostCondition, hostExpression, isHost } from "./server-names.ts";
import { type Directive, Level, shownPlace } from "./tree.ts";
import { variablesIn, withFixed } from "./variables.ts";

export interface VariableMap {
  /** Name of the variable that it compares. */
  readonly source: string;
  /** `map at nginx.conf:3` */
  readonly label: string;
  /** Values by the texts that the source equals, in lower case: nginx ignores the case. */
  readonly texts: ReadonlyMap<string, string>;
  /** Expressions with their values, in order; those that ignore the case begin with `(?i)`. */
  readonly expressions: readonly (readonly [string, string])[];
  /** Whether `*.a.test` stands for names. */
  readonly hasHostnames: boolean;
  /** The value for all others. */
  readonly rest: string;
}

/** The map of a variable; null: it has none, or one with an entry that the import does not know. */
export function mapOf(name: string, level: Level): VariableMap | null {
  const found = mapsOf(level).find(({ args }) => args[1] === `$${name}`);
  const [, source] = /^\$\{?(\w+)\}?$/.exec(found?.args[0] ?? "") ?? [];
  if (found === undefined || source === undefined) return null;
  const texts = new Map<string, string>();
  const expressions: (readonly [string, string])[] = [];
  const flags = new Set<string>();
  let rest = "";
  for (const { name: key, args } of found.block ?? []) {
    const [value, ...others] = args;
    if (value === undefined && /^(?:hostnames|volatile)$/.test(key)) flags.add(key);
    else if (value === undefined || others.length > 0 || /^(?:include$|\\)/.test(key)) return null;
    else if (key === "default") rest = value;
    else if (key.startsWith("~*")) expressions.push([`(?i)${key.slice(2)}`, value]);
    else if (key.startsWith("~")) expressions.push([key.slice(1), value]);
    else texts.set(key.toLowerCase(), value);
  }
  const label = `map at ${shownPlace(found.place)}`;
  const hasHostnames = flags.has("hostnames");
  return { source, label, texts, expressions, hasHostnames, rest };
}

const mapsOf = (level: Level): readonly Directive[] =>
  level.chain.flatMap((each) => each.own("map"));

/** ` of the map at nginx.conf:3` for a text with the variable of a map. */
export function mapIn(text: string, level: Level): string {
  const names = variablesIn(withFixed(text, level));
  const found = mapsOf(level).find(({ args }) => names.includes((args[1] ?? "").slice(1)));
  return found === undefined ? "" : `, by the map at ${shownPlace(found.place)}`;
}

/** A level in which the variable of a map has a fixed value, for the requests with that value. */
export interface Variant {
  readonly conditions: Conditions;
  readonly level: Level;
}

/** One for each value of the map in proxy_pass, in the order in which they are tried; null: no map of hosts decides. */
export function variantsOf(level: Level): readonly Variant[] | null {
  const target = withFixed(level.own("proxy_pass").at(-1)?.args[0] ?? "", level);
  const [name, ...others] = variablesIn(target).filter((each) => mapOf(each, level) !== null);
  const map = name === undefined ? null : mapOf(name, level);
  if (map === null || others.length > 0 || !/^(?:http_)?host$/.test(map.source)) return null;
  const made: Variant[] = [];
  const add = (conditions: Conditions, value: string) => {
    const set = { name: "set", args: [`$${name}`, value], block: null, place: level.place };
    const block = [...level.block, set];
    made.push({ conditions, level: new Level({ block, place: level.place }, level.parent) });
  };
  const wild = new Map<string, string>();
  for (const [key, value] of map.texts) {
    const isBoth = map.hasHostnames && key.startsWith(".");
    const isWild = isBoth || (map.hasHostnames && key.startsWith("*."));
    if (map.hasHostnames && key.endsWith(".*")) return null;
    const host = key.replace(/^\*?\./, "");
    if (!isHost(host) || (!isWild && host !== key)) return null;
    if (isWild) wild.set(host, value);
    // The name itself goes before what a wildcard matches.
    if (!isWild || (isBoth && !map.texts.has(host))) add({ hosts: [host] }, value);
  }
  for (const [host, value] of [...wild].toSorted(([a], [b]) => b.length - a.length))
    add({ hosts: [`*.${host}`] }, value);
  for (const [expression, value] of map.expressions) {
    const source = hostExpression(expression);
    // A group of it may be in the value.
    if (source === null || /\$/.test(value)) return null;
    add({ headers: [hostCondition(source)] }, value);
  }
  add({}, map.rest);
  return made;
}
