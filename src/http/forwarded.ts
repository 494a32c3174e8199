// Scheme and host in X-Forwarded-*; call it only for a trusted hop, which it cannot check.
import { normalizeHost, parseAuthority } from "./authority.ts";

function lastItem(value: string): string {
  return value.slice(value.lastIndexOf(",") + 1).trim();
}

/**
 * The scheme in X-Forwarded-Proto, null when there is none. The last item of a list counts: the trusted hop
 * wrote it, earlier ones may come from the client.
 */
export function forwardedScheme(value: string | null): "http" | "https" | null {
  if (value === null) return null;
  const scheme = lastItem(value).toLowerCase();
  if (scheme === "https" || scheme === "wss") return "https";
  return scheme === "http" || scheme === "ws" ? "http" : null;
}

/** The port in X-Forwarded-Port, else in X-Forwarded-Host, else the usual one of X-Forwarded-Proto; null: none of them names one. */
export function forwardedPort(header: (name: string) => string | null): string | null {
  const port = header("x-forwarded-port");
  if (port !== null && PORT.test(port)) return port;
  const named = parseAuthority(lastItem(header("x-forwarded-host") ?? ""))?.port ?? null;
  if (named !== null) return String(named);
  const scheme = forwardedScheme(header("x-forwarded-proto"));
  return scheme === null ? null : scheme === "https" ? "443" : "80";
}

const PORT = /^\d{1,5}$/;

/**
 * The prefixes that proxies before have stripped, and `own`, as one path. Applications disagree whether the first item of a list
 * counts, the last or all. An invalid value counts as none.
 */
export function forwardedPrefix(value: string | null, own: string): string {
  const before = (value ?? "").split(/ *, */).map((item) => item.replace(/\/+$/, ""));
  return before.every((item) => PREFIX.test(item)) ? before.join("") + own : own;
}

/** Not `//`, which begins an authority in a link. */
const PREFIX = /^(?:\/[\w!$%&'()*+.:;=@~-]+)*$/;

/** The normalized host in X-Forwarded-Host (last item of a list), null when it is absent or no valid authority. */
export function forwardedHost(value: string | null): string | null {
  return value === null ? null : normalizeHost(lastItem(value));
}
