// The measurement itself: same bytes first, then warm up and measure each proxy in turn; prints and writes nothing.
import { connect } from "node:http2";

import { BROWSER_HEADERS, type LoadResult, loadWithH2load, loadWithWrk } from "./load.ts";
import {
  type BenchOptions,
  type Protocol,
  type ProxyName,
  SIZES,
  type SizeName,
} from "./options.ts";
import { body } from "./origin.ts";
import type { RunningProxy } from "./peers.ts";
import { processorTimeUs, residentBytes } from "./processes.ts";

export interface Measurement {
  readonly proxy: ProxyName;
  readonly protocol: Protocol;
  readonly size: SizeName;
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuUsPerRequest: number;
  readonly loadedBytes: number;
  readonly errors: number;
}

type Sample = LoadResult & { readonly cpuUs: number; readonly loadedBytes: number };

/** Asks for every body once over every protocol and throws when one byte differs. */
export async function verifyAnswers(proxy: RunningProxy, options: BenchOptions): Promise<void> {
  for (const protocol of options.protocols) {
    for (const size of options.sizes) {
      const received = await readBody(proxy, protocol, size);
      if (Bun.hash(received) !== Bun.hash(body(SIZES[size]))) {
        throw new Error(
          `${proxy.name} answers ${size} over ${protocol} with ${received.length} other bytes`,
        );
      }
    }
  }
}

function urlOf(proxy: RunningProxy, protocol: Protocol, size: SizeName): string {
  return protocol === "http"
    ? `http://127.0.0.1:${proxy.httpPort}/${size}`
    : `https://127.0.0.1:${proxy.httpsPort}/${size}`;
}

async function readBody(
  proxy: RunningProxy,
  protocol: Protocol,
  size: SizeName,
): Promise<Uint8Array> {
  const url = urlOf(proxy, protocol, size);
  if (protocol === "h2") return await readOverHttp2(new URL(url));
  const response = await fetch(url, {
    headers: BROWSER_HEADERS,
    tls: { rejectUnauthorized: false },
  });
  return await response.bytes();
}

async function readOverHttp2(url: URL): Promise<Uint8Array> {
  const session = connect(url.origin, { rejectUnauthorized: false });
  try {
    return await new Promise((resolve, reject) => {
      const chunks: Uint8Array[] = [];
      session.on("error", reject);
      const request = session.request({ ...BROWSER_HEADERS, ":path": url.pathname });
      request.on("error", reject);
      request.on("data", (chunk: Uint8Array) => chunks.push(chunk));
      request.on("end", () => resolve(Buffer.concat(chunks)));
      request.end();
    });
  } finally {
    session.close();
  }
}

/** Measures one body over one protocol: every proxy in turn, as many rounds as asked for. */
export async function measureInTurn(
  proxies: readonly RunningProxy[],
  what: { readonly protocol: Protocol; readonly size: SizeName },
  options: BenchOptions & { readonly scratch: string },
): Promise<Measurement[]> {
  const samples = new Map<ProxyName, Sample[]>(proxies.map((proxy) => [proxy.name, []]));
  for (let round = 0; round < options.rounds; round += 1) {
    for (const proxy of proxies) {
      const url = urlOf(proxy, what.protocol, what.size);
      const load = (seconds: number): Promise<LoadResult> =>
        what.protocol === "h2"
          ? loadWithH2load(url, seconds, options.scratch)
          : loadWithWrk(url, seconds);
      await load(options.warmUpSeconds);
      samples.get(proxy.name)?.push(await takeSample(proxy, () => load(options.seconds)));
    }
  }
  return proxies.map((proxy) => ({
    proxy: proxy.name,
    ...what,
    ...combine(samples.get(proxy.name) ?? []),
  }));
}

async function takeSample(proxy: RunningProxy, load: () => Promise<LoadResult>): Promise<Sample> {
  const { pid } = proxy.program;
  let loadedBytes = 0;
  const sampler = setInterval(() => {
    loadedBytes = Math.max(loadedBytes, residentBytes(pid));
  }, 200);
  const before = processorTimeUs(pid);
  try {
    const result = await load();
    const cpuUs = processorTimeUs(pid) - before;
    return { ...result, cpuUs, loadedBytes: Math.max(loadedBytes, residentBytes(pid)) };
  } finally {
    clearInterval(sampler);
  }
}

// Means over the rounds, but the worst of what must never be bad: the 99th percentile, memory and errors.
function combine(samples: readonly Sample[]): Omit<Measurement, "proxy" | "protocol" | "size"> {
  const sum = (pick: (sample: Sample) => number) =>
    samples.reduce((total, sample) => total + pick(sample), 0);
  const requests = sum((sample) => sample.requests);
  return {
    requests,
    requestsPerSecond: sum((sample) => sample.requestsPerSecond) / samples.length,
    p50Ms: sum((sample) => sample.p50Ms) / samples.length,
    p99Ms: Math.max(...samples.map((sample) => sample.p99Ms)),
    cpuUsPerRequest: sum((sample) => sample.cpuUs) / requests,
    loadedBytes: Math.max(...samples.map((sample) => sample.loadedBytes)),
    errors: sum((sample) => sample.errors),
  };
}
