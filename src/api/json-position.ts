// Finds where a text stops being JSON (RFC 8259), which Bun's parser does not report; parses nothing.
const SPACE = /[ \t\n\r]*/y;
const SCALAR =
  /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Line and column, from 1, of the first syntax error; null when there is none. */
export function findJsonError(
  text: string,
): { readonly line: number; readonly column: number } | null {
  const scanner = new Scanner(text);
  if (scanner.value() && scanner.isAtEnd()) return null;
  const before = text.slice(0, scanner.at);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: before.length - lineStart + 1 };
}

/** Walks over a text; each method returns whether it matched, and stops where it did not. */
class Scanner {
  at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  isAtEnd(): boolean {
    this.#skip(SPACE);
    return this.at === this.#text.length;
  }

  value(): boolean {
    this.#skip(SPACE);
    if (this.#take("{")) return this.#items("}", () => this.#member());
    if (this.#take("[")) return this.#items("]", () => this.value());
    return this.#skip(SCALAR);
  }

  #member(): boolean {
    this.#skip(SPACE);
    if (this.#text[this.at] !== '"' || !this.#skip(SCALAR)) return false;
    this.#skip(SPACE);
    return this.#take(":") && this.value();
  }

  #items(close: string, item: () => boolean): boolean {
    this.#skip(SPACE);
    if (this.#take(close)) return true;
    while (item()) {
      this.#skip(SPACE);
      if (this.#take(close)) return true;
      if (!this.#take(",")) return false;
    }
    return false;
  }

  #take(character: string): boolean {
    if (this.#text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.#text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }
}
