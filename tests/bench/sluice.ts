// Starts Sluice for a benchmark and configures it through its management API, as a user would.
import { mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

import type { PeerInput, RunningProxy } from "./peers.ts";
import { freePort, PROXY_CORE, type RunningProgram, startProgram, waitFor } from "./processes.ts";

export interface SluiceStart {
  /** The executable, or the words that stand before "serve". */
  readonly command: readonly string[];
  readonly dataDir: string;
  readonly workers: number;
  /** The one core it may use; undefined lets it use all. */
  readonly core: number | undefined;
  /** More words after "serve". */
  readonly args?: readonly string[];
  /** Ports of an earlier start with the same data directory, which remembers its listeners. */
  readonly ports?: SluicePorts;
}

export interface SluicePorts {
  readonly admin: number;
  readonly http: number;
  readonly https: number;
}

export interface RunningSluice {
  readonly ports: SluicePorts;
  readonly program: RunningProgram;
  /** From the start of the process to the first 200 of /readyz. */
  readonly readyMs: number;
  readonly api: ManagementApi;
}

/** Starts the gateway on free ports and waits until it says that it is ready. */
export async function startSluice(start: SluiceStart): Promise<RunningSluice> {
  mkdirSync(start.dataDir, { recursive: true });
  const ports = start.ports ?? { admin: freePort(), http: freePort(), https: freePort() };
  const logFile = join(start.dataDir, "out.log");
  const [program, ...words] = start.command;
  const began = performance.now();
  const running = startProgram({
    command: [
      program === undefined ? "dist/sluice" : resolve(program),
      ...words,
      ...["serve", "--data-dir", start.dataDir, "--admin", `127.0.0.1:${ports.admin}`],
      ...["--http", `127.0.0.1:${ports.http}`, "--https", `127.0.0.1:${ports.https}`],
      ...["--workers", String(start.workers), "--log-level", "warn"],
      ...(start.args ?? []),
    ],
    core: start.core,
    logFile,
  });
  try {
    await waitFor("Sluice's readiness", 20_000, async () => {
      if (running.hasExited()) return "exited";
      return (await fetch(`http://127.0.0.1:${ports.admin}/readyz`)).ok ? "ready" : undefined;
    });
    if (running.hasExited()) throw new Error("it ended at once");
  } catch (cause) {
    await running.stop();
    throw new Error(`Sluice does not start: ${lastLines(logFile)}`, { cause });
  }
  const readyMs = performance.now() - began;
  return { ports, program: running, readyMs, api: new ManagementApi(ports.admin) };
}

/** The management API of one running gateway. */
export class ManagementApi {
  readonly #base: string;

  constructor(port: number) {
    this.#base = `http://127.0.0.1:${port}`;
  }

  async send<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(this.#base + path, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  }

  /** Creates a service with one target on this machine and returns its id. */
  async createService(name: string, port: number): Promise<string> {
    const targets = [{ host: "127.0.0.1", port }];
    const created = await this.send<{ id: string }>("POST", "/api/v1/services", {
      name,
      protocol: "http",
      targets,
    });
    return created.id;
  }
}

/** Sluice as one proxy of the comparison: one worker on the proxy's core. */
export async function startSluiceProxy(
  input: PeerInput,
  command: readonly string[],
  name: "sluice" | "before" | "bun-engine" = "sluice",
): Promise<RunningProxy> {
  const dataDir = join(input.scratch, name);
  const sluice = await startSluice({ command, dataDir, workers: 1, core: PROXY_CORE });
  try {
    const serviceId = await sluice.api.createService("origin", input.originPort);
    await sluice.api.send("POST", "/api/v1/routes", {
      name: "all",
      service_id: serviceId,
      paths: ["/"],
    });
    const ports = name === "bun-engine" ? await addBunEngine(sluice.api) : sluice.ports;
    const status = await sluice.api.send<{ version: string }>("GET", "/api/v1/admin/status");
    return {
      name,
      version: `Sluice ${status.version}`,
      httpPort: ports.http,
      httpsPort: ports.https,
      program: sluice.program,
    };
  } catch (error) {
    await sluice.program.stop();
    throw error;
  }
}

/** Listeners that Bun.serve serves. */
async function addBunEngine(api: ManagementApi): Promise<Pick<SluicePorts, "http" | "https">> {
  const ports = { http: freePort(), https: freePort() };
  for (const protocol of ["http", "https"] as const) {
    const bun = { name: `bun-${protocol}`, address: "127.0.0.1", port: ports[protocol] };
    await api.send("POST", "/api/v1/listeners", { ...bun, protocol, engine: "bun" });
  }
  return ports;
}

function lastLines(file: string): string {
  return readFileSync(file, "utf8").trim().split("\n").slice(-5).join("\n") || "it printed nothing";
}
