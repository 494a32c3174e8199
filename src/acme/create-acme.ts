// Assembles the ACME client and offers its operations; decides nothing.
import type { Clock } from "../clock.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Log } from "../log.ts";
import {
  type Certificate,
  isIssued,
  isRenewed,
  revocationInput,
  revocationReasons,
} from "../model/certificate.ts";
import { decode } from "../model/decode.ts";
import { ApiError } from "../model/error.ts";
import type { AuditLog } from "../control/audit.ts";
import type { Changes } from "../control/change.ts";
import type { EventHub } from "../control/events.ts";
import type { FleetDuty, FleetView } from "../control/fleet-view.ts";
import type { Actor } from "../control/principal.ts";
import { materialOfNone } from "./certificate-fields.ts";
import type { ShowChallenges } from "./challenge-board.ts";
import type { DnsParts } from "./dns-proof.ts";
import { AcmeEngine } from "./engine.ts";
import { AcmeFailure } from "./failure.ts";
import { FleetAcmeStore, shareOver } from "./fleet-acme.ts";
import { LocalCa, type LocalCaStore } from "./local-ca.ts";
import type { AcmeStore } from "./state.ts";
import { AcmeEvents } from "./acme-events.ts";

/** External parts of the ACME client. */
export interface AcmeParts {
  readonly store: AcmeStore;
  readonly show: ShowChallenges;
}

export interface AcmeOptions {
  readonly acme?: AcmeParts;
  /** Absent: no dns-01. */
  readonly dns?: DnsParts;
  readonly changes: Changes;
  readonly audit: AuditLog;
  readonly events: EventHub;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent: the local CA has no root at the start. */
  readonly localCaStore?: LocalCaStore;
  /** Absent: this is no fleet. */
  readonly fleet?: FleetView;
  readonly duty?: FleetDuty;
}

/** Without workers, no certificates are issued. */
const idleParts: AcmeParts = {
  store: { load: () => new Map(), put() {}, remove() {} },
  show: () => Promise.resolve(),
};

const unavailable = () => {
  throw new AcmeFailure("dns-01 is not available here");
};

const noDns: DnsParts = {
  createClient: unavailable,
  waitForPropagation: unavailable,
  open: unavailable,
  aliasOf: () => Promise.resolve(null),
};

/** The parts that reach the other nodes; none without a fleet. */
function overFleet(options: AcmeOptions, { store }: AcmeParts) {
  const { fleet } = options;
  if (fleet === undefined) return {};
  return {
    node: fleet.id,
    share: shareOver(fleet, options),
    store: new FleetAcmeStore({ ...options, store }),
  };
}

export class Acme {
  readonly #options: AcmeOptions;
  readonly engine: AcmeEngine;
  readonly localCa: LocalCa;

  constructor(options: AcmeOptions) {
    this.#options = options;
    const events = new AcmeEvents(options.events, options.clock);
    const { acme = idleParts, dns = noDns } = options;
    this.localCa = new LocalCa(options);
    const parts = { dns, events, localCa: this.localCa };
    this.engine = new AcmeEngine({ ...options, ...acme, ...overFleet(options, acme), ...parts });
  }

  /** Requests a new certificate now; throws a 409 for one that no CA issued. */
  renew(certificate: Certificate, by: Actor): void {
    if (!isRenewed(certificate)) requireAcme(certificate, "renewed");
    if (!certificate.enabled)
      throw new ApiError(409, `certificate "${certificate.name}" is disabled`);
    if (certificate.domains.length === 0)
      throw new ApiError(
        409,
        `certificate "${certificate.name}" has no names of its own: it is an on-demand template`,
      );
    this.#options.changes.requireStore();
    this.engine.askFor(certificate);
    this.#record("renew", certificate, by);
  }

  /** Revokes it at its CA and takes it out of service. Requests a new one at once. */
  async revoke(certificate: Certificate, body: unknown, by: Actor): Promise<void> {
    const { reason } = decode(revocationInput, body ?? {});
    requireAcme(certificate, "revoked");
    // A revocation cannot be undone: check first.
    this.#options.changes.requireOpen(by);
    if (!isIssued(certificate))
      throw new ApiError(409, `certificate "${certificate.name}" has not been issued yet`);
    try {
      await this.engine.revoke(certificate, revocationReasons[reason]);
    } catch (error) {
      if (!(error instanceof AcmeFailure)) throw error;
      throw new ApiError(error.isOutage ? 500 : 409, error.message, { cause: error });
    }
    this.#record("revoke", certificate, by);
    await this.#options.changes.run({
      by,
      dryRun: false,
      mutate: (draft) => {
        const now = draft.config.certificates.get(certificate.id);
        if (now?.fingerprint !== certificate.fingerprint) return;
        draft.put("certificates", { ...now, ...materialOfNone, updated_at: draft.stamp() });
        draft.summary = `revoke certificate "${now.name}"`;
      },
    });
  }

  /** Rolls over the account key; throws a 409 when the CA refuses it, or during an order. */
  async rotateKey(accountId: string, by: Actor): Promise<void> {
    const account = this.#options.changes.config.acme_accounts.get(accountId);
    if (account === undefined) return;
    if (!account.enabled || !account.terms_agreed)
      throw new ApiError(409, `ACME account "${account.name}" is disabled`);
    try {
      await this.engine.changeKey(account, by);
    } catch (error) {
      if (!(error instanceof AcmeFailure)) throw error;
      throw new ApiError(error.isOutage ? 500 : 409, error.message, { cause: error });
    }
  }

  #record(action: string, { id, name }: Certificate, by: Actor): void {
    const { actor, method, address } = by;
    this.#options.audit.record({
      actor,
      method,
      address,
      action,
      kind: "certificate",
      object_id: id,
      object_name: name,
      result: "ok",
      revision: null,
      detail: null,
    });
  }
}

function requireAcme({ source, name }: Certificate, what: string): void {
  if (source !== "acme")
    throw new ApiError(409, `certificate "${name}" has source "${source}" and cannot be ${what}`);
}
