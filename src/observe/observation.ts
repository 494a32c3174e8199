// Observability: metrics, recent requests and the live stream; assembles the parts and decides nothing.
import type { Clock } from "../clock.ts";
import type { RollupStore } from "../model/rollup.ts";
import type { CounterTable } from "../shared-memory/counter-table.ts";
import { pluginSeriesKey } from "../shared-memory/series-key.ts";
import type { RequestRing } from "../shared-memory/request-ring.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import { OTHER_ROW, TrafficMetrics } from "../shared-memory/traffic-metrics.ts";
import type { BoardColumn, WorkerBoard } from "../shared-memory/worker-board.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { Rollout, RolloutObserver } from "../snapshot/rollout.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import type { Changes } from "../control/change.ts";
import type { TargetStates } from "../control/health/target-states.ts";
import type { CacheFigures } from "./metrics/cache-metrics.ts";
import { Metrics, type MetricsOptions, type WorkerState } from "./metrics/metrics.ts";
import { SeriesRows } from "./metrics/series-rows.ts";
import type { Log } from "../log.ts";
import { Rollups } from "./stats/rollups.ts";
import { RollupSender, type SharedRollups } from "./stats/shared-rollups.ts";
import { Stats } from "./stats/stats.ts";
import { TrafficDeltas } from "./stats/traffic-deltas.ts";
import { LiveRequests } from "./requests/live-requests.ts";
import { RequestLog } from "./requests/request-log.ts";

/** What workers share with observers. */
export interface ObservedWorkers {
  readonly traffic: TrafficMetrics;
  /** The same per target. */
  readonly targetTraffic: TrafficMetrics;
  readonly board: WorkerBoard;
  readonly states: () => readonly WorkerState[];
  /** Their first ring of requests; null: none. */
  readonly requests: RequestRing | null;
  /** Switches them to another ring. */
  readonly useRequests: (ring: RequestRing | null) => void;
  /** Makes them flush completed requests. */
  readonly flush: () => Promise<void>;
  /** Counters of plugins. */
  readonly counters?: CounterTable;
  /** What caches hold, by the id of the instance. Default: unknown. */
  readonly caches?: () => ReadonlyMap<string, CacheFigures>;
  /** Whether plugins count on a server as well. Default false. */
  readonly hasSharedCounters?: boolean;
  /** Plugins whose decisions are counted. */
  readonly plugins: readonly string[];
  readonly version: string;
}

export interface ObservationOptions {
  /** All plugins. */
  readonly plugins: PluginCatalogue;
  readonly observed?: ObservedWorkers | undefined;
  readonly rollout: Rollout;
  readonly clock: Clock;
  readonly log: Log;
  readonly fleet?: MetricsOptions["fleet"];
  /** Storage of the statistics' history. Default: none. */
  readonly rollupStore?: RollupStore;
  /** The statistics in the database of the fleet; absent: there is none. */
  readonly sharedRollups?: SharedRollups;
  /** The first configuration. */
  readonly served: Snapshot;
}

export interface Observed {
  readonly changes: Changes;
  readonly states: TargetStates;
  readonly targetBoard: TargetBoard;
  readonly acme: MetricsOptions["acme"];
}

/** In two steps: the rows must observe the first change, and the other parts need `Changes`. */
export class ObservationBase {
  /** Observers of every rollout. */
  readonly observers: readonly RolloutObserver[];
  /** Counters by route, stream route and listener. */
  readonly traffic: SeriesRows;
  readonly #options: ObservationOptions;
  readonly #traffic: TrafficMetrics;
  readonly #pluginRows = new Map<string, number>();
  readonly #targetRows: SeriesRows;

  constructor(options: ObservationOptions) {
    const { observed } = options;
    const traffic = observed?.traffic ?? TrafficMetrics.create(0, { capacity: 0 });
    this.#options = options;
    this.#traffic = traffic;
    // Before all others, so that they get rows with any number of routes.
    for (const name of observed?.plugins ?? []) this.#countPlugin(name);
    const targetTraffic = observed?.targetTraffic ?? TrafficMetrics.create(0, { capacity: 0 });
    const { clock, served } = options;
    const isCache = (plugin: string) => options.plugins.get(plugin)?.cache !== undefined;
    this.traffic = new SeriesRows({ metrics: traffic, clock, served, isCache, of: "traffic" });
    this.#targetRows = new SeriesRows({ metrics: targetTraffic, clock, served, of: "targets" });
    this.observers = [this.traffic, this.#targetRows];
  }

  complete({ changes, states, targetBoard, acme }: Observed): Observation {
    const { observed, clock } = this.#options;
    const requests = new RequestLog({
      changes,
      ring: observed?.requests ?? null,
      useRing: observed?.useRequests ?? (() => undefined),
      flush: observed?.flush ?? (() => Promise.resolve()),
    });
    const metrics = new Metrics({
      changes,
      states,
      targetBoard,
      clock,
      acme,
      rollout: () => this.#options.rollout.status(),
      rows: this.traffic,
      traffic: this.#traffic,
      workerBoard: observed?.board,
      workerStates: observed?.states,
      pluginRows: this.#pluginRows,
      counters: observed?.counters,
      caches: observed?.caches,
      sharedCounters: observed?.hasSharedCounters === true ? observed.board : undefined,
      catalogue: this.#options.plugins,
      fleet: this.#options.fleet,
      version: observed?.version ?? "",
    });
    const live = new LiveRequests({
      ring: () => requests.ring,
      view: (entry) => requests.view(entry),
    });
    return {
      traffic: this.traffic,
      metrics,
      requests,
      live,
      stats: this.#stats(changes),
      countPlugin: (name) => this.#countPlugin(name),
    };
  }

  #countPlugin(name: string): void {
    const row = this.#traffic.claim(pluginSeriesKey(name));
    if (row !== OTHER_ROW) this.#pluginRows.set(name, row);
  }

  #stats(changes: Changes): Stats {
    const { observed, clock, log, rollupStore: store = nowhere } = this.#options;
    const { sharedRollups: rollups = null } = this.#options;
    const shared =
      rollups === null
        ? null
        : { rollups, sender: new RollupSender({ store, shared: rollups, log }) };
    const onWritten = (minutes: readonly number[]) => shared?.sender.note(minutes);
    const config = () => changes.config;
    const sum = (column: BoardColumn) => {
      let total = 0;
      for (let worker = 0; worker < this.#traffic.workers; worker++)
        total += observed?.board.get(worker, column) ?? 0;
      return total;
    };
    return new Stats({
      shared,
      clock,
      config,
      deltas: new TrafficDeltas({
        config,
        routes: () => this.traffic.read(),
        targets: () => this.#targetRows.read(),
      }),
      rollups: new Rollups({ store, clock, log, onWritten }),
      present: () => ({
        in_flight: sum("active_requests"),
        open_websockets: sum("open_websockets"),
        open_connections: sum("http1_connections") + sum("http2_connections"),
        open_http2_streams: sum("http2_streams"),
      }),
    });
  }
}

export interface Observation {
  /** Counters by route, stream route and listener; see `histogram.ts` for percentiles. */
  readonly traffic: SeriesRows;
  readonly metrics: Metrics;
  readonly requests: RequestLog;
  readonly live: LiveRequests;
  readonly stats: Stats;
  /** Counts the decisions of a plugin that was not there at the start; call it before it runs. */
  countPlugin(name: string): void;
}

const nowhere: RollupStore = { transact: () => undefined, range: () => [] };
