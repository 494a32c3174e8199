// Finds the certificate of a host name; knows no handshake.
import type { CertificatePlan } from "../../snapshot/snapshot.ts";

export class CertificateIndex {
  readonly #byName = new Map<string, CertificatePlan>();
  readonly #plans: ReadonlySet<unknown>;

  constructor(certificates: ReadonlyMap<string, CertificatePlan>) {
    this.#plans = new Set(certificates.values());
    for (const plan of certificates.values())
      for (const name of plan.names) this.#byName.set(name.toLowerCase(), plan);
  }

  has(plan: object): boolean {
    return this.#plans.has(plan);
  }

  /** For a lower-case name without trailing dot: exact before wildcard (one label); null when no certificate has it. */
  find(name: string | null): CertificatePlan | null {
    if (name === null) return null;
    const exact = this.#byName.get(name);
    if (exact !== undefined) return exact;
    const dot = name.indexOf(".");
    return dot < 1 ? null : (this.#byName.get(`*${name.slice(dot)}`) ?? null);
  }
}
