// Logs why a request failed; knows no request.
import type { LogLine } from "./data-plane.ts";
import type { ProxyError } from "./error.ts";

/** `fields` identify the request. */
export function logFailure(
  log: LogLine,
  error: ProxyError,
  fields: Readonly<Record<string, unknown>>,
): void {
  // Operators need to see failures of targets and of the gateway, not those of clients or refusals by plugins.
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
