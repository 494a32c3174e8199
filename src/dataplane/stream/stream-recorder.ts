// Counts the connections and UDP sessions of stream routes, while they are open and when they end; knows no socket.
import type { Series } from "../../shared-memory/traffic-metrics.ts";
import type { TrafficRecorder } from "../traffic-recorder.ts";
import type { StreamRouteRuntime } from "./stream-runtime.ts";

/** The current state of a connection or UDP session. */
export interface RecordedStream {
  readonly id: string;
  /** Milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly client: { readonly address: string };
  /** Null: not matched yet. */
  readonly route: StreamRouteRuntime | null;
  readonly target: { readonly id: string } | null;
  /** Bytes from the client and to it. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** The reason of a refusal; null: not refused. */
  readonly refusal: string | null;
}

/** What the recorder has counted of one so far. */
interface Counted {
  readonly series: Series;
  readonly serviceId: string;
  bytesIn: number;
  bytesOut: number;
}

export class StreamRecorder {
  readonly #recorder: TrafficRecorder;
  readonly #protocol: "tcp" | "udp";
  readonly #counted = new Map<string, Counted>();

  constructor(recorder: TrafficRecorder, protocol: "tcp" | "udp") {
    this.#recorder = recorder;
    this.#protocol = protocol;
  }

  /** Counts the bytes since the last call; call it periodically, so that metrics show long connections while they are open. */
  moved(stream: RecordedStream): void {
    const { route, bytesIn, bytesOut } = stream;
    if (route === null) return;
    const counted = this.#counted.get(stream.id) ?? this.#begin(stream.id, route);
    if (bytesIn === counted.bytesIn && bytesOut === counted.bytesOut) return;
    this.#recorder.streamMoved(counted.series, {
      bytesIn: bytesIn - counted.bytesIn,
      bytesOut: bytesOut - counted.bytesOut,
    });
    counted.bytesIn = bytesIn;
    counted.bytesOut = bytesOut;
  }

  /** The connection has ended. One without a route is not counted. */
  ended(stream: RecordedStream): void {
    this.moved(stream);
    const counted = this.#counted.get(stream.id);
    if (counted === undefined) return;
    this.#counted.delete(stream.id);
    const { id, startedAt, client, route, target, bytesIn, bytesOut, refusal } = stream;
    this.#recorder.streamEnded({
      id,
      startedAt,
      bytesIn,
      bytesOut,
      series: counted.series,
      client: client.address,
      routeId: route?.id ?? "",
      serviceId: counted.serviceId,
      targetId: target?.id ?? "",
      protocol: this.#protocol,
      reason: (refusal ?? "").replaceAll(" ", "-"),
    });
  }

  #begin(id: string, { id: routeId, route }: StreamRouteRuntime): Counted {
    const { service_id: serviceId } = route;
    const series = this.#recorder.streamSeries(routeId, serviceId);
    const counted = { series, serviceId, bytesIn: 0, bytesOut: 0 };
    this.#counted.set(id, counted);
    this.#recorder.streamOpened(series);
    return counted;
  }
}
