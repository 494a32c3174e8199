// Puts issued certificates into service, in one change for all that are ready; knows no CA.
import type { CertificateChain } from "../crypto/certificate-chain.ts";
import { type Certificate, isRenewed } from "../model/certificate.ts";
import type { Changes } from "../control/change.ts";
import type { Actor } from "../control/principal.ts";
import type { Fact } from "../model/fact.ts";
import type { SharedExclusiveGate } from "./shared-exclusive-gate.ts";

/** The actor of issued certificates in the history. */
export const issuer: Actor = { actor: "acme", method: "local", address: "", sessionId: null };

export interface Issued {
  readonly certificateId: string;
  readonly domains: readonly string[];
  readonly chain: CertificateChain;
  /** Seals the key of the chain. */
  readonly seal: (key: string) => string;
  /** Stored with it. */
  readonly facts: readonly Fact[];
}

interface Waiting {
  readonly issued: Issued;
  readonly resolve: (isUsed: boolean) => void;
  readonly reject: (error: unknown) => void;
}

export class Installation {
  readonly #changes: Changes;
  readonly #listenerGate: SharedExclusiveGate;
  #waiting: Waiting[] = [];
  #isBusy = false;

  constructor(changes: Changes, listenerGate: SharedExclusiveGate) {
    this.#changes = changes;
    this.#listenerGate = listenerGate;
  }

  /** Resolves when every worker presents it; false when the certificate no longer matches. */
  install(issued: Issued): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    this.#waiting.push({ issued, resolve, reject });
    void this.#work();
    return promise;
  }

  /** Each change rebinds listeners, so certificates that arrive meanwhile share one. */
  async #work(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    while (this.#waiting.length > 0)
      await this.#listenerGate.change(async () => {
        const batch = this.#waiting;
        this.#waiting = [];
        await this.#apply(batch);
      });
    this.#isBusy = false;
  }

  async #apply(batch: readonly Waiting[]): Promise<void> {
    const used = new Set<Waiting>();
    try {
      await this.#changes.run({
        by: issuer,
        dryRun: false,
        asLeader: true,
        mutate: (draft) => {
          used.clear();
          const names: string[] = [];
          for (const waiting of batch) {
            const { issued } = waiting;
            const old = draft.config.certificates.get(issued.certificateId);
            if (old === undefined || !isWanted(old, issued)) continue;
            draft.put("certificates", withChain(old, issued, draft.stamp()));
            used.add(waiting);
            names.push(`"${old.name}"`);
          }
          const word = names.length === 1 ? "certificate" : "certificates";
          draft.summary = `issue ${word} ${names.join(", ")}`.slice(0, 500);
        },
        facts: () => [...used].flatMap(({ issued }) => issued.facts),
      });
      for (const waiting of batch) waiting.resolve(used.has(waiting));
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    }
  }
}

const isWanted = (old: Certificate, { domains }: Issued) =>
  isRenewed(old) && Bun.deepEquals(old.domains, domains);

function withChain(old: Certificate, { chain, seal }: Issued, at: string): Certificate {
  return {
    ...old,
    certificate: chain.certificate,
    // Here, where no other secret key can come before the change is stored.
    sealed_key: seal(chain.key),
    not_before: chain.notBefore,
    not_after: chain.notAfter,
    issuer: chain.issuer,
    fingerprint: chain.fingerprint,
    updated_at: at,
  };
}
