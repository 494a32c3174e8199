// The fields of answers that look the same but for what plugins set or take away: made once and written over; knows no plugin.

/** What was set, or with null taken away, in order. Not to be changed afterwards. */
export interface Edits {
  readonly names: readonly string[];
  readonly values: readonly (string | null)[];
  /** The id that the client is told, after all others; null: it is not. */
  readonly id: string | null;
}

/** Fields with edits, as they were the last time. */
export interface EditedFields {
  names: readonly string[];
  values: readonly (string | null)[];
  readonly hasId: boolean;
  readonly headers: Headers;
  readonly hasContentType: boolean;
  readonly hasLength: boolean;
}

/** Keeps edited fields beside those that they were made from. */
export interface EditHolder {
  edited?: EditedFields;
}

/**
 * `base` with the edits. It is written over at the next call: a Response copies its fields at once, so one object serves all
 * answers that look the same, and of what plugins set most stays as it is.
 */
export function editedFields(holder: EditHolder, base: Headers, edits: Edits): EditedFields {
  const { names, values, id } = edits;
  const known = holder.edited;
  if (known === undefined || known.hasId !== (id !== null) || !isSame(known.names, names))
    return made(holder, base, edits);
  const { headers, values: last } = known;
  if (last !== values) {
    // A value that no field can hold throws, and then nobody knows what is set by now.
    known.values = NOTHING_KNOWN;
    for (let at = 0; at < names.length; at++) {
      const value = values[at] ?? null;
      const before = last[at] ?? null;
      if (value === before) continue;
      // Whether there is such a field has changed, and with it what is known of all of them.
      if (value === null || before === null) return made(holder, base, edits);
      headers.set(names[at] ?? "", value);
    }
    known.values = values;
  }
  if (id !== null) headers.set(ID_FIELD, id);
  // The next time it may be seen at once that they are the same.
  known.names = names;
  return known;
}

const NOTHING_KNOWN: readonly never[] = [];

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
    ...{ names, values, headers, hasId: id !== null },
    hasContentType: headers.has("content-type"),
    hasLength: headers.has("content-length"),
  };
  // Where a name comes twice, the later edit counts, and a new value must not be set out of turn.
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
