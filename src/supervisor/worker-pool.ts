// All data-plane workers together: started, watched, drained; knows nothing of how versions are decided.
import type { Log } from "../log.ts";
import type { Issue } from "../model/error.ts";
import type { RequestRing } from "../shared-memory/request-ring.ts";
import { CounterTable } from "../shared-memory/counter-table.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import { TrafficMetrics } from "../shared-memory/traffic-metrics.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import type {
  Challenges,
  StartCommand,
  WorkerAnswer,
  WorkerQuestion,
} from "../snapshot/message.ts";
import { diffRoutes } from "../snapshot/diff.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { ConsumerStore } from "./consumer-store.ts";
import { RouteStore } from "./route-store.ts";
import { defaultTimes, type SupervisorTimes } from "./times.ts";
import { type WorkerHappening, WorkerSlot } from "./worker-slot.ts";

export interface WorkerPoolOptions {
  /** Entry file of a worker; the caller forms it, because only there it is right in a compiled executable. */
  readonly url: URL;
  readonly workers: number;
  /** Names this gateway in CDN-Loop. */
  readonly instanceId: string;
  /** Signs the cookies that keep clients on a target. */
  readonly stickyKey: string;
  /** Keys of plugin instances are derived from it; default: the empty text. */
  readonly pluginKey?: string;
  /** Where plugins may write files; default: nowhere. */
  readonly logDirectories?: StartCommand["logDirectories"];
  /** Name servers to ask about targets; empty: the system's. */
  readonly dnsServers: readonly string[];
  readonly board: WorkerBoard;
  readonly targets: TargetBoard;
  /** Numbers of plugins. Default: a small table. */
  readonly counters?: CounterTable;
  /** Credentials were used. Default: nobody wants to know. */
  readonly used?: (credentialIds: readonly string[]) => void;
  /** A client has asked for a name that a certificate could be ordered for. Default: nobody wants to know. */
  readonly wanted?: (name: string) => void;
  /** What workers count of the traffic. Default: counts that nobody reads. */
  readonly traffic?: TrafficMetrics;
  /** The same by target. */
  readonly targetTraffic?: TrafficMetrics;
  /** Where workers write requests down at first. Default: nowhere. */
  readonly requests?: RequestRing | null;
  /** Something happened to a worker. Default: nobody wants to know. */
  readonly happened?: (happening: WorkerHappening) => void;
  readonly log: Log;
  /** What the workers serve first. */
  readonly snapshot: Snapshot;
  readonly times?: Partial<SupervisorTimes>;
}

export class WorkerPool {
  readonly slots: readonly WorkerSlot[];
  readonly times: SupervisorTimes;
  /** Those of the active version, and of the one that is being prepared. */
  readonly consumers = new ConsumerStore();
  readonly routes = new RouteStore();
  readonly #watch: Timer;
  #active: Snapshot;
  #lastWatch = Date.now();
  #tickets = 0;
  readonly #sessions = new Set<string>();
  #challenges: Challenges = { http: [], tls: [] };
  #requests: RequestRing | null;

  constructor(options: WorkerPoolOptions) {
    this.#active = options.snapshot;
    this.consumers.write(null, options.snapshot);
    this.consumers.keep();
    this.#requests = options.requests ?? null;
    const traffic = options.traffic ?? TrafficMetrics.create(options.workers);
    const targetTraffic =
      options.targetTraffic ?? TrafficMetrics.create(options.workers, { capacity: 0 });
    const counters =
      options.counters ?? CounterTable.create({ keys: 1024, workers: options.workers });
    this.times = { ...defaultTimes, ...options.times };
    this.slots = Array.from(
      { length: options.workers },
      (_, index) =>
        new WorkerSlot({
          ...options,
          index,
          traffic,
          targetTraffic,
          counters,
          pluginKey: options.pluginKey ?? "",
          logDirectories: options.logDirectories ?? null,
          used: options.used ?? (() => {}),
          wanted: options.wanted ?? (() => {}),
          happened: options.happened ?? (() => {}),
          times: this.times,
          active: () => this.#active,
          consumers: this.consumers,
          sessions: () => this.#sessions,
          routes: this.routes,
          requests: () => this.#requests,
          challenges: () => this.#challenges,
        }),
    );
    this.#watch = setInterval(() => this.#checkHeartbeats(), this.times.silentMs / 5);
  }

  /** The version that every worker serves, or is started with. */
  get active(): Snapshot {
    return this.#active;
  }

  set active(snapshot: Snapshot) {
    this.#active = snapshot;
  }

  /** Of each worker: whether it serves the active version, and how often it was started again. */
  states(): { readonly isReady: boolean; readonly restarts: number }[] {
    return this.slots.map(({ servedRevision, restarts }) => ({
      isReady: servedRevision === this.#active.revision,
      restarts,
    }));
  }

  /** Has all workers write requests down in another place, or nowhere. */
  set requests(ring: RequestRing | null) {
    this.#requests = ring;
    for (const slot of this.slots) slot.useRequests(ring);
  }

  /** A session of the management API has begun or ended: its cookie must not reach a target while it lives. */
  changeSession(hash: string, isLive: boolean): void {
    if (isLive) this.#sessions.add(hash);
    else this.#sessions.delete(hash);
    for (const slot of this.slots) slot.changeSession(hash, isLive);
  }

  /**
   * Has all workers show certificate authorities this from now on. Resolves when every one that runs does; throws when one
   * does not say so. One that is started later shows it from its beginning.
   */
  async showChallenges(challenges: Challenges): Promise<void> {
    this.#challenges = challenges;
    await this.tell({ kind: "challenges", challenges });
  }

  /** Has all workers do this and gives their answers; throws when one that runs does not answer in time. */
  async tell(question: WorkerQuestion): Promise<readonly WorkerAnswer[]> {
    const answers = await Promise.all(
      this.slots.map((slot) => slot.tell(question, () => ++this.#tickets)),
    );
    return answers.filter((answer) => answer !== null);
  }

  /** Starts all workers; resolves when they listen. The issues say why one cannot; throws when one ended. */
  async start(): Promise<readonly Issue[]> {
    await this.routes.write(diffRoutes(undefined, this.#active.routes));
    this.routes.keep();
    const issues = await Promise.all(this.slots.map((slot) => slot.start()));
    return issues.find((found) => found.length > 0) ?? [];
  }

  /**
   * Stops accepting, lets requests end within the time, then ends all workers; returns how many requests were cut. `lingerMs`:
   * as in `Drain`; default 0.
   */
  async drain(timeoutMs: number, { lingerMs = 0 } = {}): Promise<number> {
    clearInterval(this.#watch);
    const aborted = await Promise.all(
      this.slots.map((slot) => slot.drain({ timeoutMs, lingerMs })),
    );
    return aborted.reduce((sum, count) => sum + count, 0);
  }

  /** The answers of all workers that serve, in no order. */
  async ask(question: WorkerQuestion): Promise<readonly WorkerAnswer[]> {
    const ticket = ++this.#tickets;
    const answers = await Promise.all(this.slots.map((slot) => slot.ask(question, ticket)));
    return answers.filter((answer) => answer !== null);
  }

  /** The answer of the first worker that has one; null: none has. */
  async askOne(question: WorkerQuestion): Promise<WorkerAnswer> {
    for (const slot of this.slots) {
      const answer = await slot.ask(question, ++this.#tickets);
      if (answer !== null) return answer;
    }
    return null;
  }

  #checkHeartbeats(): void {
    const now = Date.now();
    const sinceLast = now - this.#lastWatch;
    this.#lastWatch = now;
    // The whole process was suspended: the workers could not show life either.
    if (sinceLast > this.times.silentMs / 2) return;
    for (const slot of this.slots) slot.checkHeartbeat(now);
  }
}
