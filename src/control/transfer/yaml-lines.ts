// Finds the line of a member of a YAML document in block style, by its indentation; inside `{}` and `[]` it stops before them.
import type { PathStep } from "./source.ts";

/** The line, from 1, of what the path leads to, or of the last step that could be found. */
export function findYamlLine(text: string, path: readonly PathStep[]): number {
  const lines = text.split("\n");
  let found = 0;
  let place: Place | null = { line: 0, column: 0 };
  for (const step of path) {
    const entry: Found | null =
      typeof step === "number" ? item(lines, place, step) : member(lines, place, step);
    if (entry === null) break;
    found = entry.found;
    place = contents(lines, entry);
    if (place === null) break;
  }
  return found + 1;
}

/** Where a mapping or sequence begins: its first line, and the column that its entries stand in. */
interface Place {
  readonly line: number;
  readonly column: number;
}

interface Found extends Place {
  /** Line of the entry. */
  readonly found: number;
}

/** Members of a mapping at this place. The first may stand behind dashes. */
function member(lines: string[], { line, column }: Place, name: string): Found | null {
  for (const index of entries(lines, { line, column })) {
    const rest = (lines[index] ?? "").slice(column);
    const [, quoted, plain] =
      /^(?:"((?:[^"\\]|\\.)*)"|([^\s:#][^:#]*?))\s*:(?:\s|$)/.exec(rest) ?? [];
    if ((quoted ?? plain) === name) return { found: index, line: index, column };
  }
  return null;
}

function item(lines: string[], { line, column }: Place, wanted: number): Found | null {
  let count = 0;
  for (const index of entries(lines, { line, column })) {
    if (!/^-(\s|$)/.test((lines[index] ?? "").slice(column))) return null;
    if (count++ === wanted) return { found: index, line: index, column };
  }
  return null;
}

/** Lines on which something begins in exactly this column, up to the first that stands further left. */
function* entries(lines: string[], { line, column }: Place): Generator<number> {
  for (let index = line; index < lines.length; index++) {
    const start = index === line ? column : startOf(lines[index] ?? "");
    if (start === null || start > column) continue;
    if (start < column) return;
    yield index;
  }
}

/** Where the value of an entry begins, if it is written as a block. */
function contents(lines: string[], { line, column, found }: Found): Place | null {
  const text = lines[found] ?? "";
  const dash = /^-\s+(?=\S)/.exec(text.slice(column));
  if (dash !== null) return { line, column: column + dash[0].length };
  for (let index = found + 1; index < lines.length; index++) {
    const start = startOf(lines[index] ?? "");
    if (start === null) continue;
    // A sequence may stand right below the name that it belongs to.
    const isBelow = start > column || (start === column && /^\s*-(\s|$)/.test(lines[index] ?? ""));
    return isBelow ? { line: index, column: start } : null;
  }
  return null;
}

/** Column of the first character; null for a line that says nothing. */
function startOf(line: string): number | null {
  const start = line.search(/\S/);
  return start === -1 || line[start] === "#" || /^(---|%)/.test(line) ? null : start;
}
