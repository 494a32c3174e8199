// Converts names and texts of DNS records to the formats of providers; opens no connection.

/** Lower case, without a final dot. */
export const normalName = (name: string): string => name.toLowerCase().replace(/\.$/, "");

/** `a.b.example` -> `a.b.example`, `b.example`: candidates for its zone, longest first, down to `least` labels. */
export function suffixesOf(name: string, least = 2): string[] {
  const labels = normalName(name).split(".");
  return labels
    .map((_, index) => labels.slice(index).join("."))
    .slice(0, Math.max(0, labels.length - least + 1));
}

export const isWithin = (name: string, zone: string): boolean =>
  name === zone || name.endsWith(`.${zone}`);

/** The longest zone that contains the name; null: none does. */
export function longestZone(zones: readonly string[], name: string): string | null {
  let best: string | null = null;
  for (const zone of zones.map(normalName))
    if (isWithin(name, zone) && zone.length > (best?.length ?? 0)) best = zone;
  return best;
}

/** The part before the zone; empty for the zone apex. */
export const relativeName = (fqdn: string, zone: string): string =>
  fqdn === zone ? "" : fqdn.slice(0, -zone.length - 1);

/** As in zone files. */
export const quoteTxt = (value: string): string =>
  `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** The text of a TXT record in any notation: `"a" "b"` is `ab`, and an unquoted text is unchanged. */
export function unquoteTxt(text: string): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith('"')) return trimmed;
  const parts = [...trimmed.matchAll(/"((?:[^"\\]|\\.)*)"/g)];
  return parts.map(([, inner = ""]) => inner.replace(/\\(.)/g, "$1")).join("");
}
