// Differences of two JSON objects, as a merge patch (RFC 7396) and by field; knows no resource.

export type Document = Readonly<Record<string, unknown>>;

/** The patch from `before` to `after`. A removed field becomes null, which restores its default. */
export function mergePatch(before: Document, after: Document): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [from, to] = [before[name], after[name]];
    if (isSame(from, to)) continue;
    if (to === undefined) patch[name] = null;
    else patch[name] = isDocument(from) && isDocument(to) ? mergePatch(from, to) : to;
  }
  return patch;
}

/** Fields that differ, by their path: `["health", "active", "path"]`. Lists count as one value. */
export function differences(one: Document, other: Document): (readonly string[])[] {
  const found: (readonly string[])[] = [];
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const [a, b] = [one[name], other[name]];
    if (isSame(a, b)) continue;
    if (isDocument(a) && isDocument(b))
      found.push(...differences(a, b).map((path) => [name, ...path]));
    else found.push([name]);
  }
  return found;
}

/** The value at a path; undefined where there is none. */
export const valueAt = (document: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (isDocument(value) ? value[name] : undefined), document);

/** A copy with another value at the path. */
export function withValueAt(document: Document, path: readonly string[], value: unknown): Document {
  const [name, ...rest] = path;
  if (name === undefined) return document;
  if (rest.length === 0) {
    const { [name]: _, ...others } = document;
    return value === undefined ? others : { ...others, [name]: value };
  }
  const inner = document[name];
  return { ...document, [name]: withValueAt(isDocument(inner) ? inner : {}, rest, value) };
}

export const isDocument = (value: unknown): value is Document =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether two JSON values are equal, whatever the order of their fields. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]));
  if (!isDocument(one) || !isDocument(other)) return false;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].every((name) => isSame(one[name], other[name]));
}
