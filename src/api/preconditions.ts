// If-None-Match of reads, RFC 9110 section 13.1.2; knows no resource.

/** An entity tag; a list of them may hold commas inside of the quotes. */
const TAG = /(?:W\/)?("[^"]*")/g;

/** Whether the list holds the tag, by weak comparison, or is `*`. */
export function hasTag(field: string | null, tag: string): boolean {
  if (field === null) return false;
  if (field.trim() === "*") return true;
  const opaque = tag.replace(/^W\//, "");
  return [...field.matchAll(TAG)].some(([, listed]) => listed === opaque);
}

/**
 * A 304 in the place of a response that the client has already; else the response. Section 13.2.1: conditions count only where
 * the response would be a success.
 */
export function withoutKnown({ method, headers }: Request, response: Response): Response {
  const tag = response.headers.get("etag");
  if ((method !== "GET" && method !== "HEAD") || response.status !== 200 || tag === null)
    return response;
  if (!hasTag(headers.get("if-none-match"), tag)) return response;
  void response.body?.cancel();
  const fields = new Headers(response.headers);
  // Of the content, which is not sent (section 15.4.5).
  for (const name of ["content-type", "content-length", "content-encoding", "content-disposition"])
    fields.delete(name);
  return new Response(null, { status: 304, headers: fields });
}
