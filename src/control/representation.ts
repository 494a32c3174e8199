// Representations of stored objects, and their version tags; knows no HTTP.
import { ApiError } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { Service } from "../model/service.ts";
import type { Target } from "../model/target.ts";

/** Run-time state of a target in responses. */
export interface TargetHealth {
  readonly state: "unknown" | "healthy" | "failing" | "unhealthy" | "draining" | "disabled";
  /** RFC 3339: since when it has this state. */
  readonly since: string;
  readonly last_error: string | null;
}

export type TargetView = Target & {
  readonly health: TargetHealth;
  readonly active_requests: number;
};
export type ServiceView = Service & { readonly targets: readonly TargetView[] };

/**
 * Finds the targets of a service, oldest first. Groups all targets at the second service, so that a list does not scan every
 * target for each service.
 */
export function targetLookup(config: GatewayConfig): (serviceId: string) => readonly Target[] {
  let asked = 0;
  let groups: ReadonlyMap<string, readonly Target[]> | null = null;
  return (serviceId) => {
    if (asked++ === 0)
      return [...config.targets.values()].filter((target) => target.service_id === serviceId);
    groups ??= Map.groupBy(config.targets.values(), (target) => target.service_id);
    return groups.get(serviceId) ?? [];
  };
}

/** A tag that changes with the stored object; without run-time state, which changes all the time. */
export function tagOf(content: unknown): string {
  const hash = new Bun.CryptoHasher("sha256").update(JSON.stringify(content)).digest("base64url");
  return hash.slice(0, 22);
}

/** Preconditions of a change on the stored object. */
export interface Conditions {
  /** One of these versions must be stored; `any`: the object must exist. Null: no condition. */
  readonly match: readonly string[] | "any" | null;
  /** The object must not exist yet. */
  readonly onlyIfAbsent: boolean;
}

/** Throws a 412 unless the conditions hold for `content`, null for an object that does not exist. */
export function requireConditions(conditions: Conditions, content: unknown): void {
  const { match, onlyIfAbsent } = conditions;
  if (onlyIfAbsent && content !== null) throw new ApiError(412, "exists already");
  if (match === null) return;
  if (content === null) throw new ApiError(412, "does not exist, so no version of it matches");
  if (match !== "any" && !match.includes(tagOf(content)))
    throw new ApiError(412, "was changed since it was read; read it again and retry");
}
