// Converts Caddy's placeholders, such as `{http.request.host}`, to variables; knows no handler.

const words: Readonly<Record<string, string>> = {
  "http.request.host": "request.host",
  "http.request.hostport": "request.host",
  "http.request.method": "request.method",
  "http.request.scheme": "request.scheme",
  "http.request.uri": "request.target",
  "http.request.uri.path": "request.path",
  "http.request.uri.query": "request.query",
  "http.request.remote.host": "client.address",
  "http.request.uuid": "request.id",
};

const PLACEHOLDER = /\{([a-z][\w.:-]*)\}/g;

/** Null for a text with a placeholder without an equivalent, or with a literal `${`. */
export function withVariables(text: string): string | null {
  if (text.includes("${")) return null;
  let isKnown = true;
  const replaced = text.replaceAll(PLACEHOLDER, (_, name: string) => {
    const [, header] = /^http\.request\.header\.([\w-]+)$/.exec(name) ?? [];
    const word = Object.hasOwn(words, name) ? words[name] : undefined;
    isKnown &&= header !== undefined || word !== undefined;
    return `\${${header === undefined ? (word ?? "") : `request.header.${header}`}}`;
  });
  return isKnown ? replaced : null;
}

export const hasPlaceholder = (text: string): boolean => /\{[a-z][\w.:-]*\}/.test(text);

/** `10s`, `1m30s` or nanoseconds, in milliseconds; null for an invalid duration. */
export function millisecondsOf(value: unknown): number | null {
  if (typeof value === "number") return Math.round(value / 1_000_000);
  if (typeof value !== "string" || !/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+$/.test(value))
    return null;
  const units: Readonly<Record<string, number>> = {
    ns: 1e-6,
    us: 1e-3,
    µs: 1e-3,
    ms: 1,
    s: 1000,
    m: 60_000,
    h: 3_600_000,
    d: 86_400_000,
  };
  let sum = 0;
  for (const [, number, unit = ""] of value.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/g))
    sum += Number(number) * (units[unit] ?? 0);
  return Math.round(sum);
}
