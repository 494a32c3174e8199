// Finds the line of a member of a JSON document; the text must be valid JSON, and values are not parsed.
import type { PathStep } from "./source.ts";

/** The line, from 1, of the path, or of its last existing step. */
export function findJsonLine(text: string, path: readonly PathStep[]): number {
  let at = skipSpace(text, 0);
  for (const step of path) {
    const next = text[at] === "{" ? member(text, at, step) : item(text, at, step);
    if (next === null) break;
    at = next;
  }
  return lineAt(text, at);
}

const lineAt = (text: string, end: number): number => {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) line++;
  return line;
};

function member(text: string, open: number, wanted: PathStep): number | null {
  let at = skipSpace(text, open + 1);
  while (text[at] === '"') {
    const end = endOfString(text, at);
    const name: unknown = JSON.parse(text.slice(at, end));
    const value = skipSpace(text, skipSpace(text, end) + 1);
    if (name === String(wanted)) return value;
    at = skipSpace(text, endOfValue(text, value));
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return null;
}

function item(text: string, open: number, wanted: PathStep): number | null {
  if (text[open] !== "[" || typeof wanted !== "number") return null;
  let at = skipSpace(text, open + 1);
  for (let index = 0; text[at] !== "]" && at < text.length; index++) {
    if (index === wanted) return at;
    at = skipSpace(text, endOfValue(text, at));
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return null;
}

function endOfValue(text: string, start: number): number {
  let depth = 0;
  let at = start;
  do {
    const character = text[at] ?? "";
    if (depth === 0 && !'"{['.includes(character)) return endOfWord(text, at);
    if ("{[".includes(character)) depth++;
    else if ("}]".includes(character)) depth--;
    at = character === '"' ? endOfString(text, at) : at + 1;
  } while (depth > 0 && at < text.length);
  return at;
}

function endOfWord(text: string, start: number): number {
  let at = start;
  while (at < text.length && !/[\s,\]}]/.test(text[at] ?? "")) at++;
  return at;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (" \t\n\r".includes(text[at] ?? "x")) at++;
  return at;
}
