// The challenge responses that all workers serve: published before the CA checks them, removed afterwards.
import type { Challenges } from "../snapshot/message.ts";
import { untilConfirmed } from "../control/until-confirmed.ts";

/** Publishes them to every worker; resolves when each of them serves them. */
export type ShowChallenges = (challenges: Challenges) => Promise<void>;

/** Resolves when all nodes of the fleet serve the responses of this node. */
export type ShareChallenges = (own: Proofs) => Promise<void>;

export type Proofs = Pick<Challenges, "http" | "tls">;
export type HttpProof = Challenges["http"][number];
export type TlsProof = Challenges["tls"][number];

export class ChallengeBoard {
  readonly #show: ShowChallenges;
  readonly #failed: (error: unknown) => void;
  readonly #http = new Set<HttpProof>();
  readonly #tls = new Set<TlsProof>();
  readonly #share: ShareChallenges | null;
  /** Those of other nodes. */
  readonly #foreign = new Map<string, Proofs>();
  #lastShared: Promise<unknown> = Promise.resolve();
  #wanted: readonly string[] = [];
  #last: Promise<unknown> = Promise.resolve();

  /** `failed`: a worker did not confirm other responses. */
  constructor(
    show: ShowChallenges,
    failed: (error: unknown) => void,
    share: ShareChallenges | null = null,
  ) {
    this.#show = show;
    this.#failed = failed;
    this.#share = share;
  }

  /**
   * Resolves when every worker serves the responses of another node, instead of its former ones: until then this node does not
   * count as serving them, and that one does not notify the CA.
   */
  observe(node: string, proofs: Proofs): Promise<void> {
    this.#foreign.set(node, proofs);
    return untilConfirmed(() => this.#publish(), this.#failed);
  }

  /** Resolves when every worker serves the responses; the function removes them. */
  async putUp(proofs: Proofs): Promise<() => void> {
    for (const proof of proofs.http) this.#http.add(proof);
    for (const proof of proofs.tls) this.#tls.add(proof);
    const takeDown = () => {
      for (const proof of proofs.http) this.#http.delete(proof);
      for (const proof of proofs.tls) this.#tls.delete(proof);
      this.#publish().catch(this.#failed);
      this.#shareOwn().catch(this.#failed);
    };
    try {
      await this.#publish();
      await this.#shareOwn();
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
    const next = this.#last.then(() => {
      const foreign = [...this.#foreign.values()];
      return this.#show({
        http: [...this.#http, ...foreign.flatMap(({ http }) => http)],
        tls: [...this.#tls, ...foreign.flatMap(({ tls }) => tls)],
        wanted: this.#wanted,
      });
    });
    this.#last = next.catch(() => undefined);
    return next;
  }

  /** Serialized, as `#publish`. */
  async #shareOwn(): Promise<void> {
    const share = this.#share;
    if (share === null) return;
    const next = this.#lastShared.then(() => share({ http: [...this.#http], tls: [...this.#tls] }));
    this.#lastShared = next.catch(() => undefined);
    await next;
  }
}
