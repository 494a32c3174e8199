// Splits a configuration of HAProxy into sections and words, with line numbers; knows no keyword of a section.
import { ApiError } from "../../model/error.ts";

export interface Line {
  readonly words: readonly string[];
  /** From 1. */
  readonly number: number;
}

export interface Section {
  readonly kind: string;
  readonly name: string;
  readonly number: number;
  readonly lines: readonly Line[];
  /** Lines of the defaults that apply to it. */
  readonly defaults: readonly Line[];
}

const KINDS: ReadonlySet<string> = new Set([
  ...["global", "defaults", "frontend", "backend", "listen", "userlist", "resolvers", "peers"],
  ...["mailers", "cache", "program", "http-errors", "ring", "log-forward", "fcgi-app", "crt-store"],
  ...["traces", "log-profile", "acme"],
]);

/** Throws a 400 with the line. */
export function readSections(text: string): readonly Section[] {
  const sections: (Section & { lines: Line[] })[] = [];
  const named = new Map<string, readonly Line[]>();
  let defaults: Line[] = [];
  for (const [at, source] of text.split(/\r?\n/).entries()) {
    const number = at + 1;
    const words = wordsOf(source, number);
    const [kind = "", name = ""] = words;
    if (kind === "") continue;
    if (!KINDS.has(kind)) {
      const current = sections.at(-1);
      if (current === undefined)
        throw new ApiError(400, `${kind}: is not a section of HAProxy (line ${number})`);
      current.lines.push({ words, number });
      continue;
    }
    const from = words.indexOf("from");
    const base = from === -1 ? defaults : (named.get(words[from + 1] ?? "") ?? defaults);
    const lines: Line[] = [];
    if (kind === "defaults") {
      // A section of defaults starts anew, unless it names another one.
      if (from !== -1) lines.push(...base);
      defaults = lines;
      if (name !== "" && name !== "from") named.set(name, lines);
    }
    sections.push({ kind, name, number, lines, defaults: kind === "defaults" ? [] : base });
  }
  if (!sections.some(({ kind }) => /^(?:frontend|backend|listen)$/.test(kind)))
    throw new ApiError(400, "the file has no frontend, backend or listen of HAProxy");
  return sections;
}

/** Words in quotation marks or with escapes are one word; # begins a comment. */
function wordsOf(source: string, number: number): readonly string[] {
  const words: string[] = [];
  let current: string | null = null;
  let quote = "";
  for (let at = 0; at < source.length; at++) {
    const character = source[at] ?? "";
    if (character === "\\" && quote !== "'") {
      // Before any other character, as in expressions, it stays.
      const next = source[at + 1] ?? "";
      const isEscape = /[\s\\#"'$]/.test(next) && (next !== "$" || quote !== "");
      if (isEscape) at += 1;
      current = (current ?? "") + (isEscape ? next : character);
    } else if (quote !== "") {
      if (character === quote) quote = "";
      else current = (current ?? "") + character;
    } else if (character === '"' || character === "'") {
      quote = character;
      current ??= "";
    } else if (/\s/.test(character)) {
      if (current !== null) words.push(current);
      current = null;
    } else if (character === "#") break;
    else current = (current ?? "") + character;
  }
  if (quote !== "") throw new ApiError(400, `a quotation mark is not closed (line ${number})`);
  if (current !== null) words.push(current);
  return words;
}

/** The words after a keyword of the section, or of its defaults; the last line applies. */
export function settingOf(
  section: Section,
  ...keyword: readonly string[]
): readonly string[] | null {
  const isIt = ({ words }: Line) => keyword.every((word, at) => words[at] === word);
  const found = section.lines.findLast(isIt) ?? section.defaults.findLast(isIt);
  const isReset = section.lines.some(
    ({ words }) => words[0] === "no" && keyword.every((word, at) => words[at + 1] === word),
  );
  return found === undefined || isReset ? null : found.words.slice(keyword.length);
}

/** HAProxy forwards bytes where no mode is set. */
export const isHttp = (section: Section): boolean => settingOf(section, "mode")?.[0] === "http";

const UNITS: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `5s`, or a number of milliseconds; null: no time. */
export function millisecondsOf(text: string | undefined): number | null {
  const [, count, unit = "ms"] = /^(\d+)(us|ms|s|m|h|d)?$/.exec(text ?? "") ?? [];
  return count === undefined ? null : Math.round(Number(count) * (UNITS[unit] ?? 1));
}
