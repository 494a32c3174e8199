// Converts traffic counters to metrics: requests, durations, bytes, streams, handshakes; knows no memory and no format.
import { grpcStatusNames } from "../../http/grpc.ts";
import { countUpTo, type Histogram, merge } from "../../shared-memory/histogram.ts";
import {
  grpcCounter,
  type TrafficCounter,
  type TrafficHistogram,
} from "../../shared-memory/traffic-cells.ts";
import type { TrafficSnapshot } from "../../shared-memory/traffic-metrics.ts";
import type { HistogramSample, Labels, Metric } from "./text-format.ts";
import type { CountedTraffic, SeriesKind } from "./series-rows.ts";

/** Exported bucket bounds in microseconds; each is a bound of the recorded histogram. */
const SHOWN_US = [
  500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
  5_000_000, 10_000_000, 25_000_000, 50_000_000,
];
/** The overhead of the gateway is a thousand times smaller. */
const SHOWN_OVERHEAD_US = [
  25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 100_000, 1_000_000,
];

/** Counters of one set of labels. */
export interface Counted {
  readonly labels: Labels;
  traffic: TrafficSnapshot;
}

export function trafficMetrics(counted: readonly CountedTraffic[]): Metric[] {
  const requests = byLabels(counted, ["route", "other", "none"], ({ name, serviceName }) => ({
    route: name,
    service: serviceName,
  }));
  const streams = byLabels(counted, ["stream_route"], ({ name, serviceName }) => ({
    stream_route: name,
    service: serviceName,
  }));
  const listeners = byLabels(counted, ["listener"], ({ name }) => ({ listener: name }));
  return [
    ...requestMetrics(requests),
    ...streamMetrics(streams),
    {
      name: "sluice_tls_handshakes",
      help: "TLS handshakes, for listeners whose connections the gateway accepts itself.",
      type: "counter",
      samples: listeners.flatMap(({ labels, traffic: { counters } }) =>
        counters.handshakes + counters.handshakes_failed === 0
          ? []
          : [
              { labels: { ...labels, result: "ok" }, value: counters.handshakes },
              { labels: { ...labels, result: "failed" }, value: counters.handshakes_failed },
            ],
      ),
    },
  ];
}

function requestMetrics(requests: readonly Counted[]): Metric[] {
  return [
    {
      name: "sluice_requests",
      help: "Requests that have ended, by the status that the client was sent.",
      type: "counter",
      samples: requests.flatMap(({ labels, traffic }) =>
        Array.from(traffic.codes, ([code, value]) => ({ labels: { ...labels, code }, value })),
      ),
    },
    {
      name: "sluice_grpc_requests",
      help: "gRPC calls that have ended, by the status that the client was sent.",
      type: "counter",
      samples: requests.flatMap(({ labels, traffic: { counters } }) =>
        grpcStatusNames
          .map((name, status) => ({
            labels: { ...labels, grpc_status: name },
            value: counters[grpcCounter(status)],
          }))
          .filter(({ value }) => value > 0),
      ),
    },
    histogram(requests, "total", {
      name: "sluice_request_duration_seconds",
      help: "Time from the head of a request to the last byte of its answer.",
    }),
    histogram(requests, "upstream", {
      name: "sluice_upstream_duration_seconds",
      help: "The part of it in which the request was with targets, retries and pauses between them included.",
    }),
    histogram(requests, "overhead", {
      name: "sluice_gateway_overhead_seconds",
      help: "The rest: what the gateway and its plugins took for requests that a target answered.",
    }),
    counter(requests, "bytes_in", {
      name: "sluice_request_body_bytes",
      help: "Bytes of request bodies.",
    }),
    counter(requests, "bytes_out", {
      name: "sluice_response_body_bytes",
      help: "Bytes of response bodies.",
    }),
    counter(requests, "retries", {
      name: "sluice_retries",
      help: "Attempts after the first one of a request.",
    }),
    counter(requests, "aborted_responses", {
      name: "sluice_aborted_responses",
      help: "Responses that ended early, because the target or the client closed the connection.",
    }),
  ];
}

function streamMetrics(streams: readonly Counted[]): Metric[] {
  return [
    counter(streams, "opened", {
      name: "sluice_stream_connections",
      help: "Connections of stream routes that reached the choice of a target.",
    }),
    {
      name: "sluice_stream_bytes",
      help: "Bytes of stream routes, from clients (in) and to them (out).",
      type: "counter",
      samples: streams.flatMap(({ labels, traffic: { counters } }) => [
        { labels: { ...labels, direction: "in" }, value: counters.bytes_in },
        { labels: { ...labels, direction: "out" }, value: counters.bytes_out },
      ]),
    },
    histogram(streams, "total", {
      name: "sluice_stream_duration_seconds",
      help: "How long connections of stream routes lasted.",
    }),
  ];
}

type About = Pick<Metric, "name" | "help">;

export function counter(counted: readonly Counted[], of: TrafficCounter, about: About): Metric {
  const samples = counted.map(({ labels, traffic }) => ({ labels, value: traffic.counters[of] }));
  return { ...about, type: "counter", samples };
}

function histogram(counted: readonly Counted[], of: TrafficHistogram, about: About): Metric {
  const shown = of === "overhead" ? SHOWN_OVERHEAD_US : SHOWN_US;
  const samples = counted
    .filter(({ traffic }) => traffic.histograms[of].count > 0)
    .map(({ labels, traffic }) => sampleOf(labels, traffic.histograms[of], shown));
  return { ...about, type: "histogram", samples };
}

function sampleOf(labels: Labels, counts: Histogram, shown: readonly number[]): HistogramSample {
  return {
    labels,
    buckets: shown.map((us) => [us / 1e6, countUpTo(counts, us)] as const),
    count: counts.count,
    sum: counts.sum / 1e6,
  };
}

/**
 * Groups by labels, because two objects may have the same ones: a deleted object and a new one with its name. A series must be
 * unique. Omits objects without traffic.
 */
export function byLabels(
  counted: readonly CountedTraffic[],
  kinds: readonly SeriesKind[],
  labelsOf: (owner: CountedTraffic["owner"]) => Labels,
): Counted[] {
  const found = new Map<string, Counted>();
  for (const { owner, traffic } of counted) {
    if (!kinds.includes(owner.kind) || isEmpty(traffic)) continue;
    const labels = labelsOf(owner);
    const key = JSON.stringify(labels);
    const known = found.get(key);
    if (known === undefined) found.set(key, { labels, traffic });
    else known.traffic = sumOf(known.traffic, traffic);
  }
  return [...found.values()];
}

const isEmpty = ({ counters }: TrafficSnapshot) =>
  Object.values(counters).every((value) => value === 0);

function sumOf(one: TrafficSnapshot, other: TrafficSnapshot): TrafficSnapshot {
  const codes = new Map(one.codes);
  for (const [code, count] of other.codes) codes.set(code, (codes.get(code) ?? 0) + count);
  return {
    codes,
    counters: combine(one.counters, other.counters, (a, b) => a + b),
    histograms: combine(one.histograms, other.histograms, merge),
  };
}

function combine<K extends string, V>(
  one: Readonly<Record<K, V>>,
  other: Readonly<Record<K, V>>,
  join: (a: V, b: V) => V,
): Record<K, V> {
  const names = Object.keys(one) as K[];
  return Object.fromEntries(names.map((name) => [name, join(one[name], other[name])])) as Record<
    K,
    V
  >;
}
