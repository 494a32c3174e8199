// Extends Vary, the request fields that a response depends on (RFC 9110 section 12.5.5); knows nothing of the reasons.

/** Adds the names that are missing in Vary. */
export function addVary(headers: Headers, names: readonly string[]): void {
  const present = headers.get("vary");
  if (present === null) {
    headers.set("Vary", names.join(", "));
    return;
  }
  const known = new Set(present.split(",").map((each) => each.trim().toLowerCase()));
  if (known.has("*")) return;
  const missing = names.filter((name) => !known.has(name.toLowerCase()));
  if (missing.length > 0) headers.set("Vary", [present, ...missing].join(", "));
}
