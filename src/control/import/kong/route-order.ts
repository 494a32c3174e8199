// The order in which Kong's traditional router tries its routes, as priorities; knows nothing else of routes.

export interface OrderKey {
  /** How many kinds of conditions there are: hosts, headers, paths, methods. */
  readonly rules: number;
  readonly hasRegex: boolean;
  readonly hasPlainHosts: boolean;
  readonly headers: number;
  readonly regexPriority: number;
  readonly longest: number;
}

/** What the gateway would not decide in the same way by itself, first what counts most. */
function keyOf(key: OrderKey): readonly number[] {
  // Of two expressions of one priority the longer text wins; between prefixes the gateway decides so too.
  const regex = key.hasRegex ? [key.regexPriority, key.longest] : [0, 0];
  const submatch = (key.hasPlainHosts ? 2 : 0) + (key.hasRegex ? 1 : 0);
  return [key.rules, submatch, key.headers, ...regex];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at === -1 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

/** A priority for each route, as small as can be: zero for all when they are alike. */
export function rankRoutes(keys: readonly OrderKey[]): readonly number[] {
  const texts = keys.map((key) => keyOf(key));
  const sorted = texts.toSorted(compare);
  const ranks = new Map<string, number>();
  for (const key of sorted) {
    const text = key.join(" ");
    if (!ranks.has(text)) ranks.set(text, ranks.size);
  }
  return texts.map((key) => ranks.get(key.join(" ")) ?? 0);
}
