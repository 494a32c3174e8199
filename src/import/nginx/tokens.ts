// Splits the text of an nginx configuration into words; knows no directive.
import { ApiError } from "../../model/error.ts";

export interface Place {
  /** Empty: the only file. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
}

export type Token =
  | { readonly kind: "word"; readonly text: string; readonly place: Place }
  | { readonly kind: ";" | "{" | "}" | "end"; readonly place: Place };

const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "\\": "\\",
  t: "\t",
  r: "\r",
  n: "\n",
};

/** Throws a 400 with line and column. */
export function syntaxError(problem: string, { file, line, column }: Place): ApiError {
  const where = file === "" ? "" : ` of ${file}`;
  return new ApiError(400, `${problem} (line ${line}, column ${column}${where})`);
}

/** Follows ngx_conf_read_token. */
export class Tokens {
  readonly #text: string;
  readonly #file: string;
  #at = 0;
  #line = 1;
  #lineStart = 0;

  constructor(text: string, file: string) {
    this.#text = text.startsWith("\ufeff") ? text.slice(1) : text;
    this.#file = file;
  }

  next(): Token {
    this.#skipSpace();
    const place = this.#place();
    const character = this.#text[this.#at];
    if (character === undefined) return { kind: "end", place };
    if (character === ";" || character === "{" || character === "}") {
      this.#at += 1;
      return { kind: character, place };
    }
    const text =
      character === '"' || character === "'" ? this.#quoted(character, place) : this.#bare();
    return { kind: "word", text, place };
  }

  /** Skips a block of Lua, whose braces, strings and comments are not those of nginx, up to its closing brace. */
  skipLua(from: Place): void {
    const part =
      /--\[(=*)\[|\[(=*)\[|--[^\n]*|"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'|[{}]/g;
    let depth = 1;
    part.lastIndex = this.#at;
    for (let found = part.exec(this.#text); found !== null; found = part.exec(this.#text)) {
      const [piece, comment, long] = found;
      const level = comment ?? long;
      if (level !== undefined) {
        const end = this.#text.indexOf(`]${level}]`, part.lastIndex);
        if (end < 0) break;
        part.lastIndex = end;
      } else if (piece === "{") depth += 1;
      else if (piece === "}" && --depth === 0) {
        this.#advanceTo(part.lastIndex);
        return;
      }
    }
    throw syntaxError('the block has no "}"', from);
  }

  #skipSpace(): void {
    const space = /(?:[ \t\r\n]+|#[^\n]*)*/y;
    space.lastIndex = this.#at;
    space.exec(this.#text);
    this.#advanceTo(space.lastIndex);
  }

  #quoted(quote: string, place: Place): string {
    this.#at += 1;
    let made = "";
    for (;;) {
      const character = this.#text[this.#at];
      if (character === undefined) throw syntaxError("the string has no end", place);
      this.#at += 1;
      if (character === quote) break;
      if (character === "\n") this.#newLine();
      made += character === "\\" ? this.#escape() : character;
    }
    const after = this.#text[this.#at] ?? "";
    if (!/^[\s;{)]?$/.test(after))
      throw syntaxError(`unexpected "${after}" after a string`, this.#place());
    return made;
  }

  #bare(): string {
    let made = "";
    for (;;) {
      const plain = /[^\s;{\\$]+/y;
      plain.lastIndex = this.#at;
      const [text = ""] = plain.exec(this.#text) ?? [];
      made += text;
      this.#at += text.length;
      const character = this.#text[this.#at];
      if (character === "$") {
        const isBraced = this.#text[this.#at + 1] === "{";
        made += isBraced ? "${" : "$";
        this.#at += isBraced ? 2 : 1;
      } else if (character === "\\") {
        this.#at += 1;
        made += this.#escape();
      } else return made;
    }
  }

  /** nginx keeps the backslash before any other character. */
  #escape(): string {
    const character = this.#text[this.#at] ?? "";
    if (character === "") return "\\";
    this.#at += 1;
    if (character === "\n") this.#newLine();
    return ESCAPES[character] ?? `\\${character}`;
  }

  #advanceTo(end: number): void {
    const passed = this.#text.slice(this.#at, end);
    for (let line = passed.indexOf("\n"); line >= 0; line = passed.indexOf("\n", line + 1)) {
      this.#line += 1;
      this.#lineStart = this.#at + line + 1;
    }
    this.#at = end;
  }

  #newLine(): void {
    this.#line += 1;
    this.#lineStart = this.#at;
  }

  #place(): Place {
    return { file: this.#file, line: this.#line, column: this.#at - this.#lineStart + 1 };
  }
}
