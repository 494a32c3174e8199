// Error responses in the media type that the client accepts; knows no cause and no upstream.
import { negotiate } from "../http/accept.ts";
import { FieldList } from "../http/field-list.ts";
import { proxyStatus } from "../http/proxy-status.ts";
import type { ProxyError } from "./error.ts";

/** The request, as an error page needs it. */
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
  505: "HTTP Version Not Supported",
  507: "Insufficient Storage",
  508: "Loop Detected",
};

/** Of a status. */
export const titleOf = (status: number): string => titles[status] ?? "Error";

/** Default of Retry-After, in seconds. */
const RETRY_S = 5;

const HTML = "text/html";
const JSON_TYPES = ["application/problem+json", "application/json"];
const encoder = new TextEncoder();

/** A response of the gateway or a plugin, before it is sent. */
export interface LocalResponse {
  readonly status: number;
  /** Of this response alone. */
  readonly fields: FieldList;
  /** Null: none, or the request was HEAD. */
  readonly body: Uint8Array | null;
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
  const title = titleOf(error.status);
  const problem = { status: error.status, title, detail: error.detail };
  const { type, body } = render(subject, problem, refreshAfter(subject, error, retryAfter));
  const bytes = encoder.encode(body);
  const isHead = subject.method === "HEAD";
  return {
    status: error.status,
    body: isHead ? null : bytes,
    fields: new FieldList({
      "Content-Type": type,
      "Cache-Control": "no-store",
      "Proxy-Status": proxyStatus(error.token, error.detail),
      "X-Request-Id": subject.id,
      // Bun would send 0, unlike for the same GET.
      ...(isHead ? { "Content-Length": String(bytes.byteLength) } : {}),
      ...(error.status === 503 ? { "Retry-After": String(retryAfter) } : {}),
      ...(error.status === 429 ? { "Retry-After": "10" } : {}),
      ...(error.allow === undefined ? {} : { Allow: error.allow }),
      // The rest of an unread body would be parsed as the next request.
      ...(error.source === "client" ? { Connection: "close" } : {}),
    }),
  };
}

interface Problem {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
}

/** Seconds after which a browser reloads the page; 0: never. For 502, 503 and 504, which may be temporary. */
function refreshAfter(subject: ErrorPageSubject, { status }: ProxyError, retryAfter: number) {
  // A browser reloads with GET, whatever method failed.
  const isSafe = subject.method === "GET" || subject.method === "HEAD";
  return isSafe && status >= 502 && status <= 504 ? Math.max(RETRY_S, retryAfter) : 0;
}

function render(
  subject: ErrorPageSubject,
  problem: Problem,
  refresh: number,
): { type: string; body: string } {
  const type = negotiate(subject.header("accept"), ["text/plain", HTML, ...JSON_TYPES]);
  if (type === HTML)
    return { type: "text/html; charset=utf-8", body: htmlPage(subject.id, problem, refresh) };
  if (type !== null && JSON_TYPES.includes(type)) {
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

/** The request id as a URI; an id of a trusted proxy need not be a UUID. */
const instanceOf = (id: string) => (UUID.test(id) ? `urn:uuid:${id}` : encodeURIComponent(id));

/** Escapes: the detail may come from a plugin's configuration, the id from a trusted proxy. */
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
