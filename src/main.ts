// Entry of the executable and composition root: creates, connects and stops the parts; has no logic of its own.
import "./supervisor/engine-settings.ts";
import { join } from "node:path";
import { parseJson } from "./api/json-body.ts";
import { storeFirstAdmin } from "./auth/first-admin.ts";
import { announce, announceAdmin } from "./cli/announce.ts";
import { applyCommand, diffCommand } from "./cli/apply.ts";
import { backupCommand } from "./cli/backup.ts";
import { createCheck } from "./cli/check.ts";
import { followConfigFile } from "./cli/config-file.ts";
import { exportCommand } from "./cli/export.ts";
import { fleetCommand } from "./cli/fleet.ts";
import { warnAboutPassword } from "./cli/counter-flags.ts";
import { createNode, foundFleet } from "./cli/fleet-node.ts";
import { hashPasswordCommand } from "./cli/hash-password.ts";
import { healthcheckCommand } from "./cli/healthcheck.ts";
import { createImport } from "./cli/import.ts";
import { replayCommand } from "./cli/replay.ts";
import { warnAboutAccess } from "./cli/management-access.ts";
import { createListenersCommand } from "./cli/listeners.ts";
import { listen, loadApi } from "./cli/management-listener.ts";
import { createOpenOffline } from "./cli/offline.ts";
import type { OpenedState } from "./cli/opened-state.ts";
import { createPluginCommand } from "./cli/plugin.ts";
import type { Replaced } from "./cli/replacement.ts";
import { createResetAdminNetworks } from "./cli/reset-admin-networks.ts";
import { createResetPassword } from "./cli/reset-password.ts";
import { createRotateKey } from "./cli/rotate-key.ts";
import { runCommandLine } from "./cli/run.ts";
import { RunningGateway } from "./cli/running-gateway.ts";
import { createSchemaCommand } from "./cli/schema.ts";
import { configFilesOf, createServe, type ServeOptions } from "./cli/serve.ts";
import { nextSignal } from "./cli/signals.ts";
import { diskProblem, isExplained, refuse } from "./cli/start-error.ts";
import { createControl } from "./cli/stored-control.ts";
import { TakeOver } from "./cli/take-over.ts";
import { createTokenCommand } from "./cli/token.ts";
import { createTrustCommand, createUntrustCommand } from "./cli/trust.ts";
import { upgradeCommand } from "./cli/upgrade.ts";
import { version, versionCommand } from "./cli/version.ts";
import { openTried, workerKeys, workerStart } from "./cli/worker-start.ts";
import { systemClock } from "./clock.ts";
import type { ControlPlane } from "./control-plane.ts";
import { hostWarnings } from "./control/host-warnings.ts";
import { createCallout } from "./dataplane/plugin/callout.ts";
import { loopToken } from "./http/cdn-loop.ts";
import { watchGarbage } from "./garbage.ts";
import { createLog, type Log } from "./log.ts";
import { catalogueOf, loadPlugins } from "./pdk/catalogue.ts";
import { pluginFiles } from "./plugins/index.ts";
import { openPlugins } from "./cli/plugins-dir.ts";
import type { PluginDirectory } from "./plugin-directory/plugin-directory.ts";
import { CounterTable } from "./shared-memory/counter-table.ts";
import { RequestRing } from "./shared-memory/request-ring.ts";
import { TargetBoard } from "./shared-memory/target-board.ts";
import { TrafficMetrics } from "./shared-memory/traffic-metrics.ts";
import { WorkerBoard } from "./shared-memory/worker-board.ts";
import { AcmeStateTable } from "./store/acme.ts";
import { persistCounters } from "./store/counter-file.ts";
import { CacheDirectories } from "./supervisor/cache-directories.ts";
import { giveBackProgramLater } from "./supervisor/program-pages.ts";
import { createRollout } from "./supervisor/rollout.ts";
import { ServiceManager } from "./supervisor/service-manager.ts";
import { PressureWatch } from "./supervisor/pressure-watch.ts";
import { createSteering } from "./supervisor/port-steering.ts";
import { placesFor } from "./supervisor/retiring-worker.ts";
import { UnboundPorts } from "./supervisor/unbound-ports.ts";
import { WorkerPool } from "./supervisor/worker-pool.ts";
import { renewWorkers } from "./supervisor/worker-renewal.ts";

const clock = systemClock;
const workerUrl = new URL("./worker.ts", import.meta.url);
const readerUrl = new URL("./plugin-reader.ts", import.meta.url);
/** The built-in plugins, and those of the directory while the gateway serves. */
const catalogue = new Map(catalogueOf(await loadPlugins(pluginFiles)));

async function serve(options: ServeOptions): Promise<number> {
  const terminal = process.stderr.isTTY;
  const log = createLog({
    level: options.logLevel,
    format: terminal ? "text" : "json",
    color: terminal && !process.env["NO_COLOR"],
    sink: (line) => void process.stderr.write(line),
  });
  warnAboutPassword(options.words, log);
  // Bun.SQL writes there while the database is away.
  if (options.fleet !== null) console.warn = (...words: unknown[]) => log.debug(words.join(" "));
  process.on("unhandledRejection", (error) => log.error("a promise was rejected", { error }));
  process.on("uncaughtException", (error) => {
    log.error("an unexpected error ended the gateway", { error });
    process.exit(1);
  });
  const gateway = await startGateway(options, log).catch(async (error: unknown) => {
    const problem = isExplained(error) ? error.message : diskProblem(error, options.dataDir);
    if (problem !== null) log.error(problem);
    else log.error("the gateway could not start", { error });
    if (options.takeOver) await TakeOver.fail(options.dataDir, reasonOf(error));
    return null;
  });
  if (gateway === null) return 1;
  const signal = nextSignal();
  const replaced = await Promise.race([signal, gateway.replaced]);
  if (typeof replaced === "string") {
    log.info("stopping", { signal: replaced });
    await gateway.stop();
  } else {
    const { pid, version } = replaced;
    log.info("another process serves; requests in flight may end", { pid, version });
    // A signal now ends this process at once: the other one serves.
    await Promise.race([gateway.leave(replaced.drainMs), signal]);
  }
  log.info("stopped");
  return 0;
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

interface Gateway {
  /** Waits for requests in flight, then closes everything. */
  stop(): Promise<void>;
  /** Resolves when another process serves in its place. */
  readonly replaced: Promise<Replaced>;
  /** The same as `stop`, after another process has taken over. */
  leave(drainMs: number): Promise<void>;
}

async function startGateway(options: ServeOptions, log: Log): Promise<Gateway> {
  const { dataDir, workers } = options;
  // Before another process pauses its changes for this one.
  const pluginDirectory = await openPlugins(options, { url: readerUrl, catalogue, clock, log });
  const former = options.takeOver ? await TakeOver.begin({ dataDir, version, log }) : null;
  const by = { pluginDirectory, log, unbound: new UnboundPorts({ log }) };
  const tried = { ...by, options, plugins: catalogue, url: workerUrl, isAlone: former === null };
  const state = await openTried(tried, clock);
  const { store, stored, management } = state;
  const memory = createMemory(state, options, { isHandedOver: former !== null, log });
  const counts = persistCounters(memory.counters, { dataDir, log });
  const absentMs = () => control.changes.config.settings.fleet.absent_after;
  const fleet = createNode(state, options, { clock, log, absentMs, pluginDirectory });
  const { pool, control } = createPlanes({ ...by, state, options, memory, fleet });
  const mayChange = Promise.withResolvers<void>();
  control.changes.turns.holdUntil(mayChange.promise);
  const started = pool.start();
  if (management.port === 0) management.port = former?.managementPort ?? 0;
  const serveApi = await loadApi({
    control,
    admin: management,
    adminTls: state.adminTls,
    clock,
    log,
    loopToken: loopToken(stored.instanceId),
  });
  refuse(await started);
  await addFirstAdmin(state, control, () => mayChange.resolve());
  const isReachable = await state.membership?.joined();
  const server = await listen(serveApi, {
    management,
    log,
    isHeldBack: state.adminAccess.heldBack !== null,
    retry: former === null ? null : (bind) => former.bindManagement(bind),
  });
  management.port = server.port;
  pool.useManagement(control.managementAddresses());
  // In the same turn in which the API starts to listen, so that no change comes before it; not earlier, because the next start
  // must be free to choose other ports when the first one fails.
  if (fleet !== null) await foundFleet(state, firstEntry);
  if (store.isEmpty()) store.begin(stored.config, firstEntry());
  if (state.firstAdmin !== null) announceAdmin(state.firstAdmin, log);
  await former?.finish();
  mayChange.resolve();
  await fleet?.follower.begin({ ...control, store: fleet.store }, isReachable);
  const running = new RunningGateway({
    service: ServiceManager.open(process.env),
    options,
    log,
    store,
    secretKey: state.secretKey,
    control,
    pool,
    counts,
    server,
    serveApi,
    follow: () => followFile(options, control, log),
    follower: fleet?.follower ?? null,
    database: fleet?.database(control.changes.turns) ?? null,
  });
  await running.begin();
  announce({ version, dataDir, management: server.url, control, workers }, log);
  for (const warning of hostWarnings(stored.config)) log.warn(warning);
  warnAboutAccess(control.adminNetworks, control.changes.config.settings, log);
  watchMemory(memory, control, log);
  return running;
}

/** A new configuration has the user already. `allowChanges`: no other process serves that could make one. */
async function addFirstAdmin(
  { firstAdmin, store }: OpenedState,
  { changes }: ControlPlane,
  allowChanges: () => void,
): Promise<void> {
  if (firstAdmin === null || store.isEmpty()) return;
  allowChanges();
  await storeFirstAdmin(changes, firstAdmin);
}

function watchMemory({ board }: PlaneParts["memory"], control: ControlPlane, log: Log): void {
  new PressureWatch({
    board,
    log,
    maxMemoryBytes: () => control.changes.config.settings.limits.max_memory_bytes,
    onEvent: (event) => control.pressure.report(event),
  }).start();
  watchGarbage();
  giveBackProgramLater();
}

/** Memory that both planes read and write, and the directories of stores in it. */
function createMemory(
  { stored }: OpenedState,
  { workers, dataDir }: ServeOptions,
  by: { readonly isHandedOver: boolean; readonly log: Log },
) {
  const { retention, limits } = stored.config.settings;
  const places = placesFor(workers);
  return {
    targets: TargetBoard.create(places),
    board: WorkerBoard.create(places),
    traffic: TrafficMetrics.create(places),
    targetTraffic: TrafficMetrics.create(places),
    requests: retention.requests === 0 ? null : RequestRing.create(retention.requests),
    cacheDirectories: new CacheDirectories({ root: join(dataDir, "cache"), ...by }),
    counters: CounterTable.create({ keys: limits.counter_keys, workers: places }),
  };
}

interface PlaneParts {
  readonly state: OpenedState;
  readonly options: ServeOptions;
  readonly memory: ReturnType<typeof createMemory>;
  readonly log: Log;
  readonly fleet: ReturnType<typeof createNode>;
  readonly pluginDirectory: PluginDirectory;
  readonly unbound: UnboundPorts;
}

function createPlanes(parts: PlaneParts) {
  const { state, options, memory, log, fleet, pluginDirectory, unbound } = parts;
  const { store, box, stored, current, context, adminAccess } = state;
  const { dnsServers, dnsPrograms, workers } = options;
  const pool = new WorkerPool({
    url: workerUrl,
    workers,
    ...workerStart(state, options),
    managementAddresses: () => context().managementAddresses,
    ...memory,
    definitionOf: (name) => catalogue.get(name),
    callout: createCallout({
      loopToken: loopToken(stored.instanceId),
      rules: () => control.changes.destinationRules(),
    }),
    onCredentialsUsed: (credentialIds) => control.credentialUse.touch(credentialIds),
    onUnknownName: (name) => control.acme.engine.wanted(name),
    onWorkerEvent: (event) => control.onWorkerEvent(event),
    onPluginBlocked: (number) => pluginDirectory.noteBlocked(number),
    log,
    snapshot: current.snapshot,
    unbound,
  });
  followKey(state, pool, log);
  const control = createControl(store, {
    box,
    log,
    clock,
    current,
    context,
    dnsServers,
    dnsPrograms,
    configFiles: configFilesOf(options, parseJson),
    plugins: catalogue,
    pluginDirectory,
    adminAccess,
    importerUrl: new URL("./importer.ts", import.meta.url),
    regexCheckerUrl: new URL("./regex-checker.ts", import.meta.url),
    rollout: createRollout(pool),
    instanceId: state.membership?.codec.fleetId ?? store.instanceId,
    ...inFleet(fleet),
    targetBoard: memory.targets,
    acme: {
      store: store.with((tables) => new AcmeStateTable(tables)),
      show: (challenges) => pool.showChallenges(challenges),
    },
    askWorkers: (question) => pool.ask(question),
    askWorker: (question) => pool.askOne(question),
    purgeCaches: (plugin, which, how) => pool.caches.purge(plugin, which, how),
    observed: observedWorkers({ options, memory }, pool),
  });
  // The share of this node in limits, while their server is away.
  fleet?.follower.onBeat(() => {
    if (options.counters === null) return;
    const { live, nodes } = fleet.view.status();
    memory.board.nodes = live ?? nodes;
  });
  pluginDirectory.attach({ ...control, renewWorkers: renewalOf(pool, control, log) });
  control.sessions.followHashes((hash, isLive) => pool.changeSession(hash, isLive));
  return { pool, control };
}

/** Replaces the threads of all workers one by one. */
const renewalOf =
  (pool: WorkerPool, { changes }: ControlPlane, log: Log) =>
  () =>
    renewWorkers({
      pool,
      log,
      alone: (work) => changes.turns.runOpen(work),
      drainMs: () => changes.config.settings.limits.worker_drain_timeout,
      steering: createSteering(),
    });

/** What the workers show of themselves. */
const observedWorkers = (
  { options, memory }: Pick<PlaneParts, "options" | "memory">,
  pool: WorkerPool,
) => ({
  ...memory,
  hasSharedCounters: options.counters !== null,
  useRequests: (ring: RequestRing | null) => {
    pool.requests = ring;
  },
  flush: async () => void (await pool.ask({ kind: "flush" })),
  states: () => pool.states(),
  caches: () => pool.caches.counts(),
  plugins: [...catalogue.keys()],
  version,
});

const inFleet = (fleet: PlaneParts["fleet"]) =>
  fleet === null
    ? {}
    : {
        store: fleet.store,
        fleet: fleet.view,
        duty: fleet.duty,
        sharedRollups: fleet.rollups,
        nodePlugins: fleet.plugins,
      };

/** Workers get what is derived from another secret key. */
function followKey({ box, secretKey: { source } }: OpenedState, pool: WorkerPool, log: Log): void {
  box.onReplaced(() => {
    pool.useKeys(workerKeys(box));
    const { keyId: key } = box;
    if (source === "file") log.info("the secret key was replaced", { key });
    else log.warn("the secret key was replaced: the next start needs the new one", { key });
  });
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

const openOffline = createOpenOffline(catalogue);

process.exit(
  await runCommandLine(process.argv.slice(2), [
    createServe(serve),
    createCheck(catalogue, readerUrl),
    healthcheckCommand,
    createResetPassword(openOffline),
    hashPasswordCommand,
    createResetAdminNetworks(openOffline),
    createListenersCommand(openOffline),
    createTokenCommand(openOffline),
    createTrustCommand(openOffline),
    createUntrustCommand(openOffline),
    createRotateKey(openOffline),
    fleetCommand,
    backupCommand,
    exportCommand,
    createImport(catalogue),
    replayCommand,
    createSchemaCommand(catalogue),
    createPluginCommand({ catalogue, url: readerUrl }),
    diffCommand,
    applyCommand,
    upgradeCommand,
    versionCommand,
  ]),
);
