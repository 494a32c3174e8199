// A request as a curl command, from its stored fields; contains no secret and renders nothing.
import type { RequestRow } from "./request-tail.ts";

/** `port`: of the listener; null: the usual one. Null: not an HTTP request. Masked values stay masked: the user fills in secrets. */
export function toCurl(
  { kind, method, scheme, host, path, user_agent }: RequestRow,
  port: number | null = null,
): string | null {
  if (kind !== "http" || method === null || host === null) return null;
  const verb = method === "HEAD" ? "--head" : method === "GET" ? "" : `--request ${quoted(method)}`;
  const agent = user_agent === null ? "" : `--user-agent ${quoted(user_agent)}`;
  const isNamed = port === null || /:\d+$/.test(host);
  const url = `${scheme}://${host}${isNamed ? "" : `:${port}`}${path ?? "/"}`;
  return ["curl", verb, agent, quoted(url)].filter((word) => word !== "").join(" ");
}

/** For POSIX shells: single quotes disable all expansion. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
