// One place in the pool: keeps a thread running in it, on the active version; knows nothing of the other places.
import type { Log } from "../log.ts";
import type { Issue } from "../model/error.ts";
import type { RequestRing } from "../shared-memory/request-ring.ts";
import type { CounterTable } from "../shared-memory/counter-table.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type { TrafficMetrics } from "../shared-memory/traffic-metrics.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import { diff } from "../snapshot/diff.ts";
import { cut } from "../snapshot/pieces.ts";
import type {
  Challenges,
  Drain,
  StartCommand,
  WorkerAnswer,
  WorkerEvent,
  WorkerQuestion,
} from "../snapshot/message.ts";
import type { Snapshot, SnapshotChange } from "../snapshot/snapshot.ts";
import type { ConsumerStore } from "./consumer-store.ts";
import type { RouteStore } from "./route-store.ts";
import type { SupervisorTimes } from "./times.ts";
import { NoAnswer, WorkerThread } from "./worker-thread.ts";

/** What happens to the thread of a place. */
export interface WorkerHappening {
  /** `started`: the first thread begins; `restarted`: another one does, in the place of one that ended; `ready`: it serves. */
  readonly event: "started" | "restarted" | "ready" | "died";
  /** From 1. */
  readonly worker: number;
  /** The version that it serves, or is to serve. */
  readonly revision: number;
  /** How often a thread was started in the place of another one. */
  readonly restarts: number;
  /** Why it ended; null: it did not. */
  readonly why: string | null;
}

export interface WorkerSlotOptions {
  /** From 0; people count from 1. */
  readonly index: number;
  readonly workers: number;
  readonly url: URL;
  readonly instanceId: string;
  /** Hashes of the sessions of the management API at the moment. */
  readonly sessions: () => Iterable<string>;
  readonly stickyKey: string;
  readonly pluginKey: string;
  /** Where plugins may write files. */
  readonly logDirectories: StartCommand["logDirectories"];
  /** Name servers to ask about targets; empty: the system's. */
  readonly dnsServers: readonly string[];
  readonly board: WorkerBoard;
  readonly targets: TargetBoard;
  /** Numbers of plugins. */
  readonly counters: CounterTable;
  /** Credentials were used in the worker. */
  readonly used: (credentialIds: readonly string[]) => void;
  /** A client of the worker has asked for a name that a certificate could be ordered for. */
  readonly wanted: (name: string) => void;
  readonly traffic: TrafficMetrics;
  readonly targetTraffic: TrafficMetrics;
  /** Where requests are written down at the moment. */
  readonly requests: () => RequestRing | null;
  /** What certificate authorities are shown at the moment. */
  readonly challenges: () => Challenges;
  readonly happened: (happening: WorkerHappening) => void;
  readonly log: Log;
  readonly times: SupervisorTimes;
  /** The version that a thread started now has to serve. */
  readonly active: () => Snapshot;
  /** Where the consumers of that version are. */
  readonly consumers: ConsumerStore;
  /** And its routes. */
  readonly routes: RouteStore;
}

/** What a thread is doing at the moment. */
interface Run {
  readonly thread: WorkerThread;
  /** Version that it serves or is to serve. */
  revision: number;
  prepared: number | null;
  /** When it began to serve; null while it starts. */
  readyAt: number | null;
  /** Whether it serves its first version; rejects with NoAnswer when it ended before. */
  started: Promise<boolean>;
}

export class WorkerSlot {
  readonly #options: WorkerSlotOptions;
  #run: Run | null = null;
  #failures = 0;
  #pause: Timer | null = null;
  #stopping = false;
  #restarts = 0;
  #readyWaiters = new Set<() => void>();

  constructor(options: WorkerSlotOptions) {
    this.#options = options;
  }

  get index(): number {
    return this.#options.index;
  }

  /** How often a thread was started in the place of one that ended. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Whether there is a thread that takes commands, be it still starting. */
  get isLive(): boolean {
    return this.#run?.thread.isAlive ?? false;
  }

  /** The version that is being served; null while nothing is. */
  get servedRevision(): number | null {
    const run = this.#run;
    return run === null || run.readyAt === null ? null : run.revision;
  }

  /** Starts a thread on the active version. The issues say why it cannot serve that; throws NoAnswer when it ended. */
  async start(): Promise<readonly Issue[]> {
    const { index, board, targets, counters, active } = this.#options;
    const snapshot = active();
    board.reset(index);
    targets.forgetWorker(index);
    counters.forgetWorker(index);
    const requests = this.#options.requests();
    if (this.#restarts > 0) requests?.forgetWorker(index);
    const run = this.#open(snapshot.revision);
    this.#tell(this.#restarts === 0 ? "started" : "restarted", run.revision);
    run.thread.post(this.#startCommand(requests));
    const started = this.#serveFirst(run, snapshot);
    run.started = started.then((issues) => issues.length === 0);
    // The caller that waits for it gets the same error.
    run.started.catch(() => undefined);
    return await started;
  }

  #startCommand(requests: RequestRing | null): StartCommand {
    const { index, workers, instanceId, stickyKey, pluginKey, logDirectories, dnsServers } =
      this.#options;
    const { board, targets, counters, traffic, targetTraffic, challenges, sessions } =
      this.#options;
    return {
      ...{
        kind: "start",
        worker: index,
        workers,
        instanceId,
        stickyKey,
        pluginKey,
        logDirectories,
      },
      dnsServers,
      sessions: [...sessions()],
      shared: {
        workers: board.buffer,
        targets: targets.buffer,
        counters: counters.buffer,
        traffic: traffic.memoryFor(index),
        targetTraffic: targetTraffic.memoryFor(index),
        requests: requests?.buffer ?? null,
      },
      challenges: challenges(),
    };
  }

  async #serveFirst(run: Run, snapshot: Snapshot): Promise<readonly Issue[]> {
    const { consumers, routes, times } = this.#options;
    const stored = { routes: routes.whole(), consumers: consumers.table };
    try {
      const issues = await deliver(run.thread, diff(null, snapshot, stored), times.startMs);
      if (issues.length > 0) {
        this.#fail(run, issues.map(({ path, message }) => `${path}: ${message}`).join("; "));
        return issues;
      }
      const { revision } = snapshot;
      await run.thread.ask({ kind: "activate", revision }, ["active"], times.startMs);
    } catch (error) {
      const isSilent = error instanceof NoAnswer && error.reason === "silent";
      if (isSilent) this.#fail(run, "did not start in time");
      throw error;
    }
    run.readyAt = Date.now();
    this.#tell("ready", run.revision);
    for (const waiter of this.#readyWaiters) waiter();
    return [];
  }

  /** Has the thread build the next version once it has started; the issues say why it cannot. Throws NoAnswer. */
  async prepare(change: SnapshotChange): Promise<readonly Issue[]> {
    const run = this.#run;
    if (run === null) throw new NoAnswer("stopped");
    if (!(await run.started)) throw new NoAnswer("stopped");
    try {
      const issues = await deliver(run.thread, change, this.#options.times.prepareMs);
      if (issues.length === 0) run.prepared = change.revision;
      return issues;
    } catch (error) {
      this.#fail(run, `did not prepare revision ${change.revision} in time`);
      throw error;
    }
  }

  /** Has the thread serve what it prepared; throws NoAnswer. */
  async activate(revision: number): Promise<void> {
    const run = this.#run;
    if (run === null || run.prepared !== revision) throw new NoAnswer("stopped");
    await run.thread.ask(
      { kind: "activate", revision },
      ["active"],
      this.#options.times.activateMs,
    );
    run.revision = revision;
    run.prepared = null;
  }

  /** Asks the thread about the present; null when there is none that serves, or it does not answer in time. */
  async ask(question: WorkerQuestion, ticket: number): Promise<WorkerAnswer | null> {
    const run = this.#run;
    if (run === null || run.readyAt === null) return null;
    const command = { kind: "ask", ticket, question } as const;
    try {
      return (await run.thread.ask(command, ["answer"], this.#options.times.activateMs)).value;
    } catch {
      return null;
    }
  }

  /**
   * Has the thread do this, be it still starting; null when there is none, and what it would have remembered is gone with it.
   * Throws when the thread does not answer in time.
   */
  async tell(question: WorkerQuestion, nextTicket: () => number): Promise<WorkerAnswer> {
    const run = this.#run;
    if (run === null) return null;
    const command = { kind: "ask", ticket: nextTicket(), question } as const;
    try {
      return (await run.thread.ask(command, ["answer"], this.#options.times.prepareMs)).value;
    } catch (error) {
      if (error instanceof NoAnswer && error.reason === "stopped") return null;
      throw error;
    }
  }

  /** Has the thread write requests down in another place, or nowhere. */
  useRequests(ring: RequestRing | null): void {
    this.#run?.thread.post({ kind: "requests", buffer: ring?.buffer ?? null });
  }

  /** A session of the management API has begun or ended. */
  changeSession(hash: string, isLive: boolean): void {
    this.#run?.thread.post({ kind: "session", hash, isLive });
  }

  discard(revision: number): void {
    if (this.#run === null) return;
    this.#run.prepared = null;
    this.#run.thread.post({ kind: "discard", revision });
  }

  /** Ends the thread and starts another one at once, on the version that is active now. */
  replace(why: string): void {
    const { log, index } = this.#options;
    log.warn("worker is replaced", { worker: index + 1, why });
    if (this.#run !== null) this.#tell("died", this.#run.revision, why);
    this.#close();
    this.#startAgain();
  }

  /** Whether the slot serves the active version within the time. */
  async becomesReady(timeoutMs: number): Promise<boolean> {
    const isReady = () => this.servedRevision === this.#options.active().revision;
    if (isReady()) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter = () => isReady() && resolve(true);
    const timer = setTimeout(() => resolve(false), timeoutMs);
    this.#readyWaiters.add(waiter);
    const ready = await promise;
    clearTimeout(timer);
    this.#readyWaiters.delete(waiter);
    return ready;
  }

  /** Ends a thread that serves but has shown neither life nor progress for too long: it hangs in a loop. */
  checkHeartbeat(now: number): void {
    const run = this.#run;
    if (run === null || run.readyAt === null) return;
    const last = Math.max(this.#options.board.get(this.index, "heartbeat"), run.readyAt);
    const { silentMs } = this.#options.times;
    if (now - last > silentMs && !run.thread.hasProgressed(silentMs))
      this.#fail(run, "shows no sign of life");
  }

  /** Lets requests end, then the thread; returns how many requests were cut. It is not started again. */
  async drain(drain: Drain): Promise<number> {
    this.#stopping = true;
    const run = this.#run;
    if (run === null) return 0;
    try {
      // A little longer than the worker itself takes, so that its own count arrives.
      const answer = await run.thread.ask(
        { kind: "drain", ...drain },
        ["stopped"],
        drain.lingerMs + drain.timeoutMs + 1000,
      );
      return answer.aborted;
    } catch {
      return 0;
    } finally {
      this.#close();
    }
  }

  #open(revision: number): Run {
    this.#close();
    const thread = new WorkerThread({
      url: this.#options.url,
      onEvent: (event) => this.#onEvent(event),
      onEnd: (error) => this.#onEnd(run, error),
    });
    const started = Promise.resolve(false);
    const run: Run = { thread, revision, prepared: null, readyAt: null, started };
    this.#run = run;
    return run;
  }

  /** Ends the current thread without a restart. */
  #close(): void {
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#pause = null;
    const run = this.#run;
    this.#run = null;
    run?.thread.terminate();
  }

  #onEvent(event: WorkerEvent): void {
    if (event.kind === "used") this.#options.used(event.credentialIds);
    if (event.kind === "wanted") this.#options.wanted(event.name);
    if (event.kind !== "log") return;
    this.#options.log.write(event.level, event.message, {
      worker: this.index + 1,
      ...event.fields,
    });
  }

  #onEnd(run: Run, error: string): void {
    if (run !== this.#run) return;
    this.#fail(run, error === "" ? "ended" : error);
  }

  /** The thread is of no use any more: it is ended and, after a pause, started again. */
  #fail(run: Run, why: string): void {
    if (run !== this.#run) return;
    this.#close();
    if (this.#stopping) return;
    const { times, log, index } = this.#options;
    const servedMs = run.readyAt === null ? 0 : Date.now() - run.readyAt;
    if (servedMs >= times.healthyMs) this.#failures = 0;
    const pauseMs = Math.min(times.firstPauseMs * 2 ** this.#failures, times.longestPauseMs);
    this.#failures++;
    log.error("worker stopped and will be started again", { worker: index + 1, why, pauseMs });
    this.#tell("died", run.revision, why);
    this.#pause = setTimeout(() => this.#startAgain(), pauseMs);
  }

  #tell(event: WorkerHappening["event"], revision: number, why: string | null = null): void {
    const { happened, index } = this.#options;
    happened({ event, worker: index + 1, revision, restarts: this.#restarts, why });
  }

  #startAgain(): void {
    if (this.#stopping) return;
    const { log, index } = this.#options;
    this.#restarts++;
    this.start().then(
      (issues) => {
        if (issues.length === 0)
          log.info("worker serves again", { worker: index + 1, revision: this.servedRevision });
      },
      // It was logged where the thread ended, and another start is on its way.
      () => undefined,
    );
  }
}

/** Gives a thread the next version, one piece after the other; the issues say why it cannot be served. Throws NoAnswer. */
async function deliver(
  thread: WorkerThread,
  change: SnapshotChange,
  timeoutMs: number,
): Promise<readonly Issue[]> {
  const { revision } = change;
  const { pieces, last } = cut(change);
  for (const piece of pieces)
    await thread.ask({ kind: "take", revision, piece }, ["taken"], timeoutMs);
  const prepare = { kind: "prepare", change: last } as const;
  const answer = await thread.ask(prepare, ["prepared", "rejected"], timeoutMs);
  return answer.kind === "rejected" ? answer.issues : [];
}
