// Updates applications after external changes: a new account, an issued certificate, or one that expires soon.
import type { Clock } from "../clock.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Log } from "../log.ts";
import type { Application, HttpsState } from "../model/application.ts";
import { markOf } from "../model/fields.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { LocalCa } from "../acme/local-ca.ts";
import type { Changes } from "../control/change.ts";
import type { Draft } from "../control/draft.ts";
import type { FleetDuty } from "../control/fleet-view.ts";
import type { Actor } from "../control/principal.ts";
import { isPublicName } from "./domains.ts";
import { planHttps } from "./https-plan.ts";
import { objectOf } from "./parts.ts";
import { reconcile, type Sign } from "./reconcile.ts";
import { needsReplacement, withSigning } from "./signing.ts";
import { inputOf } from "./view.ts";

export interface ReconcilerOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly localCa: LocalCa;
  readonly log: Log;
  readonly duty: FleetDuty;
}

const reconciler: Actor = { actor: "applications", method: "local", address: "", sessionId: null };

export class ApplicationReconciler {
  readonly #options: ReconcilerOptions;
  #isRunning = false;
  #mustRunAgain = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    options.changes.onServed(() => this.wake());
  }

  /** Starts an update if any application is due. */
  wake(): void {
    if (!this.#options.duty.isOurs) return;
    if (this.#isRunning) {
      this.#mustRunAgain = true;
      return;
    }
    const due = this.#due();
    if (due.length === 0) return;
    this.#isRunning = true;
    void this.#reconcile(due).finally(() => {
      this.#isRunning = false;
      const again = this.#mustRunAgain;
      this.#mustRunAgain = false;
      if (again) this.wake();
    });
  }

  #due(): readonly string[] {
    const { config } = this.#options.changes;
    return [...config.applications.values()]
      .filter((application) => this.#isDue(application, config))
      .map(({ id }) => id);
  }

  #isDue(application: Application, config: GatewayConfig): boolean {
    const { https_state: state } = application;
    const made = (role: string) =>
      objectOf(config, application, { role, collection: "certificates" });
    const isGone = state.ordered.length > 0 && made("certificate") === undefined;
    const { domains, https } = application;
    const isPublic = https.mode !== "local_ca" && domains.every(isPublicName);
    if (isPublic && state.secured && state.self_signed.length === 0 && !isGone) return false;
    const own = made("self_signed");
    if (own !== undefined && needsReplacement(own, this.#options.clock.now())) return true;
    return !Bun.deepEquals(this.#planOf(application, config), state);
  }

  #planOf(application: Application, config: GatewayConfig): HttpsState {
    const role = { role: "certificate", collection: "certificates" } as const;
    return planHttps(application, {
      config,
      now: this.#options.clock.now(),
      ordered: objectOf(config, application, role),
      previous: application.https_state,
      isPermitted: (name) => this.#options.localCa.permits(name),
    });
  }

  /** All in one change; when it fails, each separately. A failed one waits for the next wake. */
  async #reconcile(ids: readonly string[]): Promise<void> {
    try {
      await this.#change(ids);
    } catch (error) {
      for (const id of ids.length > 1 ? ids : []) await this.#reconcileOne(id);
      if (ids.length === 1) this.#warn(ids[0] ?? "", error);
    }
  }

  async #reconcileOne(id: string): Promise<void> {
    try {
      await this.#change([id]);
    } catch (error) {
      this.#warn(id, error);
    }
  }

  async #change(ids: readonly string[]): Promise<void> {
    const { changes } = this.#options;
    const run = (sign: Sign) =>
      changes.run({
        by: reconciler,
        dryRun: false,
        asLeader: true,
        mutate: (draft) => {
          const names = ids.flatMap((id) => this.#update(id, draft, sign) ?? []);
          draft.summary = `update HTTPS of ${names.slice(0, 10).join(", ")}`;
        },
      });
    await withSigning(this.#options, run, { dryRun: false });
  }

  /** Returns its label, if it was due. */
  #update(id: string, draft: Draft, sign: Sign): string | null {
    const old = draft.config.applications.get(id);
    if (old === undefined || !this.#isDue(old, draft.config)) return null;
    const https_state = this.#planOf(old, draft.config);
    const application = { ...inputOf(old), https_state, ...markOf(old) };
    const how = { adopt: false, accept: false, force: false, automatic: true, sign };
    const parts = reconcile({ ...how, draft, application, parts: old.parts });
    const { created_at, updated_at } = old;
    const next: Application = { id, ...application, parts, created_at, updated_at };
    if (!Bun.deepEquals(next, old))
      draft.put("applications", { ...next, updated_at: draft.stamp() });
    return `application "${old.name}"`;
  }

  #warn(id: string, error: unknown): void {
    const name = this.#options.changes.config.applications.get(id)?.name ?? id;
    this.#options.log.warn("an application could not be updated", {
      application: name,
      error,
    });
  }
}
