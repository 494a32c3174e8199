// Converts host expressions of Traefik to names, wildcards and conditions on the header Host; knows no other condition.
import { portable } from "../expression.ts";

/** Hosts that an expression matches. */
export interface HostSet {
  /** As in a route; empty: any. */
  readonly hosts: readonly string[];
  /** Expression on the header Host that must hold, too; null: none. */
  readonly header: string | null;
}

/** A trailing dot and the port do not count in Traefik. */
export const HOST_END = "\\.?(?::\\d*)?$";

const MAX_NAMES = 64;

/** Null without an equivalent. Traefik compares the host in lower case and without the port. */
export function hostExpression(source: string): HostSet | null {
  const expression = /\{\w+(?::[^{}]*(?:\{[^{}]*\}[^{}]*)*)?\}/.test(source)
    ? fromPattern(source, "[^.]+")
    : source;
  const isWhole = expression.startsWith("^") && expression.endsWith("$");
  const inner = expression.slice(1, -1);
  if (/^\^?(?:\.[*+]|\(\.[*+]\)|\(\?:\.[*+]\))\$?$/.test(expression))
    return { hosts: [], header: null };
  const names = isWhole ? namesOf(inner) : null;
  if (names !== null) return { hosts: [...names], header: null };
  const known = portable(expression, true);
  if (known === null) return null;
  const anchored = known.source.startsWith("^") ? known.source : `^[^:]*?(?:${known.source})`;
  const header = anchored.replaceAll(/\\.|\[\^?\]?[^\]]*\]|\$/g, (token) =>
    token === "$" ? `(?=${HOST_END})` : token === "." ? "[^:]" : token,
  );
  const [, start = "", domain = ""] =
    /^(.+?)\\\.((?:[a-z0-9_-]+\\\.)*[a-z0-9_-]+)$/i.exec(isWhole ? inner : "") ?? [];
  const isBelow = start !== "" && !hasChoice(start) && !start.endsWith("\\");
  if (!isBelow) return { hosts: [], header };
  const hosts = [`*.${domain.replaceAll("\\", "").toLowerCase()}`];
  return { hosts, header: /^\(?(?:\?:)?\.[+*]\)?$/.test(start) ? null : header };
}

/** `{name}` and `{name:expression}` of Traefik 2. */
export function fromPattern(pattern: string, any: string): string {
  const parts = pattern.split(/(\{\w+(?::[^{}]*(?:\{[^{}]*\}[^{}]*)*)?\})/);
  const made = parts.map((part, at) => {
    if (at % 2 === 0) return part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const [, expression = any] = /^\{\w+:([\s\S]*)\}$/.exec(part) ?? [];
    return `(?:${expression})`;
  });
  return `^${made.join("")}$`;
}

/** Whether an alternative is outside of all groups. */
function hasChoice(source: string): boolean {
  let depth = 0;
  for (const token of source.match(/\\.|\[[^\]]*\]|[\s\S]/g) ?? []) {
    if (token === "(") depth += 1;
    else if (token === ")") depth -= 1;
    else if (token === "|" && depth === 0) return true;
  }
  return depth !== 0;
}

/** All texts that match; null: too many, or an unknown construct. */
function namesOf(source: string): ReadonlySet<string> | null {
  const tokens = source.match(/\\.|\(\?:|[\s\S]/g) ?? [];
  const made = choiceOf(tokens, 0);
  if (made === null || made.end !== tokens.length) return null;
  return made.names.has("") ? null : made.names;
}

interface Names {
  readonly names: ReadonlySet<string>;
  readonly end: number;
}

function choiceOf(tokens: readonly string[], start: number): Names | null {
  const all = new Set<string>();
  let current: ReadonlySet<string> = new Set([""]);
  let at = start;
  for (; at < tokens.length && tokens[at] !== ")"; at++) {
    const token = tokens[at] ?? "";
    if (token === "|") {
      for (const name of current) all.add(name);
      current = new Set([""]);
      continue;
    }
    const atom = atomOf(tokens, at);
    if (atom === null) return null;
    at = atom.end;
    const isOptional = tokens[at + 1] === "?";
    if (isOptional) at += 1;
    const choices = isOptional ? ["", ...atom.names] : [...atom.names];
    current = new Set([...current].flatMap((left) => choices.map((right) => left + right)));
    if (current.size > MAX_NAMES) return null;
  }
  for (const name of current) all.add(name);
  return all.size > MAX_NAMES ? null : { names: all, end: at };
}

/** `end` is the last token of the atom. */
function atomOf(tokens: readonly string[], at: number): Names | null {
  const token = tokens[at] ?? "";
  if (token === "(" || token === "(?:") {
    const inner = choiceOf(tokens, at + 1);
    return inner === null || tokens[inner.end] !== ")" ? null : inner;
  }
  if (token === "\\." || token === "\\-") return { names: new Set([token.slice(1)]), end: at };
  return /^[a-z0-9_-]$/i.test(token) ? { names: new Set([token.toLowerCase()]), end: at } : null;
}
