// Writes facts, the data of a change beside the configuration, to their tables; knows nothing of what they mean.
import type { Fact } from "../model/fact.ts";
import { AcmeStateTable } from "./acme.ts";
import { ActivityTables } from "./activity.ts";
import { DiscoveryClaimTable } from "./discovery-claims.ts";
import { HealthOverrideRow } from "./health-overrides.ts";
import { LocalCaRow } from "./local-ca.ts";
import { SessionTable } from "./sessions.ts";
import type { TableContext } from "./table-context.ts";
import { TokenTable } from "./tokens.ts";
import { TotpTable } from "./totp.ts";

/** Each fact writes all or nothing; the caller's transaction holds several together. */
export class FactTables {
  readonly #sessions: SessionTable;
  readonly #totp: TotpTable;
  readonly #tokens: TokenTable;
  readonly #acme: AcmeStateTable;
  readonly #activity: ActivityTables;
  readonly #overrides: HealthOverrideRow;
  readonly #localCa: LocalCaRow;
  readonly #claims: DiscoveryClaimTable;

  constructor(context: TableContext) {
    this.#sessions = new SessionTable(context);
    this.#totp = new TotpTable(context);
    this.#tokens = new TokenTable(context);
    this.#acme = new AcmeStateTable(context);
    this.#activity = new ActivityTables(context);
    this.#overrides = new HealthOverrideRow(context);
    this.#localCa = new LocalCaRow(context);
    this.#claims = new DiscoveryClaimTable(context);
  }

  /** All that is stored, as facts that write it elsewhere. */
  all(): readonly Fact[] {
    const factors = this.#totp
      .all()
      .map((record): Fact => ({ kind: "second_factor", user_id: record.user_id, record }));
    const sessions = this.#sessions.load().map((session): Fact => ({
      kind: "session_began",
      session,
    }));
    const states = [...this.#acme.load()].map(([certificate_id, document]): Fact => ({
      kind: "acme_state",
      certificate_id,
      document,
    }));
    const overrides = [...this.#overrides.load()].map(([target_id, override]): Fact => ({
      kind: "health_override",
      target_id,
      override,
    }));
    const root = this.#localCa.load();
    return [
      ...sessions,
      ...factors,
      { kind: "admin_token", token: this.#tokens.loadAdminToken() },
      ...states,
      ...overrides,
      ...this.#claims.all(),
      ...(root === null ? [] : [{ kind: "local_ca", root } as const]),
    ];
  }

  write(fact: Exclude<Fact, { kind: "node_drained" | "secret_key" }>): void {
    switch (fact.kind) {
      case "session_began":
        return this.#sessions.insert(fact.session);
      case "sessions_ended":
        return this.#sessions.remove(fact.ids);
      case "second_factor":
        return fact.record === null
          ? this.#totp.remove(fact.user_id)
          : this.#totp.put({ ...fact.record, recovery_hashes: [...fact.record.recovery_hashes] });
      case "admin_token":
        return this.#tokens.writeAdminToken(fact.token);
      case "acme_state":
        return this.#acme.put(fact.certificate_id, fact.document);
      // Only served: orders that a restart interrupts publish their responses again.
      case "acme_challenges":
      // Caches are not in this database.
      case "cache_purged":
      case "cache_soft_purged":
        return;
      case "node_activity":
        return this.#activity.write(fact.activity);
      case "health_override":
        return this.#overrides.put(fact.target_id, fact.override);
      case "local_ca":
        return this.#localCa.put(fact.root);
      case "discovery_claims":
        return this.#claims.write(fact);
    }
  }
}
