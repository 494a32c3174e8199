// All metrics of a scrape: traffic, targets, certificates, configuration, workers, process; asks no worker. Knows no HTTP.
import type { AcmeEngine } from "../../acme/engine.ts";
import type { Clock } from "../../clock.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { pluginDecisions } from "../../shared-memory/traffic-cells.ts";
import type { CounterTable } from "../../shared-memory/counter-table.ts";
import type { TrafficMetrics } from "../../shared-memory/traffic-metrics.ts";
import { streamBoardKey } from "../../shared-memory/series-key.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import {
  type BoardColumn,
  pressures,
  type PressureKind,
  type WorkerBoard,
} from "../../shared-memory/worker-board.ts";
import type { PluginCatalogue } from "../../snapshot/plugin-config.ts";
import type { RolloutStatus } from "../../snapshot/rollout.ts";
import type { Changes } from "../../control/change.ts";
import type { FleetView } from "../../control/fleet-view.ts";
import type { TargetStates } from "../../control/health/target-states.ts";
import { addressOf } from "../requests/request-view.ts";
import { cacheMetrics, type CacheFigures } from "./cache-metrics.ts";
import { counterMetrics } from "./counter-metrics.ts";
import { fleetMetrics } from "./fleet-metrics.ts";
import { pluginSamples } from "./plugin-samples.ts";
import { readProcessFigures } from "./process-figures.ts";
import { type Labels, type Metric, type MetricsFormat, writeMetrics } from "./text-format.ts";
import type { SeriesRows } from "./series-rows.ts";
import { trafficMetrics } from "./traffic-samples.ts";

/** State of one worker. */
export interface WorkerState {
  /** Whether it serves the current version. */
  readonly isReady: boolean;
  /** Number of restarts. */
  readonly restarts: number;
}

export interface MetricsOptions {
  readonly rows: SeriesRows;
  readonly rollout: () => RolloutStatus;
  readonly traffic: TrafficMetrics;
  readonly changes: Changes;
  readonly states: TargetStates;
  readonly targetBoard: TargetBoard;
  /** Absent when no workers run. */
  readonly workerBoard?: WorkerBoard | undefined;
  readonly workerStates?: (() => readonly WorkerState[]) | undefined;
  /** Plugin types with the rows of their decisions. */
  readonly pluginRows: ReadonlyMap<string, number>;
  /** Plugins with metrics of their own. */
  readonly catalogue: PluginCatalogue;
  /** Counters of plugins; absent when no workers run. */
  readonly counters?: CounterTable | undefined;
  /** What caches hold, by the id of the instance; absent: unknown. */
  readonly caches?: (() => ReadonlyMap<string, CacheFigures>) | undefined;
  /** Source of ACME metrics; absent: none. */
  readonly acme?: Pick<AcmeEngine, "tally" | "stateOf"> | undefined;
  readonly clock: Clock;
  /** Source of the metrics of a fleet; absent: none. */
  readonly fleet?: Pick<FleetView, "figures"> | undefined;
  /** Source of the metrics of shared counters; absent: none. */
  readonly sharedCounters?: WorkerBoard | undefined;
  readonly version?: string;
}

/** Maximum number of targets in a scrape: each has four series. */
const MOST_TARGETS = 5000;

const pressureKinds = Object.keys(pressures) as PressureKind[];
/** Budgets of a connection, heads that are too long or late, clients that do not read, and other errors of the protocol. */
const http2Ends = [
  "frames",
  "resets",
  "errors",
  "refusals",
  "heads",
  "unread",
  "protocol",
] as const;

const shedReasons = [
  "memory",
  "descriptors",
  "in_flight",
  "aborts_connection",
  "aborts_address",
] as const;

interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

export class Metrics {
  readonly #options: MetricsOptions;
  #applied: { readonly at: number; readonly seconds: number } | null = null;

  constructor(options: MetricsOptions) {
    this.#options = options;
    options.changes.onServed(({ at }) => {
      const now = options.clock.now();
      this.#applied = { at: now, seconds: Math.max(0, now - Date.parse(at)) / 1000 };
    });
  }

  /** The text of a scrape. */
  write(format: MetricsFormat): string {
    const { rows, changes, fleet, sharedCounters, caches } = this.#options;
    const { config } = changes;
    const counted = rows.read();
    return writeMetrics(
      [
        ...trafficMetrics(counted),
        ...cacheMetrics({
          counted,
          figures: caches?.() ?? new Map(),
          nameOf: (id) => config.plugins.get(id)?.label ?? id,
        }),
        ...this.#pluginMetrics(),
        ...this.#pluginSamples(config),
        ...this.#presentMetrics(config),
        ...this.#targetMetrics(config),
        ...certificateMetrics(config),
        ...this.#acmeMetrics(config),
        ...this.#configMetrics(),
        ...this.#workerMetrics(),
        ...(fleet === undefined ? [] : fleetMetrics(fleet.figures())),
        ...(sharedCounters === undefined ? [] : counterMetrics(sharedCounters)),
        ...processMetrics(this.#options.version ?? ""),
      ],
      format,
    );
  }

  #acmeMetrics({ acme_accounts: accounts, certificates }: GatewayConfig): Metric[] {
    const { acme } = this.#options;
    if (acme === undefined) return [];
    const orders = acme.tally.read().map(({ accountId, result, count }) => {
      const account = accounts.get(accountId)?.name ?? accountId;
      return sampleOf({ account, result }, count);
    });
    const failed = [...certificates.values()].flatMap(({ id, name, source }) =>
      source === "acme" ? [sampleOf({ certificate: name ?? id }, acme.stateOf(id).attempts)] : [],
    );
    const help = "Orders of certificates at authorities that came to an end.";
    return [
      { name: "sluice_acme_orders", help, type: "counter", samples: orders },
      gauge("sluice_acme_failed_attempts", "Attempts that failed since the last success.", failed),
    ];
  }

  #pluginMetrics(): Metric[] {
    const { pluginRows, traffic } = this.#options;
    const samples: Sample[] = [];
    const dropped: Sample[] = [];
    for (const [plugin, row] of pluginRows) {
      const { counters } = traffic.read(row);
      if (counters.dropped > 0) dropped.push(sampleOf({ plugin }, counters.dropped));
      for (const decision of pluginDecisions)
        if (counters[decision] > 0)
          samples.push(sampleOf({ plugin, decision }, counters[decision]));
    }
    const help = "Decisions of plugins about requests.";
    return [
      { name: "sluice_plugin_decisions", help, type: "counter", samples },
      {
        name: "sluice_plugin_dropped",
        help: "Log records and spans that plugins could not deliver.",
        type: "counter",
        samples: dropped,
      },
    ];
  }

  #pluginSamples(config: GatewayConfig): Metric[] {
    const { catalogue, counters } = this.#options;
    return counters === undefined ? [] : pluginSamples(config, { catalogue, counters });
  }

  /** Current gauges. */
  #presentMetrics({ stream_routes }: GatewayConfig): Metric[] {
    const { workerBoard, traffic, targetBoard } = this.#options;
    const sum = (column: BoardColumn) => {
      let total = 0;
      for (let worker = 0; worker < traffic.workers; worker++)
        total += workerBoard?.get(worker, column) ?? 0;
      return total;
    };
    const streams = [...stream_routes.values()].flatMap(({ id, name }) => {
      const row = targetBoard.findRow(streamBoardKey(id));
      return row === null ? [] : [sampleOf({ stream_route: name }, targetBoard.active(row))];
    });
    return [
      gauge("sluice_requests_in_flight", "Requests that are being served.", [
        sampleOf({}, sum("active_requests")),
      ]),
      gauge(
        "sluice_overload",
        "1 while new requests are refused because the process is short of something.",
        pressureKinds.map((what) =>
          sampleOf({ what }, (workerBoard?.pressure ?? 0) & pressures[what] ? 1 : 0),
        ),
      ),
      {
        name: "sluice_shed_requests",
        help: "Requests that were refused because there was too much at once.",
        type: "counter",
        samples: shedReasons.map((reason) => sampleOf({ reason }, sum(`shed_${reason}`))),
      },
      {
        name: "sluice_aborted_requests",
        help: "Requests that clients aborted while a target worked for them.",
        type: "counter",
        samples: [sampleOf({}, sum("aborted_requests"))],
      },
      {
        name: "sluice_http2_ended_connections",
        help: "HTTP/2 connections that the gateway ended for what their client sent.",
        type: "counter",
        samples: http2Ends.map((reason) => sampleOf({ reason }, sum(`http2_${reason}`))),
      },
      gauge("sluice_websockets_open", "WebSockets that are open.", [
        sampleOf({}, sum("open_websockets")),
      ]),
      gauge("sluice_client_connections_open", "Connections of clients on the engine sluice.", [
        sampleOf({ http_version: "1" }, sum("http1_connections")),
        sampleOf({ http_version: "2" }, sum("http2_connections")),
      ]),
      gauge("sluice_http2_streams_open", "Streams on those of HTTP/2.", [
        sampleOf({}, sum("http2_streams")),
      ]),
      gauge("sluice_stream_connections_open", "Connections of stream routes.", streams),
    ];
  }

  #targetMetrics({ targets, services }: GatewayConfig): Metric[] {
    const { states, targetBoard } = this.#options;
    const shown = [...targets.values()]
      .filter(({ enabled, service_id }) => enabled && services.get(service_id)?.enabled === true)
      .slice(0, MOST_TARGETS)
      .map((target) => {
        const service = services.get(target.service_id)?.name ?? "";
        const row = targetBoard.findRow(target.id);
        const labels = { service, target: addressOf(target) };
        const { state, isCertain } = states.read(target);
        const isDown = state === "unhealthy" || (state === "failing" && isCertain);
        return { labels, row, isDown };
      });
    const of = (value: (target: (typeof shown)[number]) => number) =>
      shown.map((target) => sampleOf(target.labels, value(target)));
    const active = of(({ row }) => (row === null ? 0 : targetBoard.active(row)));
    const ejections = of(({ row }) => (row === null ? 0 : targetBoard.get(row, "ejected_total")));
    const hidden = Math.max(0, targets.size - MOST_TARGETS);
    return [
      gauge(
        "sluice_target_up",
        "1 unless checks, the traffic or a person say that the target is unhealthy or failing.",
        of(({ isDown }) => (isDown ? 0 : 1)),
      ),
      gauge("sluice_target_requests_in_flight", "Requests and connections on the target.", active),
      {
        name: "sluice_target_ejections",
        help: "How often the traffic has taken the target out.",
        type: "counter",
        samples: ejections,
      },
      gauge("sluice_targets_not_shown", "Targets that are omitted from these metrics.", [
        sampleOf({}, hidden),
      ]),
    ];
  }

  #configMetrics(): Metric[] {
    const { changes, rollout } = this.#options;
    const applied = this.#applied;
    return [
      gauge("sluice_config_revision", "Revision of the configuration in service.", [
        sampleOf({}, changes.revision),
      ]),
      gauge(
        "sluice_config_apply_seconds",
        "Time from storing the last change until every worker served it.",
        applied === null ? [] : [sampleOf({}, applied.seconds)],
      ),
      gauge(
        "sluice_config_last_change_timestamp_seconds",
        "When the last change was served, in seconds since 1970.",
        applied === null ? [] : [sampleOf({}, applied.at / 1000)],
      ),
      gauge(
        "sluice_config_errors",
        "Workers that do not serve the current revision.",
        [rollout()].map(({ workers, ready }) => sampleOf({}, workers - ready)),
      ),
    ];
  }

  #workerMetrics(): Metric[] {
    const workers = this.#options.workerStates?.() ?? [];
    const of = (value: (worker: WorkerState) => number) =>
      workers.map((worker, index) => sampleOf({ worker: String(index + 1) }, value(worker)));
    return [
      gauge(
        "sluice_worker_ready",
        "1 when the worker serves the current revision.",
        of(({ isReady }) => (isReady ? 1 : 0)),
      ),
      {
        name: "sluice_worker_restarts",
        help: "How often the worker was started again.",
        type: "counter",
        samples: of(({ restarts }) => restarts),
      },
    ];
  }
}

function certificateMetrics({ certificates }: GatewayConfig): Metric[] {
  const samples = [...certificates.values()].flatMap(({ id, name, not_after }) =>
    not_after === null ? [] : [sampleOf({ certificate: name ?? id }, Date.parse(not_after) / 1000)],
  );
  const help = "When the certificate runs out, in seconds since 1970.";
  return [gauge("sluice_certificate_expiry_timestamp_seconds", help, samples)];
}

function processMetrics(version: string): Metric[] {
  const figures = readProcessFigures();
  const known = (value: number | null) => (value === null ? [] : [sampleOf({}, value)]);
  return [
    gauge("sluice_build_info", "Always 1; the version is in the label.", [
      sampleOf({ version }, 1),
    ]),
    {
      name: "sluice_process_cpu_seconds",
      help: "Processor time of the process, user and system.",
      type: "counter",
      samples: known(figures.cpuSeconds),
    },
    gauge(
      "sluice_process_resident_memory_bytes",
      "Memory of the process that is in RAM.",
      known(figures.residentBytes),
    ),
    gauge(
      "sluice_process_start_time_seconds",
      "When the process started, in seconds since 1970.",
      known(figures.startedAt / 1000),
    ),
    gauge("sluice_process_open_fds", "Open files and sockets.", known(figures.openFiles)),
    gauge("sluice_process_max_fds", "Files and sockets that may be open.", known(figures.maxFiles)),
  ];
}

const sampleOf = (labels: Labels, value: number): Sample => ({ labels, value });

const gauge = (name: string, help: string, samples: readonly Sample[]): Metric => ({
  name,
  help,
  samples,
  type: "gauge",
});
