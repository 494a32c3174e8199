// The measurement itself: same bytes first, then warm up and measure each proxy in turn; prints and writes nothing.
import { connect } from "node:http2";

import {
  BROWSER_HEADERS,
  loadVaried,
  type LoadResult,
  loadWithH2load,
  percentile,
} from "./load.ts";
import {
  type BenchOptions,
  type Protocol,
  type ProxyName,
  SIZES,
  type SizeName,
} from "./options.ts";
import { body } from "./origin.ts";
import type { RunningProxy } from "./peers.ts";
import { minorFaults, processorTimeUs, residentBytes } from "./processes.ts";

/** One proxy, body and protocol. Every figure is the median of the rounds; the sums are over all of them. */
export interface Measurement {
  readonly proxy: ProxyName;
  readonly protocol: Protocol;
  readonly size: SizeName;
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuUsPerRequest: number;
  /** Minor ones, of all rounds. */
  readonly faultsPerRequest: number;
  /** The highest of all rounds. */
  readonly loadedBytes: number;
  readonly errors: number;
  /** In the order in which they were taken: round by round, each beside those of the other proxies. */
  readonly rounds: readonly Round[];
}

/** What is compared within one round. */
export interface Round {
  readonly cpuUsPerRequest: number;
  readonly p99Ms: number;
}

type Sample = LoadResult & {
  readonly cpuUs: number;
  readonly faults: number;
  readonly loadedBytes: number;
};

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

export function urlOf(proxy: RunningProxy, protocol: Protocol, size: SizeName): string {
  if (protocol === "varied") return `http://127.0.0.1:${proxy.httpPort}/varied/${size}/`;
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

interface What {
  readonly protocol: Protocol;
  readonly size: SizeName;
}

/** Measures one body over one protocol: every proxy in turn, in alternating order, as many rounds as asked for. */
export async function measureInTurn(
  proxies: readonly RunningProxy[],
  what: What,
  options: BenchOptions & { readonly scratch: string },
): Promise<Measurement[]> {
  const { scratch } = options;
  const contestants: Contestant[] = [];
  for (const proxy of proxies)
    contestants.push({ proxy, load: await loadOf(proxy, { ...what, scratch }), samples: [] });
  for (let round = 0; round < options.rounds; round += 1) {
    for (const { proxy, load, samples } of round % 2 === 0 ? contestants : contestants.toReversed())
      samples.push(await takeSample(proxy, () => load(options.seconds)));
  }
  return contestants.map(({ proxy: { name }, samples }) => ({
    proxy: name,
    ...what,
    ...combine(samples),
  }));
}

interface Contestant {
  readonly proxy: RunningProxy;
  readonly load: Load;
  readonly samples: Sample[];
}

/** Sends load for about as many seconds. */
type Load = (seconds: number) => Promise<LoadResult>;

async function loadOf(
  proxy: RunningProxy,
  { protocol, size, scratch }: What & { readonly scratch: string },
): Promise<Load> {
  const url = urlOf(proxy, protocol, size);
  if (protocol === "varied") return (seconds) => loadVaried(url, seconds, scratch);
  const { requestsPerSecond } = await loadWithH2load(url, TRIAL_REQUESTS, { protocol, scratch });
  const rate = Math.max(1, requestsPerSecond);
  return (seconds) => loadWithH2load(url, Math.ceil(rate * seconds), { protocol, scratch });
}

/** An engine that compiles while it runs is slower in its first seconds: up to 4 µs of a request in the first four. */
export async function warmUp(
  proxy: RunningProxy,
  { protocols, sizes, scratch }: BenchOptions & { readonly scratch: string },
): Promise<void> {
  const share = WARM_UP_SECONDS / protocols.length;
  for (const protocol of protocols) {
    const load = await loadOf(proxy, { protocol, size: sizes[0] ?? "64B", scratch });
    await load(Math.ceil(share));
  }
}

/** For all protocols together. */
const WARM_UP_SECONDS = 10;

/** Enough to know the rate, so that a round takes as many seconds as asked for. */
const TRIAL_REQUESTS = 2_000;

async function takeSample(proxy: RunningProxy, load: () => Promise<LoadResult>): Promise<Sample> {
  const { pid } = proxy.program;
  let loadedBytes = 0;
  const sampler = setInterval(() => {
    loadedBytes = Math.max(loadedBytes, residentBytes(pid));
  }, 200);
  const [before, faultsBefore] = [processorTimeUs(pid), minorFaults(pid)];
  try {
    const result = await load();
    const cpuUs = processorTimeUs(pid) - before;
    const faults = minorFaults(pid) - faultsBefore;
    return { ...result, cpuUs, faults, loadedBytes: Math.max(loadedBytes, residentBytes(pid)) };
  } finally {
    clearInterval(sampler);
  }
}

function combine(samples: readonly Sample[]): Omit<Measurement, "proxy" | "protocol" | "size"> {
  const sum = (pick: (sample: Sample) => number) =>
    samples.reduce((total, sample) => total + pick(sample), 0);
  const rounds = samples.map(({ cpuUs, requests, p99Ms }) => ({
    cpuUsPerRequest: cpuUs / requests,
    p99Ms,
  }));
  return {
    requests: sum((sample) => sample.requests),
    requestsPerSecond: median(samples.map((sample) => sample.requestsPerSecond)),
    p50Ms: median(samples.map((sample) => sample.p50Ms)),
    p99Ms: median(rounds.map((round) => round.p99Ms)),
    cpuUsPerRequest: median(rounds.map((round) => round.cpuUsPerRequest)),
    faultsPerRequest: sum((sample) => sample.faults) / sum((sample) => sample.requests),
    loadedBytes: Math.max(...samples.map((sample) => sample.loadedBytes)),
    errors: sum((sample) => sample.errors),
    rounds,
  };
}

/** The middle one of the ratios between two proxies, round by round: what disturbs a round disturbs both. */
export function medianRatio(
  ours: Measurement,
  theirs: Measurement,
  figure: keyof Round = "cpuUsPerRequest",
): number {
  const ratios = ours.rounds.flatMap((round, index) => {
    const other = theirs.rounds[index];
    return other === undefined ? [] : [round[figure] / other[figure]];
  });
  return median(ratios);
}

const median = (values: readonly number[]) =>
  percentile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
