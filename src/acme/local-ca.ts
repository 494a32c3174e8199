// The local CA: its root, and the certificates that it signs for private names; knows no schedule and no HTTP.
import { randomBytes, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { Clock } from "../clock.ts";
import type { AuditLog } from "../control/audit.ts";
import type { Changes } from "../control/change.ts";
import type { Actor } from "../control/principal.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import { createRoot, createSigned, type KeyPair } from "../crypto/x509.ts";
import type { Certificate } from "../model/certificate.ts";
import { ApiError, invalid } from "../model/error.ts";
import type { StoredLocalCa } from "../model/fact.ts";
import {
  isAddress,
  isSingleLabel,
  isWithin,
  type LocalCaSettings,
  type LocalCaView,
  type RootConstraints,
} from "../model/local-ca.ts";
import { compileCidrs } from "../net/cidr.ts";

export interface LocalCaStore {
  load(): StoredLocalCa | null;
}

export interface LocalCaOptions {
  /** Absent: there is no root at the start. */
  readonly localCaStore?: LocalCaStore;
  readonly changes: Changes;
  readonly audit: AuditLog;
  readonly box: SecretBox;
  readonly clock: Clock;
}

/** Devices trust a root by hand, so that it has to last. */
const ROOT_DAYS = 3650;
const WARN_BEFORE_MS = 365 * 86_400_000;

interface Root {
  readonly stored: StoredLocalCa;
  readonly x509: X509Certificate;
}

export class LocalCa {
  readonly #options: LocalCaOptions;
  #root: Root | null;

  constructor(options: LocalCaOptions) {
    this.#options = options;
    this.#root = opened(options.localCaStore?.load() ?? null);
    options.changes.onFact((fact) => {
      if (fact.kind === "local_ca") this.#root = opened(fact.root);
    });
  }

  view(): LocalCaView {
    if (this.#root === null) return { root: null };
    const { stored, x509 } = this.#root;
    const { certificate, constraints } = stored;
    return {
      root: {
        certificate,
        subject: x509.subject,
        fingerprint: x509.fingerprint256.replaceAll(":", "").toLowerCase(),
        not_before: new Date(x509.validFrom).toISOString(),
        not_after: new Date(x509.validTo).toISOString(),
        constraints:
          constraints === null
            ? null
            : { names: [...constraints.names], networks: [...constraints.networks] },
      },
    };
  }

  /** The public root; throws a 404 when there is none. */
  certificate(): X509Certificate {
    if (this.#root === null)
      throw new ApiError(
        404,
        "there is no root yet: the gateway creates it with the first certificate of the local CA",
      );
    return this.#root.x509;
  }

  permits(name: string): boolean {
    return this.#refusal(name) === null;
  }

  /** Throws a 400 with the first name that it does not sign. `path`: of the list of names. */
  requirePermitted(names: readonly string[], path = "domains"): void {
    for (const [index, name] of names.entries()) {
      const refusal = this.#refusal(name);
      if (refusal !== null) throw invalid(`${path}[${index}]`, refusal);
    }
  }

  /** Whether the present root has signed it. */
  hasSigned({ issuer }: Certificate): boolean {
    return this.#root !== null && issuer === this.#root.x509.subject;
  }

  /**
   * A new key with a certificate for the names, some of which may be addresses. Creates the root when there is none; a dry run
   * signs with one that it discards. Throws a 400 for a name that it does not sign.
   */
  async sign(
    domains: readonly string[],
    { dryRun }: { readonly dryRun: boolean },
  ): Promise<KeyPair> {
    const { changes, box, clock } = this.#options;
    this.requirePermitted(domains);
    const trial = dryRun && this.#root === null ? await this.#create() : null;
    const { stored, x509 } = trial ?? (await this.#ensure());
    if (Date.parse(x509.validTo) <= clock.now())
      throw new ApiError(409, "the root of the local CA has expired: replace it");
    const [names, addresses] = [
      domains.filter((domain) => !isAddress(domain)),
      domains.filter(isAddress),
    ];
    const { validity_days: validDays } = changes.config.settings.local_ca;
    const root = { cert: stored.certificate, key: box.open(stored.sealed_key) };
    return createSigned({ names, addresses, now: clock.now(), validDays }, root);
  }

  /** The PEM of the root, which it creates when there is none. */
  async ensureRoot(): Promise<string> {
    return (await this.#ensure()).stored.certificate;
  }

  /** Replaces the root with one that states what the settings permit now. The certificates of the former one are renewed. */
  async rotate(by: Actor): Promise<LocalCaView> {
    const { changes, audit } = this.#options;
    const { stored } = await this.#create();
    await changes.record(() => ({ value: null, facts: [{ kind: "local_ca", root: stored }] }), by);
    const { actor, method, address } = by;
    const { root } = this.view();
    audit.record({
      actor,
      method,
      address,
      action: "rotate",
      kind: "local_ca",
      object_id: null,
      object_name: root?.subject ?? null,
      result: "ok",
      revision: null,
      detail: { fingerprint: root?.fingerprint },
    });
    return { root };
  }

  /** One sentence each. */
  warnings(): readonly string[] {
    if (this.#root === null) return [];
    const end = Date.parse(this.#root.x509.validTo);
    if (end - this.#options.clock.now() > WARN_BEFORE_MS) return [];
    const day = new Date(end).toISOString().slice(0, 10);
    return [`the root of the local CA expires on ${day}: replace it, and trust the new one`];
  }

  async #ensure(): Promise<Root> {
    if (this.#root !== null) return this.#root;
    const { stored } = await this.#create();
    // Another request or node may have created one meanwhile.
    await this.#options.changes.record(() => ({
      value: null,
      facts: this.#root === null ? [{ kind: "local_ca", root: stored }] : [],
    }));
    if (this.#root === null) throw new Error("the root was not stored");
    return this.#root;
  }

  async #create(): Promise<Root> {
    const { changes, box, clock } = this.#options;
    const { local_ca: settings } = changes.config.settings;
    const constraints = constraintsOf(settings);
    const pair = await createRoot({
      commonName: `Sluice Local CA ${randomBytes(4).toString("hex")}`,
      constraints,
      now: clock.now(),
      validDays: ROOT_DAYS,
    });
    const stored = { certificate: pair.cert, sealed_key: box.seal(pair.key), constraints };
    return { stored, x509: new X509Certificate(pair.cert) };
  }

  /** Why it does not sign a name, to follow the name of a field; null: it does. */
  #refusal(name: string): string | null {
    const { local_ca: settings } = this.#options.changes.config.settings;
    const { permitted_names: names, permitted_networks: networks } = settings;
    const isFree = isSingleLabel(name) && !settings.name_constraints;
    if (!isFree && !isInside(name, { names, networks })) {
      const field = isAddress(name) ? "permitted_networks" : "permitted_names";
      return `is not permitted for the local CA: an admin can add it to settings.local_ca.${field}`;
    }
    const stated = this.#root?.stored.constraints ?? null;
    return stated === null || isInside(name, stated)
      ? null
      : "is outside of the name constraints of the local CA's root: an admin can replace the root";
  }
}

const opened = (stored: StoredLocalCa | null): Root | null =>
  stored === null ? null : { stored, x509: new X509Certificate(stored.certificate) };

const isInside = (name: string, { names, networks }: NonNullable<RootConstraints>): boolean =>
  isAddress(name) ? compileCidrs(networks)(name) : isWithin(name, names);

function constraintsOf(settings: LocalCaSettings): RootConstraints {
  if (!settings.name_constraints) return null;
  const names = settings.permitted_names.map((name) => name.toLowerCase());
  return { names: [...new Set(names)], networks: settings.permitted_networks.map(withLength) };
}

/** A single address as a network. */
function withLength(network: string): string {
  if (network.includes("/")) return network;
  return `${network}/${isIP(network) === 4 ? 32 : 128}`;
}
