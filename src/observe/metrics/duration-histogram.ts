// A histogram of durations that one thread counts and writes to a scrape; knows no metric.
import { countUpTo, HISTOGRAM_CELLS, record, snapshot } from "../../shared-memory/histogram.ts";
import type { HistogramSample } from "./text-format.ts";

/** Exported bucket bounds in microseconds; each is a bound of the recorded histogram. */
const SHOWN_US = [
  1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
  5_000_000, 10_000_000, 25_000_000,
];

export class DurationHistogram {
  readonly #cells = new Float64Array(HISTOGRAM_CELLS);

  observe(ms: number): void {
    record(this.#cells, 0, ms * 1000);
  }

  sample(): HistogramSample {
    const counts = snapshot(this.#cells, 0);
    return {
      labels: {},
      buckets: SHOWN_US.map((us) => [us / 1e6, countUpTo(counts, us)] as const),
      count: counts.count,
      sum: counts.sum / 1e6,
    };
  }
}
