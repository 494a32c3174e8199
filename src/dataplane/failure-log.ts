// The line in the log that says why a request failed; knows no request.
import type { LogLine } from "./data-plane.ts";
import type { ProxyError } from "./error.ts";

/** `fields` name the request. */
export function logFailure(
  log: LogLine,
  error: ProxyError,
  fields: Readonly<Record<string, unknown>>,
): void {
  // What clients do wrong is theirs, and what a plugin refuses is its work; what targets and the gateway do wrong somebody should see.
  const level =
    error.source === "client" || error.status === 404 || error.reason !== undefined
      ? "debug"
      : "warn";
  const cause = error.cause instanceof Error ? { cause: error.cause.message } : {};
  log(level, "request failed", {
    ...fields,
    status: error.status,
    error: error.token,
    reason: error.detail,
    ...(error.reason === undefined ? {} : { decision: error.reason }),
    ...cause,
  });
}
