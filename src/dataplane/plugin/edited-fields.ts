// Reuses the fields of responses that differ only in what plugins set or remove, as Headers and as lines; knows no plugin.
import { isFieldValue, isToken } from "../../http/fields.ts";
import { CONNECTION_FIELDS } from "../../http/hop-by-hop.ts";

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

/** As the gateway writes it. */
export const ID_FIELD = "X-Request-Id";

export function isSame(
  one: readonly (string | null)[],
  other: readonly (string | null)[],
): boolean {
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
    hasContentType: (headers.get("content-type") ?? "") !== "",
    hasLength: headers.has("content-length"),
  };
  // Only without duplicate names: with them, the order of the edits matters.
  const all = id === null ? names : [...names, ID_FIELD];
  const distinct = new Set(all.map((name) => name.toLowerCase()));
  if (distinct.size === all.length) holder.edited = made;
  return made;
}

export function applyEdits(
  headers: Pick<Headers, "set" | "delete">,
  { names, values, id }: Edits,
): void {
  for (let at = 0; at < names.length; at++) {
    const value = values[at] ?? null;
    const name = names[at] ?? "";
    if (value === null) headers.delete(name);
    else headers.set(name, value);
  }
  if (id !== null) headers.set(ID_FIELD, id);
}

/** The lines of a head with the edits of the last response, without its id. */
export interface EditedLines {
  readonly names: readonly string[];
  readonly values: readonly (string | null)[];
  readonly lines: string;
  readonly hasDate: boolean;
  /** Whether one of the edits is of the id: no other may follow. */
  readonly setsId: boolean;
}

/**
 * The fields of `base`, lines with CRLF, with the edits in the place of the first field of their name, and spelled as they are; the id
 * is not among them. Null: an edit is not a valid field, or is about the connection, the length or the id, which takes more than a line.
 */
export function editedLines(base: string, { names, values, id }: Edits): EditedLines | null {
  const edits = new Map<string, string>();
  for (let at = 0; at < names.length; at++) {
    const name = names[at] ?? "";
    const value = values[at] ?? null;
    const lower = name.toLowerCase();
    const isOwn = lower === "content-length" || (lower === "x-request-id" && id !== null);
    if (isOwn || CONNECTION_FIELDS.has(lower) || !isToken(name)) return null;
    if (value !== null && !isFieldValue(value)) return null;
    edits.set(lower, value === null ? "" : `${name}: ${value}\r\n`);
  }
  const seen = new Set<string>();
  let lines = "";
  for (let at = 0; at < base.length;) {
    const next = base.indexOf("\r\n", at) + 2;
    const lower = base.slice(at, base.indexOf(":", at)).toLowerCase();
    const edit = edits.get(lower);
    if (edit === undefined) lines += base.slice(at, next);
    else if (!seen.has(lower)) lines += edit;
    seen.add(lower);
    at = next;
  }
  for (const [lower, edit] of edits) if (!seen.has(lower)) lines += edit;
  const date = edits.get("date");
  const hasDate = date === undefined ? seen.has("date") : date !== "";
  return { names, values, lines, hasDate, setsId: edits.has("x-request-id") };
}
