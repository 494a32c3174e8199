// Creates instances of plugins in a thread of its own, before a serving one does; knows no plugin and no version.
import type { Issue } from "../model/error.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import { CounterTable } from "../shared-memory/counter-table.ts";
import { TargetBoard } from "../shared-memory/target-board.ts";
import { TrafficMetrics } from "../shared-memory/traffic-metrics.ts";
import { WorkerBoard } from "../shared-memory/worker-board.ts";
import { diff, diffRoutes } from "../snapshot/diff.ts";
import type { StartCommand } from "../snapshot/message.ts";
import type { Problem } from "../snapshot/problem.ts";
import type { PluginPlan, Snapshot } from "../snapshot/snapshot.ts";
import { RouteStore } from "./route-store.ts";
import { defaultTimes } from "./times.ts";
import { NoAnswer, WorkerThread } from "./worker-thread.ts";

/** By which the process may grow meanwhile: what ends a process for lack of memory ends all workers. */
const MAX_MEMORY_BYTES = 536_870_912;
const MEMORY_LOOK_MS = 20;

/** Instances of one plugin that may end a thread at the start; the others are refused then, so that the start has an end. */
const MAX_ENDED_THREADS = 2;

export interface PluginTrialOptions {
  readonly url: URL;
  /** For the thread to start, which a busy machine delays. */
  readonly startMs: number;
  /** For each instance. A thread that reports progress has longer. */
  readonly timeoutMs: number;
  /** What a worker gets, without what it shares with others. */
  readonly start: Omit<StartCommand, "kind" | "worker" | "workers" | "thread" | "shared">;
}

type StartParts = Pick<PluginTrialOptions, "url"> &
  Omit<PluginTrialOptions["start"], "sessions" | "challenges" | "maxCreateMs">;

/** From what all workers get. Default times: those of the supervisor. */
export const trialOptions = (
  { url, ...start }: StartParts,
  { startMs, prepareMs: timeoutMs } = defaultTimes,
): PluginTrialOptions => ({
  url,
  startMs,
  timeoutMs,
  start: { ...start, sessions: [], maxCreateMs: MAX_CREATE_MS },
});

/** Built-in plugins that are tried when they are not `isTried`: smaller configurations are created in a few milliseconds. */
const LARGE_CONFIG = 16_384;

/** Processor time of a worker for an instance of a built-in plugin: some times what the most expensive honest ones need. */
const MAX_CREATE_MS = 1_000;

/** Finds built-in plugins by their names. */
type DefinitionOf = (name: string) => AnyPlugin | undefined;

/** Those that the change creates, and that run code from a directory or may be expensive. */
export const untriedPlans = (
  active: Snapshot | null,
  next: Snapshot,
  definitionOf: DefinitionOf,
): readonly PluginPlan[] =>
  [...next.plugins.values()].filter(
    (plan) =>
      active?.plugins.get(plan.id) !== plan &&
      (plan.code === undefined
        ? isExpensive(plan, definitionOf(plan.name))
        : plan.code.disabled === null && plan.code.isAbsent !== true),
  );

/** One with a store or a feed needs the memory of the workers, and has a small configuration. */
const isExpensive = ({ config, when }: PluginPlan, definition: AnyPlugin | undefined) =>
  definition !== undefined &&
  definition.cache === undefined &&
  definition.feed === undefined &&
  (definition.isTried === true || isLarge([config, when]));

/** Reads no more of it than decides. */
function isLarge(value: unknown): boolean {
  const open = [value];
  let left = LARGE_CONFIG;
  while (open.length > 0 && left > 0) {
    const found = open.pop();
    if (typeof found === "string") left -= found.length;
    if (typeof found !== "object" || found === null) continue;
    for (const [name, member] of Object.entries(found)) {
      left -= name.length;
      open.push(member);
    }
  }
  return left <= 0;
}

/** Why one of them cannot be created: it throws, refuses its configuration, or blocks, ends or exhausts its thread. */
export async function tryPlugins(
  next: Snapshot,
  plans: readonly PluginPlan[],
  options: PluginTrialOptions,
): Promise<readonly (Issue | Problem)[]> {
  if (plans.length === 0) return [];
  const thread = await TrialThread.open(next, options);
  try {
    for (const plan of plans) {
      const issues = await thread.try(plan);
      if (issues.length > 0) return issues;
    }
    return [];
  } finally {
    thread.close();
  }
}

/** Why which of them cannot be created, by their ids: after one that ends its thread the next ones have another. */
export async function findRefused(
  next: Snapshot,
  plans: readonly PluginPlan[],
  options: PluginTrialOptions,
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>();
  const endedBy = new Map<string, number>();
  let thread: TrialThread | null = null;
  try {
    for (const plan of plans) {
      const ended = endedBy.get(plan.name) ?? 0;
      if (ended >= MAX_ENDED_THREADS) {
        refused.set(plan.id, "create was not tried: other instances have ended their threads");
        continue;
      }
      thread ??= await TrialThread.open(next, options);
      const [issue] = await thread.try(plan);
      if (issue !== undefined) refused.set(plan.id, issue.message);
      if (thread.isAlive) continue;
      thread.close();
      thread = null;
      endedBy.set(plan.name, ended + 1);
    }
    return refused;
  } finally {
    thread?.close();
  }
}

/** A thread like that of a worker, which serves nothing. */
class TrialThread {
  readonly #snapshot: Snapshot;
  readonly #timeoutMs: number;
  readonly #thread: WorkerThread;
  readonly #watch: Timer;
  #error = "";
  #isExhausted = false;

  private constructor(snapshot: Snapshot, { url, timeoutMs, start }: PluginTrialOptions) {
    this.#snapshot = snapshot;
    this.#timeoutMs = timeoutMs;
    this.#thread = new WorkerThread({
      url,
      onEvent() {},
      onEnd: (reason) => {
        this.#error = reason;
      },
      onGone() {},
    });
    const usedBefore = process.memoryUsage.rss();
    this.#watch = setInterval(() => {
      if (process.memoryUsage.rss() - usedBefore < MAX_MEMORY_BYTES) return;
      this.#isExhausted = true;
      this.#thread.terminate();
    }, MEMORY_LOOK_MS);
    const shared = ownMemory();
    this.#thread.post({ ...start, kind: "start", worker: 0, workers: 1, thread: 1, shared });
  }

  static async open(snapshot: Snapshot, options: PluginTrialOptions): Promise<TrialThread> {
    const thread = new TrialThread(snapshot, options);
    try {
      await thread.#prepare(only(), options.startMs);
      return thread;
    } catch (error) {
      thread.close();
      throw error;
    }
  }

  get isAlive(): boolean {
    return this.#thread.isAlive;
  }

  /** Why the instance cannot be created. */
  async try(plan: PluginPlan): Promise<readonly (Issue | Problem)[]> {
    try {
      return await this.#prepare(only(plan), this.#timeoutMs);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      const { id, name } = plan;
      const message = `plugin "${name}": create ${this.#whyNot(error)}`;
      this.close();
      return [{ collection: "plugins", id, path: "config", message, status: 400 }];
    }
  }

  close(): void {
    clearInterval(this.#watch);
    this.#thread.terminate();
  }

  #whyNot({ reason }: NoAnswer): string {
    if (this.#isExhausted) return `needs more than ${MAX_MEMORY_BYTES / 1_048_576} MiB of memory`;
    if (reason === "silent") return `has not finished after ${this.#timeoutMs} ms`;
    return this.#error === "" ? "has ended its thread" : `has ended its thread: ${this.#error}`;
  }

  async #prepare(
    parts: ReturnType<typeof only>,
    timeoutMs: number,
  ): Promise<readonly (Issue | Problem)[]> {
    const snapshot = { ...this.#snapshot, ...parts };
    const { revision, routes } = snapshot;
    const change = diff(null, snapshot, {
      routes: await new RouteStore().write(diffRoutes(new Map(), routes)),
      consumers: null,
      withShared: (plan) => plan,
    });
    const thread = this.#thread;
    const prepare = { kind: "prepare", change } as const;
    const answer = await thread.ask(prepare, ["prepared", "rejected"], timeoutMs);
    await thread.ask({ kind: "discard", revision }, ["discarded"], timeoutMs);
    return answer.kind === "rejected" ? answer.issues : [];
  }
}

/** A version with nothing but this instance, if any. */
const only = (plan?: PluginPlan) => ({
  services: new Map(),
  routes: new Map(),
  listeners: new Map(),
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
