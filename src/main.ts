// Entry of the executable and composition root: puts the parts together and takes them apart again; holds no logic of theirs.
import { checkCommand } from "./cli/check.ts";
import { announce } from "./cli/announce.ts";
import { formatAddress } from "./cli/flags.ts";
import { firstListeners, warnAboutIgnoredFlags } from "./cli/first-start.ts";
import { isLoopback } from "./cli/loopback.ts";
import { runCommandLine } from "./cli/run.ts";
import { createServe, type ServeOptions } from "./cli/serve.ts";
import { nextSignal } from "./cli/signals.ts";
import { version, versionCommand } from "./cli/version.ts";
import { systemClock } from "./clock.ts";
import { type ChangeContext, compileStored, createControlPlane } from "./control/control-plane.ts";
import { fieldChecks } from "./control/field-checks.ts";
import { loadDefaultCertificate } from "./crypto/default-certificate.ts";
import { createLog, type Log } from "./log.ts";
import { WorkerBoard } from "./shared-memory/worker-board.ts";
import type { Compiled } from "./snapshot/compile.ts";
import { StoreError } from "./store/error.ts";
import { firstConfiguration } from "./store/first-configuration.ts";
import { Store, type StoredState } from "./store/store.ts";
import { probeNewPorts } from "./supervisor/port-probe.ts";
import { createRollout } from "./supervisor/rollout.ts";
import { WorkerPool } from "./supervisor/worker-pool.ts";

const clock = systemClock;

async function serve(options: ServeOptions): Promise<number> {
  const terminal = process.stderr.isTTY;
  const log = createLog({
    level: options.logLevel,
    format: terminal ? "text" : "json",
    colour: terminal && !process.env["NO_COLOR"],
    sink: (line) => void process.stderr.write(line),
  });
  process.on("unhandledRejection", (error) => log.error("a promise was rejected", { error }));
  process.on("uncaughtException", (error) => {
    log.error("an unexpected error ended the gateway", { error });
    process.exit(1);
  });
  try {
    const gateway = await startGateway(options, log);
    const signal = await nextSignal();
    log.info("stopping", { signal });
    await gateway.stop();
    log.info("stopped");
    return 0;
  } catch (error) {
    if (error instanceof StartError || error instanceof StoreError) log.error(error.message);
    else log.error("the gateway could not start", { error });
    return 1;
  }
}

/** A reason not to start that the person who starts can do something about. */
class StartError extends Error {}

interface Gateway {
  /** Lets requests in flight end, then closes everything. */
  stop(): Promise<void>;
}

async function startGateway(options: ServeOptions, log: Log): Promise<Gateway> {
  refuseOpenManagement(options);
  const store = openStore(options, log);
  const { dataDir } = options;
  const stored = store.load();
  warnAboutIgnoredFlags(options, stored.config, log);
  const tls = await loadDefaultCertificate({ dataDir, now: clock.now(), log });
  let adminPort = options.admin.port;
  const context = (): ChangeContext => ({
    tls,
    checks: fieldChecks,
    managementAddresses:
      adminPort === 0 ? [] : [{ address: options.admin.hostname, port: adminPort }],
  });
  const current = compileOrRefuse(stored, context());
  const [taken] = probeNewPorts(null, current.snapshot);
  if (taken !== undefined) throw new StartError(taken.message);

  const board = WorkerBoard.create(options.workers);
  const pool = new WorkerPool({
    url: new URL("./worker.ts", import.meta.url),
    workers: options.workers,
    instanceId: stored.instanceId,
    board,
    log,
    snapshot: current.snapshot,
  });
  const rollout = createRollout(pool);
  const control = createControlPlane({ store, rollout, clock, log, current, context });
  const started = pool.start();
  // Loaded while the workers start in their own threads: the API is the slowest part to load.
  const { createManagementApi, serveManagementApi } = await import("./api/server.ts");
  const boundHost = options.admin.hostname;
  const api = createManagementApi({
    control,
    clock,
    log,
    version,
    startedAt: clock.now(),
    boundHost,
  });
  const [refused] = await started;
  if (refused !== undefined) throw new StartError(refused.message);
  const server = serveManagementApi(api, options.admin);
  adminPort = server.port;
  announce({ version, dataDir, management: server.url, config: stored.config, options }, log);
  return {
    async stop() {
      const timeoutMs = control.changes.config.settings.limits.shutdown_timeout;
      const managementStopped = server.stop();
      const aborted = await pool.drain(timeoutMs);
      if (aborted > 0) log.warn("requests did not end in time and were cut", { requests: aborted });
      // An event stream never ends by itself: nobody waits longer for it than for traffic.
      await Promise.race([managementStopped, Bun.sleep(100)]);
      store.close();
    },
  };
}

function compileOrRefuse(stored: StoredState, context: ChangeContext): Compiled {
  try {
    return compileStored(stored, context);
  } catch (error) {
    throw new StartError((error as Error).message, { cause: error });
  }
}

function openStore({ dataDir, http, https }: ServeOptions, log: Log): Store {
  const store = Store.open({ dataDir, log });
  if (!store.isEmpty()) return store;
  const at = new Date(clock.now()).toISOString();
  store.commit({
    revision: 1,
    change: firstConfiguration(firstListeners({ http, https }), at),
    entry: { at, actor: "sluice", summary: "first start" },
  });
  return store;
}

/** Without users everybody who reaches the management API may do everything. */
function refuseOpenManagement({ admin, allowUnauthenticatedRemote }: ServeOptions): void {
  if (isLoopback(admin.hostname) || allowUnauthenticatedRemote) return;
  throw new StartError(
    `--admin ${formatAddress(admin)} can be reached from other machines, and no user exists yet, so anybody could ` +
      "change the configuration; listen on 127.0.0.1, or give --allow-unauthenticated-remote if another guard is in place",
  );
}

process.exit(
  await runCommandLine(process.argv.slice(2), [createServe(serve), checkCommand, versionCommand]),
);
