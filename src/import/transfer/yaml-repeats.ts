// Finds a duplicate member of a YAML document, at any depth: parsers silently use the last one; the text must be valid.

export interface RepeatedMember {
  readonly name: string;
  /** From 1. */
  readonly line: number;
}

/** An open mapping: the column of its members, and their names. */
interface Mapping {
  readonly column: number;
  readonly names: Set<string>;
}

/** The content of a line after the dashes of lists. */
interface Content {
  readonly column: number;
  /** Column of its owner: lines with more indentation continue it. */
  readonly owner: number;
}

/** A quoted name; longer names than `MAX_NAME` are not fields of the gateway. */
const QUOTED_MEMBER = /^(?:"([^"\\]*(?:\\.[^"\\]*)*)"|'([^']*(?:''[^']*)*)')\s*:(?=\s|$)/;
const MAX_NAME = 1024;
/** Anchors and tags in front of a value. */
const PROPERTIES = /^\s*(?:[&!]\S*\s+)*/;

/** The first duplicate in a mapping; null: none. */
export function repeatedMember(text: string): RepeatedMember | null {
  const lines = text.split("\n");
  const open: Mapping[] = [];
  let index = 0;
  while (index < lines.length) {
    const line = lines[index] ?? "";
    const content = contentOf(line, open);
    if (content === null) {
      index++;
      continue;
    }
    const rest = line.slice(content.column);
    const { name, length } = memberOf(rest);
    let owner = content.owner;
    if (name !== null) {
      if (isRepeated(open, content.column, name)) return { name, line: index + 1 };
      owner = content.column;
    }
    const value = rest.slice(length).replace(PROPERTIES, "");
    const start = { index, column: line.length - value.length, owner };
    const next = afterValue(lines, value, start);
    if (typeof next !== "number") return next;
    index = next;
  }
  return null;
}

/** The name at the start of a line, and its length with the colon. */
function memberOf(rest: string): { readonly name: string | null; readonly length: number } {
  if (rest.startsWith('"') || rest.startsWith("'")) {
    const [whole = "", double, single] = QUOTED_MEMBER.exec(rest.slice(0, MAX_NAME)) ?? [];
    return { name: double ?? single ?? null, length: whole.length };
  }
  const colon = /^[{}[\]#|>&*!]/.test(rest) ? -1 : rest.search(/:(?=\s|$)/);
  const comment = rest.includes("#") ? rest.search(/\s#/) : -1;
  if (colon === -1 || (comment !== -1 && comment < colon)) return { name: null, length: 0 };
  return { name: rest.slice(0, colon).trimEnd(), length: colon + 1 };
}

/** Closes the mappings that end before this line. Null: the line is empty, or only dashes. */
function contentOf(line: string, open: Mapping[]): Content | null {
  let column = line.search(/\S/);
  if (column === -1 || line[column] === "#") return null;
  if (column === 0 && /^(?:---|\.\.\.|%)/.test(line)) return null;
  let owner = column - 1;
  close(open, column);
  for (;;) {
    const dash = /^-(?:\s+|$)/.exec(line.slice(column));
    if (dash === null) return { column, owner };
    owner = column;
    column += dash[0].length;
    if (column >= line.length) return null;
  }
}

/** Closes mappings with more indentation. */
function close(open: Mapping[], column: number): void {
  while ((open.at(-1)?.column ?? -1) > column) open.pop();
}

function isRepeated(open: Mapping[], column: number, name: string): boolean {
  const last = open.at(-1);
  if (last === undefined || last.column !== column) {
    open.push({ column, names: new Set([name]) });
    return false;
  }
  if (last.names.has(name)) return true;
  last.names.add(name);
  return false;
}

/** Index of the line after a value, or a duplicate in it. */
function afterValue(
  lines: readonly string[],
  value: string,
  {
    index,
    column,
    owner,
  }: { readonly index: number; readonly column: number; readonly owner: number },
): number | RepeatedMember {
  if (/^(?:#|\s*$)/.test(value)) return index + 1;
  if (/^["'{[]/.test(value)) return new Inline(lines, index, column).read();
  // A text continues in all lines with more indentation than its owner.
  let next = index + 1;
  while (next < lines.length && isInside(lines[next] ?? "", owner)) next++;
  return next;
}

function isInside(line: string, owner: number): boolean {
  const column = line.search(/\S/);
  return column === -1 || column > owner;
}

/** A value in quotes, braces or brackets, which may span lines. */
class Inline {
  readonly #lines: readonly string[];
  #index: number;
  #column: number;
  /** Open braces and brackets; null for a list. */
  readonly #open: ({ readonly names: Set<string>; awaitsName: boolean } | null)[] = [];

  constructor(lines: readonly string[], index: number, column: number) {
    this.#lines = lines;
    this.#index = index;
    this.#column = column;
  }

  /** Index of the line after it, or a duplicate in it. */
  read(): number | RepeatedMember {
    do {
      const line = this.#lines[this.#index] ?? "";
      const start = nextIn(line, /\S/g, this.#column);
      const isComment = line[start] === "#" && (start === 0 || start > this.#column);
      if (start === line.length || isComment) this.#nextLine();
      else {
        this.#column = start;
        const repeated = this.#step(line);
        if (repeated !== null) return { name: repeated, line: this.#index + 1 };
      }
    } while (this.#open.length > 0 && this.#index < this.#lines.length);
    return this.#index + 1;
  }

  /** Reads one token; returns a duplicate name. */
  #step(line: string): string | null {
    const start = this.#column;
    const first = line[start] ?? "";
    if (first === '"' || first === "'") return this.#name(this.#quoted(first));
    if ("{}[],:".includes(first)) {
      this.#column++;
      this.#mark(first);
      return null;
    }
    this.#column = nextIn(line, /[,{}[\]]|\s#|:(?=[\s,{}[\]]|$)/g, start + 1);
    return this.#name(line.slice(start, this.#column).trim());
  }

  #mark(character: string): void {
    if (character === "{") this.#open.push({ names: new Set(), awaitsName: true });
    else if (character === "[") this.#open.push(null);
    else if (character === "}" || character === "]") this.#open.pop();
    const last = this.#open.at(-1);
    if (character === "," && last) last.awaitsName = true;
  }

  #name(name: string): string | null {
    const last = this.#open.at(-1);
    if (!last?.awaitsName) return null;
    last.awaitsName = false;
    // A name over several lines reads as empty, too, and is not a duplicate.
    if (name === "") return null;
    if (last.names.has(name)) return name;
    last.names.add(name);
    return null;
  }

  /** The quoted text; moves behind the closing quote. */
  #quoted(quote: string): string {
    const end = quote === '"' ? /["\\]/g : /'/g;
    const start = this.#column++;
    const first = this.#index;
    while (this.#index < this.#lines.length) {
      const line = this.#lines[this.#index] ?? "";
      const at = nextIn(line, end, this.#column);
      if (at === line.length) this.#nextLine();
      else if (line[at] === "\\" || (quote === "'" && line[at + 1] === quote))
        this.#column = at + 2;
      else {
        this.#column = at + 1;
        return first === this.#index ? line.slice(start + 1, at) : "";
      }
    }
    return "";
  }

  #nextLine(): void {
    this.#index++;
    this.#column = 0;
  }
}

/** Index of the first match from a position on; the end of the line when there is none. */
function nextIn(line: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(line)?.index ?? line.length;
}
