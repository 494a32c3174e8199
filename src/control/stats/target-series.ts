// Gives every target in use its row for counting, and takes it back some time after it is gone; counts nothing.
import type { Clock } from "../../clock.ts";
import { targetSeriesKey } from "../../shared-memory/series-key.ts";
import {
  OTHER_ROW,
  type TrafficMetrics,
  type TrafficSnapshot,
} from "../../shared-memory/traffic-metrics.ts";
import { diffMaps } from "../../snapshot/diff.ts";
import type { ServicePlan, Snapshot } from "../../snapshot/snapshot.ts";
import type { Rollout } from "../change.ts";

/** How long what was counted for a target that is gone can still be read. */
const KEPT_MS = 300_000;

export interface TargetSeriesOptions {
  readonly metrics: TrafficMetrics;
  readonly rollout: Rollout;
  readonly clock: Clock;
  /** What is served first. */
  readonly served: Snapshot;
}

export interface CountedTarget {
  /** Empty: all targets for which there is no row. */
  readonly id: string;
  readonly traffic: TrafficSnapshot;
}

type Plans = Snapshot["services"];

/**
 * Rows are made when a version is decided, before the workers look for them. Stands between the changes and the workers: every version passes through it.
 * Targets have memory of their own, so that many of them take no row from a route.
 */
export class TargetSeries implements Rollout {
  readonly #options: TargetSeriesOptions;
  /** Targets with a row; when they went out of use, in milliseconds since the Unix epoch, or null. */
  readonly #left = new Map<string, number | null>();
  #served: Plans;
  #next: Plans | null = null;

  constructor(options: TargetSeriesOptions) {
    this.#options = options;
    this.#served = options.served.services;
    this.#claim([...this.#served.values()]);
  }

  prepare(next: Snapshot) {
    this.#sweep();
    this.#next = next.services;
    return this.#options.rollout.prepare(next);
  }

  async activate(revision: number): Promise<void> {
    const before = this.#served;
    this.#served = this.#next ?? before;
    this.#next = null;
    this.#claim(diffMaps(before, this.#served).upserts);
    try {
      await this.#options.rollout.activate(revision);
    } finally {
      this.#retire(before, this.#served);
    }
  }

  discard(revision: number): Promise<void> {
    this.#next = null;
    return this.#options.rollout.discard(revision);
  }

  status() {
    return this.#options.rollout.status();
  }

  /** Everything that was counted, also for a short time of what is gone. */
  read(): CountedTarget[] {
    this.#sweep();
    const { metrics } = this.#options;
    const found = [...this.#left.keys()].map((id) => ({
      id,
      traffic: metrics.read(metrics.seriesOf(targetSeriesKey(id)).row),
    }));
    return [...found, { id: "", traffic: metrics.read(OTHER_ROW) }];
  }

  #claim(plans: readonly ServicePlan[]): void {
    for (const { targets } of plans)
      for (const { id } of targets)
        if (this.#left.has(id) || this.#options.metrics.claim(targetSeriesKey(id)) !== OTHER_ROW)
          this.#left.set(id, null);
  }

  /** What was in `before` and is not in `after` is out of use from here on. */
  #retire(before: Plans, after: Plans): void {
    const { upserts, removals } = diffMaps(before, after);
    const kept = new Set(upserts.flatMap(idsOf));
    const now = this.#options.clock.now();
    for (const serviceId of [...upserts.map(({ id }) => id), ...removals])
      for (const id of idsOf(before.get(serviceId)))
        if (!kept.has(id) && this.#left.get(id) === null) this.#left.set(id, now);
  }

  #sweep(): void {
    const now = this.#options.clock.now();
    for (const [id, at] of this.#left) {
      if (at === null || now - at < KEPT_MS) continue;
      this.#options.metrics.release(targetSeriesKey(id));
      this.#left.delete(id);
    }
  }
}

const idsOf = (plan: ServicePlan | undefined): string[] =>
  (plan?.targets ?? []).map(({ id }) => id);
