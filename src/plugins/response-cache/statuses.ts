// Which statuses a cache stores (RFC 9110 section 15, RFC 9111 section 3); knows no header.

/** Whose caching requirements the cache meets (RFC 9111 section 5.2.2.3). */
const UNDERSTOOD: ReadonlySet<number> = new Set([
  ...[200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 410],
]);

/**
 * Others of the IANA registry. Parts (206) and 304 are no whole responses. Errors of this list can be caused by one unusual
 * request: a stored one would deny the page to all clients.
 */
const OTHER_REGISTERED: ReadonlySet<number> = new Set([
  ...[201, 202, 205, 206, 207, 208, 226, 304, 305, 306],
  ...[400, 401, 402, 403, 405, 406, 407, 408, 409, 411, 412, 413, 414, 415, 416, 417, 418],
  ...[421, 422, 423, 424, 425, 426, 428, 429, 431, 451],
  ...[500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511],
]);

export const isUnderstood = (status: number): boolean => UNDERSTOOD.has(status);

/** Whether the status alone is no reason against storing a response with explicit freshness. */
export const isStorable = (status: number): boolean =>
  status >= 200 && status <= 599 && !OTHER_REGISTERED.has(status);

/** RFC 9110 section 15.1, without 206, which is no whole response. */
const HEURISTICALLY_CACHEABLE: ReadonlySet<number> = new Set([
  ...[200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501],
]);

export const isHeuristicallyCacheable = (status: number): boolean =>
  HEURISTICALLY_CACHEABLE.has(status);
