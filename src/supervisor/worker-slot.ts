// One slot of the pool: runs a thread on the active version and restarts it; knows nothing of the other slots.
import type { ListenAddress } from "../net/destinations.ts";
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
  WorkerCommand,
  WorkerEvent,
  WorkerKeys,
  WorkerQuestion,
} from "../snapshot/message.ts";
import type { PluginPlan, Snapshot, SnapshotChange } from "../snapshot/snapshot.ts";
import { abortSockets } from "../system/thread-sockets.ts";
import type { ConsumerStore } from "./consumer-store.ts";
import type { PluginCaches } from "./plugin-caches.ts";
import {
  drainThread,
  forgetPlace,
  type Place,
  placesFor,
  RetiringWorker,
} from "./retiring-worker.ts";
import type { RouteStore } from "./route-store.ts";
import type { SupervisorTimes } from "./times.ts";
import { NoAnswer, WorkerThread } from "./worker-thread.ts";

/** A change in the life of a slot's thread. */
export interface WorkerLifecycleEvent {
  /** `started`: the first thread starts; `restarted`: another one starts after one that ended; `ready`: it serves. */
  readonly event: "started" | "restarted" | "ready" | "died";
  /** From 1. */
  readonly worker: number;
  /** The version that it serves or will serve. */
  readonly revision: number;
  /** Number of restarts of this slot. */
  readonly restarts: number;
  /** Why it ended; null: it runs. */
  readonly why: string | null;
}

export interface WorkerSlotOptions {
  /** From 0; people count from 1. */
  readonly index: number;
  readonly workers: number;
  /** Of its first thread. */
  readonly place: Place;
  readonly url: URL;
  readonly instanceId: string;
  readonly cookieId: string;
  /** Hashes of the live sessions of the management API. */
  readonly sessions: () => Iterable<string>;
  readonly keys: () => WorkerKeys;
  /** Where plugins may write files. */
  readonly logDirectories: StartCommand["logDirectories"];
  readonly bodyDirectory?: StartCommand["bodyDirectory"];
  /** Name servers to ask about targets; empty: the system's. */
  readonly dnsServers: readonly string[];
  readonly httpEngine?: StartCommand["httpEngine"];
  readonly managementAddresses: () => readonly ListenAddress[];
  readonly sharedCounters: StartCommand["sharedCounters"];
  readonly board: WorkerBoard;
  readonly targets: TargetBoard;
  /** Counters of plugins. */
  readonly counters: CounterTable;
  /** Clients of the worker used these credentials. */
  readonly onCredentialsUsed: (credentialIds: readonly string[]) => void;
  /** A client of the worker sent a server name without a certificate that could be requested on demand. */
  readonly onUnknownName: (name: string) => void;
  readonly traffic: TrafficMetrics;
  readonly targetTraffic: TrafficMetrics;
  /** The ring for completed requests. */
  readonly requests: () => RequestRing | null;
  /** The challenge responses for CAs. */
  readonly challenges: () => Challenges;
  readonly onWorkerEvent: (event: WorkerLifecycleEvent) => void;
  /** The thread hung while the plugin with this number ran. */
  readonly onPluginBlocked: (number: number) => void;
  readonly log: Log;
  readonly times: SupervisorTimes;
  /** The version that a new thread has to serve. */
  readonly active: () => Snapshot;
  /** The consumers of that version. */
  readonly consumers: ConsumerStore;
  /** And its routes. */
  readonly routes: RouteStore;
  readonly caches: PluginCaches;
  /** The plan of an instance with its store and its feed. */
  readonly withShared: (plan: PluginPlan) => PluginPlan;
}

/** The state of a thread. */
interface Run {
  readonly thread: WorkerThread;
  readonly place: Place;
  /** As in `StartCommand`. */
  readonly number: number;
  /** Version that it serves or will serve. */
  revision: number;
  prepared: number | null;
  /** When it began to serve; null while it starts. */
  readyAt: number | null;
  /** Whether it serves its first version; rejects with NoAnswer when it ends before. */
  started: Promise<boolean>;
}

export class WorkerSlot {
  readonly #options: WorkerSlotOptions;
  #run: Run | null = null;
  /** A thread that is to replace that one, while it starts. */
  #next: Run | null = null;
  #place: Place;
  #failures = 0;
  #pause: Timer | null = null;
  #stopping = false;
  #restarts = 0;
  #readyWaiters = new Set<() => void>();

  constructor(options: WorkerSlotOptions) {
    this.#options = options;
    this.#place = options.place;
  }

  get index(): number {
    return this.#options.index;
  }

  /** How often a thread was started after another one ended. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Whether there is a thread, running or starting, that accepts commands. */
  get isLive(): boolean {
    return this.#run?.thread.isAlive ?? false;
  }

  /** The version that the thread serves; null while it serves none. */
  get servedRevision(): number | null {
    const run = this.#run;
    return run === null || run.readyAt === null ? null : run.revision;
  }

  /** Starts a thread on the active version. The issues give the reason why it cannot serve it; throws NoAnswer when it ended. */
  async start(): Promise<readonly Issue[]> {
    const snapshot = this.#options.active();
    this.#close();
    const run = this.#open(this.#place, snapshot.revision);
    this.#run = run;
    this.#emit(this.#restarts === 0 ? "started" : "restarted", run.revision);
    run.thread.post(this.#startCommand(run));
    const started = this.#serveFirst(run, snapshot);
    run.started = started.then((issues) => issues.length === 0);
    // The caller that waits for it gets the same error.
    run.started.catch(() => undefined);
    return await started;
  }

  /**
   * Starts another thread at `place`, on the active version, and makes it that of the slot once it serves. Returns the former one, which
   * goes on. Null, and nothing has changed: there was none that served, or the new one cannot. No version may be prepared meanwhile.
   */
  async renew(place: Place): Promise<RetiringWorker | null> {
    const before = this.#run;
    if (before === null || before.readyAt === null || this.#stopping) return null;
    const snapshot = this.#options.active();
    const run = this.#open(place, snapshot.revision);
    run.thread.post(this.#startCommand(run));
    this.#next = run;
    const started = this.#serveFirst(run, snapshot);
    const serves = await started.then(
      (issues) => issues.length === 0,
      () => false,
    );
    this.#next = null;
    // It may have failed meanwhile, and have been replaced.
    if (!serves || this.#run !== before || this.#stopping) {
      run.thread.terminate();
      return null;
    }
    run.started = Promise.resolve(true);
    this.#run = run;
    this.#place = place;
    return new RetiringWorker(before.thread, before.place);
  }

  #startCommand({ place, number }: Run): StartCommand {
    const { workers, instanceId, cookieId, keys, requests } = this.#options;
    const { logDirectories, dnsServers, httpEngine, managementAddresses, sharedCounters } =
      this.#options;
    const { bodyDirectory } = this.#options;
    const { board, targets, counters, traffic, targetTraffic, challenges, sessions } =
      this.#options;
    return {
      kind: "start",
      worker: place.index,
      workers,
      thread: number,
      instanceId,
      cookieId,
      ...keys(),
      logDirectories,
      ...(bodyDirectory === undefined ? {} : { bodyDirectory }),
      dnsServers,
      ...(httpEngine === undefined ? {} : { httpEngine }),
      managementAddresses: managementAddresses(),
      sharedCounters,
      sessions: [...sessions()],
      shared: {
        workers: board.buffer,
        targets: targets.buffer,
        counters: counters.buffer,
        traffic: traffic.memoryFor(place.index),
        targetTraffic: targetTraffic.memoryFor(place.index),
        requests: requests()?.buffer ?? null,
      },
      challenges: challenges(),
    };
  }

  async #serveFirst(run: Run, snapshot: Snapshot): Promise<readonly Issue[]> {
    const { consumers, routes, withShared, times } = this.#options;
    const stored = { routes: routes.whole(), consumers: consumers.table, withShared };
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
      if (isSilent) this.#fail(run, this.#hung("did not start in time"));
      throw error;
    }
    run.readyAt = Date.now();
    this.#emit("ready", run.revision);
    for (const waiter of this.#readyWaiters) waiter();
    return [];
  }

  /** Makes the thread build the next version once it has started; the issues give the reason why it cannot. Throws NoAnswer. */
  async prepare(change: SnapshotChange): Promise<readonly Issue[]> {
    const run = this.#run;
    if (run === null) throw new NoAnswer("stopped");
    if (!(await run.started)) throw new NoAnswer("stopped");
    try {
      const issues = await deliver(run.thread, change, this.#options.times.prepareMs);
      if (issues.length === 0) run.prepared = change.revision;
      return issues;
    } catch (error) {
      this.#fail(run, this.#hung(`did not prepare revision ${change.revision} in time`));
      throw error;
    }
  }

  /** Makes the thread serve the prepared version; throws NoAnswer. */
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

  /** Asks the thread about its current state; null when none serves, or it does not answer in time. */
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
   * Sends a command to the threads, running or starting; null when there is none: its state ended with it. Throws when one does not
   * answer in time.
   */
  async send(question: WorkerQuestion, nextTicket: () => number): Promise<WorkerAnswer> {
    const { prepareMs } = this.#options.times;
    const answers = this.#threads().map(async (thread) => {
      const command = { kind: "ask", ticket: nextTicket(), question } as const;
      try {
        return (await thread.ask(command, ["answer"], prepareMs)).value;
      } catch (error) {
        if (error instanceof NoAnswer && error.reason === "stopped") return null;
        throw error;
      }
    });
    return (await Promise.all(answers))[0] ?? null;
  }

  /** A command that has no answer, for threads that run or start. */
  post(command: WorkerCommand): void {
    for (const thread of this.#threads()) thread.post(command);
  }

  #threads(): readonly WorkerThread[] {
    return [this.#run, this.#next].flatMap((run) => run?.thread ?? []);
  }

  /** Makes the thread drop the prepared version; resolves when its ports are closed, or the thread has ended or is silent. */
  async discard(revision: number): Promise<void> {
    const run = this.#run;
    if (run === null) return;
    run.prepared = null;
    const { activateMs } = this.#options.times;
    try {
      await run.thread.ask({ kind: "discard", revision }, ["discarded"], activateMs);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
  }

  /** Ends the thread and starts another one at once, on the active version; nothing where the slot ends for good. */
  replace(why: string): void {
    if (this.#stopping) return;
    const { log, index } = this.#options;
    const reason = this.#hung(why);
    log.warn("worker is replaced", { worker: index + 1, why: reason });
    if (this.#run !== null) this.#emit("died", this.#run.revision, reason);
    this.#close();
    this.#startAgain();
  }

  /** Whether the slot serves the active version within the time. */
  async becomesReady(timeoutMs: number): Promise<boolean> {
    const isReady = () => this.servedRevision === this.#options.active().revision;
    if (isReady() || this.#stopping) return isReady();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter = () => (isReady() || this.#stopping) && resolve(isReady());
    const timer = setTimeout(() => resolve(false), timeoutMs);
    this.#readyWaiters.add(waiter);
    const ready = await promise;
    clearTimeout(timer);
    this.#readyWaiters.delete(waiter);
    return ready;
  }

  /**
   * Ends a serving thread without heartbeat and progress for too long: it hangs in a loop. One that starts may take its time, unless a
   * plugin from a directory has it for as long as none may when it is tried.
   */
  checkHeartbeat(now: number): void {
    const run = this.#run;
    if (run === null) return;
    const { board, times } = this.#options;
    const { index } = run.place;
    const heartbeat = board.get(index, "heartbeat");
    const { silentMs, prepareMs } = times;
    if (run.readyAt === null) {
      const isInPlugin = board.get(index, "running_plugin") !== 0;
      if (isInPlugin && now - heartbeat > prepareMs)
        this.#fail(run, this.#hung(`did not create an instance in ${prepareMs} ms`));
      return;
    }
    const last = Math.max(heartbeat, run.readyAt);
    if (now - last > silentMs && !run.thread.hasProgressed(silentMs))
      this.#fail(run, this.#hung("shows no sign of life"));
  }

  /** Waits for requests, then ends the thread for good; returns the number of aborted requests. */
  async drain(drain: Drain): Promise<number> {
    this.#stopping = true;
    const run = this.#run;
    for (const waiter of this.#readyWaiters) waiter();
    const aborted = run === null ? 0 : await drainThread(run.thread, drain);
    this.#close();
    return aborted;
  }

  #open(place: Place, revision: number): Run {
    const { url, workers, caches, board, targets, counters } = this.#options;
    forgetPlace(place, this.#options);
    // The one before may still execute for a moment.
    const number = (place.threads++ % 2) * placesFor(workers) + place.index + 1;
    const allLocks = [targets.locks, counters.locks];
    for (const locks of allLocks) locks.begin(number);
    const thread = new WorkerThread({
      url,
      onEvent: (event) => this.#onEvent(event),
      onEnd: (error) => this.#onEnd(run, error),
      beforeEnd: () => {
        for (const locks of allLocks) locks.end(number);
        abortSockets(board.get(place.index, "poll"));
        board.set(place.index, "poll", 0);
      },
      onGone: () => {
        for (const locks of allLocks) locks.free(number);
        caches.forgetThread(number);
      },
    });
    const started = Promise.resolve(false);
    const run: Run = { thread, place, number, revision, prepared: null, readyAt: null, started };
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
    if (event.kind === "used") this.#options.onCredentialsUsed(event.credentialIds);
    if (event.kind === "wanted") this.#options.onUnknownName(event.name);
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

  /** The reason with the plugin from a directory that blocks the thread, if one does. */
  #hung(why: string): string {
    const { board, active, onPluginBlocked } = this.#options;
    const number = board.get(this.#place.index, "running_plugin");
    if (number === 0) return why;
    // Reported once, although more than one timeout may pass before the thread has ended.
    board.set(this.#place.index, "running_plugin", 0);
    onPluginBlocked(number);
    for (const { name, code } of active().plugins.values())
      if (code?.number === number) return `${why} in plugin "${name}"`;
    return why;
  }

  /** Ends a failed thread and, after a pause, starts another one. */
  #fail(run: Run, why: string): void {
    if (run !== this.#run) return;
    this.#close();
    if (this.#stopping) return;
    const { times, log, index } = this.#options;
    const servedMs = run.readyAt === null ? 0 : Date.now() - run.readyAt;
    if (servedMs >= times.healthyMs) this.#failures = 0;
    const pauseMs = Math.min(times.firstPauseMs * 2 ** this.#failures, times.longestPauseMs);
    this.#failures++;
    log.error("worker stopped and will restart", { worker: index + 1, why, pauseMs });
    this.#emit("died", run.revision, why);
    this.#pause = setTimeout(() => this.#startAgain(), pauseMs);
  }

  #emit(event: WorkerLifecycleEvent["event"], revision: number, why: string | null = null): void {
    const { onWorkerEvent, index } = this.#options;
    onWorkerEvent({ event, worker: index + 1, revision, restarts: this.#restarts, why });
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
      // The end of the thread was logged, and another start is scheduled.
      () => undefined,
    );
  }
}

/** Sends a thread the next version, one piece after the other; the issues give the reason why it cannot serve it. Throws NoAnswer. */
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
