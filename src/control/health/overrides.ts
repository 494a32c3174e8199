// Overrides of target health by operators, in a fleet on all nodes and after restarts; knows no checks and no HTTP.
import type { Clock } from "../../clock.ts";
import { ApiError } from "../../model/error.ts";
import type { Fact, StoredOverride } from "../../model/fact.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { override } from "../../shared-memory/target-health.ts";
import type { Changes } from "../change.ts";
import { OlderNodes } from "../change-contract.ts";
import type { FleetView } from "../fleet-view.ts";
import type { Actor } from "../principal.ts";

/** The overrides in this node's database. */
export interface OverrideStore {
  /** By id of the target; some may have ended. */
  load(): ReadonlyMap<string, StoredOverride>;
}

export interface OverrideOptions {
  readonly board: TargetBoard;
  readonly changes: Changes;
  readonly clock: Clock;
  /** The other nodes; absent: overrides are not stored, and end with the gateway. */
  readonly fleet?: FleetView;
  /** A fleet needs it. */
  readonly overrideStore?: OverrideStore;
}

type OverrideFact = Extract<Fact, { readonly kind: "health_override" }>;

export class HealthOverrides {
  readonly #options: OverrideOptions;
  /** Of the fleet: the end of each override, which may be over; null: until it is removed. */
  readonly #shared = new Map<string, string | null>();

  constructor(options: OverrideOptions) {
    this.#options = options;
    const { fleet, changes, overrideStore } = options;
    if (fleet === undefined) return;
    for (const [target_id, override] of overrideStore?.load() ?? [])
      this.#observe({ kind: "health_override", target_id, override });
    changes.onFact((fact) => {
      if (fact.kind === "health_override") this.#observe(fact);
    });
    // As without a fleet, the override of a target ends when it takes no traffic.
    changes.addFacts(({ after }) =>
      [...this.#shared]
        .filter(([id, until]) => serviceInUse(after, id) === null && !this.#isOver(until))
        .map(([id]) => ({ kind: "health_override", target_id: id, override: null })),
    );
  }

  /**
   * In effect in all workers of this gateway when it resolves. Null: checks and traffic decide again. Returns a warning when
   * there are nodes of an older version, so that only this one has it, until it ends; null: none.
   */
  async set(targetId: string, override: StoredOverride | null, by: Actor): Promise<string | null> {
    const { fleet, changes } = this.#options;
    const fact = { kind: "health_override", target_id: targetId, override } as const;
    const decide = () => {
      if (serviceInUse(changes.config, targetId) === null)
        throw new ApiError(409, "the target takes no traffic: it or its service is disabled");
      return { value: null, facts: [fact] };
    };
    let warning: string | null = null;
    const here = (error: unknown) => {
      if (!(error instanceof OlderNodes)) throw error;
      warning = `overridden ${error.onlyHere}`;
    };
    if (fleet === undefined) decide();
    else await changes.record(decide, by).catch(here);
    // Otherwise it is observed like those of other nodes.
    if (fleet === undefined || warning !== null) this.#apply(fact);
    return warning;
  }

  #observe(fact: OverrideFact): void {
    if (fact.override === null) this.#shared.delete(fact.target_id);
    else this.#shared.set(fact.target_id, fact.override.until);
    this.#apply(fact);
  }

  #isOver(until: string | null): boolean {
    return until !== null && Date.parse(until) <= this.#options.clock.now();
  }

  #apply({ target_id, override: given }: OverrideFact): void {
    const { board, clock, changes } = this.#options;
    // It may have been deleted by a later change that came with it.
    const serviceId = serviceInUse(changes.config, target_id);
    if (serviceId === null) return;
    const now = clock.now();
    const until = given === null || given.until === null ? null : Date.parse(given.until);
    const hasEnded = until !== null && until <= now;
    // It still replaces the one before it.
    if (hasEnded && board.findRow(target_id) === null) return;
    const rows = { target: board.rowOf(target_id), service: board.rowOf(serviceId) };
    override(board, rows, { state: given?.state ?? "auto", until, now });
  }
}

/** The service of a target that takes traffic; null: it does not. */
function serviceInUse({ targets, services }: GatewayConfig, targetId: string): string | null {
  const target = targets.get(targetId);
  if (target === undefined || !target.enabled) return null;
  return services.get(target.service_id)?.enabled === true ? target.service_id : null;
}
