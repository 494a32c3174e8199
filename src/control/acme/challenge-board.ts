// The challenge responses that all workers serve: published before the CA checks them, removed afterwards.
import type { Challenges } from "../../snapshot/message.ts";

/** Publishes them to every worker; resolves when each of them serves them. */
export type ShowChallenges = (challenges: Challenges) => Promise<void>;

export type HttpProof = Challenges["http"][number];
export type TlsProof = Challenges["tls"][number];

export class ChallengeBoard {
  readonly #show: ShowChallenges;
  readonly #failed: (error: unknown) => void;
  readonly #http = new Set<HttpProof>();
  readonly #tls = new Set<TlsProof>();
  #wanted: readonly string[] = [];
  #last: Promise<unknown> = Promise.resolve();

  /** `failed`: a worker did not remove old responses. */
  constructor(show: ShowChallenges, failed: (error: unknown) => void) {
    this.#show = show;
    this.#failed = failed;
  }

  /** Resolves when every worker serves the responses; the function removes them. */
  async putUp(proofs: {
    readonly http: readonly HttpProof[];
    readonly tls: readonly TlsProof[];
  }): Promise<() => void> {
    for (const proof of proofs.http) this.#http.add(proof);
    for (const proof of proofs.tls) this.#tls.add(proof);
    const takeDown = () => {
      for (const proof of proofs.http) this.#http.delete(proof);
      for (const proof of proofs.tls) this.#tls.delete(proof);
      this.#publish().catch(this.#failed);
    };
    try {
      await this.#publish();
    } catch (error) {
      takeDown();
      throw error;
    }
    return takeDown;
  }

  /** Workers report handshakes for these names without a certificate from now on. */
  watch(names: readonly string[]): void {
    if (Bun.deepEquals(names, this.#wanted)) return;
    this.#wanted = names;
    this.#publish().catch(this.#failed);
  }

  /** Serialized, so that every worker ends with the latest state. */
  #publish(): Promise<void> {
    const next = this.#last.then(() =>
      this.#show({ http: [...this.#http], tls: [...this.#tls], wanted: this.#wanted }),
    );
    this.#last = next.catch(() => undefined);
    return next;
  }
}
