// Creates instances of plugins from a directory in a thread of its own, before a serving one does; knows no plugin and no version.
import type { Issue } from "../model/error.ts";
import { CounterTable } from "../shared-memory/counter-table.ts";
import { TargetBoard } from "../shared-memory/target-board.ts";
import { TrafficMetrics } from "../shared-memory/traffic-metrics.ts";
import { WorkerBoard } from "../shared-memory/worker-board.ts";
import { diff, diffRoutes } from "../snapshot/diff.ts";
import type { StartCommand } from "../snapshot/message.ts";
import type { Problem } from "../snapshot/problem.ts";
import type { PluginPlan, Snapshot } from "../snapshot/snapshot.ts";
import { RouteStore } from "./route-store.ts";
import { NoAnswer, WorkerThread } from "./worker-thread.ts";

/** By which the process may grow meanwhile: what ends a process for lack of memory ends all workers. */
const MAX_MEMORY_BYTES = 536_870_912;
const MEMORY_LOOK_MS = 20;

export interface PluginTrialOptions {
  readonly url: URL;
  /** For the thread to start, which a busy machine delays. */
  readonly startMs: number;
  /** For each instance. A thread that reports progress has longer. */
  readonly timeoutMs: number;
  /** What a worker gets, without what it shares with others. */
  readonly start: Omit<StartCommand, "kind" | "worker" | "workers" | "thread" | "shared">;
}

/** Those that the change creates and that run code from a directory. */
export const untriedPlans = (active: Snapshot, next: Snapshot): readonly PluginPlan[] =>
  [...next.plugins.values()].filter(
    (plan) => plan.code?.disabled === null && active.plugins.get(plan.id) !== plan,
  );

/** Why one of them cannot be created: it throws, refuses its configuration, or blocks, ends or exhausts its thread. */
export async function tryPlugins(
  next: Snapshot,
  plans: readonly PluginPlan[],
  { url, startMs, timeoutMs, start }: PluginTrialOptions,
): Promise<readonly (Issue | Problem)[]> {
  if (plans.length === 0) return [];
  let error = "";
  const thread = new WorkerThread({
    url,
    onEvent() {},
    onEnd(reason) {
      error = reason;
    },
    onGone() {},
  });
  const usedBefore = process.memoryUsage.rss();
  let isExhausted = false;
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() - usedBefore < MAX_MEMORY_BYTES) return;
    isExhausted = true;
    thread.terminate();
  }, MEMORY_LOOK_MS);
  const whyNot = (cause: NoAnswer) => {
    if (isExhausted) return `needs more than ${MAX_MEMORY_BYTES / 1_048_576} MiB of memory`;
    if (cause.reason === "silent") return `has not finished after ${timeoutMs} ms`;
    return error === "" ? "has ended its thread" : `has ended its thread: ${error}`;
  };
  thread.post({ ...start, kind: "start", worker: 0, workers: 1, thread: 1, shared: ownMemory() });
  try {
    await prepare(thread, { ...next, ...only() }, startMs);
    for (const plan of plans) {
      const issues = await prepare(thread, { ...next, ...only(plan) }, timeoutMs).catch(
        (cause: unknown) => {
          if (!(cause instanceof NoAnswer)) throw cause;
          const { id, name } = plan;
          const message = `plugin "${name}": create ${whyNot(cause)}`;
          return [{ collection: "plugins", id, path: "config", message, status: 400 } as const];
        },
      );
      if (issues.length > 0) return issues;
    }
    return [];
  } finally {
    clearInterval(watch);
    thread.terminate();
  }
}

async function prepare(
  thread: WorkerThread,
  snapshot: Snapshot,
  timeoutMs: number,
): Promise<readonly (Issue | Problem)[]> {
  const { revision, routes } = snapshot;
  const change = diff(null, snapshot, {
    routes: await new RouteStore().write(diffRoutes(new Map(), routes)),
    consumers: null,
    withShared: (plan) => plan,
  });
  const answer = await thread.ask({ kind: "prepare", change }, ["prepared", "rejected"], timeoutMs);
  await thread.ask({ kind: "discard", revision }, ["discarded"], timeoutMs);
  return answer.kind === "rejected" ? answer.issues : [];
}

/** A version with nothing but this instance, if any. */
const only = (plan?: PluginPlan) => ({
  services: new Map(),
  routes: new Map(),
  listeners: new Map(),
  engineRoutes: new Map(),
  certificates: new Map(),
  streamRoutes: new Map(),
  plugins: new Map(plan === undefined ? [] : [[plan.id, plan]]),
});

/** Its heartbeat and counts matter to no other thread. */
function ownMemory(): StartCommand["shared"] {
  const traffic = TrafficMetrics.create(1).memoryFor(0);
  return {
    workers: WorkerBoard.create(1).buffer,
    targets: TargetBoard.create(1, { capacity: 16 }).buffer,
    counters: CounterTable.create({ keys: 64, workers: 1 }).buffer,
    traffic,
    targetTraffic: traffic,
    requests: null,
  };
}
