// Opens the stored configuration, or creates the first one, and compiles it; starts nothing.
import { type FirstAdmin, lacksAdmin } from "../auth/first-admin.ts";
import type { Clock } from "../clock.ts";
import { type ChangeContext, compileStored } from "../control/stored.ts";
import type { AdminAccess } from "../control/admin-network.ts";
import { fieldChecks } from "../control/field-checks.ts";
import { openSecretKey, type SecretKeyFile } from "../control/sealing.ts";
import { loadDefaultCertificate } from "../crypto/default-certificate.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { KeyPair } from "../crypto/x509.ts";
import { failPoint } from "../fleet/fail-point.ts";
import { join, type Membership } from "../fleet/join.ts";
import { defaultTimes } from "../fleet/times.ts";
import { FleetError, queryTimes } from "../fleet/postgres-connection.ts";
import { PostgresSource } from "../fleet/postgres-source.ts";
import { Speaker } from "../fleet/speaker.ts";
import type { SourceDocument } from "../import/transfer/source.ts";
import type { Log } from "../log.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { PluginDirectory } from "../plugin-directory/plugin-directory.ts";
import type { Compiled } from "../snapshot/compile-context.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import {
  emptyConfiguration,
  firstConfiguration,
  type FirstListeners,
} from "../store/first-configuration.ts";
import { MetaRows } from "../store/meta-rows.ts";
import { Store, type StoredState } from "../store/store.ts";
import { loadAdminTls } from "./admin-tls.ts";
import { controlAddress } from "./control-socket.ts";
import { declaredNetworks, declaresListeners, readConfigFile } from "./config-file.ts";
import { type FirstAdminOptions, firstAdminOf } from "./first-admin.ts";
import { type Address, formatAddress } from "./flags.ts";
import { reachableAt } from "./own-addresses.ts";
import { placeManagement } from "./management-access.ts";
import { defaultHttp, defaultHttps, type ServeOptions } from "./serve.ts";
import { StartError } from "./start-error.ts";

export interface StateContext {
  readonly clock: Clock;
  readonly log: Log;
  readonly plugins: PluginCatalogue;
  /** Adds those of the directory that the stored settings name. */
  readonly pluginDirectory: PluginDirectory;
}

export interface OpenedState {
  readonly store: Store;
  readonly box: SecretBox;
  readonly secretKey: SecretKeyFile;
  readonly stored: StoredState;
  readonly adminTls: KeyPair | null;
  /** Address of the management API; the caller sets its port once it is known. */
  readonly management: { readonly hostname: Address["hostname"]; port: number };
  readonly adminAccess: AdminAccess;
  readonly context: () => ChangeContext;
  readonly current: Compiled;
  /** In `stored` if the store is empty, else to be added before the management API listens; null: none is needed. */
  readonly firstAdmin: FirstAdmin | null;
  /** Null: this node is in no fleet. */
  readonly membership: Membership | null;
}

/** Throws with the reason when the gateway cannot serve it. */
export async function openState(
  options: ServeOptions,
  { clock, log, plugins, pluginDirectory }: StateContext,
): Promise<OpenedState> {
  const { dataDir } = options;
  const at = new Date(clock.now()).toISOString();
  const file = options.config === null ? null : await readConfigFile(options.config);
  const fromFile = file === null ? null : declaredNetworks(file);
  const users = options.firstAdmin === null ? 0 : 1;
  const nothing = { isNew: true, users, networks: fromFile ?? [] };
  // Before the data directory exists, so that a refused first start leaves none behind.
  const joins = options.fleet !== null;
  const isFirst = !Store.isThere(dataDir) && !joins;
  if (isFirst) placeManagement(options, nothing);
  const early = isFirst && options.firstAdmin ? await firstAdminOf(options.firstAdmin, at) : null;
  const adminTls = options.adminTls === null ? null : loadAdminTls(options.adminTls, clock.now());
  const store = Store.open({ dataDir, log, isOfFleet: joins });
  if (options.takeOver) failPoint("after_take_over");
  const secretKey = openSecretKey({ dataDir, env: process.env, keyIds: store.sealedKeyIds() });
  store.secretKey.keeper = secretKey;
  const { box } = secretKey;
  const membership = await joinFleet(options, { store, box, log });
  const found = loadOrMake(store, options, { at, log, file });
  const isNew = store.isEmpty();
  const firstAdmin = needsAdmin(options, found, isNew)
    ? (early ?? (await firstAdminOf(options.firstAdmin, at)))
    : null;
  const stored = isNew ? withAdmin(found, firstAdmin) : found;
  const networks = fromFile ?? stored.config.settings.admin_allowed_cidrs;
  const { hostname, access } = placeManagement(options, {
    isNew,
    users: stored.config.users.size + (firstAdmin === null ? 0 : 1),
    networks,
  });
  const tls = await loadDefaultCertificate({ dataDir, now: clock.now(), log });
  const management = { hostname, port: options.admin.port };
  const context = (): ChangeContext => ({
    tls,
    checks: fieldChecks,
    plugins,
    managementAddresses: [
      controlAddress(dataDir),
      ...(management.port === 0 ? [] : reachableAt(management)),
    ],
    openSealed: (sealed) => box.open(sealed),
    countsAlone: options.fleet !== null && options.counters === null,
  });
  // The process before it goes on when this one cannot serve everything.
  await pluginDirectory.openStored(stored.config, { needsAll: options.takeOver });
  const current = compileOrRefuse(stored, context());
  return {
    store,
    box,
    secretKey,
    stored,
    adminTls,
    management,
    adminAccess: access,
    context,
    current,
    firstAdmin,
    membership,
  };
}

type WithFirstAdmin = ServeOptions & { readonly firstAdmin: FirstAdminOptions };

/**
 * Only where the user can be stored before the management API listens: not while another process serves, and in a fleet only on the
 * node that founds it.
 */
const needsAdmin = (
  options: ServeOptions,
  { config }: StoredState,
  isNew: boolean,
): options is WithFirstAdmin =>
  options.firstAdmin !== null &&
  lacksAdmin(config) &&
  !options.takeOver &&
  (isNew || options.fleet === null);

const withAdmin = (stored: StoredState, admin: FirstAdmin | null): StoredState =>
  admin === null
    ? stored
    : { ...stored, config: { ...stored.config, users: new Map([[admin.user.id, admin.user]]) } };

async function joinFleet(
  { fleet, dataDir }: ServeOptions,
  { store, box, log }: Pick<OpenedState, "store" | "box"> & { readonly log: Log },
): Promise<Membership | null> {
  if (fleet === null) {
    if (store.fleetId() === null) return null;
    throw new StartError(
      "this data directory is part of a fleet: start with --store, or run `sluice fleet leave` first",
    );
  }
  const rows = store.with((context) => new MetaRows(context));
  const speaker = new Speaker(store.instanceId, dataDir, rows);
  try {
    const membership = await join({
      source: new PostgresSource({ ...fleet.database, ...queryTimes, speaker }),
      store,
      box,
      id: store.instanceId,
      node: fleet.nodeName,
      presentMs: defaultTimes.away,
      log,
    });
    return { ...membership, joined: () => membership.joined().catch(refuseToStart) };
  } catch (error) {
    return refuseToStart(error);
  }
}

function refuseToStart(error: unknown): never {
  if (error instanceof FleetError) throw new StartError(error.message, { cause: error });
  throw error;
}

function loadOrMake(
  store: Store,
  options: ServeOptions,
  {
    at,
    log,
    file,
  }: {
    readonly at: string;
    readonly log: Log;
    readonly file: SourceDocument | null;
  },
): StoredState {
  if (!store.isEmpty()) {
    const stored = store.load();
    warnAboutIgnoredFlags(options, stored.config, log);
    return stored;
  }
  const isWhole = file !== null && declaresListeners(file);
  const config = isWhole ? emptyConfiguration(at) : firstConfiguration(firstListeners(options), at);
  return { config, revision: 1, instanceId: store.instanceId };
}

/** The listeners of the first revision; a port of 0 becomes a free one, because the stored port must be fixed. */
function firstListeners({ http, https }: ServeOptions): FirstListeners {
  return { http: withPort(http ?? defaultHttp), https: withPort(https ?? defaultHttps) };
}

function withPort({ hostname, port }: Address): Address {
  if (port !== 0) return { hostname, port };
  const probe = Bun.listen({ hostname, port: 0, socket: { data() {} } });
  probe.stop(true);
  return { hostname, port: probe.port };
}

/** Stored listeners win over the command line; warns about flags that differ from them. */
function warnAboutIgnoredFlags(given: ServeOptions, config: GatewayConfig, log: Log): void {
  for (const protocol of ["http", "https"] as const) {
    const wanted = given[protocol];
    if (wanted === null) continue;
    const listeners = [...config.listeners.values()].filter((l) => l.protocol === protocol);
    const same = listeners.some(
      ({ address, port }) =>
        address === wanted.hostname && (port === wanted.port || wanted.port === 0),
    );
    if (same) continue;
    const stored = listeners.map(({ address, port }) => formatAddress({ hostname: address, port }));
    log.warn(
      `--${protocol} ${formatAddress(wanted)} is ignored: since the first start the database holds the listeners; change them with \`sluice listeners set\` or the management API`,
      { stored },
    );
  }
}

function compileOrRefuse(stored: StoredState, context: ChangeContext): Compiled {
  try {
    return compileStored(stored, context);
  } catch (error) {
    throw new StartError((error as Error).message, { cause: error });
  }
}
