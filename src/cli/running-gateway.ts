// A running gateway: its background tasks, its shutdown, and its handover to another process; starts no worker.
import type { ManagementServer } from "../api/server.ts";
import type { ControlPlane } from "../control-plane.ts";
import { KeyRotation } from "../control/key-rotation.ts";
import { Recovery } from "../auth/recovery.ts";
import type { SecretKeyFile } from "../control/sealing.ts";
import type { Follower } from "../fleet/follower.ts";
import type { Log } from "../log.ts";
import type { PersistedCounters } from "../store/counter-file.ts";
import type { Store } from "../store/store.ts";
import type { ServiceManager } from "../supervisor/service-manager.ts";
import { createSteering, type Steering } from "../supervisor/port-steering.ts";
import type { WorkerPool } from "../supervisor/worker-pool.ts";
import { type ControlSocket, type DatabaseMove, serveControlSocket } from "./control-socket.ts";
import { type Replaced, Replacement } from "./replacement.ts";
import type { ServeOptions } from "./serve.ts";

export interface GatewayParts {
  readonly options: ServeOptions;
  readonly log: Log;
  readonly store: Store;
  readonly secretKey: SecretKeyFile;
  readonly control: ControlPlane;
  readonly pool: WorkerPool;
  readonly counts: PersistedCounters;
  /** The listening management API. */
  readonly server: ManagementServer;
  /** Opens its listener again, on the same port. */
  readonly serveApi: () => ManagementServer;
  readonly service: ServiceManager;
  /** Null: this gateway is part of no fleet. */
  readonly follower: Follower | null;
  readonly database: DatabaseMove | null;
  /** Applies the configuration file and its later changes; null: there is none. */
  readonly follow: () => Promise<{ stop(): void } | null>;
}

/** Why changes are paused. */
const UPGRADING = "an upgrade is in progress";

/** Time for requests to the management API to finish after the traffic has ended. */
const MANAGEMENT_GRACE_MS = 500;
/** Time for the database of a fleet to note that this node leaves. */
const FLEET_GRACE_MS = 1500;
/** How often the last use of tokens is written and sessions that ran out are forgotten. */
const MAINTENANCE_MS = 60_000;
/** How long clients have for finding the process that has taken over before this one stops to listen. */
const LINGER_MS = 2000;
/** How long before that all new connections go to one worker of the new process. */
const NARROW_MS = 500;
/** Interval of checks whether another process still listens. */
const ALONE_MS = 50;
/** Time after which the old process has certainly stopped listening. */
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
    const { log, options, service } = parts;
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
      service,
    });
  }

  get replaced(): Promise<Replaced> {
    return this.#replacement.done;
  }

  /** Starts the background tasks. */
  async begin(): Promise<void> {
    const { control, pool, log, options, follow, store, secretKey } = this.#parts;
    this.#file = await follow();
    this.#beginWork();
    pool.unbound.watch(() => control.changes.bindFreePorts());
    // Steering that led connections to this process would otherwise persist for its workers and for the next process.
    if (options.takeOver)
      this.#settled = setTimeout(() => createSteering()?.forget(), SETTLED_MS).unref();
    this.#socket = serveControlSocket({
      dataDir: options.dataDir,
      operations: new Recovery(control, new KeyRotation({ control, key: secretKey, store })),
      log,
      handOver: this.#replacement,
      database: this.#parts.database,
    });
    this.#beginNotifying();
  }

  #beginNotifying(): void {
    const { service, pool } = this.#parts;
    service.notify("READY=1");
    // Workers that are silent are replaced one by one; when none answers, only another process helps.
    service.watch(async () => (await pool.askOne({ kind: "flush" })) !== null);
  }

  /** Waits for requests in flight, then closes everything. */
  async stop(): Promise<void> {
    const { control, pool, counts, store, log, service } = this.#parts;
    service.unwatch();
    service.notify("STOPPING=1");
    this.#replacement.abandon();
    this.#file?.stop();
    const discovered = Promise.all([control.discovery.stop(), control.plugins.directory?.stop()]);
    control.alertEngine.stop();
    this.#parts.follower?.leave();
    const timeoutMs = control.changes.config.settings.limits.shutdown_timeout;
    this.#closeManagement();
    const socketStopped = this.#socket?.stop();
    this.#issuingStopped = control.acme.engine.stop();
    const aborted = await pool.drain(timeoutMs);
    if (aborted > 0)
      log.warn("requests did not finish in time and were aborted", { requests: aborted });
    // An event stream never ends by itself: do not wait for it.
    const stopped = Promise.all([this.#managementStopped, socketStopped]);
    await Promise.race([stopped, Bun.sleep(MANAGEMENT_GRACE_MS)]);
    await Promise.race([this.#issuingStopped, Bun.sleep(MANAGEMENT_GRACE_MS)]);
    await Promise.race([discovered, Bun.sleep(MANAGEMENT_GRACE_MS)]);
    this.#endWork();
    const sent = Promise.all([control.fleetActivity?.stop(), control.observation.stats.sent()]);
    await Promise.race([sent, Bun.sleep(MANAGEMENT_GRACE_MS)]);
    await this.#leaveFleet(false);
    store.close();
    counts.stop();
  }

  /** Drains this process while another one serves new connections. */
  async leave(drainMs: number): Promise<void> {
    const { control, pool, store, log } = this.#parts;
    const steering = this.#steering;
    if (steering?.away() !== true)
      log.warn("connections that open while this process stops listening may be reset");
    setTimeout(() => steering?.toOne(), LINGER_MS - NARROW_MS);
    const cut = await pool.drain(drainMs, { lingerMs: LINGER_MS });
    if (cut > 0) log.warn("requests did not finish in time and were aborted", { requests: cut });
    try {
      // Add the traffic of the drain to the statistics of the new process.
      control.observation.stats.stop();
      control.runMaintenance(true);
    } catch (error) {
      log.warn("the traffic of the drain is missing in the statistics", {
        error,
      });
    }
    await Promise.race([control.observation.stats.sent(), Bun.sleep(MANAGEMENT_GRACE_MS)]);
    await this.#leaveFleet(true);
    store.leave();
  }

  /** A database that is silent, or about to respond, delays the end for no longer. */
  async #leaveFleet(isReplaced: boolean): Promise<void> {
    await Promise.race([this.#parts.follower?.end({ isReplaced }), Bun.sleep(FLEET_GRACE_MS)]);
  }

  #beginWork(): void {
    const { control } = this.#parts;
    this.#maintenance = setInterval(() => control.runMaintenance(), MAINTENANCE_MS);
    control.observation.stats.start();
    control.acme.engine.start();
    control.discovery.start();
    control.plugins.directory?.start();
    control.alertEngine.start();
    control.fleetActivity?.start();
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
    // The process before this one may still listen and would get connections that belong here.
    const end = performance.now() + 2 * LINGER_MS;
    while (steering?.isAlone() === false && performance.now() < end) await Bun.sleep(ALONE_MS);
    await control.changes.turns.pause(UPGRADING);
    const followed = Promise.all([control.discovery.stop(), control.plugins.directory?.stop()]);
    await Promise.race([followed, Bun.sleep(MANAGEMENT_GRACE_MS)]);
    this.#file?.stop();
    control.alertEngine.stop();
    await Promise.race([control.acme.engine.stop(), Bun.sleep(MANAGEMENT_GRACE_MS)]);
    this.#endWork();
    await Promise.race([control.fleetActivity?.stop(), Bun.sleep(MANAGEMENT_GRACE_MS)]);
    await this.#parts.follower?.suspend();
    // What is on its way to the log must not be stored beside the other process.
    if (this.#parts.follower !== null) await control.changes.turns.pause(UPGRADING);
    counts.stop();
    if (this.#settled !== null) clearTimeout(this.#settled);
    // No connection may depend on the new process before it serves.
    this.#steering = steering;
    steering?.keep();
    store.letGo();
  }

  async #resume(): Promise<string | null> {
    const { control, counts, store, follow, log } = this.#parts;
    this.#steering?.forget();
    const problem = reclaim(store, control.changes.revision);
    if (problem !== null) {
      await control.changes.turns.pause(`the configuration cannot be changed: ${problem}`);
      return problem;
    }
    control.changes.turns.resume();
    this.#parts.follower?.resume();
    counts.resume();
    this.#beginWork();
    this.#file = await follow().catch((error: unknown) => {
      log.error("the gateway no longer follows the configuration file", { error });
      return null;
    });
    return null;
  }
}

function reclaim(store: Store, revision: number): string | null {
  try {
    return store.reclaim(revision);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
