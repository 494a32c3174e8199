// Measures what 10,000 routes cost: a request, a change, a start; knows nothing of memory and long bodies.
import { join } from "node:path";

import { loadWithWrk, percentile } from "./load.ts";
import { PROXY_CORE, processorTimeUs, waitFor } from "./processes.ts";
import { type ManagementApi, type RunningSluice, startSluice } from "./sluice.ts";

export interface RoutesInput {
  readonly scratch: string;
  readonly command: readonly string[];
  readonly originPort: number;
  readonly routes: number;
  readonly seconds: number;
}

export interface RoutesResult {
  readonly loadSeconds: number;
  readonly mutationP50Ms: number;
  readonly mutationP99Ms: number;
  /** The same with four workers. */
  readonly mutationP99OnFourMs: number;
  readonly startMs: number;
  /** Processor time per request with all routes, as a multiple of that with one. */
  readonly costByHost: number;
  readonly costByPath: number;
}

const MUTATIONS = 200;
const STARTS = 3;
const ROUNDS = 4;

/** Two requests that each match one route, one found by its host among many, one by its path. */
const PROBES = {
  host: { host: "site-2500.example.com", path: "/64B" },
  path: { host: "api.example.com", path: "/part-7500/64B" },
};

/** The route of an index: the lower half differ in their host, the upper half in the path below one host. */
export function routeOf(index: number, half: number): Record<string, unknown> {
  const fields = { name: `route-${index}`, service_id: "origin" };
  return index < half
    ? { ...fields, hosts: [`site-${index}.example.com`], paths: ["/"] }
    : { ...fields, hosts: ["api.example.com"], paths: [`/part-${index}/`], strip_path: true };
}

/** Loads the routes through the API, then measures changes, starts and requests with them. */
export async function measureRoutes(input: RoutesInput): Promise<RoutesResult> {
  const dataDir = join(input.scratch, "many-routes");
  const many = { command: input.command, dataDir, workers: 2, core: undefined };
  let sluice = await startSluice(many);
  try {
    await sluice.api.createService("origin", input.originPort);
    const began = performance.now();
    for (let index = 0; index < input.routes; index += 1) {
      await sluice.api.send("POST", "/api/v1/routes", routeOf(index, input.routes / 2));
      if ((index + 1) % 1_000 === 0) console.log(`${index + 1} routes created`);
    }
    const loadSeconds = (performance.now() - began) / 1_000;
    const mutations = await changeRoutes(sluice.api);
    await sluice.program.stop();
    sluice = await startSluice({ ...many, ports: sluice.ports, workers: 4 });
    const onFour = await changeRoutes(sluice.api);
    const starts: number[] = [];
    for (let start = 0; start < STARTS; start += 1) {
      await sluice.program.stop();
      sluice = await startSluice({ ...many, ports: sluice.ports });
      starts.push(sluice.readyMs);
    }
    await sluice.program.stop();
    sluice = await startSluice({ ...many, ports: sluice.ports, workers: 1, core: PROXY_CORE });
    const costs = await compareWithOneRoute(input, sluice);
    return {
      loadSeconds,
      mutationP50Ms: percentile(mutations, 0.5),
      mutationP99Ms: percentile(mutations, 0.99),
      mutationP99OnFourMs: percentile(onFour, 0.99),
      startMs: percentile(
        starts.sort((a, b) => a - b),
        0.5,
      ),
      costByHost: costs.host,
      costByPath: costs.path,
    };
  } finally {
    await sluice.program.stop();
  }
}

/** Creates, changes and deletes in turn, as a user would: each call ends when all workers serve the change. Sorted times. */
export async function changeRoutes(api: ManagementApi): Promise<number[]> {
  const times: number[] = [];
  const timed = async (method: string, path: string, body?: unknown) => {
    const began = performance.now();
    await api.send(method, path, body);
    times.push(performance.now() - began);
  };
  for (let index = 0; times.length < MUTATIONS; index += 1) {
    const name = `extra-${index}`;
    const hosts = [`extra-${index}.example.com`];
    await timed("POST", "/api/v1/routes", { name, service_id: "origin", hosts });
    await timed("PATCH", `/api/v1/routes/${name}`, { paths: ["/changed"] });
    await timed("PATCH", `/api/v1/routes/route-${index}`, { tags: ["changed"] });
    await timed("DELETE", `/api/v1/routes/${name}`);
  }
  return times.sort((a, b) => a - b);
}

async function compareWithOneRoute(input: RoutesInput, many: RunningSluice) {
  const dataDir = join(input.scratch, "one-route");
  const costs = { host: Number.NaN, path: Number.NaN };
  const one = await startSluice({
    command: input.command,
    dataDir,
    workers: 1,
    core: PROXY_CORE,
  });
  try {
    await one.api.createService("origin", input.originPort);
    for (const [kind, index] of [
      ["host", 2_500],
      ["path", 7_500],
    ] as const) {
      const route = routeOf(index, 5_000);
      await one.api.send("POST", "/api/v1/routes", route);
      const probe = PROBES[kind];
      const [small, large] = await measurePair([one, many], probe, input.seconds);
      costs[kind] = (large ?? Number.NaN) / (small ?? Number.NaN);
      await one.api.send("DELETE", `/api/v1/routes/${String(route.name)}`);
    }
    return costs;
  } finally {
    await one.program.stop();
  }
}

// Turn by turn, so that a busy moment of the machine falls on both.
async function measurePair(
  pair: readonly RunningSluice[],
  probe: { readonly host: string; readonly path: string },
  seconds: number,
): Promise<number[]> {
  const totals = pair.map(() => ({ cpuUs: 0, requests: 0 }));
  for (const sluice of pair) {
    const url = `http://127.0.0.1:${sluice.ports.http}${probe.path}`;
    await waitFor(`an answer for ${probe.host}${probe.path}`, 5_000, async () => {
      const response = await fetch(url, { headers: { host: probe.host } });
      return (await response.bytes()).length === 64 ? true : undefined;
    });
    await loadWithWrk(url, 2, { host: probe.host });
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, sluice] of pair.entries()) {
      const url = `http://127.0.0.1:${sluice.ports.http}${probe.path}`;
      const before = processorTimeUs(sluice.program.pid);
      const result = await loadWithWrk(url, seconds, { host: probe.host });
      if (result.errors > 0) throw new Error(`${result.errors} requests failed for ${probe.host}`);
      totals[index]!.cpuUs += processorTimeUs(sluice.program.pid) - before;
      totals[index]!.requests += result.requests;
    }
  }
  return totals.map((total) => total.cpuUs / total.requests);
}
