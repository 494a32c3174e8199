// Parses rules of Traefik 2 and 3 into alternatives of conditions; knows no route.

/** `Host(`a`)` or its negation. */
export interface RuleTerm {
  /** In lower case: `host`, `pathprefix`. */
  readonly matcher: string;
  readonly values: readonly string[];
  readonly isNegated: boolean;
}

/** Conditions that must all hold. */
export type Conjunction = readonly RuleTerm[];

const MAX_ALTERNATIVES = 64;

/** Of the conjunctions at least one must hold; text: why the rule cannot be read. */
export function parseRule(rule: string): readonly Conjunction[] | string {
  try {
    const parser = new Parser(tokensOf(rule));
    const node = parser.whole();
    return alternativesOf(node, false);
  } catch (error) {
    if (error instanceof RuleError) return error.message;
    throw error;
  }
}

class RuleError extends Error {}

type Token =
  | { readonly kind: "symbol"; readonly text: string }
  | { readonly kind: "name"; readonly text: string }
  | { readonly kind: "value"; readonly text: string };

function tokensOf(rule: string): readonly Token[] {
  const tokens: Token[] = [];
  const pattern =
    /\s+|(?<symbol>&&|\|\||[!(),])|(?<name>[A-Za-z]\w*)|`(?<raw>[^`]*)`|"(?<quoted>(?:[^"\\]|\\.)*)"|'(?<single>[^']*)'/y;
  while (pattern.lastIndex < rule.length) {
    const at = pattern.lastIndex;
    const groups = pattern.exec(rule)?.groups;
    if (groups === undefined)
      throw new RuleError(`its rule cannot be read at ${rule.slice(at, at + 20)}`);
    const { symbol, name, raw, quoted, single } = groups;
    if (symbol !== undefined) tokens.push({ kind: "symbol", text: symbol });
    else if (name !== undefined) tokens.push({ kind: "name", text: name });
    else {
      const value = raw ?? single ?? quoted?.replaceAll(/\\(.)/g, "$1");
      if (value !== undefined) tokens.push({ kind: "value", text: value });
    }
  }
  return tokens;
}

type Node =
  | { readonly kind: "and" | "or"; readonly parts: readonly Node[] }
  | { readonly kind: "not"; readonly part: Node }
  | { readonly kind: "term"; readonly matcher: string; readonly values: readonly string[] };

const MAX_DEPTH = 32;

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Node {
    const node = this.#either();
    const rest = this.#tokens[this.#at];
    if (rest !== undefined) throw new RuleError(`its rule has an unexpected ${rest.text}`);
    return node;
  }

  #either(): Node {
    const parts = [this.#all()];
    while (this.#take("||")) parts.push(this.#all());
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: "or", parts };
  }

  #all(): Node {
    const parts = [this.#one()];
    while (this.#take("&&")) parts.push(this.#one());
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: "and", parts };
  }

  #one(): Node {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new RuleError("its rule is nested too deeply");
    const node = this.#operand();
    this.#depth -= 1;
    return node;
  }

  #operand(): Node {
    if (this.#take("!")) return { kind: "not", part: this.#one() };
    if (this.#take("(")) {
      const inner = this.#either();
      this.#expect(")");
      return inner;
    }
    const name = this.#tokens[this.#at];
    if (name?.kind !== "name") throw new RuleError("its rule is incomplete");
    this.#at += 1;
    this.#expect("(");
    const values: string[] = [];
    while (!this.#take(")")) {
      if (values.length > 0) this.#expect(",");
      const value = this.#tokens[this.#at];
      if (value?.kind !== "value") throw new RuleError("its rule is incomplete");
      values.push(value.text);
      this.#at += 1;
    }
    return { kind: "term", matcher: name.text.toLowerCase(), values };
  }

  #take(symbol: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "symbol" || token.text !== symbol) return false;
    this.#at += 1;
    return true;
  }

  #expect(symbol: string): void {
    if (!this.#take(symbol)) throw new RuleError(`its rule lacks a ${symbol}`);
  }
}

/** Disjunctive normal form. */
function alternativesOf(node: Node, isNegated: boolean): readonly Conjunction[] {
  switch (node.kind) {
    case "not":
      return alternativesOf(node.part, !isNegated);
    case "term":
      return [[{ matcher: node.matcher, values: node.values, isNegated }]];
    case "and":
    case "or": {
      const parts = node.parts.map((part) => alternativesOf(part, isNegated));
      const isAnd = (node.kind === "and") !== isNegated;
      const made = isAnd
        ? parts.reduce((all, part) =>
            all.flatMap((left) => part.map((one) => join(left, one, all))),
          )
        : parts.flat();
      if (made.length > MAX_ALTERNATIVES)
        throw new RuleError(`its rule has more than ${MAX_ALTERNATIVES} alternatives`);
      return made;
    }
    default:
      return node satisfies never;
  }
}

function join(left: Conjunction, right: Conjunction, all: readonly unknown[]): Conjunction {
  if (all.length > MAX_ALTERNATIVES)
    throw new RuleError(`its rule has more than ${MAX_ALTERNATIVES} alternatives`);
  return [...left, ...right];
}
