// A thread that counts and records requests as fast as it can; run by traffic-metrics.test.ts and request-ring.test.ts.
import { RequestRing } from "../../../src/shared-memory/request-ring.ts";
import { type TrafficMemory, TrafficMetrics } from "../../../src/shared-memory/traffic-metrics.ts";
import { factsOf } from "./request-facts.ts";

declare const self: Worker;

/** The task of a thread. */
export interface CountingTask {
  readonly traffic: TrafficMemory;
  readonly ring: SharedArrayBuffer;
  readonly worker: number;
  readonly keys: readonly string[];
  readonly requests: number;
}

self.onmessage = ({ data }: MessageEvent<CountingTask>) => {
  const traffic = new TrafficMetrics(data.traffic);
  const ring = new RequestRing(data.ring);
  const writer = traffic.writer(data.worker);
  const series = data.keys.map((key) => traffic.seriesOf(key));
  for (let request = 0; request < data.requests; request++) {
    const of = series[request % series.length]!;
    writer.ended(of, {
      status: request % 10 === 0 ? 503 : 200,
      totalUs: 100 + (request % 1000),
      upstreamUs: 50,
      bytesIn: 1,
      bytesOut: 2,
      retries: request % 3,
      isResponseAborted: false,
    });
    ring.write(factsOf(data.worker, request), data.worker);
  }
  self.postMessage("done");
};
