// Measures a very large import while clients come and go: how long it takes, who waits for it, and what it leaves behind.
import { rmSync } from "node:fs";
import { join } from "node:path";

import { percentile } from "./load.ts";
import { residentBytes } from "./processes.ts";
import { changeRoutes, routeOf } from "./scale-routes.ts";
import { type RunningSluice, startSluice } from "./sluice.ts";

export interface ImportInput {
  readonly scratch: string;
  readonly command: readonly string[];
  readonly originPort: number;
  readonly routes: number;
  readonly workers: number;
}

export interface ImportResult {
  readonly importMs: number;
  /** Of proxied requests during the import, as a multiple of what it is while nothing happens. */
  readonly proxiedP99: number;
  readonly longestHealthMs: number;
  /** The highest during the import. */
  readonly bytes: number;
  readonly mutationP99Ms: number;
  readonly startMs: number;
}

const IDLE_MS = 5_000;
const CLIENTS = 4;
/** Between two requests of a client, and two looks at health and memory. */
const PAUSE_MS = 20;
const STARTS = 3;

/** Imports the routes in one request into an empty gateway, changes some, and starts it again. */
export async function measureImport(input: ImportInput): Promise<ImportResult> {
  const { scratch, command, workers, routes } = input;
  const dataDir = join(scratch, `import-${workers}`);
  let sluice = await startSluice({ command, dataDir, workers, core: undefined });
  try {
    await sluice.api.createService("origin", input.originPort);
    await sluice.api.send("POST", "/api/v1/routes", {
      name: "probe",
      service_id: "origin",
      hosts: ["probe.example.com"],
    });
    const list = Array.from({ length: routes }, (_, index) => routeOf(index, routes / 2));
    const watch = new Watch(sluice);
    await Bun.sleep(IDLE_MS);
    const idle = watch.take();
    const began = performance.now();
    await sluice.api.send("POST", "/api/v1/import", { format: 1, routes: list });
    const importMs = performance.now() - began;
    const busy = watch.take();
    await watch.stop();
    const mutations = await changeRoutes(sluice.api);
    const starts: number[] = [];
    for (let start = 0; start < STARTS; start += 1) {
      await sluice.program.stop();
      sluice = await startSluice({
        command,
        dataDir,
        workers,
        core: undefined,
        ports: sluice.ports,
      });
      starts.push(sluice.readyMs);
    }
    starts.sort((a, b) => a - b);
    return {
      importMs,
      proxiedP99: percentile(busy.proxiedMs, 0.99) / percentile(idle.proxiedMs, 0.99),
      longestHealthMs: busy.healthMs.at(-1) ?? Number.NaN,
      bytes: busy.bytes,
      mutationP99Ms: percentile(mutations, 0.99),
      startMs: percentile(starts, 0.5),
    };
  } finally {
    await sluice.program.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** What clients saw since the last time, in order. */
interface Seen {
  readonly proxiedMs: number[];
  readonly healthMs: number[];
  bytes: number;
}

const nothing = (): Seen => ({ proxiedMs: [], healthMs: [], bytes: 0 });

/** A trickle of proxied requests, and polls of /healthz. */
class Watch {
  readonly #jobs: Promise<void>[];
  #seen = nothing();
  #isStopped = false;

  constructor({ ports, program }: RunningSluice) {
    const proxied = `http://127.0.0.1:${ports.http}/64B`;
    const health = `http://127.0.0.1:${ports.admin}/healthz`;
    const clients = Array.from({ length: CLIENTS }, () =>
      this.#repeat(async () => {
        const ms = await timed(proxied, { host: "probe.example.com" });
        this.#seen.proxiedMs.push(ms);
      }),
    );
    const doctor = this.#repeat(async () => {
      this.#seen.healthMs.push(await timed(health, {}));
      this.#seen.bytes = Math.max(this.#seen.bytes, residentBytes(program.pid));
    });
    this.#jobs = [...clients, doctor];
  }

  take(): Seen {
    const seen = this.#seen;
    this.#seen = nothing();
    for (const times of [seen.proxiedMs, seen.healthMs]) times.sort((a, b) => a - b);
    return seen;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#jobs);
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    while (!this.#isStopped) {
      await work();
      await Bun.sleep(PAUSE_MS);
    }
  }
}

async function timed(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const began = performance.now();
  const response = await fetch(url, { headers });
  await response.bytes();
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return performance.now() - began;
}
