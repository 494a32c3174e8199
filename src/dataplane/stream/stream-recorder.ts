// Counts the connections of stream routes, while they last and when they end; knows no socket.
import type { Series } from "../../shared-memory/traffic-metrics.ts";
import type { TrafficRecorder } from "../traffic-recorder.ts";
import type { StreamRouteRuntime } from "./stream-runtime.ts";

/** A connection, or a session of a UDP client, as it is at a moment. */
export interface RecordedStream {
  readonly id: string;
  /** Milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly client: { readonly address: string };
  /** Null: it is not known yet which one takes it. */
  readonly route: StreamRouteRuntime | null;
  readonly target: { readonly id: string } | null;
  /** Bytes from the client and to it. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Why it was refused; null: it was not. */
  readonly refusal: string | null;
}

/** What was counted of one so far. */
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

  /** Counts what has passed since the last time; call it now and then, so that long connections are seen while they last. */
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

  /** It is over. One that no route has taken is not counted. */
  ended(stream: RecordedStream): void {
    this.moved(stream);
    const counted = this.#counted.get(stream.id);
    if (counted === undefined) return;
    this.#counted.delete(stream.id);
    const { id, startedAt, client, route, target, bytesIn, bytesOut, refusal } = stream;
    this.#recorder.streamEnded({
      ...{ id, startedAt, bytesIn, bytesOut },
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
