// Counts what this node does in the fleet, for metrics; knows no format.
import { DurationHistogram } from "../observe/metrics/duration-histogram.ts";

export class FleetMeter {
  readonly append = new DurationHistogram();
  readonly ack = new DurationHistogram();
  #conflicts = 0;
  #doubts = 0;

  get conflicts(): number {
    return this.#conflicts;
  }

  get doubts(): number {
    return this.#doubts;
  }

  countConflict(): void {
    this.#conflicts++;
  }

  countDoubt(): void {
    this.#doubts++;
  }
}
