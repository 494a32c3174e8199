// Makes a data directory part of the fleet of a database: founds the fleet, joins it, or comes back; starts nothing.
import { systemClock } from "../clock.ts";
import type { ForeignChange } from "../control/change-contract.ts";
import { Draft } from "../control/draft.ts";
import { local } from "../control/principal.ts";
import { createStamp } from "../control/stamp.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Log } from "../log.ts";
import type { EntryMark, Fact } from "../model/fact.ts";
import type { ConfigChange, GatewayConfig } from "../model/gateway-config.ts";
import type { Commit } from "../store/commit.ts";
import type { RevisionEntry } from "../store/tables.ts";
import { type Entry, EntryCodec, Unfollowable } from "./entry.ts";
import { LogReader, type NodeStore } from "./log-reader.ts";
import { FleetError, type FleetIdentity } from "./postgres-connection.ts";
import type { PostgresSource } from "./postgres-source.ts";
import { meaningOf } from "./postgres-words.ts";
import { type EntrySource, SourceUnreachable } from "./source.ts";

/** This node's database. */
export interface JoiningStore extends NodeStore {
  isEmpty(): boolean;
  setMark(mark: EntryMark): void;
  fleetId(): string | null;
  joinFleet(id: string): void;
  leaveFleet(): void;
  /** Id of the secret key before the present one; null: unknown. */
  readonly formerKeyId: string | null;
  commit(write: Commit): void;
}

export interface JoinOptions {
  readonly source: PostgresSource;
  readonly store: JoiningStore;
  /** The secret key of this node. */
  readonly box: Pick<SecretBox, "keyId" | "derive" | "onReplaced">;
  /** Id of this node. */
  readonly id: string;
  /** Name of this node. */
  readonly node: string;
  /** A node that was seen within this time is there. Milliseconds. */
  readonly presentMs: number;
  readonly log: Log;
}

/** What the first node brings. */
export interface Founding {
  readonly revision: number;
  readonly config: GatewayConfig;
  readonly change: ConfigChange;
  readonly entry: RevisionEntry;
  readonly facts: readonly Fact[];
}

export interface Membership {
  readonly source: PostgresSource;
  readonly codec: EntryCodec;
  /** Makes the configuration of this node that of the fleet; null: the fleet has one already. */
  readonly found: ((founding: Founding) => Promise<EntryMark>) | null;
  /** Whether the database answers; rejects with a FleetError when this node cannot be a part of the fleet. */
  readonly joined: () => Promise<boolean>;
}

/** What the key that signs entries is derived for. */
export const SIGNING = "fleet entries";

/** A node that knows its fleet starts without the database when that has not answered in this time. Milliseconds. */
const FIRST_ANSWER_MS = 150;
const READ_MS = 50;

/**
 * Called before the configuration is loaded: a node that joins gets the one of the fleet. Throws a FleetError, which says what to
 * do, when this node cannot be a part of it.
 */
export async function join(options: JoinOptions): Promise<Membership> {
  const { source, store } = options;
  // Without an entry it was to found the fleet, or to join it, and has done neither.
  const known = store.mark() === null ? null : store.fleetId();
  const position = store.mark()?.position ?? 0;
  if (known !== null && position > 1 && !store.isEmpty()) {
    // It needs nothing of the database to start.
    const joined = comeBack(options, known);
    // Entries of another fleet, or with another key, are not signed with the key of this one.
    return { source, codec: codecOf(known, options), found: null, joined };
  }
  return await joinFirst(options, known);
}

/** Signs with the secret key that is valid at each position. */
function codecOf(fleetId: string, { box, store }: JoinOptions): EntryCodec {
  const codec = new EntryCodec(fleetId, box.derive(SIGNING));
  box.onReplaced(() => codec.rotate(store.mark()?.position ?? 0, box.derive(SIGNING)));
  return codec;
}

/** Checks whether this node may come back, while it starts. */
function comeBack(options: JoinOptions, known: string): Membership["joined"] {
  const { log } = options;
  const began = performance.now();
  let hasAnswered = false;
  let failure: SourceUnreachable | null = null;
  const checked = identify(options, known, () => {
    hasAnswered = true;
  }).then(
    () => true,
    (error: unknown) => {
      if (!(error instanceof SourceUnreachable)) throw error;
      failure = error;
      return false;
    },
  );
  checked.catch(() => undefined);
  return async () => {
    // The start may have blocked the event loop, so that the answer is not read yet.
    const ms = Math.max(FIRST_ANSWER_MS - (performance.now() - began), READ_MS);
    const silence = Bun.sleep(ms).then(() => hasAnswered);
    if ((await Promise.race([checked, silence])) && (await checked)) return true;
    warnAlone(log, failure);
    checked.catch((error: unknown) =>
      log.error("this node cannot be a part of its fleet", { error }),
    );
    return false;
  };
}

function warnAlone(log: Log, error: SourceUnreachable | null): void {
  const reason = meaningOf(error);
  log.warn("the database of the fleet does not answer: this node starts with what it has", {
    ...(reason === null ? {} : { reason }),
  });
}

async function identify(
  options: JoinOptions,
  known: string | null,
  onAnswer?: () => void,
): Promise<FleetIdentity> {
  const { source, box, id, node: name, presentMs, log } = options;
  await source.open(onAnswer);
  const { keyId } = box;
  const identity =
    known === null ? await foundedOrOwn(options) : await source.identify({ fleetId: known, keyId });
  if (known !== null && identity.fleetId !== known)
    throw new FleetError(
      "--store: this data directory belongs to another fleet; name that fleet's database, or start with an empty data directory",
    );
  if (identity.keyId !== keyId) await requireRotation(identity, options);
  await source.admit({ id, name, presentMs, log });
  return identity;
}

/** The fleet of the database, or the one that this node founds: those that start at the same time wait for one of them. */
async function foundedOrOwn(options: JoinOptions): ReturnType<PostgresSource["identify"]> {
  const { source, id, box, log } = options;
  const created = { fleetId: Bun.randomUUIDv7(), keyId: box.keyId };
  for (let isWaiting = false; ; isWaiting = true) {
    const founded = await source.founded();
    if (founded !== null) return founded;
    if (await source.claimFounding(id, FOUND_MS, created)) {
      keepFounding(options);
      return { ...created, rotation: null };
    }
    if (!isWaiting) log.info("another node is founding the fleet: this one waits for it");
    await Bun.sleep(LOOK_MS);
  }
}

/** Until the first entry, or the end of this process. */
function keepFounding({ source, id, store }: JoinOptions): void {
  const timer = setInterval(() => {
    if (store.mark() === null) source.claimFounding(id, FOUND_MS, null).catch(() => undefined);
    else clearInterval(timer);
  }, FOUND_MS / 5);
  timer.unref();
}

async function joinFirst(options: JoinOptions, known: string | null): Promise<Membership> {
  const { source, store, log } = options;
  let fleetId: string;
  try {
    ({ fleetId } = await identify(options, known));
  } catch (error) {
    if (!(error instanceof SourceUnreachable)) throw error;
    const meaning = meaningOf(error);
    if (known === null || store.isEmpty())
      throw new FleetError(
        `--store: the database cannot be ${meaning === null ? "reached" : "used"}, and this node has no configuration of its fleet yet; ${meaning ?? "check its address, and that it runs"}`,
        { cause: error },
      );
    warnAlone(log, error);
    const codec = codecOf(known, options);
    return { source, codec, found: null, joined: async () => false };
  }
  const codec = codecOf(fleetId, options);
  const joined = async () => true;
  // A node that ended while it founded the fleet has noted the first entry, which the log may have or not.
  const mayFound = (store.mark()?.position ?? 1) === 1;
  const isFounder = mayFound && (await isToFound(options));
  if (!isFounder && (store.isEmpty() || store.mark() === null)) await enter(options, codec);
  if (!isFounder) {
    store.joinFleet(fleetId);
    return { source, codec, found: null, joined };
  }
  return { source, codec, found: (founding) => found(founding, options, codec), joined };
}

/** A node that founds the fleet says so again within this time, or another one may. */
const FOUND_MS = 5000;
const LOOK_MS = 100;

/** Whether this node is to write the first entry: nodes that start at the same time wait for one of them. */
async function isToFound({ source, id, log }: JoinOptions): Promise<boolean> {
  let isWaiting = false;
  for (;;) {
    // Without the entries, which may be large.
    if ((await source.after(Number.MAX_SAFE_INTEGER)).head > 0) return false;
    if (await source.claimFounding(id, FOUND_MS, null)) return true;
    if (!isWaiting) log.info("another node is founding the fleet: this one waits for it");
    isWaiting = true;
    await Bun.sleep(LOOK_MS);
  }
}

/** Whether the key of this node is the one after `keyId`: the database of the fleet is older, or no node has noted the key there. */
export async function isNewer(
  keyId: string,
  {
    source,
    store,
    box,
  }: {
    readonly source: Pick<PostgresSource, "noteRotation">;
    readonly store: Pick<JoiningStore, "mark" | "formerKeyId">;
    readonly box: Pick<SecretBox, "keyId">;
  },
): Promise<boolean> {
  if (keyId !== store.formerKeyId) return false;
  const position = store.mark()?.position ?? 0;
  await source.noteRotation({ formerKeyId: keyId, position }, box.keyId);
  return true;
}

/** Throws unless a rotation of the secret key explains why the key of this node is not the one of its fleet. */
async function requireRotation(
  { keyId, rotation }: Awaited<ReturnType<PostgresSource["identify"]>>,
  options: Pick<JoinOptions, "source" | "store" | "box">,
): Promise<void> {
  if (await isNewer(keyId, options)) return;
  const { source, store, box } = options;
  const position = store.mark()?.position ?? 0;
  if (rotation === null || rotation.formerKeyId !== box.keyId) {
    const founding = await source.founding();
    const how = founding === null ? "" : `, which was founded ${founding}`;
    throw new FleetError(
      `--store: the secret key of this node (${box.keyId}) is not the one of its fleet (${keyId})${how}; join with \`sluice fleet join\` and an empty data directory, or copy the secret.key of a node of that fleet, or its SLUICE_SECRET_KEY, to this one, and start with an empty data directory what was away while the key was replaced. If the fleet is to be founded anew, stop all its nodes and run \`drop schema sluice cascade\` in the database`,
    );
  }
  // It was away, and gets the new key from the log.
  const isInLog = (await source.idAt(rotation.position)) !== null;
  if (position > 0 && position < rotation.position && isInLog) return;
  throw new FleetError(
    `--store: the secret key of this node (${box.keyId}) was replaced in its fleet by another one (${keyId}) while this node was away; start it with an empty data directory and the new key, in SLUICE_SECRET_KEY or a copy of the secret.key of another node`,
  );
}

/** Writes the configuration of the fleet into an empty database; later changes follow. */
export async function enter(
  { source, store }: Pick<JoinOptions, "source" | "store">,
  codec: EntryCodec,
): Promise<void> {
  if (!store.isEmpty())
    throw new FleetError(
      "--store: this data directory has a configuration that is not the one of the fleet; export it if you need it, and start with an empty data directory",
    );
  const beginning = beginningOf(await oldestOf(source), codec);
  store.commit(beginning);
  // Before the start, which depends on users and settings. Nothing serves yet, so no worker has to be asked.
  const reader = new LogReader({ store, source, codec });
  let { config } = store.load();
  const stamp = createStamp(systemClock, config);
  for (let next = await nextOf(reader); next !== null; next = await nextOf(reader)) {
    next.store(config);
    if (next.changed === null) continue;
    const { change, at } = next.changed;
    config = Draft.of(change, config, stamp).config;
    stamp.observe(change, at);
  }
}

/** Null also for an entry that this node must not apply: it reports that once it serves. */
async function nextOf(reader: LogReader): Promise<ForeignChange | null> {
  return await reader.next().catch((error: unknown) => {
    if (error instanceof Unfollowable) return null;
    throw error;
  });
}

/** The entry from which a node can get to the end of the log. */
export async function oldestOf(source: EntrySource): Promise<Entry> {
  const whole = await source.whole();
  if (whole !== null) return whole;
  const [first] = (await source.after(0)).entries;
  if (first?.position === 1) return first;
  throw new FleetError(
    "--store: the log of the fleet has lost its beginning; run `sluice fleet adopt --from this-node` on the node whose configuration is right",
  );
}

/** Writes what a whole entry holds, from nothing. Throws a FleetError for an entry that this node must not apply. */
export function beginningOf(entry: Entry, codec: EntryCodec): Commit {
  const { changed, facts } = decoded(entry, codec);
  const { position, id } = entry;
  if (changed === null) throw new FleetError("--store: the log of the fleet has no beginning");
  const { revision, at, actor, summary, change, audit } = changed;
  return {
    revision,
    change,
    entry: { at, actor, summary },
    audit,
    facts,
    mark: { position, id },
    isWhole: true,
  };
}

function decoded(entry: Entry, codec: EntryCodec) {
  try {
    return codec.decode(entry);
  } catch (error) {
    throw new FleetError(`--store: ${(error as Error).message}`, { cause: error });
  }
}

async function found(
  { revision, config, change, entry, facts }: Founding,
  { source, store, node, id, box }: JoinOptions,
  codec: EntryCodec,
): Promise<EntryMark> {
  const free = [...config.listeners.values()].find(({ port }) => port === 0);
  if (free !== undefined)
    throw new FleetError(
      `--store: listener "${free.name}" needs a fixed port, not 0: all nodes of a fleet serve the same listeners`,
    );
  const { fleetId } = codec;
  const created = { fleetId, keyId: box.keyId };
  const isOurs = await source.claimFounding(id, FOUND_MS, created);
  if (!isOurs) throw new FleetError("--store: another node founds the fleet; start again");
  const mark = { position: 1, id: Bun.randomUUIDv7() };
  store.joinFleet(fleetId);
  // First, so that a node that ends before it gets the answer knows its own entry.
  if (!store.isEmpty()) store.setMark(mark);
  const changed = { revision, ...entry, by: local, change, audit: [] };
  if (await source.append(codec.encode(mark, node, { changed, facts, previous: null })))
    return mark;
  store.leaveFleet();
  throw new FleetError("--store: another node has founded the fleet meanwhile; start again");
}
