// What the weights of targets mean as shares of the traffic; renders nothing.
import type { Schemas } from "../../api/resources.ts";

export type Weighted = Pick<Schemas["Target"], "id" | "weight" | "priority" | "enabled">;

/** `host:port`, with brackets around IPv6 addresses. */
export function addressOf({ host, port }: { host: string; port: number | null }): string {
  const name = host.includes(":") && !host.startsWith("unix:") ? `[${host}]` : host;
  return port === null ? name : `${name}:${port}`;
}

/** Percent of the traffic of its tier that a target gets while all are healthy; null: it gets none. */
export function shareOf(target: Weighted, all: readonly Weighted[]): number | null {
  if (!target.enabled || target.weight === 0) return null;
  const sum = all
    .filter(({ enabled, priority }) => enabled && priority === target.priority)
    .reduce((total, { weight }) => total + weight, 0);
  return Math.round((target.weight / sum) * 100);
}

/** Tiers in the order in which they are used. */
export const tiersOf = (all: readonly Weighted[]): number[] =>
  [...new Set(all.map(({ priority }) => priority))].sort((a, b) => a - b);
