// JSON Merge Patch, RFC 7396; knows no resource.

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Applies `patch` to `target` and returns the result; neither is changed. A null removes the member, which restores its default. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  // No prototype: a member called __proto__ is data like any other.
  const result: Record<string, unknown> = Object.assign(
    Object.create(null),
    isObject(target) ? target : {},
  );
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}
