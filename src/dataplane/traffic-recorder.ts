// Counts what one worker has served and writes it down where the main thread reads; knows no listener and no configuration.
import { RequestRing } from "../shared-memory/request-ring.ts";
import {
  type EndedRequest,
  type Series,
  TrafficMetrics,
  type TrafficWriter,
} from "../shared-memory/traffic-metrics.ts";
import type { PluginDecision } from "../shared-memory/traffic-cells.ts";
import {
  listenerSeriesKey,
  pluginSeriesKey,
  routeSeriesKey,
  streamSeriesKey,
  targetSeriesKey,
} from "../shared-memory/series-key.ts";
import { noFacts, RequestBatch } from "./request-batch.ts";
import { httpVersionOf, tlsVersionOf } from "./protocol-version.ts";
import type { RequestContext } from "./request-context.ts";
import type { NotedRoute, RequestRecord } from "./request-record.ts";
import { timeOfDay } from "./time-of-day.ts";

export interface TrafficRecorderOptions {
  /** Index of this worker, from 0. */
  readonly worker: number;
  readonly traffic: TrafficMetrics;
  /** Counts by target. Default: none. */
  readonly targetTraffic?: TrafficMetrics;
  /** Null: nothing is written down. */
  readonly requests: RequestRing | null;
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
  /** Why it was refused; empty: it was not. */
  readonly reason: string;
}

export class TrafficRecorder {
  readonly #traffic: TrafficMetrics;
  readonly #writer: TrafficWriter;
  readonly #noRoute: Series;
  readonly #targetTraffic: TrafficMetrics | null;
  readonly #targetWriter: TrafficWriter | null;
  /** By id. */
  readonly #targets = new Map<string, Series>();
  /** By type. */
  readonly #plugins = new Map<string, Series>();
  readonly #batch: RequestBatch;
  /** One for all requests: making it anew would cost as much as counting. */
  readonly #counted = nothingCounted();

  constructor({ worker, traffic, targetTraffic, requests }: TrafficRecorderOptions) {
    this.#traffic = traffic;
    this.#writer = traffic.writer(worker);
    this.#noRoute = traffic.noRoute;
    this.#targetTraffic = targetTraffic ?? null;
    this.#targetWriter = targetTraffic?.writer(worker) ?? null;
    this.#batch = new RequestBatch(requests, worker);
  }

  /** Counts that nobody reads. */
  static unread(): TrafficRecorder {
    return new TrafficRecorder({ worker: 0, traffic: TrafficMetrics.create(1), requests: null });
  }

  /** Writes into another ring from here on; null: into none. */
  useRing(ring: SharedArrayBuffer | null): void {
    this.#batch.use(ring === null ? null : new RequestRing(ring));
  }

  streamSeries(streamRouteId: string, serviceId: string): Series {
    return this.#traffic.seriesOf(streamSeriesKey(streamRouteId, serviceId));
  }

  /** Counts a request that has ended with this status, and writes it down. */
  ended(context: RequestContext, status: number, now: number): void {
    const { record } = context;
    const end = record.upstreamEndAt === 0 ? now : record.upstreamEndAt;
    const counted = this.#counted;
    // The client has seen the head of an answer that broke off, not the error after it.
    counted.status = record.isBrokenOff ? record.status : status;
    counted.totalUs = (now - record.startedAt) * 1000;
    counted.upstreamUs = record.upstreamAt === 0 ? 0 : (end - record.upstreamAt) * 1000;
    counted.bytesIn = record.bytesIn;
    counted.bytesOut = record.bytesOut;
    counted.retries = record.attempts > 1 ? record.attempts - 1 : 0;
    counted.isBrokenOff = record.isBrokenOff;
    const { route } = record;
    this.#writer.ended(route === null ? this.#noRoute : this.#seriesOf(route), counted);
    if (this.#batch.isOn) this.#writeDown(context, now);
    if (record.attempts > 0) this.#countTargets(record, end);
  }

  #seriesOf(route: NotedRoute): Series {
    route.series ??= this.#traffic.seriesOf(routeSeriesKey(route.id, route.route.service_id));
    return route.series;
  }

  /** Each attempt counts for its target: with the status that the target gave, or that the client was told in its place. */
  #countTargets(record: RequestRecord, end: number): void {
    if (this.#targetWriter === null) return;
    const counted = this.#counted;
    if (record.headAt !== 0) counted.status = record.status;
    counted.totalUs = Math.max(0, end - record.attemptAt) * 1000;
    counted.upstreamUs = 0;
    this.#targetWriter.ended(this.#targetSeries(record.targetId), counted);
    if (record.earlier === null) return;
    for (const attempt of record.earlier) {
      const totalUs = attempt.ms * 1000;
      const failed = { ...nothingCounted(), status: attempt.status, totalUs };
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

  /** Another version is served: targets may have gone, and come again under another row. */
  forgetTargets(): void {
    this.#targets.clear();
  }

  #writeDown(context: RequestContext, now: number): void {
    const { record, visit } = context;
    const { connectedAt, headAt, startedAt, route } = record;
    const facts = this.#batch.next();
    facts.kind = "http";
    facts.status = this.#counted.status;
    facts.attempts = record.attempts;
    facts.started_at = timeOfDay(startedAt, now);
    facts.queue = record.queueMs;
    facts.plugins = record.pluginsMs;
    facts.connect = connectedAt === 0 ? -1 : connectedAt - record.attemptAt;
    facts.first_byte = headAt === 0 ? -1 : headAt - startedAt;
    facts.total = now - startedAt;
    facts.bytes_in = record.bytesIn;
    facts.bytes_out = record.bytesOut;
    facts.id = context.knownId;
    facts.method = context.method;
    facts.scheme = context.listener.protocol;
    facts.host = context.host;
    facts.target = context.target;
    facts.user_agent = context.known.userAgent ?? "";
    facts.client = context.clientAddress();
    facts.consumer = visit?.consumer?.username ?? "";
    facts.reasons = visit === null ? record.reasons : reasonsOf(record.reasons, visit.reasons);
    facts.route = route === null ? "" : route.id;
    facts.service = record.otherServiceId ?? route?.route.service_id ?? "";
    facts.target_id = record.targetId;
    facts.tls_version = tlsVersionOf(context);
    facts.http_version = httpVersionOf(context);
  }

  /** Writes down what waits, so that whoever asks now sees everything that has ended. */
  flush(): void {
    this.#batch.flush();
  }

  /** A request that could not even be read: nothing of it is to be trusted, so it is only counted. */
  unread(status: number): void {
    this.#writer.ended(this.#noRoute, { ...nothingCounted(), status });
  }

  /** A connection of a stream route got as far as the choice of a target. */
  streamOpened(series: Series): void {
    this.#writer.add(series, "opened", 1);
  }

  /** Bytes of a connection since the last time, so that long ones are seen while they last. */
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
      ...noFacts(),
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

  /** A TLS handshake on a listener that sees them. */
  handshake(listenerId: string, isDone: boolean): void {
    const series = this.#traffic.seriesOf(listenerSeriesKey(listenerId));
    this.#writer.add(series, isDone ? "handshakes" : "handshakes_failed", 1);
  }

  /** What a plugin of this type has decided. */
  decided(plugin: string, decision: PluginDecision): void {
    this.#writer.add(this.#pluginSeries(plugin), decision, 1);
  }

  /** A plugin of this type has lost records of what happened. */
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

const nothingCounted = (): { -readonly [K in keyof EndedRequest]: EndedRequest[K] } => ({
  status: 0,
  totalUs: 0,
  upstreamUs: 0,
  bytesIn: 0,
  bytesOut: 0,
  retries: 0,
  isBrokenOff: false,
});

/** Of plugins only words: texts with spaces in them would fall apart in the list. */
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
