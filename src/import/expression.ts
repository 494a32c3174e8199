// Converts regular expressions of other programs (RE2, PCRE) to equivalent JavaScript ones; knows no program and no field.

/** Escapes a text for use in an expression. */
export const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Escapes a text and matches ASCII letters in either case. */
export const caseless = (text: string): string =>
  [...text]
    .map((character) => (isLetter(character) ? bothCases(character) : escaped(character)))
    .join("");

const isLetter = (character: string) => /^[A-Za-z]$/.test(character);

const bothCases = (letter: string) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`;

export interface Expression {
  readonly source: string;
  /**
   * Whether it gives the same result for a text and for that text with reserved characters percent-encoded: it counts no
   * characters, and names none but letters, digits, `-`, `.`, `_`, `~` and `/`.
   */
  readonly ignoresEscapes: boolean;
}

const POSIX: Readonly<Record<string, string>> = {
  alpha: "A-Za-z",
  digit: "0-9",
  alnum: "0-9A-Za-z",
  upper: "A-Z",
  lower: "a-z",
  word: "\\w",
  xdigit: "0-9A-Fa-f",
  space: "\\t\\n\\v\\f\\r ",
};

/** White space in RE2 and PCRE; the \s of JavaScript matches more. */
const SPACE = "\\t\\n\\v\\f\\r ";

/**
 * The equivalent expression. Null for anything without an equivalent or with a possibly different meaning; the list is an
 * allowlist. `isCaseless`: for texts that are already in lower case.
 */
export function portable(source: string, isCaseless = false): Expression | null {
  try {
    return new Reader(source, isCaseless).read();
  } catch (error) {
    if (error === UNKNOWN) return null;
    throw error;
  }
}

const UNKNOWN = new Error("unknown");

class Reader {
  readonly #source: string;
  #at = 0;
  #isCaseless: boolean;
  readonly #outer: boolean[] = [];
  #ignoresEscapes = true;

  constructor(source: string, isCaseless: boolean) {
    this.#source = source;
    this.#isCaseless = isCaseless;
  }

  read(): Expression {
    // Go and PCRE apply a flag to everything after it.
    if (this.#take("(?i)")) this.#isCaseless = true;
    let made = "";
    while (this.#at < this.#source.length) made += this.#next();
    if (this.#outer.length > 0) throw UNKNOWN;
    return { source: made, ignoresEscapes: this.#ignoresEscapes };
  }

  #next(): string {
    const character = this.#source[this.#at] ?? "";
    if (character === "(") return this.#open();
    if (character === ")") return this.#close();
    if (character === "[") return this.#atom(this.#class());
    if (character === "\\") return this.#escape();
    this.#at += 1;
    if (character === ".") return this.#atom({ text: ".", isLoose: true });
    if (character === "^" || character === "$" || character === "|") return character;
    if (/[*+?{}\]]/.test(character) || /[^\x20-\x7e]/.test(character)) throw UNKNOWN;
    return this.#literal(character);
  }

  #literal(character: string): string {
    if (!/[A-Za-z0-9\-._~/]/.test(character)) this.#ignoresEscapes = false;
    const text =
      this.#isCaseless && isLetter(character) ? bothCases(character) : escaped(character);
    return this.#atom({ text, isLoose: false });
  }

  /** Reads the quantifier after the atom. */
  #atom({ text, isLoose }: { readonly text: string; readonly isLoose: boolean }): string {
    const [quantifier = ""] = /^(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})/.exec(this.#rest) ?? [];
    this.#at += quantifier.length;
    if (isLoose && quantifier !== "*" && quantifier !== "+") this.#ignoresEscapes = false;
    const lazy = quantifier !== "" && this.#take("?") ? "?" : "";
    // `a++` and `a{2}{3}` mean different things to the two.
    if (quantifier !== "" && /^[*+?{]/.test(this.#rest)) throw UNKNOWN;
    return text + quantifier + lazy;
  }

  #open(): string {
    this.#at += 1;
    const [name] = /^\?P?<[A-Za-z]\w*>/.exec(this.#rest) ?? [];
    this.#outer.push(this.#isCaseless);
    if (name !== undefined) this.#at += name.length;
    else if (this.#take("?i:")) this.#isCaseless = true;
    else if (this.#take("?:")) return "(?:";
    else if (this.#rest.startsWith("?") || this.#rest.startsWith("*")) throw UNKNOWN;
    else return "(";
    return name === undefined ? "(?:" : "(";
  }

  #close(): string {
    const outer = this.#outer.pop();
    if (outer === undefined) throw UNKNOWN;
    this.#isCaseless = outer;
    this.#at += 1;
    return this.#atom({ text: ")", isLoose: false });
  }

  #escape(): string {
    const letter = this.#source[this.#at + 1] ?? "";
    this.#at += 2;
    if (letter === "A") return "^";
    if (letter === "z" || letter === "Z") return "$";
    if (letter === "b" || letter === "B") {
      this.#ignoresEscapes = false;
      return `\\${letter}`;
    }
    if (letter === "d" || letter === "w")
      return this.#atom({ text: `\\${letter}`, isLoose: false });
    if (letter === "s" || letter === "S") {
      this.#ignoresEscapes = false;
      return this.#atom({ text: `[${letter === "S" ? "^" : ""}${SPACE}]`, isLoose: false });
    }
    if (letter === "D" || letter === "W") {
      this.#ignoresEscapes = false;
      return this.#atom({ text: `\\${letter}`, isLoose: true });
    }
    if (/[^\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]/.test(letter) || letter === "") throw UNKNOWN;
    return this.#literal(letter);
  }

  /** A class of characters, whose first `]` is one of them. */
  #class(): { readonly text: string; readonly isLoose: boolean } {
    this.#at += 1;
    const isNegated = this.#take("^");
    let made = this.#take("]") ? "\\]" : "";
    while (!this.#take("]")) made += this.#member();
    if (made === "") throw UNKNOWN;
    // An escape in a text consists of characters outside of this class.
    const isLoose = isNegated && made === "/";
    if (isNegated && !isLoose) this.#ignoresEscapes = false;
    return { text: `[${isNegated ? "^" : ""}${made}]`, isLoose };
  }

  #member(): string {
    const [posix, name = ""] = /^\[:([a-z]+):\]/.exec(this.#rest) ?? [];
    if (posix !== undefined) {
      const set = Object.hasOwn(POSIX, name) ? POSIX[name] : undefined;
      if (set === undefined) throw UNKNOWN;
      this.#at += posix.length;
      if (name === "space") this.#ignoresEscapes = false;
      return this.#isCaseless && /^(?:upper|lower)$/.test(name) ? "A-Za-z" : set;
    }
    const [set, kind = ""] = /^\\([dws])/.exec(this.#rest) ?? [];
    if (set !== undefined) {
      this.#at += set.length;
      if (kind === "s") this.#ignoresEscapes = false;
      return kind === "s" ? SPACE : set;
    }
    const from = this.#single();
    if (!/^-[^\]]/.test(this.#rest)) return this.#range(from, from);
    this.#at += 1;
    return this.#range(from, this.#single());
  }

  #single(): string {
    const isEscaped = this.#take("\\");
    const character = this.#source[this.#at] ?? "";
    this.#at += 1;
    if (/[^\x20-\x7e]/.test(character) || character === "") throw UNKNOWN;
    if (isEscaped ? /[A-Za-z0-9]/.test(character) : character === "[") throw UNKNOWN;
    return character;
  }

  #range(from: string, to: string): string {
    if (from > to) throw UNKNOWN;
    for (let code = from.charCodeAt(0); code <= to.charCodeAt(0); code++)
      if (!/[A-Za-z0-9\-._~/]/.test(String.fromCharCode(code))) this.#ignoresEscapes = false;
    if (!this.#isCaseless || !hasLetters(from, to)) return between(from, to);
    // A range that mixes letters and other characters would have to be split.
    if (!/^(?:[a-z]{2}|[A-Z]{2})$/.test(from + to)) throw UNKNOWN;
    return (
      between(from.toLowerCase(), to.toLowerCase()) + between(from.toUpperCase(), to.toUpperCase())
    );
  }

  get #rest(): string {
    return this.#source.slice(this.#at);
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}

const between = (from: string, to: string) =>
  from === to ? inClass(from) : `${inClass(from)}-${inClass(to)}`;

const inClass = (character: string) =>
  /[\]\\^\-[]/.test(character) ? `\\${character}` : character;

const hasLetters = (from: string, to: string): boolean =>
  (from <= "z" && to >= "a") || (from <= "Z" && to >= "A");
