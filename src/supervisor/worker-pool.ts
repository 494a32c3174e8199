// Starts, watches and drains all data-plane workers; knows nothing of how versions are decided.
import type { ListenAddress } from "../net/destinations.ts";
import type { Log } from "../log.ts";
import type { Issue } from "../model/error.ts";
import type { RequestRing } from "../shared-memory/request-ring.ts";
import { CounterTable } from "../shared-memory/counter-table.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import { TrafficMetrics } from "../shared-memory/traffic-metrics.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import type {
  Challenges,
  Drain,
  EndedPaths,
  StartCommand,
  WorkerAnswer,
  WorkerCommand,
  WorkerKeys,
  WorkerQuestion,
} from "../snapshot/message.ts";
import { diffRoutes } from "../snapshot/diff.ts";
import type { PluginPlan, Snapshot } from "../snapshot/snapshot.ts";
import { ConsumerStore } from "./consumer-store.ts";
import { RouteStore } from "./route-store.ts";
import { defaultTimes, type SupervisorTimes } from "./times.ts";
import { PluginCaches, type PluginCachesOptions } from "./plugin-caches.ts";
import { type PluginTrialOptions, trialOptions } from "./plugin-trial.ts";
import { PluginFeeds, type PluginFeedsOptions } from "./plugin-feeds.ts";
import { forgetPlace, type Place, placesFor, type RetiringWorker } from "./retiring-worker.ts";
import { UnboundPorts } from "./unbound-ports.ts";
import { type WorkerLifecycleEvent, WorkerSlot } from "./worker-slot.ts";

export interface WorkerPoolOptions {
  /** Entry file of a worker; from the caller, because only main.ts resolves it in a compiled executable. */
  readonly url: URL;
  readonly workers: number;
  /** Names this gateway in CDN-Loop. */
  readonly instanceId: string;
  /** Part of the names of the management API's cookies; default: `instanceId`. */
  readonly cookieId?: string;
  /** Signs the cookies of sticky sessions. */
  readonly stickyKey: string;
  /** Keys of plugin instances are derived from it; default: the empty text. */
  readonly pluginKey?: string;
  /** Where plugins may write files; default: nowhere. */
  readonly logDirectories?: StartCommand["logDirectories"];
  readonly bodyDirectory?: StartCommand["bodyDirectory"];
  /** Name servers to ask about targets; empty: the system's. */
  readonly dnsServers: readonly string[];
  /** As in `StartCommand`. */
  readonly httpEngine?: StartCommand["httpEngine"];
  /** Where the management API listens. Default: unknown. */
  readonly managementAddresses?: () => readonly ListenAddress[];
  /** The server of shared counters. Default: none. */
  readonly sharedCounters?: StartCommand["sharedCounters"];
  /** All shared memory is for `placesFor(workers)`. */
  readonly board: WorkerBoard;
  readonly targets: TargetBoard;
  /** Counters of plugins. Default: a small table. */
  readonly counters?: CounterTable;
  /** Finds plugins by name. Default: none has a store or a feed. */
  readonly definitionOf?: PluginCachesOptions["definitionOf"];
  /** Requests of feeds. Default: none can be sent. */
  readonly callout?: PluginFeedsOptions["callout"];
  /** Where stores of plugin instances may have files. Default: nowhere. */
  readonly cacheDirectories?: PluginCachesOptions["directories"];
  /** Clients used these credentials. Default: ignored. */
  readonly onCredentialsUsed?: (credentialIds: readonly string[]) => void;
  /** A client sent a server name without a certificate that could be requested on demand. Default: ignored. */
  readonly onUnknownName?: (name: string) => void;
  /** Traffic metrics of the workers. Default: of its own. */
  readonly traffic?: TrafficMetrics;
  /** The same per target. */
  readonly targetTraffic?: TrafficMetrics;
  /** Ring to which workers first write completed requests. Default: none. */
  readonly requests?: RequestRing | null;
  /** A worker started, became ready or died. Default: ignored. */
  readonly onWorkerEvent?: (event: WorkerLifecycleEvent) => void;
  /** A worker hung while the plugin with this number (`PluginCode`) ran, and is replaced. Default: ignored. */
  readonly onPluginBlocked?: (number: number) => void;
  readonly log: Log;
  /** The first version that the workers serve. */
  readonly snapshot: Snapshot;
  /** Ports that it is served without. Default: none. */
  readonly unbound?: UnboundPorts;
  readonly times?: Partial<SupervisorTimes>;
}

export class WorkerPool {
  readonly slots: readonly WorkerSlot[];
  readonly times: SupervisorTimes;
  /** Those of the active version and of the one being prepared. */
  readonly consumers = new ConsumerStore();
  readonly routes = new RouteStore();
  /** Ports that the active version is served without. */
  readonly unbound: UnboundPorts;
  /** Stores of plugin instances. */
  readonly caches: PluginCaches;
  readonly #feeds: PluginFeeds;
  readonly #memory: Parameters<typeof forgetPlace>[1];
  /** Where no thread runs; null while one retires. */
  #spare: Place | null;
  #retiring: RetiringWorker | null = null;
  readonly #watch: Timer;
  #active: Snapshot;
  #lastWatch = Date.now();
  #tickets = 0;
  readonly #sessions = new Set<string>();
  #challenges: Challenges = { http: [], tls: [] };
  #requests: RequestRing | null;
  #keys: WorkerKeys;
  readonly #options: WorkerPoolOptions;

  constructor(options: WorkerPoolOptions) {
    this.unbound = options.unbound ?? new UnboundPorts(options);
    this.#active = this.unbound.bound(options.snapshot);
    this.consumers.write(null, options.snapshot);
    this.consumers.commit();
    this.#requests = options.requests ?? null;
    const { stickyKey, pluginKey = "" } = options;
    this.#keys = { stickyKey, pluginKey };
    const places = placesFor(options.workers);
    const traffic = options.traffic ?? TrafficMetrics.create(places);
    const targetTraffic = options.targetTraffic ?? TrafficMetrics.create(places, { capacity: 0 });
    const counters = options.counters ?? CounterTable.create({ keys: 1024, workers: places });
    const { board, targets } = options;
    this.#memory = { board, targets, counters, requests: () => this.#requests };
    this.#spare = { index: options.workers, threads: 0 };
    this.#options = options;
    this.times = { ...defaultTimes, ...options.times };
    this.caches = new PluginCaches({
      workers: places,
      definitionOf: options.definitionOf ?? (() => undefined),
      directories: options.cacheDirectories ?? null,
      log: options.log,
    });
    this.#feeds = new PluginFeeds({
      definitionOf: options.definitionOf ?? (() => undefined),
      callout: options.callout ?? (() => Promise.reject(new Error("requests cannot be sent"))),
      // One worker number is as good as another: values belong to no worker.
      countersOf: (instanceId) => counters.forInstance(0, instanceId),
      log: options.log,
    });
    this.slots = Array.from(
      { length: options.workers },
      (_, index) =>
        new WorkerSlot({
          ...options,
          index,
          place: { index, threads: 0 },
          traffic,
          targetTraffic,
          counters,
          cookieId: options.cookieId ?? options.instanceId,
          keys: () => this.#keys,
          managementAddresses: options.managementAddresses ?? (() => []),
          logDirectories: options.logDirectories ?? null,
          sharedCounters: options.sharedCounters ?? null,
          onCredentialsUsed: options.onCredentialsUsed ?? (() => {}),
          onUnknownName: options.onUnknownName ?? (() => {}),
          onWorkerEvent: options.onWorkerEvent ?? (() => {}),
          onPluginBlocked: options.onPluginBlocked ?? (() => {}),
          times: this.times,
          active: () => this.#active,
          consumers: this.consumers,
          sessions: () => this.#sessions,
          routes: this.routes,
          caches: this.caches,
          withShared: (plan) => this.withShared(plan),
          requests: () => this.#requests,
          challenges: () => this.#challenges,
        }),
    );
    this.#watch = setInterval(() => this.#checkHeartbeats(), this.times.silentMs / 5);
  }

  /** Finds built-in plugins. */
  get definitionOf(): NonNullable<WorkerPoolOptions["definitionOf"]> {
    return this.#options.definitionOf ?? (() => undefined);
  }

  /** How instances of plugins are tried. */
  get trial(): PluginTrialOptions {
    const { managementAddresses = () => [], ...options } = this.#options;
    const { logDirectories = null, sharedCounters = null } = options;
    const { url, instanceId, cookieId = instanceId, dnsServers } = options;
    const start = { url, instanceId, cookieId, ...this.#keys, dnsServers, logDirectories };
    const given = { ...start, sharedCounters, managementAddresses: managementAddresses() };
    return trialOptions(given, this.times);
  }

  /** The version that every worker serves or starts with. */
  get active(): Snapshot {
    return this.#active;
  }

  set active(snapshot: Snapshot) {
    this.#active = snapshot;
  }

  /** Of each worker: whether it serves the active version, and the number of its restarts. */
  states(): { readonly isReady: boolean; readonly restarts: number }[] {
    return this.slots.map(({ servedRevision, restarts }) => ({
      isReady: servedRevision === this.#active.revision,
      restarts,
    }));
  }

  /** Makes all workers write completed requests to another ring, or to none. */
  set requests(ring: RequestRing | null) {
    this.#requests = ring;
    this.#post({ kind: "requests", buffer: ring?.buffer ?? null });
  }

  /** The next version of all workers creates again what was made with other keys. */
  useKeys(keys: WorkerKeys): void {
    this.#keys = keys;
    this.#post({ kind: "keys", keys });
  }

  /** The management API listens there now. */
  useManagement(addresses: readonly ListenAddress[]): void {
    this.#post({ kind: "management", addresses });
  }

  /** A session of the management API has begun or ended: its cookie must not reach a target while it lives. */
  changeSession(hash: string, isLive: boolean): void {
    if (isLive) this.#sessions.add(hash);
    else this.#sessions.delete(hash);
    this.#post({ kind: "session", hash, isLive });
  }

  #post(command: WorkerCommand): void {
    for (const slot of this.slots) slot.post(command);
    this.#retiring?.post(command);
  }

  /**
   * Makes all workers present these challenge responses to CAs. Resolves when every running worker does; throws when one does
   * not confirm. A worker that starts later presents them from its start.
   */
  async showChallenges(challenges: Challenges): Promise<void> {
    this.#challenges = challenges;
    await this.broadcast({ kind: "challenges", challenges });
  }

  /** Sends a command to all workers and returns their answers; throws when a running worker does not answer in time. */
  async broadcast(question: WorkerQuestion): Promise<readonly WorkerAnswer[]> {
    const answers = await Promise.all(
      this.slots.map((slot) => slot.send(question, () => ++this.#tickets)),
    );
    return answers.filter((answer) => answer !== null);
  }

  /** The plan as workers get it. */
  withShared(plan: PluginPlan): PluginPlan {
    return this.#feeds.withFeed(this.caches.withCache(plan));
  }

  /** No worker serves other instances than these. */
  retain(plans: ReadonlyMap<string, PluginPlan>): void {
    this.caches.retain(plans);
    this.#feeds.retain(plans);
  }

  /** Starts all workers; resolves when they listen. The issues give the reason why one cannot; throws when one ended. */
  async start(): Promise<readonly Issue[]> {
    this.caches.begin(this.#active.plugins);
    this.#feeds.retain(this.#active.plugins);
    await this.routes.write(diffRoutes(undefined, this.#active.routes));
    this.routes.commit();
    const issues = await Promise.all(this.slots.map((slot) => slot.start()));
    return issues.find((found) => found.length > 0) ?? [];
  }

  /**
   * Replaces the thread of a slot by another one on the active version, while it serves. Resolves when new connections may go to the new
   * one, to the former one; null: that serves on, because another one retires already or the new one cannot serve. No version may be
   * prepared meanwhile.
   */
  async renew(slot: WorkerSlot): Promise<RetiringWorker | null> {
    const place = this.#spare;
    if (place === null) return null;
    this.#spare = null;
    const retiring = await slot.renew(place);
    this.#retiring = retiring;
    if (retiring === null) this.#spare = place;
    return retiring;
  }

  /** The thread that `renew` returned ends; resolves when it has, to the number of aborted requests. */
  async retire(retiring: RetiringWorker, drain: Drain): Promise<number> {
    const aborted = await retiring.drain(drain);
    this.#retiring = null;
    forgetPlace(retiring.place, this.#memory);
    this.#spare = retiring.place;
    return aborted;
  }

  /** Closes connections of what the next version no longer has, where that is not served. */
  endRemoved(next: Snapshot): void {
    this.#retiring?.end(endedPaths(this.#active, next));
  }

  /**
   * Stops accepting, waits for requests within the time, then ends all workers; returns the number of aborted requests.
   * `lingerMs`: as in `Drain`; default 0.
   */
  async drain(timeoutMs: number, { lingerMs = 0 } = {}): Promise<number> {
    clearInterval(this.#watch);
    this.unbound.stop();
    // Another process may fetch the same from now on; requests in flight go on with what there is.
    this.#feeds.close();
    const drain = { timeoutMs, lingerMs };
    const retired = this.#retiring?.stop(drain) ?? 0;
    const aborted = await Promise.all([retired, ...this.slots.map((slot) => slot.drain(drain))]);
    this.caches.close();
    return aborted.reduce((sum, count) => sum + count, 0);
  }

  /** The answers of all serving workers, in no order. */
  async ask(question: WorkerQuestion): Promise<readonly WorkerAnswer[]> {
    const ticket = ++this.#tickets;
    const by = { ticket, ms: this.times.activateMs };
    const retiring = this.#retiring?.ask(question, by) ?? null;
    const asked = this.slots.map((slot) => slot.ask(question, ticket));
    const answers = await Promise.all([...asked, retiring]);
    return answers.filter((answer) => answer !== null);
  }

  /** The first answer of a worker; null: no worker answers. */
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
    // The whole process was suspended: the workers could not write heartbeats either.
    if (sinceLast > this.times.silentMs / 2) return;
    for (const slot of this.slots) slot.checkHeartbeat(now);
    this.#retiring?.checkHeartbeat(this.#memory.board, this.times.silentMs);
  }
}

function endedPaths(before: Snapshot, next: Snapshot): EndedPaths {
  const gone = <T>(from: ReadonlyMap<string, T>, to: ReadonlyMap<string, T>) =>
    [...from.keys()].filter((id) => !to.has(id));
  const targetsOf = ({ services }: Snapshot) =>
    new Map([...services.values()].flatMap(({ targets }) => targets.map(({ id }) => [id, true])));
  return {
    routes: gone(before.routes, next.routes),
    targets: gone(targetsOf(before), targetsOf(next)),
    streamRoutes: gone(before.streamRoutes, next.streamRoutes),
  };
}
