// Finds what parsers read differently in valid JSON: repeated members, inexact numbers, lone surrogates.
/** By character code: whether a token begins with it. A match for each would cost five times as much. */
const BEGINS = new Uint8Array(128);
for (const character of '"{}[],0123456789-') BEGINS[character.charCodeAt(0)] = 1;
const NUMBER = /-?\d[\d.eE+-]*/y;

export interface Ambiguity {
  /** `targets[0].port` */
  readonly path: string;
  readonly message: string;
}

/** An object or list that is being walked through. */
interface Level {
  /** Of an object: the members so far; null for a list. */
  readonly names: Set<string> | null;
  /** What is being read: a name or an index. */
  at: string | number;
  /** Whether the next string is a name. */
  expectsName: boolean;
}

/**
 * The first one, or null. `text` must be valid JSON. RFC 8259 leaves their meaning to each parser. `numbers`: whether
 * inexact ones count; default true.
 */
export function findAmbiguity(text: string, { numbers = true } = {}): Ambiguity | null {
  const levels: Level[] = [];
  for (const token of tokensOf(text)) {
    const level = levels.at(-1);
    if (token === "{") levels.push({ names: new Set(), at: "", expectsName: true });
    else if (token === "[") levels.push({ names: null, at: 0, expectsName: false });
    else if (token === "}" || token === "]") levels.pop();
    else if (token === ",") advance(level);
    else if (token.startsWith('"')) {
      if (level?.expectsName === true && !addName(level, token))
        return { path: pathOf(levels), message: "is given twice" };
      if (!isWellFormed(token))
        return {
          path: pathOf(levels),
          message: "holds a lone surrogate, which is no valid character",
        };
    } else if (numbers && !isExact(token)) {
      const message = "is a number beyond what can be represented exactly";
      return { path: pathOf(levels), message };
    }
  }
  return null;
}

/** Strings, numbers, brackets and commas in their order. A string is not matched as a whole: long ones exhaust the matcher. */
function* tokensOf(text: string): Generator<string> {
  let end = 0;
  for (let start = next(text, end); start !== -1; start = next(text, end)) {
    const first = text[start] ?? "";
    if (first === '"') end = endOfString(text, start);
    else if (/[-\d]/.test(first)) end = endOfNumber(text, start);
    else end = start + 1;
    yield text.slice(start, end);
  }
}

function next(text: string, from: number): number {
  for (let at = from; at < text.length; at++) if (BEGINS[text.charCodeAt(at)] === 1) return at;
  return -1;
}

function endOfString(text: string, start: number): number {
  let quote = start;
  let backslashes: number;
  do {
    quote = text.indexOf('"', quote + 1);
    backslashes = 0;
    while (text[quote - 1 - backslashes] === "\\") backslashes++;
  } while (backslashes % 2 === 1);
  return quote + 1;
}

function endOfNumber(text: string, start: number): number {
  NUMBER.lastIndex = start;
  NUMBER.test(text);
  return NUMBER.lastIndex;
}

function advance(level: Level | undefined): void {
  if (level === undefined) return;
  if (level.names === null) level.at = Number(level.at) + 1;
  else level.expectsName = true;
}

/** False when the object has the name already, however it is escaped. */
function addName(level: Level, token: string): boolean {
  const name = token.includes("\\") ? String(JSON.parse(token)) : token.slice(1, -1);
  level.at = name;
  level.expectsName = false;
  if (level.names?.has(name)) return false;
  level.names?.add(name);
  return true;
}

/** RFC 8259 section 8.2: parsers differ on lone surrogates; SQLite would store another text. */
const isWellFormed = (token: string) =>
  !token.includes("\\u") || String(JSON.parse(token)).isWellFormed();

/** RFC 8259 section 6: all parsers agree on integers up to 2^53. */
function isExact(token: string): boolean {
  const value = Number(token);
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

function pathOf(levels: readonly Level[]): string {
  let path = "";
  for (const { names, at } of levels) {
    if (names === null) path += `[${at}]`;
    else path += path === "" ? at : `.${at}`;
  }
  return path;
}
