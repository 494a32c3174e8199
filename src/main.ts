// Entry of the executable and composition root: puts the parts together and takes them apart again; holds no logic of theirs.
import { join } from "node:path";
import { AdminTlsError, loadAdminTls } from "./cli/admin-tls.ts";
import { applyCommand, diffCommand } from "./cli/apply.ts";
import { announce } from "./cli/announce.ts";
import { createCheck } from "./cli/check.ts";
import { declaresListeners, followConfigFile, readConfigFile } from "./cli/config-file.ts";
import { type ControlSocket, serveControlSocket } from "./cli/control-socket.ts";
import { type Address, formatAddress } from "./cli/flags.ts";
import { exportCommand } from "./cli/export.ts";
import { firstListeners, warnAboutIgnoredFlags } from "./cli/first-start.ts";
import { createImport } from "./cli/import.ts";
import { idleRollout, type OpenOffline } from "./cli/local-command.ts";
import { isLoopback } from "./cli/loopback.ts";
import { reachableAt } from "./cli/own-addresses.ts";
import { CommandError } from "./cli/management-client.ts";
import { createResetPassword } from "./cli/reset-password.ts";
import { rotateKeyCommand } from "./cli/rotate-key.ts";
import { runCommandLine } from "./cli/run.ts";
import { createServe, type ServeOptions } from "./cli/serve.ts";
import { nextSignal } from "./cli/signals.ts";
import { createTokenCommand } from "./cli/token.ts";
import { version, versionCommand } from "./cli/version.ts";
import { systemClock } from "./clock.ts";
import type { ManagementServer } from "./api/server.ts";
import {
  type ChangeContext,
  compileStored,
  type ControlPlane,
  type ControlPlaneOptions,
  createControlPlane,
} from "./control/control-plane.ts";
import { fieldChecks } from "./control/field-checks.ts";
import { hostWarnings } from "./control/host-warnings.ts";
import { Recovery } from "./control/recovery.ts";
import { openSecretBox } from "./control/sealing.ts";
import { loadDefaultCertificate } from "./crypto/default-certificate.ts";
import type { KeyPair } from "./crypto/x509.ts";
import { loopToken } from "./dataplane/upstream/request-writer.ts";
import { createLog, type Log } from "./log.ts";
import { ApiError, type Issue } from "./model/error.ts";
import { catalogueOf } from "./pdk/catalogue.ts";
import { plugins } from "./plugins/index.ts";
import { RequestRing } from "./shared-memory/request-ring.ts";
import { CounterTable } from "./shared-memory/counter-table.ts";
import { TargetBoard } from "./shared-memory/target-board.ts";
import { TrafficMetrics } from "./shared-memory/traffic-metrics.ts";
import { WorkerBoard } from "./shared-memory/worker-board.ts";
import type { Compiled } from "./snapshot/compile.ts";
import { StoreError } from "./store/error.ts";
import { AcmeStateTable } from "./store/acme.ts";
import { keepCounts } from "./store/counter-file.ts";
import { CredentialUseTable } from "./store/credentials.ts";
import { emptyConfiguration, firstConfiguration } from "./store/first-configuration.ts";
import { RevisionTable } from "./store/revisions.ts";
import { RollupTable } from "./store/rollups.ts";
import { SessionTable } from "./store/sessions.ts";
import { Store, type StoredState } from "./store/store.ts";
import { TotpTable } from "./store/totp.ts";
import { TokenTable } from "./store/tokens.ts";
import { probeNewPorts } from "./supervisor/port-probe.ts";
import { createRollout } from "./supervisor/rollout.ts";
import { WorkerPool } from "./supervisor/worker-pool.ts";

const clock = systemClock;
const catalogue = catalogueOf(plugins);

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

/** A reason not to start that the person who starts can do something about. */
class StartError extends Error {}

const isExplained = (error: unknown): error is Error =>
  [StartError, StoreError, ApiError, AdminTlsError, CommandError].some(
    (known) => error instanceof known,
  );

interface Gateway {
  /** Lets requests in flight end, then closes everything. */
  stop(): Promise<void>;
}

/** How long requests to the management API may still take when traffic has ended. */
const MANAGEMENT_GRACE_MS = 500;

/** How often the last use of tokens is written and sessions that ran out are forgotten. */
const UPKEEP_MS = 60_000;

async function startGateway(options: ServeOptions, log: Log): Promise<Gateway> {
  const { dataDir, admin, workers } = options;
  // Before there is a data directory, so that a first start that is refused leaves none behind.
  if (!Store.isThere(dataDir)) refuseOpenManagement(options, 0);
  const adminTls = options.adminTls === null ? null : loadAdminTls(options.adminTls, clock.now());
  const store = Store.open({ dataDir, log });
  const box = openSecretBox({ dataDir, env: process.env, keyIds: store.sealedKeyIds() });
  const stored = loadOrMake(store, options, log);
  refuseOpenManagement(options, stored.config.users.size);
  const tls = await loadDefaultCertificate({ dataDir, now: clock.now(), log });
  const management = { ...admin };
  const context = (): ChangeContext => ({
    tls,
    checks: fieldChecks,
    plugins: catalogue,
    managementAddresses: management.port === 0 ? [] : reachableAt(management),
    openSealed: (sealed) => box.open(sealed),
  });
  const current = compileOrRefuse(stored, context());
  refuse(await probeNewPorts(null, current.snapshot));

  const targetBoard = TargetBoard.create(workers);
  const board = WorkerBoard.create(workers);
  const traffic = TrafficMetrics.create(workers);
  const targetTraffic = TrafficMetrics.create(workers);
  const { retention, limits } = stored.config.settings;
  const requests = retention.requests === 0 ? null : RequestRing.create(retention.requests);
  const counters = CounterTable.create({ keys: limits.counter_keys, workers });
  const counts = keepCounts(counters, { dataDir, log });
  const pool = new WorkerPool({
    url: new URL("./worker.ts", import.meta.url),
    workers,
    instanceId: stored.instanceId,
    stickyKey: box.derive("sticky cookies"),
    pluginKey: box.derive("plugins"),
    logPlaces: { directory: join(dataDir, "logs"), elsewhere: options.logDir },
    counters,
    dnsServers: options.dnsServers,
    board,
    targets: targetBoard,
    traffic,
    targetTraffic,
    requests,
    used: (credentialIds) => control.credentialUse.touch(credentialIds),
    wanted: (name) => control.acme.engine.wanted(name),
    happened: (happening) => control.tellOfWorker(happening),
    log,
    snapshot: current.snapshot,
  });
  const rollout = createRollout(pool);
  const control = createControl(store, {
    box,
    rollout,
    targetBoard,
    log,
    current,
    context,
    dnsServers: options.dnsServers,
    dnsPrograms: options.dnsPrograms,
    acme: {
      store: store.with((tables) => new AcmeStateTable(tables)),
      show: (challenges) => pool.showChallenges(challenges),
    },
    askWorkers: (question) => pool.ask(question),
    askWorker: (question) => pool.askOne(question),
    observed: {
      traffic,
      targetTraffic,
      board,
      requests,
      useRequests: (ring) => {
        pool.requests = ring;
      },
      flush: async () => void (await pool.ask({ kind: "flush" })),
      states: () => pool.states(),
      plugins: [...catalogue.keys()],
      version,
    },
  });
  const started = pool.start();
  const serveApi = await loadApi({
    ...{ control, admin, adminTls, log },
    instanceId: stored.instanceId,
  });
  refuse(await started);
  const server = serveApi();
  management.port = server.port;
  // In the same turn in which the API begins to listen, so that no change comes before it; and not earlier, because a first
  // start that fails must leave the next one free to choose other ports.
  if (store.isEmpty()) store.begin(stored.config, entryOf("first start"));
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
  const stop = () => {
    file?.stop();
    return stopGateway({ server, socket, upkeep, pool, store, control }, log).then(counts.stop);
  };
  return { stop };
}

async function followFile({ config: path }: ServeOptions, control: ControlPlane, log: Log) {
  const passphrase = process.env["SLUICE_PASSPHRASE"] ?? "";
  return path === null ? null : await followConfigFile({ path, control, log, passphrase });
}

/** Everything that is kept in the store, and what differs between serving it and repairing it. */
function createControl(
  store: Store,
  parts: Pick<
    ControlPlaneOptions,
    | "box"
    | "rollout"
    | "targetBoard"
    | "log"
    | "current"
    | "context"
    | "acme"
    | "askWorkers"
    | "dnsServers"
    | "dnsPrograms"
    | "askWorker"
    | "observed"
  >,
): ControlPlane {
  return createControlPlane({
    ...parts,
    store,
    clock,
    auditStore: store.audit,
    totpStore: store.with((context) => new TotpTable(context)),
    sessionStore: store.with((context) => new SessionTable(context)),
    tokenStore: store.with((context) => new TokenTable(context)),
    revisionStore: store.with((context) => new RevisionTable(context)),
    credentialUseStore: store.with((context) => new CredentialUseTable(context)),
    rollupStore: store.with((context) => new RollupTable(context)),
    plugins: catalogue,
  });
}

/** The data directory for a command that repairs it, while nobody serves it. */
const openOffline: OpenOffline = (dataDir) => {
  const sink = (line: string) => void process.stderr.write(line);
  const log = createLog({ level: "warn", format: "text", sink });
  const store = Store.open({ dataDir, log });
  try {
    const box = openSecretBox({ dataDir, env: process.env, keyIds: store.sealedKeyIds() });
    const context = (): ChangeContext => ({
      tls: { cert: "", key: "" },
      checks: fieldChecks,
      plugins: catalogue,
      managementAddresses: [],
      openSealed: (sealed) => box.open(sealed),
    });
    const current = compileStored(store.load(), context());
    const parts = { box, rollout: idleRollout, targetBoard: TargetBoard.create(0) };
    const control = createControl(store, { ...parts, log, current, context });
    const close = () => {
      control.audit.flush(true);
      store.close();
    };
    return { operations: new Recovery(control), close };
  } catch (error) {
    store.close();
    throw error instanceof StoreError ? error : new StoreError((error as Error).message);
  }
};

async function stopGateway(
  { server, socket, upkeep, pool, store, control }: Parts,
  log: Log,
): Promise<void> {
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

/** Loads the API while the workers start in their own threads, because it is the slowest part to load. */
async function loadApi({
  control,
  admin,
  adminTls,
  log,
  instanceId,
}: {
  readonly control: ControlPlane;
  readonly admin: Address;
  readonly adminTls: KeyPair | null;
  readonly log: Log;
  readonly instanceId: string;
}): Promise<() => ManagementServer> {
  const { createManagementApi, serveManagementApi } = await import("./api/server.ts");
  const startedAt = clock.now();
  const boundHost = admin.hostname;
  const api = createManagementApi({
    ...{ control, clock, log, version, startedAt, boundHost },
    loopToken: loopToken(instanceId),
    isTls: adminTls !== null,
  });
  return () => {
    try {
      return serveManagementApi(api, { ...admin, ...(adminTls === null ? {} : { tls: adminTls }) });
    } catch (error) {
      const { code, message } = error as { readonly code?: string; readonly message: string };
      const reason = code === "EADDRINUSE" ? "address already in use" : message;
      throw new StartError(`--admin ${formatAddress(admin)}: ${reason}`, { cause: error });
    }
  };
}

function loadOrMake(store: Store, options: ServeOptions, log: Log): StoredState {
  if (!store.isEmpty()) {
    const stored = store.load();
    warnAboutIgnoredFlags(options, stored.config, log);
    return stored;
  }
  const { at } = entryOf("");
  const isWhole = options.config !== null && declaresListeners(readConfigFile(options.config));
  const config = isWhole ? emptyConfiguration(at) : firstConfiguration(firstListeners(options), at);
  return { config, revision: 1, instanceId: store.instanceId };
}

const entryOf = (summary: string) => ({
  at: new Date(clock.now()).toISOString(),
  actor: "sluice",
  summary,
});

function compileOrRefuse(stored: StoredState, context: ChangeContext): Compiled {
  try {
    return compileStored(stored, context);
  } catch (error) {
    throw new StartError((error as Error).message, { cause: error });
  }
}

function refuse([issue]: readonly Issue[]): void {
  if (issue === undefined) return;
  throw new StartError(issue.path === "" ? issue.message : `${issue.path}: ${issue.message}`);
}

/** Without users everybody who reaches the management API may do everything. */
function refuseOpenManagement(
  { admin, allowUnauthenticatedRemote }: ServeOptions,
  users: number,
): void {
  if (isLoopback(admin.hostname) || allowUnauthenticatedRemote || users > 0) return;
  throw new StartError(
    `--admin ${formatAddress(admin)} can be reached from other machines, and no user exists yet, so anybody could ` +
      "change the configuration; listen on 127.0.0.1, or give --allow-unauthenticated-remote if another guard is in place",
  );
}

process.exit(
  await runCommandLine(process.argv.slice(2), [
    createServe(serve),
    createCheck(catalogue),
    createResetPassword(openOffline),
    createTokenCommand(openOffline),
    rotateKeyCommand,
    exportCommand,
    createImport(catalogue),
    diffCommand,
    applyCommand,
    versionCommand,
  ]),
);
