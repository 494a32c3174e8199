// Reuses one header object for responses that differ only in what plugins set or remove; knows no plugin.

/** Values that were set, or null for removed ones, in order. Must not be changed afterwards. */
export interface Edits {
  readonly names: readonly string[];
  readonly values: readonly (string | null)[];
  /** The request id for the client, set after all others; null: not sent. */
  readonly id: string | null;
}

/** The headers with the edits of the last response. */
export interface EditedFields {
  names: readonly string[];
  values: readonly (string | null)[];
  readonly hasId: boolean;
  readonly headers: Headers;
  readonly hasContentType: boolean;
  readonly hasLength: boolean;
}

/** Caches edited headers beside the original ones. */
export interface EditHolder {
  edited?: EditedFields;
}

/**
 * `base` with the edits. The next call overwrites it: a Response copies its headers at once, so one object serves all similar
 * responses, and most values that plugins set stay the same.
 */
export function editedFields(holder: EditHolder, base: Headers, edits: Edits): EditedFields {
  const { names, values, id } = edits;
  const known = holder.edited;
  if (known === undefined || known.hasId !== (id !== null) || !isSame(known.names, names))
    return made(holder, base, edits);
  const { headers, values: last } = known;
  if (last !== values) {
    // A value that no field can hold throws, and leaves the object partly updated.
    known.values = UNKNOWN;
    for (let at = 0; at < names.length; at++) {
      const value = values[at] ?? null;
      const before = last[at] ?? null;
      if (value === before) continue;
      // A field was added or removed: what is known of the object no longer holds.
      if (value === null || before === null) return made(holder, base, edits);
      headers.set(names[at] ?? "", value);
    }
    known.values = values;
  }
  if (id !== null) headers.set(ID_FIELD, id);
  // Makes the next comparison one of identity.
  known.names = names;
  return known;
}

const UNKNOWN: readonly never[] = [];

const ID_FIELD = "X-Request-Id";

function isSame(one: readonly string[], other: readonly string[]): boolean {
  if (one === other) return true;
  if (one.length !== other.length) return false;
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false;
  return true;
}

function made(holder: EditHolder, base: Headers, edits: Edits): EditedFields {
  const { names, values, id } = edits;
  const headers = new Headers(base);
  applyEdits(headers, edits);
  const made: EditedFields = {
    names,
    values,
    headers,
    hasId: id !== null,
    hasContentType: headers.has("content-type"),
    hasLength: headers.has("content-length"),
  };
  // Only without duplicate names: with them, the order of the edits matters.
  const all = id === null ? names : [...names, ID_FIELD];
  const distinct = new Set(all.map((name) => name.toLowerCase()));
  if (distinct.size === all.length) holder.edited = made;
  return made;
}

export function applyEdits(headers: Headers, { names, values, id }: Edits): void {
  for (let at = 0; at < names.length; at++) {
    const value = values[at] ?? null;
    const name = names[at] ?? "";
    if (value === null) headers.delete(name);
    else headers.set(name, value);
  }
  if (id !== null) headers.set(ID_FIELD, id);
}
