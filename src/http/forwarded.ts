// Scheme and host in X-Forwarded-*; call it only for a trusted hop, which it cannot check.
import { normalizeHost } from "./authority.ts";

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

/** The normalized host in X-Forwarded-Host (last item of a list), null when it is absent or no valid authority. */
export function forwardedHost(value: string | null): string | null {
  return value === null ? null : normalizeHost(lastItem(value));
}
