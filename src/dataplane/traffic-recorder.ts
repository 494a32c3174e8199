// Records the traffic of one worker in shared memory, which the main thread reads; knows no listener and no configuration.
import { type CacheOutcome, type CacheStatus, encodeCacheOutcome } from "../pdk/cache-outcome.ts";
import { RequestRing } from "../shared-memory/request-ring.ts";
import {
  type EndedRequest,
  type Series,
  TrafficMetrics,
  type TrafficWriter,
} from "../shared-memory/traffic-metrics.ts";
import {
  grpcCounter,
  type PluginDecision,
  type TrafficCounter,
} from "../shared-memory/traffic-cells.ts";
import {
  cacheSeriesKey,
  listenerSeriesKey,
  pluginSeriesKey,
  routeSeriesKey,
  streamSeriesKey,
  targetSeriesKey,
} from "../shared-memory/series-key.ts";
import { emptyRecord, RequestBatch } from "../shared-memory/request-batch.ts";
import { httpVersionOf, tlsVersionOf, type VersionedRequest } from "./protocol-version.ts";
import { timeOfDay } from "./time-of-day.ts";

export interface TrafficRecorderOptions {
  /** Index of this worker, from 0. */
  readonly worker: number;
  readonly traffic: TrafficMetrics;
  /** Counts by target. Default: none. */
  readonly targetTraffic?: TrafficMetrics;
  /** Null: no request list. */
  readonly requests: RequestRing | null;
}

/** A route, as the recorder needs it. */
export interface RecordedRoute {
  readonly id: string;
  /** Set when its first request is counted. */
  series: Series | null;
  readonly route: { readonly service_id: string | null };
}

/** An ended request, as the recorder needs it. Times in `performance.now()`, 0: it did not happen. */
export interface RecordedRequest extends VersionedRequest {
  readonly startedAt: number;
  readonly upstreamAt: number;
  readonly upstreamEndAt: number;
  readonly attemptAt: number;
  readonly connectedAt: number;
  readonly headAt: number;
  readonly pluginsMs: number;
  readonly queueMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly attempts: number;
  readonly earlierAttempts:
    | readonly {
        readonly targetId: string;
        readonly status: number;
        readonly ms: number;
      }[]
    | null;
  readonly upstreamStatus: number;
  readonly isResponseAborted: boolean;
  readonly sentStatus: number;
  /** Null: not gRPC. */
  readonly grpcStatus: number | null;
  readonly reasons: string;
  readonly knownId: string;
  readonly method: string;
  readonly host: string;
  readonly target: string;
  readonly known: VersionedRequest["known"] & { readonly userAgent: string | null };
  readonly route: RecordedRoute | null;
  readonly otherServiceId: string | null;
  readonly targetId: string;
  readonly plugins: {
    readonly consumer: { readonly username: string } | null;
    readonly reasons: readonly string[];
    readonly cache: { readonly id: string; readonly outcome: CacheOutcome } | null;
  } | null;
  clientAddress(): string;
}

/** A connection of a stream route that has ended. */
export interface EndedStream {
  readonly id: string;
  readonly series: Series;
  /** Milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly client: string;
  readonly routeId: string;
  readonly serviceId: string;
  readonly targetId: string;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** `tcp` or `udp`. */
  readonly protocol: string;
  /** The reason of a refusal; empty: not refused. */
  readonly reason: string;
}

export class TrafficRecorder {
  readonly #traffic: TrafficMetrics;
  readonly #writer: TrafficWriter;
  readonly #noRoute: Series;
  readonly #targetTraffic: TrafficMetrics | null;
  readonly #targetWriter: TrafficWriter | null;
  /** By target id. */
  readonly #targets = new Map<string, Series>();
  /** By plugin type. */
  readonly #plugins = new Map<string, Series>();
  /** By instance of a cache. */
  readonly #caches = new Map<string, Series>();
  readonly #batch: RequestBatch;
  /** Reused for all requests: an allocation would cost as much as counting. */
  readonly #counted = zeroCounts();

  constructor({ worker, traffic, targetTraffic, requests }: TrafficRecorderOptions) {
    this.#traffic = traffic;
    this.#writer = traffic.writer(worker);
    this.#noRoute = traffic.noRoute;
    this.#targetTraffic = targetTraffic ?? null;
    this.#targetWriter = targetTraffic?.writer(worker) ?? null;
    this.#batch = new RequestBatch(requests, worker);
  }

  /** A recorder without readers. */
  static unread(): TrafficRecorder {
    return new TrafficRecorder({ worker: 0, traffic: TrafficMetrics.create(1), requests: null });
  }

  /** Switches to another ring; null: none. */
  useRing(ring: SharedArrayBuffer | null): void {
    this.#batch.use(ring === null ? null : new RequestRing(ring));
  }

  streamSeries(streamRouteId: string, serviceId: string): Series {
    return this.#traffic.seriesOf(streamSeriesKey(streamRouteId, serviceId));
  }

  /** Counts an ended request and adds it to the request list. */
  finished(request: RecordedRequest, status: number, now: number): void {
    const end = request.upstreamEndAt === 0 ? now : request.upstreamEndAt;
    const counted = this.#counted;
    // The client has seen the head of a response that broke off, not the error after it.
    counted.status = request.isResponseAborted ? request.sentStatus : status;
    counted.totalUs = (now - request.startedAt) * 1000;
    counted.upstreamUs = request.upstreamAt === 0 ? 0 : (end - request.upstreamAt) * 1000;
    counted.bytesIn = request.bytesIn;
    counted.bytesOut = request.bytesOut;
    counted.retries = request.attempts > 1 ? request.attempts - 1 : 0;
    counted.isResponseAborted = request.isResponseAborted;
    const { route, plugins } = request;
    const series = route === null ? this.#noRoute : this.#seriesOf(route);
    this.#writer.ended(series, counted);
    if (plugins !== null && plugins.cache !== null) {
      const { id, outcome } = plugins.cache;
      this.#countCache(series, outcome, request.bytesOut);
      this.#countCache(this.#cacheSeries(id), outcome, request.bytesOut);
    }
    if (request.grpcStatus !== null) this.#writer.add(series, grpcCounter(request.grpcStatus), 1);
    if (this.#batch.isOn) this.#list(request, now);
    if (request.attempts > 0) this.#countTargets(request, end);
  }

  #countCache(series: Series, { status, collapsed }: CacheOutcome, bytesOut: number): void {
    this.#writer.add(series, CACHE_COUNTERS[status], 1);
    if (collapsed === true) this.#writer.add(series, "cache_collapsed", 1);
    if (status === "hit" || status === "stale" || status === "revalidated")
      this.#writer.add(series, "cache_bytes", bytesOut);
  }

  #cacheSeries(id: string): Series {
    let series = this.#caches.get(id);
    if (series === undefined) {
      series = this.#traffic.seriesOf(cacheSeriesKey(id));
      this.#caches.set(id, series);
    }
    return series;
  }

  #seriesOf(route: RecordedRoute): Series {
    route.series ??= this.#traffic.seriesOf(routeSeriesKey(route.id, route.route.service_id));
    return route.series;
  }

  /** Counts each attempt for its target: with the target's status, or that of the gateway's error. */
  #countTargets(request: RecordedRequest, end: number): void {
    if (this.#targetWriter === null) return;
    const counted = this.#counted;
    if (request.headAt !== 0) counted.status = request.upstreamStatus;
    counted.totalUs = Math.max(0, end - request.attemptAt) * 1000;
    counted.upstreamUs = 0;
    this.#targetWriter.ended(this.#targetSeries(request.targetId), counted);
    if (request.earlierAttempts === null) return;
    for (const attempt of request.earlierAttempts) {
      const totalUs = attempt.ms * 1000;
      const failed = { ...zeroCounts(), status: attempt.status, totalUs };
      this.#targetWriter.ended(this.#targetSeries(attempt.targetId), failed);
    }
  }

  #targetSeries(id: string): Series {
    let series = this.#targets.get(id);
    if (series === undefined) {
      series = this.#targetTraffic?.seriesOf(targetSeriesKey(id)) ?? this.#noRoute;
      this.#targets.set(id, series);
    }
    return series;
  }

  /** Another version is active: targets and caches may have been deleted and recreated with another row. */
  forgetDeleted(): void {
    this.#targets.clear();
    this.#caches.clear();
  }

  #list(request: RecordedRequest, now: number): void {
    const { connectedAt, headAt, startedAt, route, plugins } = request;
    const record = this.#batch.next();
    record.kind = "http";
    record.status = this.#counted.status;
    record.attempts = request.attempts;
    record.grpc = request.grpcStatus === null ? 0 : request.grpcStatus + 1;
    const cache = plugins === null ? null : plugins.cache;
    record.cache = cache === null ? 0 : encodeCacheOutcome(cache.outcome);
    record.started_at = timeOfDay(startedAt, now);
    record.queue = request.queueMs;
    record.plugins = request.pluginsMs;
    record.connect = connectedAt === 0 ? -1 : connectedAt - request.attemptAt;
    record.first_byte = headAt === 0 ? -1 : headAt - startedAt;
    record.total = now - startedAt;
    record.bytes_in = request.bytesIn;
    record.bytes_out = request.bytesOut;
    record.id = request.knownId;
    record.method = request.method;
    record.scheme = request.listener.protocol;
    record.host = request.host;
    record.target = request.target;
    record.user_agent = request.known.userAgent ?? "";
    record.client = request.clientAddress();
    record.consumer = plugins?.consumer?.username ?? "";
    record.reasons =
      plugins === null ? request.reasons : reasonsOf(request.reasons, plugins.reasons);
    record.route = route === null ? "" : route.id;
    record.service = request.otherServiceId ?? route?.route.service_id ?? "";
    record.target_id = request.targetId;
    record.tls_version = tlsVersionOf(request);
    record.http_version = httpVersionOf(request);
  }

  /** Writes the batch, so that readers see every ended request. */
  flush(): void {
    this.#batch.flush();
  }

  /** Counts a request that could not be parsed; none of its data is trusted. */
  unread(status: number): void {
    this.#writer.ended(this.#noRoute, { ...zeroCounts(), status });
  }

  /** A connection of a stream route was accepted. */
  streamOpened(series: Series): void {
    this.#writer.add(series, "opened", 1);
  }

  /** Bytes of a connection since the last call, so that metrics show long connections while they are open. */
  streamMoved(
    series: Series,
    { bytesIn, bytesOut }: { readonly bytesIn: number; readonly bytesOut: number },
  ): void {
    if (bytesIn > 0) this.#writer.add(series, "bytes_in", bytesIn);
    if (bytesOut > 0) this.#writer.add(series, "bytes_out", bytesOut);
  }

  streamEnded(stream: EndedStream): void {
    const totalMs = Math.max(0, Date.now() - stream.startedAt);
    this.#writer.add(stream.series, "ended", 1);
    this.#writer.record(stream.series, "total", totalMs * 1000);
    if (!this.#batch.isOn) return;
    Object.assign(this.#batch.next(), {
      ...emptyRecord(),
      kind: "stream",
      started_at: stream.startedAt,
      total: totalMs,
      bytes_in: stream.bytesIn,
      bytes_out: stream.bytesOut,
      id: stream.id,
      scheme: stream.protocol,
      client: stream.client,
      reasons: stream.reason,
      route: stream.routeId,
      service: stream.serviceId,
      target_id: stream.targetId,
    });
  }

  /** A TLS handshake on a listener with a socket of ours. */
  handshake(listenerId: string, isDone: boolean): void {
    const series = this.#traffic.seriesOf(listenerSeriesKey(listenerId));
    this.#writer.add(series, isDone ? "handshakes" : "handshakes_failed", 1);
  }

  /** A decision of a plugin of this type. */
  decided(plugin: string, decision: PluginDecision): void {
    this.#writer.add(this.#pluginSeries(plugin), decision, 1);
  }

  /** A plugin of this type has dropped log records. */
  dropped(plugin: string, count: number): void {
    this.#writer.add(this.#pluginSeries(plugin), "dropped", count);
  }

  #pluginSeries(plugin: string): Series {
    let series = this.#plugins.get(plugin);
    if (series === undefined) {
      series = this.#traffic.seriesOf(pluginSeriesKey(plugin));
      this.#plugins.set(plugin, series);
    }
    return series;
  }
}

const CACHE_COUNTERS = {
  hit: "cache_hit",
  stale: "cache_stale",
  revalidated: "cache_revalidated",
  miss: "cache_miss",
  expired: "cache_expired",
  bypass: "cache_bypass",
} as const satisfies Record<CacheStatus, TrafficCounter>;

const zeroCounts = (): { -readonly [K in keyof EndedRequest]: EndedRequest[K] } => ({
  status: 0,
  totalUs: 0,
  upstreamUs: 0,
  bytesIn: 0,
  bytesOut: 0,
  retries: 0,
  isResponseAborted: false,
});

/** Reasons are separated by spaces, so those inside a plugin's reason become hyphens. */
function reasonsOf(own: string, ofPlugins: readonly string[]): string {
  let all = own;
  for (const reason of ofPlugins) {
    const word = SPACES.test(reason) ? reason.replaceAll(ALL_SPACES, "-") : reason;
    if (word !== "") all = all === "" ? word : `${all} ${word}`;
  }
  return all;
}

const SPACES = /\s/;
const ALL_SPACES = /\s+/g;
