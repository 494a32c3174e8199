// The case in which HTTP/1.1 writes names of header fields, for those that HTTP/2 and `Headers` have in lower case: small devices
// compare names by bytes.

const SPECIAL: ReadonlyMap<string, string> = new Map(
  [
    ...["ETag", "WWW-Authenticate", "NEL", "SourceMap", "Content-MD5", "Accept-CH", "Critical-CH"],
    ...["Expect-CT", "X-XSS-Protection", "X-UA-Compatible", "X-DNS-Prefetch-Control"],
    ...["CDN-Cache-Control", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"],
    ...["RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining"],
    ...["RateLimit-Reset", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol"],
    ...["Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Accept", "SOAPAction", "DNT"],
    ...["TE", "Sec-GPC", "X-CSRF-Token", "X-XSRF-TOKEN", "HTTP2-Settings", "CDN-Loop", "X-Real-IP"],
    // Browsers and tracers write these in lower case.
    ...["sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform", "traceparent", "tracestate"],
    ...["baggage", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding", "grpc-status"],
    ...["grpc-message"],
  ].map((name) => [name.toLowerCase(), name]),
);

const names = new Map<string, string>();
const MAX_NAMES = 1000;
const MAX_NAME_LENGTH = 64;

/** The usual case of a name in lower case. */
export function conventional(lower: string): string {
  const known = names.get(lower);
  if (known !== undefined) return known;
  const name =
    SPECIAL.get(lower) ?? lower.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase());
  if (names.size >= MAX_NAMES) names.clear();
  if (lower.length <= MAX_NAME_LENGTH) names.set(lower, name);
  return name;
}
