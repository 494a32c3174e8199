// What the states of its targets say about a service; renders nothing.
import type { Schemas } from "../../api/resources.ts";

/** `healthy`, `degraded`, `failing`, `unhealthy` or `unknown`, by the targets that get traffic. */
export function stateOf({ targets }: Pick<Schemas["Service"], "targets">): string {
  const states = (targets as readonly Schemas["Target"][])
    .map(({ health }) => health.state)
    .filter((state) => state !== "disabled" && state !== "draining");
  const bad = states.filter((state) => state === "unhealthy" || state === "failing");
  if (bad.length > 0 && bad.length < states.length) return "degraded";
  if (bad.length > 0) return bad.includes("failing") ? "failing" : "unhealthy";
  return states.includes("healthy") ? "healthy" : "unknown";
}

/** Whether a service speaks HTTP rather than raw bytes. */
export const isHttp = (protocol: Schemas["Service"]["protocol"]): boolean =>
  !["tcp", "tls", "udp"].includes(protocol);
