// Builds the responses of the management API: JSON, one form of error, security headers.
import { ApiError } from "../model/error.ts";
import { Pace, type Steps } from "../pace.ts";
import type { Reply } from "./endpoint.ts";

const JSON_TYPE = "application/json; charset=utf-8";

/** On every response; a page that needs more sets its own policy. */
export const securityHeaders: Readonly<Record<string, string>> = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
};

export async function toResponse(reply: Reply): Promise<Response> {
  const { body } = reply;
  const text = Array.isArray(body)
    ? await new Pace({ objects: 1000, ms: 20 }).run(listText(body))
    : JSON.stringify(body);
  const response = new Response(text, {
    headers: { "content-type": JSON_TYPE, ...reply.headers },
  });
  for (const cookie of reply.cookies ?? []) response.headers.append("set-cookie", cookie);
  return response;
}

/** As `JSON.stringify`, in steps: a list of 100,000 routes takes most of a second. */
function* listText(items: readonly unknown[]): Steps<string> {
  const texts: string[] = [];
  for (const item of items) {
    texts.push(JSON.stringify(item) ?? "null");
    yield;
  }
  return `[${texts.join(",")}]`;
}

/** `{"error": message}`; for an unexpected failure the message holds the request id only. */
export function toErrorResponse(error: unknown, requestId: string): Response {
  const known = error instanceof ApiError;
  return new Response(JSON.stringify({ error: errorMessage(error, requestId) }), {
    status: known ? error.status : 500,
    headers: {
      "content-type": JSON_TYPE,
      // RFC 9110 section 15.5.2: a 401 names the authentication scheme.
      ...(known && error.status === 401 ? { "www-authenticate": "Bearer" } : {}),
      ...(known ? error.headers : {}),
    },
  });
}

/** The message for the client. */
export const errorMessage = (error: unknown, requestId: string): string =>
  error instanceof ApiError ? error.message : `internal error, request id ${requestId}`;
