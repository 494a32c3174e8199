// Quotes texts of other servers in messages; knows no server.

/** A text of another server: shortened, on one line, without secrets. */
export function quote(text: unknown, secrets: readonly (string | null)[]): string {
  if (typeof text !== "string") return "";
  const clean = secrets.reduce<string>(
    (rest, secret) => (secret ? rest.replaceAll(secret, "***") : rest),
    text,
  );
  return clean.replace(/[^\x20-\x7e]/g, "?").slice(0, 200);
}
