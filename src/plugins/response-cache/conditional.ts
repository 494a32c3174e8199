// Evaluates conditional and range requests on stored responses (RFC 9110 sections 13 and 14); knows no store.

import { parseHttpDate } from "./http-date.ts";

export interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
  /** Date is read from them. */
  readonly headers: Pick<Headers, "get">;
}

type Read = (name: string) => string | null;

/** Whether the client's copy is still valid: 304. */
export function isNotModified(header: Read, { etag, lastModified, headers }: Validators): boolean {
  const tags = header("if-none-match");
  if (tags !== null) {
    if (tags.trim() === "*") return true;
    // Equal texts match even if they are no valid tags.
    return etag !== null && (tags === etag || listsTag(tags, etag));
  }
  const since = header("if-modified-since");
  if (since === null) return false;
  if (since === lastModified) return true;
  const asked = parseHttpDate(since);
  // RFC 9111 section 4.3.2: without Last-Modified, Date counts.
  const changed = parseHttpDate(lastModified ?? headers.get("date"));
  return asked !== null && changed !== null && changed <= asked;
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
    /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(header("range") ?? "") ?? [];
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

/** RFC 9110 section 13.1.5: a weak tag never matches, and a date only when it is equal and a strong validator. */
function holds(ifRange: string | null, { etag, lastModified, headers }: Validators): boolean {
  if (ifRange === null) return true;
  const text = ifRange.trim();
  if (text.includes('"')) return !text.startsWith("W/") && text === etag;
  if (text !== lastModified) return false;
  // Within one second a page may change twice (RFC 9110 section 8.8.2.2).
  const [changed, sent] = [parseHttpDate(lastModified), parseHttpDate(headers.get("date"))];
  return changed !== null && sent !== null && sent - changed >= 1000;
}
