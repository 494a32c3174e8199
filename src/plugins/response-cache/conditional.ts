// Evaluates conditional and range requests on stored responses (RFC 9110 sections 13 and 14); knows no store.

export interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

type Read = (name: string) => string | null;

/** Whether the client's copy is still valid: 304. */
export function isNotModified(header: Read, { etag, lastModified }: Validators): boolean {
  const tags = header("if-none-match");
  if (tags !== null) {
    if (tags.trim() === "*") return true;
    return etag !== null && listsTag(tags, etag);
  }
  const since = header("if-modified-since");
  if (since === null || lastModified === null) return false;
  if (since === lastModified) return true;
  const [asked, changed] = [Date.parse(since), Date.parse(lastModified)];
  return !Number.isNaN(asked) && !Number.isNaN(changed) && changed <= asked;
}

const TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\uffff]*"/g;

const opaque = (tag: string) => (tag.startsWith("W/") ? tag.slice(2) : tag);

/** Weak comparison, RFC 9110 section 8.8.3.2. */
function listsTag(tags: string, etag: string): boolean {
  const own = opaque(etag);
  for (const [tag] of tags.matchAll(TAG)) if (opaque(tag) === own) return true;
  return false;
}

/** An inclusive byte range; `unsatisfiable`: 416; null: the complete body. */
export type RangeAsked = { readonly first: number; readonly last: number } | "unsatisfiable" | null;

/** Serves a single range; several and malformed ones get the complete body (RFC 9110 section 14.2 allows that). */
export function rangeOf(header: Read, size: number, validators: Validators): RangeAsked {
  const [, start = "", end = ""] =
    /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header("range") ?? "") ?? [];
  if (start === "" && end === "") return null;
  if (!holds(header("if-range"), validators)) return null;
  if (start === "") {
    const length = Math.min(Number(end), size);
    return length === 0 ? "unsatisfiable" : { first: size - length, last: size - 1 };
  }
  const first = Number(start);
  const last = end === "" ? size - 1 : Math.min(Number(end), size - 1);
  if (end !== "" && Number(end) < first) return null;
  return first >= size ? "unsatisfiable" : { first, last };
}

/** RFC 9110 section 13.1.5: a weak tag never matches, and a date only when equal. */
function holds(ifRange: string | null, { etag, lastModified }: Validators): boolean {
  if (ifRange === null) return true;
  const text = ifRange.trim();
  if (text.includes('"')) return !text.startsWith("W/") && text === etag;
  return text === lastModified;
}
