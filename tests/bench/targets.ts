// What Sluice must reach against its peers, as data, and the comparison of one run with it.
import type { ManyTargetsResult } from "./many-targets.ts";
import { type Measurement, medianRatio } from "./measure.ts";
import { PROTOCOLS, type Protocol, type ProxyName, type SizeName } from "./options.ts";

interface Target {
  readonly protocol: Protocol;
  readonly size: SizeName;
  readonly peer: ProxyName;
  /** What is compared; default: processor time per request. */
  readonly figure?: "p99Ms";
  /** Sluice as a multiple of the peer, the median over the rounds. */
  readonly atMost: number;
}

/** `bare` is what Bun itself costs (tests/bench/bare-proxy.ts): the part above 1 is Sluice's own. */
const againstBare = (["http", "h2"] as const).flatMap((protocol) =>
  (["64B", "10KB", "20KB", "100KB", "1MB"] as const).flatMap((size): Target[] => [
    { protocol, size, peer: "bare", atMost: size === "100KB" || size === "1MB" ? 1.12 : 1.22 },
    { protocol, size, peer: "bare", figure: "p99Ms", atMost: 1.5 },
  ]),
);

/** What heads that differ may cost of a bound for equal ones: no cache of repeated heads may reach it. */
const VARIED_AT_MOST = 1.2;

const againstNginx = Object.entries({
  http: { "64B": 1.1, "10KB": 1.1, "100KB": 0.65, "1MB": 0.5 },
  tls: { "64B": 1.15, "10KB": 1.1, "100KB": 0.8, "1MB": 0.6 },
  h2: { "64B": 1.15, "10KB": 1, "100KB": 0.65, "1MB": 0.7 },
}).flatMap(([protocol, bounds]) =>
  Object.entries(bounds).flatMap(([size, atMost]) => [
    ...withLatency({ protocol: protocol as Protocol, size: size as SizeName }, atMost),
    ...(protocol === "http"
      ? withLatency({ protocol: "varied", size: size as SizeName }, atMost * VARIED_AT_MOST)
      : []),
  ]),
);

function withLatency(
  what: { readonly protocol: Protocol; readonly size: SizeName },
  atMost: number,
): Target[] {
  const compared = { ...what, peer: "nginx" } as const;
  return [
    { ...compared, atMost },
    { ...compared, figure: "p99Ms", atMost: 1.3 },
  ];
}

export const TARGETS: readonly Target[] = [
  ...againstNginx,
  { protocol: "http", size: "20KB", peer: "nginx", atMost: 1.25 },
  { protocol: "http", size: "64B", peer: "caddy", atMost: 0.5 },
  { protocol: "http", size: "100KB", peer: "haproxy", atMost: 1.2 },
  ...againstBare,
];

/** Minor page faults of a proxied request: more means that the engine gets new pages from the system and returns them. */
const FAULTS_AT_MOST = 0.1;

export function judgeFaults(measurements: readonly Measurement[]): Verdict {
  const target = "Minor page faults per request, 64B, plain HTTP/1.1";
  const words = { target, atMost: String(FAULTS_AT_MOST) };
  const ours = find(measurements, { protocol: "http", size: "64B" }, "sluice");
  if (!ours || ours.errors > 0) return { ...words, measured: "–", verdict: "not measured" };
  return {
    ...words,
    measured: ours.faultsPerRequest.toFixed(3),
    verdict: ours.faultsPerRequest <= FAULTS_AT_MOST ? "reached" : "missed",
  };
}

/** Processor time per request with several checked targets, as a multiple of that with one. */
export const MANY_TARGETS_AT_MOST = 1.05;

export interface Verdict {
  readonly target: string;
  readonly atMost: string;
  readonly measured: string;
  readonly verdict: "reached" | "missed" | "not measured" | "for information";
}

/** Compares a run with every target; one that the run did not cover, or covered with errors, is "not measured". */
export function judge(measurements: readonly Measurement[]): Verdict[] {
  return TARGETS.map((target) => {
    const ours = find(measurements, target, "sluice");
    const theirs = find(measurements, target, target.peer);
    const figure = target.figure === "p99Ms" ? "99th percentile of latency" : "CPU per request";
    const words = {
      target: `${figure} against ${target.peer}, ${target.size}, ${PROTOCOLS[target.protocol]}`,
      atMost: `${Number(target.atMost.toFixed(2))}x`,
    };
    if (!ours || !theirs || ours.errors + theirs.errors > 0)
      return { ...words, measured: "–", verdict: "not measured" };
    const ratio = medianRatio(ours, theirs, target.figure);
    return {
      ...words,
      measured: `${ratio.toFixed(2)}x`,
      verdict: ratio <= target.atMost ? "reached" : "missed",
    };
  });
}

/** Compares a multiple with what it may be; null: it was not measured. */
function judgeRatio(
  result: ManyTargetsResult | null,
  { target, atMost, digits = 2 }: { target: string; atMost: number; digits?: number },
): Verdict {
  const words = { target, atMost: `${atMost}x` };
  if (result === null) return { ...words, measured: "–", verdict: "not measured" };
  const isReached = result.ratio <= atMost && result.errors === 0;
  const measured = `${result.ratio.toFixed(digits)}x`;
  return { ...words, measured, verdict: isReached ? "reached" : "missed" };
}

/** Compares what several targets cost; null: it was not measured. */
export const judgeManyTargets = (result: ManyTargetsResult | null): Verdict =>
  judgeRatio(result, {
    target: "CPU per request, 8 targets with health on against one target, 64B, plain HTTP/1.1",
    atMost: MANY_TARGETS_AT_MOST,
  });

/** Processor time per request with metrics, recent requests and ids, as a multiple of that without. */
export const OBSERVATION_AT_MOST = 1.08;

/** Compares what observation costs; null: it was not measured. */
export const judgeObservation = (result: ManyTargetsResult | null): Verdict =>
  judgeRatio(result, {
    target:
      "CPU per request, metrics, recent requests and ids on against all off, 64B, plain HTTP/1.1",
    atMost: OBSERVATION_AT_MOST,
    digits: 3,
  });

/** What a rate limit may cost. */
const LIMIT_AT_MOST = 1.15;

export const judgeLimits = (result: ManyTargetsResult | null): Verdict =>
  judgeRatio(result, {
    target:
      "CPU per request, a sliding limit by address with 100,000 clients against none, 64B, plain HTTP/1.1",
    atMost: LIMIT_AT_MOST,
  });

/** What four plugins may cost that most guarded routes have. */
const GUARDED_AT_MOST = 1.25;

export const judgeGuarded = (result: ManyTargetsResult | null): Verdict =>
  judgeRatio(result, {
    target:
      "CPU per request, key-auth, acl, request-id and security-headers against none, 64B, plain HTTP/1.1",
    atMost: GUARDED_AT_MOST,
  });

/** The measurement of one proxy for the same body and protocol. */
export function find(
  measurements: readonly Measurement[],
  what: { readonly protocol: Protocol; readonly size: SizeName },
  proxy: ProxyName,
): Measurement | undefined {
  return measurements.find(
    (one) => one.protocol === what.protocol && one.size === what.size && one.proxy === proxy,
  );
}
