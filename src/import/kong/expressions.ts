// Parses expressions of Kong's router into alternatives of plain comparisons; knows no route.

export interface Comparison {
  /** `http.path`, `http.headers.x_a`. */
  readonly field: string;
  readonly op: "==" | "^=" | "=^" | "~" | "in";
  readonly value: string;
  /** Whether the field is compared in lower case. */
  readonly isLower: boolean;
}

/** All comparisons must match. */
export type Alternative = readonly Comparison[];

/** More would be more routes than a person can read. */
const MAX_ALTERNATIVES = 64;

const TOKEN =
  /\s*(?:(&&|\|\||==|\^=|=\^|!=|>=|<=|[()!~<>])|r#"(.*?)"#|"((?:[^"\\]|\\.)*)"|([A-Za-z_][\w.*-]*|[\d.:a-fA-F]+(?:\/\d+)?))/su;

interface Token {
  readonly kind: "sign" | "text" | "word";
  readonly text: string;
}

const OPERATORS: ReadonlySet<string> = new Set(["==", "^=", "=^", "~", "in"]);

/** One of the alternatives must match; null: the expression has a part without an equivalent, or is not valid. */
export function alternativesOf(expression: string): readonly Alternative[] | null {
  const tokens = tokensOf(expression);
  if (tokens === null) return null;
  try {
    return new Parser(tokens).read();
  } catch (error) {
    if (error === UNKNOWN) return null;
    throw error;
  }
}

function tokensOf(expression: string): readonly Token[] | null {
  const found: Token[] = [];
  const text = expression.trim();
  const next = new RegExp(TOKEN, "suy");
  while (next.lastIndex < text.length) {
    const [, sign, raw, quoted, word] = next.exec(text) ?? [];
    if (sign !== undefined) found.push({ kind: "sign", text: sign });
    else if (raw !== undefined) found.push({ kind: "text", text: raw });
    else if (quoted !== undefined) found.push({ kind: "text", text: unescaped(quoted) });
    else if (word !== undefined) found.push({ kind: "word", text: word });
    else return null;
  }
  return found;
}

const unescaped = (text: string): string =>
  text.replaceAll(/\\(.)/g, (_, letter: string) =>
    letter === "n" ? "\n" : letter === "t" ? "\t" : letter === "r" ? "\r" : letter,
  );

const UNKNOWN = new Error("unknown");
const MAX_DEPTH = 50;

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  read(): readonly Alternative[] {
    const found = this.#either();
    if (this.#at < this.#tokens.length) throw UNKNOWN;
    return found;
  }

  #either(): readonly Alternative[] {
    let found = this.#every();
    while (this.#take("||")) found = [...found, ...this.#every()];
    if (found.length > MAX_ALTERNATIVES) throw UNKNOWN;
    return found;
  }

  #every(): readonly Alternative[] {
    let found = this.#one();
    while (this.#take("&&")) {
      const next = this.#one();
      if (found.length * next.length > MAX_ALTERNATIVES) throw UNKNOWN;
      found = found.flatMap((a) => next.map((b) => [...a, ...b]));
    }
    return found;
  }

  #one(): readonly Alternative[] {
    if (!this.#take("(")) return [[this.#comparison()]];
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw UNKNOWN;
    const found = this.#either();
    if (!this.#take(")")) throw UNKNOWN;
    this.#depth -= 1;
    return found;
  }

  #comparison(): Comparison {
    const { field, isLower } = this.#field();
    const op = this.#next().text;
    const value = this.#next();
    // Numbers and lists have no equivalent; networks have.
    const isNetwork = value.kind === "word" && field === "net.src.ip";
    if (!OPERATORS.has(op) || (value.kind !== "text" && !isNetwork)) throw UNKNOWN;
    return { field, op: op as Comparison["op"], value: value.text, isLower };
  }

  /** `http.path`, `lower(http.path)`, `any(lower(http.headers.x))`. */
  #field(): { readonly field: string; readonly isLower: boolean } {
    const { kind, text } = this.#next();
    if (kind !== "word") throw UNKNOWN;
    if (text !== "lower" && text !== "any") return { field: text, isLower: false };
    if (!this.#take("(")) throw UNKNOWN;
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw UNKNOWN;
    const inner = this.#field();
    if (!this.#take(")")) throw UNKNOWN;
    this.#depth -= 1;
    return { field: inner.field, isLower: inner.isLower || text === "lower" };
  }

  #next(): Token {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw UNKNOWN;
    this.#at += 1;
    return token;
  }

  #take(text: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "sign" || token.text !== text) return false;
    this.#at += 1;
    return true;
  }
}
