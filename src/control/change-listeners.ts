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
  readonly #settledListeners: (() => void)[] = [];
  /** Facts that are being stored, and batches that listeners work on. */
  #unsettled = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Stores the facts of `source` with each change. */
  addFacts(source: (pending: PendingChange) => readonly Fact[]): void {
    this.#factSources.push(source);
  }

  /**
   * Calls `listener` for each fact in the turn in which it is stored, also for those of other nodes; for purges with a change
   * after its activation. This node counts as serving facts when the promises are fulfilled: one that must not count rejects
   * never, but tries again.
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

  /** Calls `listener` whenever the listeners for facts are done with all that is stored. */
  onSettled(listener: () => void): void {
    this.#settledListeners.push(listener);
  }

  /** Whether the listeners for facts are done with all that is stored. */
  get isSettled(): boolean {
    return this.#unsettled === 0;
  }

  /** Until the returned function is called, this node does not count as serving what is stored. */
  #hold(): () => void {
    this.#unsettled++;
    return () => {
      this.#unsettled--;
      if (this.isSettled) for (const listener of this.#settledListeners) listener();
    };
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

  /** This node does not count as serving what is stored before the work is done. */
  protected async during<T>(work: () => Promise<T>): Promise<T> {
    const settle = this.#hold();
    try {
      return await work();
    } finally {
      settle();
    }
  }

  /** Stores facts without a change, and calls all listeners in the turn in which they are stored. */
  protected storing(
    facts: readonly Fact[],
    store: () => void | Promise<void>,
  ): void | Promise<void> {
    const stored = store();
    if (!(stored instanceof Promise)) return void this.recorded(facts);
    const settle = this.#hold();
    return stored.then(() => void this.recorded(facts)).finally(settle);
  }

  /** Calls all listeners in this turn; for purges when `activated` is fulfilled: the former version may fill caches until then. */
  protected async recorded(facts: readonly Fact[], activated?: Promise<void>): Promise<void> {
    if (facts.length === 0) return;
    const settle = this.#hold();
    const calls = facts.flatMap((fact) =>
      this.#factListeners.map(async (listener) => {
        const isPurge = fact.kind === "cache_purged" || fact.kind === "cache_soft_purged";
        if (isPurge && activated !== undefined) await activated;
        await listener(fact);
      }),
    );
    const results = await Promise.allSettled(calls);
    for (const result of results) if (result.status === "rejected") this.#failed(result.reason);
    settle();
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
