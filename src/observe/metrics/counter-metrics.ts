// Metrics of the shared counters of this node; knows no server and no format.
import type { WorkerBoard } from "../../shared-memory/worker-board.ts";
import type { Metric } from "./text-format.ts";

const counters = [
  ["operations", "Commands to the server of shared counters."],
  ["errors", "Commands to the server of shared counters that failed."],
  ["fallbacks", "Decisions made without the server of shared counters, while it was away."],
] as const;

export function counterMetrics(board: WorkerBoard): Metric[] {
  const isUp = board.sum("counters_lost") === 0 ? 1 : 0;
  return [
    ...counters.map(([name, help]): Metric => ({
      name: `sluice_counters_${name}`,
      help,
      type: "counter",
      samples: [{ labels: {}, value: board.sum(`counters_${name}`) }],
    })),
    {
      name: "sluice_counters_up",
      help: "1 while all workers reach the server of shared counters.",
      type: "gauge",
      samples: [{ labels: {}, value: isUp }],
    },
  ];
}
