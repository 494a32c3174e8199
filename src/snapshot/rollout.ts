// The rollout of versions and its observers; knows no worker and no change.
import type { Issue } from "../model/error.ts";
import type { UnboundPort } from "../model/unbound-port.ts";
import type { Snapshot } from "./snapshot.ts";

/** Rolls versions out to the workers. */
export interface Rollout {
  /**
   * Every worker builds `next` beside the live version. The issues give the reasons why it cannot be served; an ApiError means
   * that a worker ended or did not answer. In both cases every worker has dropped `next`.
   */
  prepare(next: Snapshot): Promise<readonly Issue[]>;
  /**
   * Every worker serves the prepared version when this resolves; one that could not was replaced. From the call on, a worker
   * that ends restarts with this version.
   */
  activate(revision: number): Promise<void>;
  /** Every worker has dropped the prepared version, and closed the ports that it had opened, when this resolves. */
  discard(revision: number): Promise<void>;
  status(): RolloutStatus;
}

export interface RolloutStatus {
  readonly workers: number;
  /** Number of workers that serve the current revision. */
  readonly ready: number;
  readonly revision: number;
  /** Ports that the gateway serves without; absent: none. */
  readonly unbound?: readonly UnboundPort[];
}

/** Two versions, one after the other. */
export interface VersionStep {
  readonly before: Snapshot;
  readonly after: Snapshot;
}

/** Follows the served version outside the workers. None of the calls may reject later. */
export interface RolloutObserver {
  /** Throws an ApiError when `after` cannot be served; stores nothing of it, because the version may still be discarded. */
  check?(step: VersionStep): void;
  /** The version is stored and prepared; no worker serves it yet. */
  beforeActivation(step: VersionStep): void;
  /** The workers serve it, or failed to and are being replaced. */
  afterActivation(step: VersionStep): void;
}

/** Notifies observers of every rollout, in the order of the list. */
export class ObservedRollout implements Rollout {
  readonly #rollout: Rollout;
  readonly #observers: readonly RolloutObserver[];
  #served: Snapshot;
  #next: Snapshot | null = null;

  /** `served`: the first version that the workers serve. */
  constructor(rollout: Rollout, observers: readonly RolloutObserver[], served: Snapshot) {
    this.#rollout = rollout;
    this.#observers = observers;
    this.#served = served;
  }

  async prepare(next: Snapshot): Promise<readonly Issue[]> {
    const step = { before: this.#served, after: next };
    for (const observer of this.#observers) observer.check?.(step);
    this.#next = next;
    return await this.#rollout.prepare(next);
  }

  async activate(revision: number): Promise<void> {
    const step = { before: this.#served, after: this.#next ?? this.#served };
    this.#served = step.after;
    this.#next = null;
    for (const observer of this.#observers) observer.beforeActivation(step);
    try {
      await this.#rollout.activate(revision);
    } finally {
      for (const observer of this.#observers) observer.afterActivation(step);
    }
  }

  discard(revision: number): Promise<void> {
    this.#next = null;
    return this.#rollout.discard(revision);
  }

  status(): RolloutStatus {
    return this.#rollout.status();
  }
}
