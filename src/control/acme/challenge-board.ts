// What all workers show authorities at the moment: proofs are put up before the authority is told, and taken down afterwards.
import type { Challenges } from "../../snapshot/message.ts";

/** Brings it to every worker; resolves when each of them shows it. */
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

  /** `failed`: proofs that are over could not be taken down everywhere. */
  constructor(show: ShowChallenges, failed: (error: unknown) => void) {
    this.#show = show;
    this.#failed = failed;
  }

  /** Resolves when every worker shows the proofs; the function takes them down again. */
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

  /** From now on handshakes for these names are reported when no certificate is there. */
  watch(names: readonly string[]): void {
    if (Bun.deepEquals(names, this.#wanted)) return;
    this.#wanted = names;
    this.#publish().catch(this.#failed);
  }

  /** One after the other, so that no worker is left with an older state than it was told last. */
  #publish(): Promise<void> {
    const next = this.#last.then(() =>
      this.#show({ http: [...this.#http], tls: [...this.#tls], wanted: this.#wanted }),
    );
    this.#last = next.catch(() => undefined);
    return next;
  }
}
