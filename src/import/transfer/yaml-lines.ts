// Finds the line of a member of a YAML document in block style, by its indentation; does not enter `{}` and `[]`.
import type { PathStep } from "./source.ts";

/** The line, from 1, of the path, or of its last step that was found. */
export function findYamlLine(text: string, path: readonly PathStep[]): number {
  const lines = text.split("\n");
  let found = 0;
  let block: Block | null = { line: 0, column: 0 };
  for (const step of path) {
    const entry: Found | null =
      typeof step === "number" ? item(lines, block, step) : member(lines, block, step);
    if (entry === null) break;
    found = entry.found;
    block = contents(lines, entry);
    if (block === null) break;
  }
  return found + 1;
}

/** The start of a mapping or sequence: its first line, and the column of its entries. */
interface Block {
  readonly line: number;
  readonly column: number;
}

interface Found extends Block {
  /** Line of the entry. */
  readonly found: number;
}

/** Finds a member of a mapping. The first may follow dashes. */
function member(lines: string[], { line, column }: Block, name: string): Found | null {
  for (const index of entries(lines, { line, column })) {
    const rest = (lines[index] ?? "").slice(column);
    const [, quoted, plain] =
      /^(?:"((?:[^"\\]|\\.)*)"|([^\s:#][^:#]*?))\s*:(?:\s|$)/.exec(rest) ?? [];
    if ((quoted ?? plain) === name) return { found: index, line: index, column };
  }
  return null;
}

function item(lines: string[], { line, column }: Block, wanted: number): Found | null {
  let count = 0;
  for (const index of entries(lines, { line, column })) {
    if (!/^-(\s|$)/.test((lines[index] ?? "").slice(column))) return null;
    if (count++ === wanted) return { found: index, line: index, column };
  }
  return null;
}

/** Lines that start in exactly this column, up to the first with less indentation. */
function* entries(lines: string[], { line, column }: Block): Generator<number> {
  for (let index = line; index < lines.length; index++) {
    const start = index === line ? column : startOf(lines[index] ?? "");
    if (start === null || start > column) continue;
    if (start < column) return;
    yield index;
  }
}

/** The start of an entry's value, if it is a block. */
function contents(lines: string[], { line, column, found }: Found): Block | null {
  const text = lines[found] ?? "";
  const dash = /^-\s+(?=\S)/.exec(text.slice(column));
  if (dash !== null) return { line, column: column + dash[0].length };
  for (let index = found + 1; index < lines.length; index++) {
    const start = startOf(lines[index] ?? "");
    if (start === null) continue;
    // A sequence may have the indentation of its key.
    const isBelow = start > column || (start === column && /^\s*-(\s|$)/.test(lines[index] ?? ""));
    return isBelow ? { line: index, column: start } : null;
  }
  return null;
}

/** Column of the first character; null for an empty line, comment or directive. */
function startOf(line: string): number | null {
  const start = line.search(/\S/);
  return start === -1 || line[start] === "#" || /^(---|%)/.test(line) ? null : start;
}
