// Measures what several targets with checks cost a request, against one target without; knows no other proxy.
import { join } from "node:path";

import { loadWithWrk, percentile, type WrkOptions } from "./load.ts";
import { ORIGIN_ADDRESSES } from "./origin.ts";
import { PROXY_CORE, processorTimeUs, waitFor } from "./processes.ts";
import { type RunningSluice, startSluice } from "./sluice.ts";

export interface ManyTargetsInput {
  readonly scratch: string;
  readonly command: readonly string[];
  readonly originPort: number;
  /** Measured seconds of each turn. */
  readonly seconds: number;
  /** Turns of each of the two. */
  readonly rounds: number;
}

export interface ManyTargetsResult {
  /** Processor time per request with all targets, as a multiple of that with one. */
  readonly ratio: number;
  readonly errors: number;
}

const FILE = "64B";
/** The engine compiles code meanwhile: 3 to 4 µs of each request in the first four seconds, 0.1 to 0.4 in the next, then less than 0.1. */
const WARM_UP_SECONDS = 10;

/** Two gateways, each with one worker on the proxy's core, take turns: a busy moment of the machine falls on both. */
export async function measureManyTargets(input: ManyTargetsInput): Promise<ManyTargetsResult> {
  const one = await startWith(input, "one-target", {
    targets: targetsOf(input, 1),
    health: { passive: { enabled: false } },
  });
  try {
    const many = await startWith(input, "many-targets", {
      targets: targetsOf(input, ORIGIN_ADDRESSES.length),
      health: { active: { enabled: true, path: `/${FILE}`, interval: 1 } },
    });
    try {
      return await compare([one, many], input);
    } finally {
      await many.program.stop();
    }
  } finally {
    await one.program.stop();
  }
}

export const targetsOf = ({ originPort: port }: ManyTargetsInput, count: number) =>
  ORIGIN_ADDRESSES.slice(0, count).map((host) => ({ host, port }));

/** A gateway with one worker and one route to the service, ready to answer. */
export async function startWith(
  input: ManyTargetsInput,
  name: string,
  service: Record<string, unknown>,
): Promise<RunningSluice> {
  const { command } = input;
  const dataDir = join(input.scratch, name);
  const sluice = await startSluice({ command, dataDir, workers: 1, core: PROXY_CORE });
  try {
    await sluice.api.send("POST", "/api/v1/services", { name: "origin", ...service });
    await sluice.api.send("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
    await waitFor(`the first answer of ${name}`, 5_000, async () => {
      return (await fetch(urlOf(sluice))).ok ? true : undefined;
    });
    return sluice;
  } catch (error) {
    await sluice.program.stop();
    throw error;
  }
}

const urlOf = ({ ports }: RunningSluice) => `http://127.0.0.1:${ports.http}/${FILE}`;

/** What the two that are compared are asked. */
export interface ComparedLoad {
  readonly wrk?: WrkOptions;
  /** That must have been made before anything is measured. */
  readonly warmUpRequests?: number;
}

/** Loads the two in turn; the ratio is that of the second one to the first. */
export async function compare(
  [one, other]: readonly [RunningSluice, RunningSluice],
  { seconds, rounds }: ManyTargetsInput,
  { wrk = {}, warmUpRequests = 1 }: ComparedLoad = {},
): Promise<ManyTargetsResult> {
  for (const sluice of [one, other])
    for (let seen = 0; seen < warmUpRequests;)
      seen += (await loadWithWrk(urlOf(sluice), WARM_UP_SECONDS, wrk)).requests;
  const cost = (sluice: RunningSluice) => costOf(sluice, seconds, wrk);
  const ratios: number[] = [];
  let errors = 0;
  for (let round = 0; round < rounds; round += 1) {
    // Neither always goes first: machines get slower and faster.
    const isTurned = round % 2 === 1;
    const [first, second] = [
      await cost(isTurned ? other : one),
      await cost(isTurned ? one : other),
    ];
    ratios.push(isTurned ? first.cpuUs / second.cpuUs : second.cpuUs / first.cpuUs);
    errors += first.errors + second.errors;
  }
  // The middle one: a moment in which the machine did something else spoils one round and not the figure.
  ratios.sort((a, b) => a - b);
  return { ratio: percentile(ratios, 0.5), errors };
}

/** Pairs of new processes: two processes of one program differ by 3 to 10 %, which no number of turns evens out. */
export const PAIRS = 5;

/** Compares so many pairs one after the other; the middle ratio counts. */
export async function middlePair(
  comparePair: (pair: number) => Promise<ManyTargetsResult>,
): Promise<ManyTargetsResult> {
  const pairs: ManyTargetsResult[] = [];
  for (let pair = 0; pair < PAIRS; pair++) pairs.push(await comparePair(pair));
  pairs.sort((a, b) => a.ratio - b.ratio);
  return {
    ratio: pairs[Math.floor(PAIRS / 2)]?.ratio ?? Number.NaN,
    errors: pairs.reduce((sum, { errors }) => sum + errors, 0),
  };
}

/** Processor time per request. */
async function costOf(sluice: RunningSluice, seconds: number, wrk: WrkOptions) {
  const { pid } = sluice.program;
  const before = processorTimeUs(pid);
  const { requests, errors } = await loadWithWrk(urlOf(sluice), seconds, wrk);
  return { cpuUs: (processorTimeUs(pid) - before) / requests, errors };
}
