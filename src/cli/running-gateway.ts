// A gateway that serves, from its first minute to its end: what runs beside the traffic, how it stops, and how it gives way to another process; starts no worker.
import type { ManagementServer } from "../api/server.ts";
import type { ControlPlane } from "../control/control-plane.ts";
import { Recovery } from "../control/recovery.ts";
import type { Log } from "../log.ts";
import type { KeptCounts } from "../store/counter-file.ts";
import type { Store } from "../store/store.ts";
import { createSteering, type Steering } from "../supervisor/port-steering.ts";
import type { WorkerPool } from "../supervisor/worker-pool.ts";
import { type ControlSocket, serveControlSocket } from "./control-socket.ts";
import { type Replaced, Replacement } from "./replacement.ts";
import type { ServeOptions } from "./serve.ts";

export interface GatewayParts {
  readonly options: ServeOptions;
  readonly log: Log;
  readonly store: Store;
  readonly control: ControlPlane;
  readonly pool: WorkerPool;
  readonly counts: KeptCounts;
  /** The management API, which listens already. */
  readonly server: ManagementServer;
  /** Has it listen again, at the same port. */
  readonly serveApi: () => ManagementServer;
  /** Applies the configuration file, and from then on its changes; null: there is none. */
  readonly follow: () => Promise<{ stop(): void } | null>;
}

/** Why nothing can be changed for a moment. */
const BEING_REPLACED = "the gateway is being replaced";

/** How long requests to the management API may still take when traffic has ended. */
const MANAGEMENT_GRACE_MS = 500;
/** How often the last use of tokens is written and sessions that ran out are forgotten. */
const MAINTENANCE_MS = 60_000;
/** How long clients have for finding the process that has taken over before this one stops to listen. */
const LINGER_MS = 2000;
/** How long before that all new connections go to one worker of the other process. */
const NARROW_MS = 500;
/** How often it is looked whether another process still listens. */
const ALONE_MS = 50;
/** When the process that gave way listens no more for certain. */
const SETTLED_MS = 10_000;

export class RunningGateway {
  readonly #parts: GatewayParts;
  readonly #replacement: Replacement;
  #server: ManagementServer;
  #managementStopped: Promise<unknown> = Promise.resolve();
  #issuingStopped: Promise<unknown> = Promise.resolve();
  #socket: ControlSocket | null = null;
  #maintenance: Timer | null = null;
  #settled: Timer | null = null;
  #steering: Steering | null = null;
  #file: { stop(): void } | null = null;

  constructor(parts: GatewayParts) {
    this.#parts = parts;
    this.#server = parts.server;
    const { log, options } = parts;
    this.#replacement = new Replacement({
      pause: () => this.#pause(),
      resume: () => this.#resume(),
      closeManagement: () => this.#closeManagement(),
      openManagement: () => {
        this.#server = parts.serveApi();
      },
      managementPort: () => this.#server.port,
      closeSocket: () => void this.#socket?.stop(),
      words: options.words,
      log,
    });
  }

  get replaced(): Promise<Replaced> {
    return this.#replacement.done;
  }

  /** Has everything run that runs beside the traffic. */
  async begin(): Promise<void> {
    const { control, log, options, follow } = this.#parts;
    this.#file = await follow();
    this.#beginWork();
    // What has led connections here would hold in the end for the workers of this process, and for one that follows.
    if (options.takeOver)
      this.#settled = setTimeout(() => createSteering()?.forget(), SETTLED_MS).unref();
    this.#socket = serveControlSocket({
      ...{ dataDir: options.dataDir, operations: new Recovery(control), log },
      handOver: this.#replacement,
    });
  }

  /** Lets requests in flight end, then closes everything. */
  async stop(): Promise<void> {
    const { control, pool, counts, store, log } = this.#parts;
    this.#replacement.abandon();
    this.#file?.stop();
    control.alertEngine.stop();
    const timeoutMs = control.changes.config.settings.limits.shutdown_timeout;
    this.#closeManagement();
    const socketStopped = this.#socket?.stop();
    this.#issuingStopped = control.acme.engine.stop();
    const aborted = await pool.drain(timeoutMs);
    if (aborted > 0) log.warn("requests did not end in time and were cut", { requests: aborted });
    // An event stream never ends by itself: nobody waits for it.
    const stopped = Promise.all([this.#managementStopped, socketStopped]);
    await Promise.race([stopped, Bun.sleep(MANAGEMENT_GRACE_MS)]);
    await Promise.race([this.#issuingStopped, Bun.sleep(MANAGEMENT_GRACE_MS)]);
    this.#endWork();
    store.close();
    counts.stop();
  }

  /** Lets all that is under way end, while another process serves what comes. */
  async leave(drainMs: number): Promise<void> {
    const { control, pool, store, log } = this.#parts;
    const steering = this.#steering;
    if (steering?.away() !== true)
      log.warn("connections that are being opened while this process stops to listen may be reset");
    setTimeout(() => steering?.toOne(), LINGER_MS - NARROW_MS);
    const cut = await pool.drain(drainMs, { lingerMs: LINGER_MS });
    if (cut > 0) log.warn("requests did not end in time and were cut", { requests: cut });
    try {
      // What was served meanwhile is added to what the other process has counted.
      control.observation.stats.stop();
      control.runMaintenance(true);
    } catch (error) {
      log.warn("what was served while another process took over is not in the statistics", {
        error,
      });
    }
    store.leave();
  }

  #beginWork(): void {
    const { control } = this.#parts;
    this.#maintenance = setInterval(() => control.runMaintenance(), MAINTENANCE_MS);
    control.observation.stats.start();
    control.acme.engine.start();
    control.alertEngine.start();
  }

  #endWork(): void {
    const { control } = this.#parts;
    if (this.#maintenance !== null) clearInterval(this.#maintenance);
    this.#maintenance = null;
    control.runMaintenance(true);
    control.observation.stats.stop();
    control.audit.flush(true);
  }

  #closeManagement(): void {
    this.#managementStopped = this.#server.stop();
  }

  async #pause(): Promise<void> {
    const { control, counts, store } = this.#parts;
    const steering = createSteering();
    // One that this process has taken over from a moment ago may still listen, and would get what is to stay here.
    const end = performance.now() + 2 * LINGER_MS;
    while (steering?.isAlone() === false && performance.now() < end) await Bun.sleep(ALONE_MS);
    await control.changes.pause(BEING_REPLACED);
    this.#file?.stop();
    control.alertEngine.stop();
    await Promise.race([control.acme.engine.stop(), Bun.sleep(MANAGEMENT_GRACE_MS)]);
    this.#endWork();
    counts.stop();
    if (this.#settled !== null) clearTimeout(this.#settled);
    // Whatever becomes of the other process, no connection is to depend on it before it serves.
    this.#steering = steering;
    steering?.keep();
    store.letGo();
  }

  async #resume(): Promise<string | null> {
    const { control, counts, store, follow, log } = this.#parts;
    this.#steering?.forget();
    const problem = takeBack(store, control.changes.revision);
    if (problem !== null) {
      await control.changes.pause(`the configuration cannot be changed: ${problem}`);
      return problem;
    }
    control.changes.resume();
    counts.resume();
    this.#beginWork();
    this.#file = await follow().catch((error: unknown) => {
      log.error("the configuration file is not followed any more", { error });
      return null;
    });
    return null;
  }
}

function takeBack(store: Store, revision: number): string | null {
  try {
    return store.takeBack(revision);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
