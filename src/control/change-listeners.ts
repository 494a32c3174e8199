// Who is notified of changes and facts, and adds facts to them; one failing listener stops no other.
import type { Log } from "../log.ts";
import type { Fact } from "../model/fact.ts";
import type { ChangeEvent, PendingChange } from "./change-contract.ts";

type Listener = (event: ChangeEvent) => void;

export class ChangeListeners {
  readonly #log: Log;
  readonly #factSources: ((pending: PendingChange) => readonly Fact[])[] = [];
  readonly #storedListeners: Listener[] = [];
  readonly #servedListeners: Listener[] = [];
  readonly #factListeners: ((fact: Fact) => void | Promise<void>)[] = [];
  /** Batches of facts that listeners work on. */
  #notifying = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Stores the facts of `source` with each change. */
  addFacts(source: (pending: PendingChange) => readonly Fact[]): void {
    this.#factSources.push(source);
  }

  /**
   * Calls `listener` for each fact in the turn in which it is stored, also for those of other nodes. This node counts as serving
   * those of others when the promises are fulfilled.
   */
  onFact(listener: (fact: Fact) => void | Promise<void>): void {
    this.#factListeners.push(listener);
  }

  /** Calls `listener` right after the commit of a change, before the workers serve it and before the response. */
  onStored(listener: Listener): void {
    this.#storedListeners.push(listener);
  }

  /** Calls `listener` once for each change, after all workers serve it. */
  onServed(listener: Listener): void {
    this.#servedListeners.push(listener);
  }

  /** Whether the listeners for facts are done with all that is stored. */
  get isSettled(): boolean {
    return this.#notifying === 0;
  }

  protected factsOf(pending: PendingChange): readonly Fact[] {
    return this.#factSources.flatMap((source) => source(pending));
  }

  protected stored(event: ChangeEvent): void {
    this.#notify(this.#storedListeners, event);
  }

  protected served(event: ChangeEvent): void {
    this.#notify(this.#servedListeners, event);
  }

  /** Calls all listeners in this turn. */
  protected async recorded(facts: readonly Fact[]): Promise<void> {
    if (facts.length === 0) return;
    this.#notifying++;
    const calls = facts.flatMap((fact) =>
      this.#factListeners.map(async (listener) => await listener(fact)),
    );
    const results = await Promise.allSettled(calls);
    this.#notifying--;
    for (const result of results) if (result.status === "rejected") this.#failed(result.reason);
  }

  #notify(listeners: readonly Listener[], event: ChangeEvent): void {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  #failed(error: unknown): void {
    this.#log.error("a listener for changes failed", { error });
  }
}
