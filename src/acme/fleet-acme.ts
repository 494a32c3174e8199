// ACME in a fleet: states and challenge responses go to the other nodes over the log; knows no CA.
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Log } from "../log.ts";
import type { Changes } from "../control/change.ts";
import type { FleetView, NodeState } from "../control/fleet-view.ts";
import type { Fact } from "../model/fact.ts";
import type { Proofs, ShareChallenges } from "./challenge-board.ts";
import type { AcmeStore } from "./state.ts";

export interface FleetAcmeOptions {
  /** This node's own. */
  readonly store: AcmeStore;
  readonly changes: Pick<Changes, "record">;
  readonly log: Log;
  /** Milliseconds to the next attempt when the database was away. Default: 5000. */
  readonly retryMs?: number;
}

const RETRY_MS = 5000;

interface Unsent {
  readonly document: Record<string, unknown>;
  readonly asLeader: boolean;
}

export class FleetAcmeStore implements AcmeStore {
  readonly #options: FleetAcmeOptions;
  /** The newest states that are not in the log. */
  readonly #unsent = new Map<string, Unsent>();
  /** Facts of this node. */
  readonly #own = new WeakSet<Fact>();
  #last: Promise<void> = Promise.resolve();
  #retry: Timer | null = null;

  constructor(options: FleetAcmeOptions) {
    this.#options = options;
  }

  load(): ReturnType<AcmeStore["load"]> {
    return this.#options.store.load();
  }

  put(certificateId: string, document: Record<string, unknown>, asLeader: boolean): Promise<void> {
    this.#unsent.set(certificateId, { document, asLeader });
    return this.#sendNext();
  }

  dropUnsent(): void {
    for (const [id, { asLeader }] of this.#unsent) if (asLeader) this.#unsent.delete(id);
  }

  remove(certificateId: string): void {
    this.#unsent.delete(certificateId);
    this.#options.store.remove(certificateId);
  }

  isBehind(fact: Fact): boolean {
    return (
      this.#own.has(fact) || (fact.kind === "acme_state" && this.#unsent.has(fact.certificate_id))
    );
  }

  #sendNext(): Promise<void> {
    this.#last = this.#last.then(() => this.#send());
    return this.#last;
  }

  async #send(): Promise<void> {
    const { changes, log, retryMs = RETRY_MS } = this.#options;
    try {
      const sent = await changes.record(() => {
        const states = [...this.#unsent];
        const facts = states.map(([certificate_id, { document }]): Fact => ({
          kind: "acme_state",
          certificate_id,
          document,
        }));
        for (const fact of facts) this.#own.add(fact);
        return { value: states, facts, asLeader: states.some(([, { asLeader }]) => asLeader) };
      });
      for (const [id, unsent] of sent) if (this.#unsent.get(id) === unsent) this.#unsent.delete(id);
    } catch (error) {
      log.debug("the state of ACME orders could not be sent to the other nodes yet", { error });
      this.#retry ??= setTimeout(() => {
        this.#retry = null;
        void this.#sendNext();
      }, retryMs);
      this.#retry.unref();
    }
  }
}

/** A slow node may need so long to serve the responses. */
const SHARE_MS = 10_000;

/** The CA reaches no node in one of these states. */
const GONE: readonly NodeState[] = ["away", "leaving"];

/** Rejects when a node that the CA may reach does not serve the responses. */
export function shareOver(
  fleet: Pick<FleetView, "id" | "reachStored">,
  { changes, box }: { readonly changes: Pick<Changes, "record">; readonly box: SecretBox },
): ShareChallenges {
  return async (own) => {
    // The keys of tls-alpn-01 must not lie in the database.
    const fact = (): Fact => ({
      kind: "acme_challenges",
      node_id: fleet.id,
      sealed: box.seal(JSON.stringify(own)),
    });
    await changes.record(() => ({ value: null, facts: [fact()] }));
    if (own.http.length + own.tls.length === 0) return;
    const { missing } = await fleet.reachStored(SHARE_MS);
    const late = missing.filter(({ state }) => !GONE.includes(state)).map(({ name }) => name);
    if (late.length > 0)
      throw new Error(`nodes that do not serve the challenge response: ${late.join(", ")}`);
  };
}

/** The responses of another node. */
export const readShared = (sealed: string, box: SecretBox): Proofs =>
  JSON.parse(box.open(sealed)) as Proofs;
