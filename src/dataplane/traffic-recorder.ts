// Counts what one worker has served and writes it down where the main thread reads; knows no listener and no configuration.
import { RequestRing } from "../shared-memory/request-ring.ts";
import {
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
} from "../shared-memory/series-key.ts";
import type { RequestContext } from "./request-context.ts";
import type { RequestRecord } from "./request-record.ts";

export interface TrafficRecorderOptions {
  /** Index of this worker, from 0. */
  readonly worker: number;
  readonly traffic: TrafficMetrics;
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

/** How often the two clocks are compared. */
const CLOCK_MS = 1000;

export class TrafficRecorder {
  readonly #worker: number;
  readonly #traffic: TrafficMetrics;
  readonly #writer: TrafficWriter;
  readonly #noRoute: Series;
  #ring: RequestRing | null;
  /** What `performance.now()` lacks to the time of day. */
  #clockOffset = performance.timeOrigin;
  #clockCheckedAt = Number.NEGATIVE_INFINITY;

  constructor({ worker, traffic, requests }: TrafficRecorderOptions) {
    this.#worker = worker;
    this.#traffic = traffic;
    this.#writer = traffic.writer(worker);
    this.#noRoute = traffic.noRoute;
    this.#ring = requests;
  }

  /** Counts that nobody reads. */
  static unread(): TrafficRecorder {
    return new TrafficRecorder({ worker: 0, traffic: TrafficMetrics.create(1), requests: null });
  }

  /** Writes into another ring from here on; null: into none. */
  useRing(ring: SharedArrayBuffer | null): void {
    this.#ring = ring === null ? null : new RequestRing(ring);
  }

  routeSeries(routeId: string, serviceId: string | null): Series {
    return this.#traffic.seriesOf(routeSeriesKey(routeId, serviceId));
  }

  streamSeries(streamRouteId: string, serviceId: string): Series {
    return this.#traffic.seriesOf(streamSeriesKey(streamRouteId, serviceId));
  }

  listenerSeries(listenerId: string): Series {
    return this.#traffic.seriesOf(listenerSeriesKey(listenerId));
  }

  pluginSeries(name: string): Series {
    return this.#traffic.seriesOf(pluginSeriesKey(name));
  }

  /** Counts a request that has ended and writes it down. `series` null: no route took it. */
  ended(context: RequestContext, record: RequestRecord, series: Series | null): void {
    const now = performance.now();
    const end = record.upstreamEndAt === 0 ? now : record.upstreamEndAt;
    const totalMs = now - record.startedAt;
    this.#writer.ended(series ?? this.#noRoute, {
      status: record.status,
      totalUs: totalMs * 1000,
      upstreamUs: record.upstreamAt === 0 ? 0 : (end - record.upstreamAt) * 1000,
      bytesIn: record.bytesIn,
      bytesOut: record.bytesOut,
      retries: Math.max(0, record.attempts - 1),
      isBrokenOff: record.isBrokenOff,
    });
    const ring = this.#ring;
    if (ring !== null) this.#writeDown(ring, { context, record, totalMs, now });
  }

  #writeDown(
    ring: RequestRing,
    {
      context,
      record,
      totalMs,
      now,
    }: {
      readonly context: RequestContext;
      readonly record: RequestRecord;
      readonly totalMs: number;
      readonly now: number;
    },
  ): void {
    if (now - this.#clockCheckedAt > CLOCK_MS) this.#compareClocks(now);
    const { attemptAt, connectedAt, headAt, startedAt } = record;
    ring.write(
      {
        kind: "http",
        status: record.status,
        attempts: record.attempts,
        started_at: startedAt + this.#clockOffset,
        queue: record.queueMs,
        plugins: record.pluginsMs,
        connect: connectedAt === 0 ? -1 : connectedAt - attemptAt,
        first_byte: headAt === 0 ? -1 : headAt - startedAt,
        total: totalMs,
        bytes_in: record.bytesIn,
        bytes_out: record.bytesOut,
        id: "",
        method: context.method,
        scheme: context.listener.protocol,
        host: context.host,
        target: context.target,
        user_agent: context.headers["user-agent"] ?? "",
        client: context.clientAddress(),
        consumer: record.consumer,
        reasons: record.reasons,
        route: record.routeId,
        service: record.serviceId,
        target_id: record.targetId,
        tls_version: context.connection?.tlsVersion ?? "",
        http_version: "",
      },
      this.#worker,
    );
  }

  /** A request that could not even be read: nothing of it is to be trusted, so it is only counted. */
  unread(status: number): void {
    this.#writer.ended(this.#noRoute, {
      status,
      totalUs: 0,
      upstreamUs: 0,
      bytesIn: 0,
      bytesOut: 0,
      retries: 0,
      isBrokenOff: false,
    });
  }

  /** A connection of a stream route got as far as the choice of a target. */
  streamOpened(series: Series): void {
    this.#writer.add(series, "opened", 1);
  }

  /** Bytes of a connection since the last time, so that long ones are seen while they last. */
  streamMoved(series: Series, bytesIn: number, bytesOut: number): void {
    if (bytesIn > 0) this.#writer.add(series, "bytes_in", bytesIn);
    if (bytesOut > 0) this.#writer.add(series, "bytes_out", bytesOut);
  }

  streamEnded(stream: EndedStream): void {
    const totalMs = Math.max(0, Date.now() - stream.startedAt);
    this.#writer.add(stream.series, "ended", 1);
    this.#writer.record(stream.series, "total", totalMs * 1000);
    this.#ring?.write(
      {
        ...NO_TEXTS,
        kind: "stream",
        status: 0,
        attempts: 0,
        started_at: stream.startedAt,
        ...{ queue: -1, plugins: -1, connect: -1, first_byte: -1 },
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
      },
      this.#worker,
    );
  }

  /** A TLS handshake on a listener that sees them. */
  handshake(series: Series, isDone: boolean): void {
    this.#writer.add(series, isDone ? "handshakes" : "handshakes_failed", 1);
  }

  decided(series: Series, decision: PluginDecision): void {
    this.#writer.add(series, decision, 1);
  }

  #compareClocks(now: number): void {
    this.#clockCheckedAt = now;
    this.#clockOffset = Date.now() - now;
  }
}

const NO_TEXTS = {
  id: "",
  method: "",
  scheme: "",
  host: "",
  target: "",
  user_agent: "",
  client: "",
  consumer: "",
  reasons: "",
  route: "",
  service: "",
  target_id: "",
  tls_version: "",
  http_version: "",
} as const;
