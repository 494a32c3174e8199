// Health of services and targets, and overrides of it; no HTTP words.
import type { Clock } from "../../clock.ts";
import { decode } from "../../model/decode.ts";
import { ApiError, invalid } from "../../model/error.ts";
import type { Service } from "../../model/service.ts";
import { type Target, targetHealthInput } from "../../model/target.ts";
import type { Health, HealthOverride } from "../../shared-memory/target-health.ts";
import type { AuditSink } from "../audit-entry.ts";
import type { Changes } from "../change.ts";
import { findByKey } from "../key.ts";
import type { Actor } from "../principal.ts";
import { labelOf } from "../reference.ts";
import { targetLookup, type TargetHealth, type TargetView } from "../representation.ts";
import type { HealthOverrides } from "./overrides.ts";
import type { TargetStates } from "./target-states.ts";

export interface ServiceHealth {
  readonly service: Pick<Service, "id" | "name">;
  /** degraded: some of the targets are failing or unhealthy; failing: all are, and some still receive traffic. */
  readonly state: "healthy" | "degraded" | "failing" | "unhealthy" | "unknown";
  readonly targets: readonly TargetReport[];
}

export interface TargetReport extends Pick<Target, "id" | "host" | "port" | "weight" | "priority"> {
  readonly state: TargetHealth["state"];
  readonly since: string;
  readonly last_error: string | null;
  /** What decided: an override, an active check, the traffic, or nothing yet. */
  readonly by: Health["by"];
  /** The override in force; null: none. */
  readonly override: {
    readonly state: HealthOverride["state"];
    readonly until: string | null;
  } | null;
  /** What checks and traffic of this gateway say, also while an override decides. */
  readonly observed_state: Health["state"];
  readonly active_requests: number;
}

export interface HealthOptions {
  readonly overrides: HealthOverrides;
  readonly states: TargetStates;
  readonly changes: Changes;
  readonly audit: AuditSink;
  readonly clock: Clock;
}

export class HealthUseCases {
  readonly #options: HealthOptions;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** Health of the service with this id or name; throws a 404 when it does not exist. */
  ofService(key: string): ServiceHealth {
    const { config } = this.#options.changes;
    const service = findByKey(config.services, key);
    if (service === null) throw new ApiError(404, `service "${key}" does not exist`);
    const targets = targetLookup(config)(service.id).map((target) => this.#report(target));
    return {
      service: { id: service.id, name: service.name },
      state: stateOf(targets.map(({ state }) => state)),
      targets,
    };
  }

  #report(target: Target): TargetReport {
    const { states } = this.#options;
    const { id, host, port, weight, priority, health, active_requests } = states.view(target);
    const { by, override, observed } = states.read(target);
    const common = { id, host, port, ...health, by, weight, priority, active_requests };
    if (override === null) return { ...common, override, observed_state: observed };
    const until = override.until === null ? null : new Date(override.until).toISOString();
    return { ...common, override: { ...override, until }, observed_state: observed };
  }

  /**
   * Overrides the health of a target, regardless of checks and traffic. In effect in all workers of this gateway on return;
   * `warning`: not on other nodes, null: it is.
   */
  async order(
    key: string,
    body: unknown,
    by: Actor,
  ): Promise<{ readonly target: TargetView; readonly warning: string | null }> {
    const { changes, overrides, states, clock } = this.#options;
    const target = findByKey(changes.config.targets, key);
    if (target === null) throw new ApiError(404, `target "${key}" does not exist`);
    const { state, ttl = null } = decode(targetHealthInput, body);
    if (state === "auto" && ttl !== null) throw invalid("ttl", "makes no sense for auto");
    const until = ttl === null ? null : new Date(clock.now() + ttl * 1000).toISOString();
    const override = state === "auto" ? null : { state, until };
    const warning = await overrides.set(target.id, override, by);
    this.#record(target, { state, ttl }, by);
    return { target: states.view(target), warning };
  }

  #record(
    target: Target,
    detail: { readonly state: string; readonly ttl: number | null },
    by: Actor,
  ) {
    const { actor, method, address } = by;
    const label = labelOf(this.#options.changes.config, { collection: "targets", id: target.id });
    this.#options.audit.record({
      actor,
      method,
      address,
      action: "override_health",
      kind: "target",
      object_id: target.id,
      object_name: /"(.*)"$/s.exec(label)?.[1] ?? null,
      result: "ok",
      revision: null,
      detail,
    });
  }
}

/** State of a service from the states of its targets; draining and disabled ones do not count. */
function stateOf(states: readonly TargetHealth["state"][]): ServiceHealth["state"] {
  const used = states.filter((state) => state !== "disabled" && state !== "draining");
  const bad = used.filter((state) => state === "unhealthy" || state === "failing");
  if (bad.length > 0 && bad.length < used.length) return "degraded";
  if (bad.length > 0) return bad.includes("failing") ? "failing" : "unhealthy";
  return used.includes("healthy") ? "healthy" : "unknown";
}
