// Scheme and host as the hop before us saw them; must be asked only when that hop is trusted, which it cannot know.
import { normalizeHost } from "./authority.ts";

function lastItem(value: string): string {
  return value.slice(value.lastIndexOf(",") + 1).trim();
}

/**
 * The scheme in X-Forwarded-Proto, null when there is none. Of a list the last item counts: it was written by the
 * trusted hop, what stands before it may come from the client.
 */
export function forwardedScheme(value: string | null): "http" | "https" | null {
  if (value === null) return null;
  const scheme = lastItem(value).toLowerCase();
  if (scheme === "https" || scheme === "wss") return "https";
  return scheme === "http" || scheme === "ws" ? "http" : null;
}

/** The normalised host in X-Forwarded-Host (last item of a list), null when it is absent or no valid authority. */
export function forwardedHost(value: string | null): string | null {
  return value === null ? null : normalizeHost(lastItem(value));
}
