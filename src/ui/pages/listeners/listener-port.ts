// The port at which clients reach the gateway; renders nothing.
import type { Schemas } from "../../api/resources.ts";

/** The port that a URL of the scheme has to name; null: none. */
export function unusualPort(
  scheme: "http" | "https",
  listeners: readonly Schemas["Listener"][],
): number | null {
  const usual = scheme === "https" ? 443 : 80;
  const ports = listeners
    .filter(({ protocol, enabled }) => enabled && protocol === scheme)
    .map(({ port }) => port);
  return ports.includes(usual) ? null : (ports[0] ?? null);
}
