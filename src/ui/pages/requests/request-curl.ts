// A request as a command for a shell, as far as the gateway has kept it; knows no secret and draws nothing.
import type { RequestRow } from "./request-tail.ts";

/** Null for what is no HTTP request. Masked values stay masked: what was secret is for people to fill in. */
export function toCurl({
  kind,
  method,
  scheme,
  host,
  path,
  user_agent,
}: RequestRow): string | null {
  if (kind !== "http" || method === null || host === null) return null;
  const verb = method === "HEAD" ? "--head" : method === "GET" ? "" : `--request ${quoted(method)}`;
  const agent = user_agent === null ? "" : `--user-agent ${quoted(user_agent)}`;
  const url = `${scheme}://${host}${path ?? "/"}`;
  return ["curl", verb, agent, quoted(url)].filter((word) => word !== "").join(" ");
}

/** For POSIX shells: nothing inside single quotes means anything. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
