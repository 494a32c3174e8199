// Quotes texts of other servers in messages; knows no server.

/** A text of another server: shortened, on one line, without secrets. */
export function quote(text: unknown, secrets: readonly (string | null)[]): string {
  if (typeof text !== "string") return "";
  const forms = secrets.flatMap((secret) => (secret ? formsOf(secret) : []));
  const clean = forms.reduce((rest, secret) => rest.replaceAll(secret, "***"), text);
  return clean.replace(/[^\x20-\x7e]/g, "?").slice(0, 200);
}

/** As the server may have received it. The longest first, which may contain another one. */
const formsOf = (secret: string): readonly string[] =>
  [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    base64Of(secret),
  ].toSorted((a, b) => b.length - a.length);

const base64Of = (text: string) => Buffer.from(text).toString("base64").replace(/=+$/, "");

/** The error text of a response of an API: a usual member of its JSON, or its plain text; undefined for others, such as HTML. */
export function errorTextOf(body: string): unknown {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return /^\s*</.test(body) ? undefined : body.trim();
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) return body.trim();
  const members = json as Readonly<Record<string, unknown>>;
  for (const name of ["message", "detail", "error_description", "error"]) {
    const value = members[name];
    if (typeof value === "string") return value;
    const inner = (value as { readonly message?: unknown } | null | undefined)?.message;
    if (typeof inner === "string") return inner;
  }
  return body.trim();
}
