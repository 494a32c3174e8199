// Entry of the executable and composition root: puts the parts together and takes them apart again; holds no logic of theirs.
import { join } from "node:path";
import type { ManagementServer } from "./api/server.ts";
import { announce } from "./cli/announce.ts";
import { applyCommand, diffCommand } from "./cli/apply.ts";
import { backupCommand } from "./cli/backup.ts";
import { createCheck } from "./cli/check.ts";
import { followConfigFile } from "./cli/config-file.ts";
import { type ControlSocket, serveControlSocket } from "./cli/control-socket.ts";
import { exportCommand } from "./cli/export.ts";
import { healthcheckCommand } from "./cli/healthcheck.ts";
import { createImport } from "./cli/import.ts";
import { loadApi } from "./cli/management-listener.ts";
import { createOpenOffline } from "./cli/offline.ts";
import { type OpenedState, openState } from "./cli/opened-state.ts";
import { createResetPassword } from "./cli/reset-password.ts";
import { rotateKeyCommand } from "./cli/rotate-key.ts";
import { runCommandLine } from "./cli/run.ts";
import { createServe, type ServeOptions } from "./cli/serve.ts";
import { nextSignal } from "./cli/signals.ts";
import { isExplained, refuse } from "./cli/start-error.ts";
import { createControl } from "./cli/stored-control.ts";
import { createTokenCommand } from "./cli/token.ts";
import { version, versionCommand } from "./cli/version.ts";
import { systemClock } from "./clock.ts";
import type { ControlPlane } from "./control/control-plane.ts";
import { hostWarnings } from "./control/host-warnings.ts";
import { Recovery } from "./control/recovery.ts";
import { loopToken } from "./dataplane/upstream/request-writer.ts";
import { createLog, type Log } from "./log.ts";
import { catalogueOf, loadPlugins } from "./pdk/catalogue.ts";
import { pluginFiles } from "./plugins/index.ts";
import { CounterTable } from "./shared-memory/counter-table.ts";
import { RequestRing } from "./shared-memory/request-ring.ts";
import { TargetBoard } from "./shared-memory/target-board.ts";
import { TrafficMetrics } from "./shared-memory/traffic-metrics.ts";
import { WorkerBoard } from "./shared-memory/worker-board.ts";
import { AcmeStateTable } from "./store/acme.ts";
import { keepCounts } from "./store/counter-file.ts";
import type { Store } from "./store/store.ts";
import { probeNewPorts } from "./supervisor/port-probe.ts";
import { createRollout } from "./supervisor/rollout.ts";
import { WorkerPool } from "./supervisor/worker-pool.ts";

const clock = systemClock;
const catalogue = catalogueOf(await loadPlugins(pluginFiles));

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
  const gateway = await startGateway(options, log).catch((error) => {
    if (isExplained(error)) log.error(error.message);
    else log.error("the gateway could not start", { error });
    return null;
  });
  if (gateway === null) return 1;
  log.info("stopping", { signal: await nextSignal() });
  await gateway.stop();
  log.info("stopped");
  return 0;
}

interface Gateway {
  /** Lets requests in flight end, then closes everything. */
  stop(): Promise<void>;
}

/** How long requests to the management API may still take when traffic has ended. */
const MANAGEMENT_GRACE_MS = 500;

/** How often the last use of tokens is written and sessions that ran out are forgotten. */
const UPKEEP_MS = 60_000;

async function startGateway(options: ServeOptions, log: Log): Promise<Gateway> {
  const { dataDir, workers } = options;
  const state = await openState(options, { clock, log, plugins: catalogue });
  const { store, stored, management } = state;
  refuse(await probeNewPorts(null, state.current.snapshot));
  const memory = createMemory(state, options);
  const counts = keepCounts(memory.counters, { dataDir, log });
  const { pool, control } = createPlanes({ state, options, memory, log });
  const started = pool.start();
  const serveApi = await loadApi({
    ...{ control, admin: options.admin, adminTls: state.adminTls, clock, log },
    loopToken: loopToken(stored.instanceId),
  });
  refuse(await started);
  const server = serveApi();
  management.port = server.port;
  // In the same turn in which the API begins to listen, so that no change comes before it; and not earlier, because a first
  // start that fails must leave the next one free to choose other ports.
  if (store.isEmpty()) store.begin(stored.config, firstEntry());
  const file = await followFile(options, control, log);
  const upkeep = setInterval(() => control.keepUp(), UPKEEP_MS);
  control.observation.stats.start();
  const socket = serveControlSocket({ dataDir, operations: new Recovery(control), log });
  announce(
    { version, dataDir, management: server.url, config: control.changes.config, workers },
    log,
  );
  for (const warning of hostWarnings(stored.config)) log.warn(warning);
  control.acme.engine.start();
  control.alertEngine.start();
  const stop = () => {
    file?.stop();
    return stopGateway({ server, socket, upkeep, pool, store, control }, log).then(counts.stop);
  };
  return { stop };
}

/** What both planes read and write. */
function createMemory({ stored }: OpenedState, { workers }: ServeOptions) {
  const { retention, limits } = stored.config.settings;
  return {
    targets: TargetBoard.create(workers),
    board: WorkerBoard.create(workers),
    traffic: TrafficMetrics.create(workers),
    targetTraffic: TrafficMetrics.create(workers),
    requests: retention.requests === 0 ? null : RequestRing.create(retention.requests),
    counters: CounterTable.create({ keys: limits.counter_keys, workers }),
  };
}

interface PlaneParts {
  readonly state: OpenedState;
  readonly options: ServeOptions;
  readonly memory: ReturnType<typeof createMemory>;
  readonly log: Log;
}

function createPlanes({ state, options, memory, log }: PlaneParts) {
  const { store, box, stored, current, context } = state;
  const { dnsServers, dnsPrograms, workers } = options;
  const pool = new WorkerPool({
    url: new URL("./worker.ts", import.meta.url),
    workers,
    instanceId: stored.instanceId,
    stickyKey: box.derive("sticky cookies"),
    pluginKey: box.derive("plugins"),
    logPlaces: { directory: join(options.dataDir, "logs"), elsewhere: options.logDir },
    dnsServers,
    ...memory,
    used: (credentialIds) => control.credentialUse.touch(credentialIds),
    wanted: (name) => control.acme.engine.wanted(name),
    happened: (happening) => control.tellOfWorker(happening),
    log,
    snapshot: current.snapshot,
  });
  const control = createControl(store, {
    ...{ box, log, clock, current, context, dnsServers, dnsPrograms, plugins: catalogue },
    rollout: createRollout(pool),
    targetBoard: memory.targets,
    acme: {
      store: store.with((tables) => new AcmeStateTable(tables)),
      show: (challenges) => pool.showChallenges(challenges),
    },
    askWorkers: (question) => pool.ask(question),
    askWorker: (question) => pool.askOne(question),
    tellWorkers: (question) => pool.tell(question),
    observed: {
      ...memory,
      useRequests: (ring) => {
        pool.requests = ring;
      },
      flush: async () => void (await pool.ask({ kind: "flush" })),
      states: () => pool.states(),
      plugins: [...catalogue.keys()],
      version,
    },
  });
  return { pool, control };
}

const firstEntry = () => ({
  at: new Date(clock.now()).toISOString(),
  actor: "sluice",
  summary: "first start",
});

async function followFile({ config: path }: ServeOptions, control: ControlPlane, log: Log) {
  const passphrase = process.env["SLUICE_PASSPHRASE"] ?? "";
  return path === null ? null : await followConfigFile({ path, control, log, passphrase });
}

async function stopGateway(
  { server, socket, upkeep, pool, store, control }: Parts,
  log: Log,
): Promise<void> {
  control.alertEngine.stop();
  const timeoutMs = control.changes.config.settings.limits.shutdown_timeout;
  const managementStopped = Promise.all([server.stop(), socket?.stop()]);
  const issuingStopped = control.acme.engine.stop();
  const aborted = await pool.drain(timeoutMs);
  if (aborted > 0) log.warn("requests did not end in time and were cut", { requests: aborted });
  // An event stream never ends by itself: nobody waits for it.
  await Promise.race([managementStopped, Bun.sleep(MANAGEMENT_GRACE_MS)]);
  await Promise.race([issuingStopped, Bun.sleep(MANAGEMENT_GRACE_MS)]);
  clearInterval(upkeep);
  control.keepUp();
  control.observation.stats.stop();
  control.audit.flush(true);
  store.close();
}

interface Parts {
  readonly server: ManagementServer;
  readonly socket: ControlSocket | null;
  readonly upkeep: ReturnType<typeof setInterval>;
  readonly pool: WorkerPool;
  readonly store: Store;
  readonly control: ControlPlane;
}

const openOffline = createOpenOffline(catalogue);

process.exit(
  await runCommandLine(process.argv.slice(2), [
    createServe(serve),
    createCheck(catalogue),
    healthcheckCommand,
    createResetPassword(openOffline),
    createTokenCommand(openOffline),
    rotateKeyCommand,
    backupCommand,
    exportCommand,
    createImport(catalogue),
    diffCommand,
    applyCommand,
    versionCommand,
  ]),
);
