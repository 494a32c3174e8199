// What the states of its targets say about a service; draws nothing.
import type { Schemas } from "../../api/resources.ts";

/** `healthy`, `degraded`, `unhealthy` or `unknown`, by the targets that take traffic. */
export function stateOf({ targets }: Pick<Schemas["Service"], "targets">): string {
  const states = (targets as readonly Schemas["Target"][])
    .map(({ health }) => health.state)
    .filter((state) => state !== "disabled" && state !== "draining");
  const bad = states.filter((state) => state === "unhealthy").length;
  if (bad > 0) return bad === states.length ? "unhealthy" : "degraded";
  return states.includes("healthy") ? "healthy" : "unknown";
}
