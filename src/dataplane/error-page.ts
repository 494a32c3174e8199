// Error pages for requests that failed, in the form that the client accepts; knows no cause and no upstream.
import { negotiate } from "../http/accept.ts";
import { proxyStatus } from "../http/proxy-status.ts";
import type { ProxyError } from "./error.ts";

/** What an error page needs of the request. */
export interface ErrorPageSubject {
  readonly id: string;
  readonly method: string;
  header(name: string): string | null;
}

const titles: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  407: "Proxy Authentication Required",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  411: "Length Required",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  422: "Unprocessable Content",
  426: "Upgrade Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  451: "Unavailable For Legal Reasons",
  499: "Client Closed Request",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  508: "Loop Detected",
};

/** Seconds after which it is worth another try, unless somebody knows better. */
const RETRY_S = 5;

const HTML = "text/html";
const JSON_TYPES = ["application/problem+json", "application/json"];
const encoder = new TextEncoder();

/** A response that no target gave, before it is sent. */
export interface LocalResponse {
  readonly status: number;
  /** Belongs to the response and may be changed, unless they are shared. */
  readonly headers: Headers;
  /** Null: none, or the request was HEAD. */
  readonly body: Uint8Array | null;
  /** Whether the headers serve other responses too: to be copied before they are changed. Default: false. */
  readonly hasSharedHeaders?: boolean;
}

/**
 * The response for `error`: HTML for browsers, JSON (RFC 9457) or text for others, never cached, with Proxy-Status (RFC 9209)
 * and the request id to look for in the log. `retryAfter`: seconds after which the client may come back.
 */
export function errorResponse(
  subject: ErrorPageSubject,
  error: ProxyError,
  retryAfter = RETRY_S,
): LocalResponse {
  const title = titles[error.status] ?? "Error";
  const problem = { status: error.status, title, detail: error.detail };
  const { type, body } = render(subject, problem, refreshAfter(subject, error, retryAfter));
  const bytes = encoder.encode(body);
  const isHead = subject.method === "HEAD";
  return {
    status: error.status,
    body: isHead ? null : bytes,
    headers: new Headers({
      "Content-Type": type,
      "Cache-Control": "no-store",
      "Proxy-Status": proxyStatus(error.token, error.detail),
      "X-Request-Id": subject.id,
      // Bun would say 0, which the same GET does not get.
      ...(isHead ? { "Content-Length": String(bytes.byteLength) } : {}),
      ...(error.status === 503 ? { "Retry-After": String(retryAfter) } : {}),
      ...(error.status === 429 ? { "Retry-After": "10" } : {}),
      ...(error.allow === undefined ? {} : { Allow: error.allow }),
      // What is left of an unread body would be taken for the next request.
      ...(error.source === "client" ? { Connection: "close" } : {}),
    }),
  };
}

interface Problem {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
}

/** Seconds after which a browser asks again by itself; 0: never. What was asked for may come back: 502, 503, 504. */
function refreshAfter(subject: ErrorPageSubject, { status }: ProxyError, retryAfter: number) {
  // A browser would ask with GET, whatever it was that failed.
  const isSafe = subject.method === "GET" || subject.method === "HEAD";
  return isSafe && status >= 502 && status <= 504 ? Math.max(RETRY_S, retryAfter) : 0;
}

function render(
  subject: ErrorPageSubject,
  problem: Problem,
  refresh: number,
): { type: string; body: string } {
  const wanted = negotiate(subject.header("accept"), ["text/plain", HTML, ...JSON_TYPES]);
  if (wanted === HTML)
    return { type: "text/html; charset=utf-8", body: htmlPage(subject.id, problem, refresh) };
  if (wanted !== null && JSON_TYPES.includes(wanted)) {
    const body = { type: "about:blank", ...problem, instance: instanceOf(subject.id) };
    return { type: "application/problem+json", body: JSON.stringify(body) };
  }
  const { status, title, detail } = problem;
  return {
    type: "text/plain; charset=utf-8",
    body: `${status} ${title}: ${detail}\nrequest id: ${subject.id}\n`,
  };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/** A URI of the request: a proxy in front of this one may have named it in its own way. */
const instanceOf = (id: string) => (UUID.test(id) ? `urn:uuid:${id}` : encodeURIComponent(id));

/** The sentence may come from the configuration of a plugin, the id from a proxy before this one. */
function htmlPage(id: string, problem: Problem, refresh: number): string {
  const { status, title } = problem;
  const detail = Bun.escapeHTML(problem.detail);
  const again = refresh === 0 ? "" : `<meta http-equiv="refresh" content="${refresh}">\n`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
${again}<title>${status} ${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:32rem;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.5rem}small{color:#666}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}small{color:#999}}</style></head>
<body><h1>${status} ${title}</h1><p>${detail.charAt(0).toUpperCase()}${detail.slice(1)}.</p><p><small>Request id ${Bun.escapeHTML(id)}</small></p></body></html>
`;
}
