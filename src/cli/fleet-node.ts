// Creates the parts of a node in a fleet, and founds the fleet with the first one; connects nothing that is not given.
import { X509Certificate } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { Turns } from "../control/turns.ts";
import { untilConfirmed } from "../control/until-confirmed.ts";
import { Fleet } from "../fleet/fleet.ts";
import { FleetError } from "../fleet/postgres-connection.ts";
import { FleetStore } from "../fleet/fleet-store.ts";
import type { Membership } from "../fleet/join.ts";
import { Follower } from "../fleet/follower.ts";
import { Lease } from "../fleet/lease.ts";
import { FleetPlugins } from "../fleet/node-plugins.ts";
import { FleetRollups } from "../fleet/rollups.ts";
import { defaultTimes } from "../fleet/times.ts";
import { FleetMeter } from "../fleet/meter.ts";
import { KEPT_ENTRIES, pruneEvery } from "../fleet/whole.ts";
import type { Log } from "../log.ts";
import type { PluginDirectory } from "../plugin-directory/plugin-directory.ts";
import { keepCopy } from "../store/backup.ts";
import { MetaRows } from "../store/meta-rows.ts";
import { RevisionTable } from "../store/revisions.ts";
import type { RevisionEntry } from "../store/tables.ts";
import { wholeOf } from "../model/gateway-config.ts";
import type { DatabaseMove } from "./control-socket.ts";
import { databaseMove } from "./fleet-move.ts";
import { PASSWORD_IN_URL } from "./fleet-flags.ts";
import type { OpenedState } from "./opened-state.ts";
import type { ServeOptions } from "./serve.ts";
import { StartError } from "./start-error.ts";
import { version } from "./version.ts";

export interface NodeParts {
  /** What the management API shows. */
  readonly view: Fleet;
  readonly follower: Follower;
  /** What changes are stored in. */
  readonly store: FleetStore;
  readonly duty: Lease;
  readonly rollups: FleetRollups;
  readonly plugins: FleetPlugins;
  /** `turns`: those of changes. */
  readonly database: (turns: Turns) => DatabaseMove;
}

interface NodeContext {
  readonly clock: Clock;
  readonly log: Log;
  /** settings.fleet.absent_after. */
  readonly absentMs: () => number;
  readonly pluginDirectory: PluginDirectory;
}

/** Null: this gateway is part of no fleet. */
export function createNode(
  { membership, store, box, adminTls }: OpenedState,
  options: ServeOptions,
  { clock, log, absentMs, pluginDirectory }: NodeContext,
): NodeParts | null {
  if (membership === null || options.fleet === null) return null;
  const { source, codec } = membership;
  const { nodeName: name, advertise } = options.fleet;
  if (options.words.some((word) => PASSWORD_IN_URL.test(word)))
    log.warn(
      "every user of this machine can see the password of --store in the list of processes: give the URL in SLUICE_STORE, or use --store-password-file",
    );
  const times = defaultTimes;
  const id = store.instanceId;
  const isDrained = () => store.isDrained();
  const lease = new Lease({ source, id, state: () => follower.state });
  const shared = { source, codec, id, name, clock, times, isDrained, lease };
  const follower = new Follower({
    ...shared,
    mark: () => store.mark(),
    url: advertise === null ? null : `${advertise}${certificatePart(adminTls)}`,
    version,
    log,
    contact: store.with((context) => new MetaRows(context)),
    prune: pruneEvery(times.prune, {
      source,
      codec,
      store,
      node: name,
      keep: KEPT_ENTRIES,
      absentMs,
      log,
      duty: lease,
      box,
    }),
  });
  box.onReplaced(() => noteRotation({ source, store, box, log }));
  const meter = new FleetMeter();
  const tokenKey = () => box.derive("fleet node tokens");
  const keyPosition = async () => (await source.wholePosition()).key;
  const view = new Fleet({ ...shared, follower, meter, absentMs, tokenKey, keyPosition });
  logEvents(view, log);
  const fleetStore = new FleetStore({
    store,
    source,
    codec,
    log,
    meter,
    node: name,
    keepCopy: (position) => keepCopy(options.dataDir, position, log),
    doubtMs: times.doubt,
    term: () => lease.term,
    requireOpen: () => follower.requireOpen(),
    onLost: () => follower.lose(),
    onObstacle: (obstacle) => follower.obstruct(obstacle),
    expected: (by) => view.expected(by),
    requirePresent: (requirement) => view.requirePresent(requirement),
    requireReadable: (need) => view.requireReadable(need),
  });
  const requireConnected = () => follower.requireConnected();
  const rollups = new FleetRollups({ ...shared, requireConnected });
  const directory = pluginDirectory;
  const plugins = new FleetPlugins({ ...shared, version, log, follower, directory });
  const { isJoined } = options.fleet;
  const parts = { source, codec, box, store, log, dataDir: options.dataDir, isJoined, follower };
  const database = (turns: Turns) => databaseMove(parts, turns);
  return { view, follower, store: fleetStore, duty: lease, rollups, plugins, database };
}

const logEvents = (view: Fleet, log: Log): void =>
  view.onNodeEvent(({ event, name: node, why }) =>
    log.info("a node of the fleet has changed its state", {
      node,
      event,
      ...(why === null ? {} : { why }),
    }),
  );

/** A self-signed certificate of the management API, which other nodes accept because the row with the URL is signed. */
function certificatePart(adminTls: OpenedState["adminTls"]): string {
  if (adminTls === null) return "";
  const certificate = new X509Certificate(adminTls.cert);
  return certificate.checkIssued(certificate) ? `#${certificate.raw.toString("base64url")}` : "";
}

/** After a rotation of the secret key: the database of the fleet knows it, and this node's own holds no trace of the former one. */
function noteRotation({
  source,
  store,
  box,
  log,
}: Pick<OpenedState, "store" | "box"> & Pick<Membership, "source"> & { readonly log: Log }): void {
  const rotation = { formerKeyId: store.formerKeyId ?? "", position: store.mark()?.position ?? 0 };
  const { keyId } = box;
  // Until it is noted, nodes with the new key cannot join.
  void untilConfirmed(
    () => source.noteRotation(rotation, keyId),
    (error) => log.debug("the new secret key is not noted in the database yet", { error }),
  );
  setImmediate(() => {
    try {
      store.compact();
    } catch (error) {
      log.warn("free parts of the database file still hold values under the former secret key", {
        error,
      });
    }
  });
}

/**
 * The first node brings its configuration into the fleet. A new data directory gets its first configuration afterwards, so that it
 * stays empty when another node was faster. `firstEntry`: for a configuration without a history.
 */
export async function foundFleet(
  { membership, store, stored }: OpenedState,
  firstEntry: () => RevisionEntry,
): Promise<void> {
  if (membership === null || membership.found === null) return;
  const { config, revision } = store.isEmpty() ? stored : store.load();
  const heads = store.with((tables) => new RevisionTable(tables)).heads();
  const entry = heads.at(-1) ?? firstEntry();
  const facts = store.facts();
  const founding = { revision, config, change: wholeOf(config), entry, facts };
  const mark = await membership.found(founding).catch((error: unknown) => {
    const isExplained = error instanceof FleetError;
    const lost = "--store: the database went away while the fleet was founded; start again";
    throw new StartError(isExplained ? error.message : lost, { cause: error });
  });
  if (store.isEmpty()) store.begin(config, entry, mark);
}
