// The order in which Kong tries its routes, as priorities; knows nothing else of routes.

export interface OrderKey {
  /** Which kinds of conditions there are. */
  readonly rules: readonly ("host" | "header" | "path" | "method" | "sni")[];
  readonly hasRegex: boolean;
  readonly hasPlainHosts: boolean;
  readonly headers: number;
  readonly regexPriority: number;
  readonly length: number;
  /** Whether what it takes is said as Kong does, which leaves the length of the path to the order. */
  readonly isExact: boolean;
  /** Of two that are alike the one goes first that keeps more clients out. */
  readonly protections: number;
}

const BITS = { host: 16, header: 8, path: 4, method: 2, sni: 1 } as const;

/** What the gateway would not decide in the same way by itself, first what counts most. */
function keyOf(key: OrderKey, format: string): readonly number[] {
  const regex = key.hasRegex ? [key.regexPriority, key.length] : [0, 0];
  const plainHosts = key.hasPlainHosts ? 1 : 0;
  const isRegex = key.hasRegex ? 1 : 0;
  const count = key.rules.length;
  // From 3.0 on by another program, which looks at fields first.
  if (format.startsWith("3")) return [count, plainHosts, key.headers, isRegex, ...regex];
  const bits = key.rules.reduce((sum, rule) => sum + BITS[rule], 0);
  return [count, bits, plainHosts, isRegex, key.headers, ...regex];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at === -1 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

/** A priority for each, as small as can be: zero for all when they are alike. */
export function rankRoutes(keys: readonly OrderKey[], format: string): readonly number[] {
  const base = keys.map((key) => keyOf(key, format));
  const exact = new Set(base.filter((_, at) => keys[at]?.isExact).map((key) => key.join(" ")));
  // Between prefixes the gateway goes by length itself; between expressions it does not.
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
