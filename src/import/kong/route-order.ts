// Converts Kong's route order to priorities; knows no other field of routes.

export interface OrderKey {
  /** Kinds of conditions of the route. */
  readonly rules: readonly ("host" | "header" | "path" | "method" | "sni")[];
  readonly hasRegex: boolean;
  readonly hasPlainHosts: boolean;
  readonly headers: number;
  readonly regexPriority: number;
  readonly length: number;
  /** Whether its paths match exactly as in Kong: expressions, which the gateway does not order by length. */
  readonly isExact: boolean;
  /** Of two equal routes, the one with more protections goes first. */
  readonly protections: number;
  /** Of a route that is an expression, which Kong tries first; null: it is none. */
  readonly expressionPriority: number | null;
}

const BITS = { host: 16, header: 8, path: 4, method: 2, sni: 1 } as const;

/** Sort keys that the gateway's own order lacks, most significant first. */
function keyOf(key: OrderKey, format: string): readonly number[] {
  const { expressionPriority } = key;
  const first = expressionPriority === null ? [0, 0] : [1, expressionPriority];
  return [...first, ...fieldKeyOf(key, format)];
}

function fieldKeyOf(key: OrderKey, format: string): readonly number[] {
  const regex = key.hasRegex ? [key.regexPriority, key.length] : [0, 0];
  const plainHosts = key.hasPlainHosts ? 1 : 0;
  const isRegex = key.hasRegex ? 1 : 0;
  const count = key.rules.length;
  // The router of Kong 3.0 compares headers first.
  if (format.startsWith("3")) return [count, plainHosts, key.headers, isRegex, ...regex];
  const bits = key.rules.reduce((sum, rule) => sum + BITS[rule], 0);
  return [count, bits, plainHosts, isRegex, key.headers, ...regex];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at === -1 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

/** The smallest possible priorities: zero for all when the keys are equal. */
export function rankRoutes(keys: readonly OrderKey[], format: string): readonly number[] {
  const base = keys.map((key) => keyOf(key, format));
  const exact = new Set(base.filter((_, at) => keys[at]?.isExact).map((key) => key.join(" ")));
  // The gateway orders prefixes by length, but not expressions.
  const whole = base.map((key, at) => {
    const { length = 0, protections = 0 } = keys[at] ?? {};
    return exact.has(key.join(" ")) ? [...key, length, protections] : [...key, 0, 0];
  });
  const ranks = new Map<string, number>();
  for (const key of whole.toSorted(compare)) {
    const text = key.join(" ");
    if (!ranks.has(text)) ranks.set(text, ranks.size);
  }
  return whole.map((key) => ranks.get(key.join(" ")) ?? 0);
}
