// Makes a data directory part of the fleet of a database: founds the fleet, joins it, or comes back; starts nothing.
import { local } from "../control/principal.ts";
import type { Log } from "../log.ts";
import type { Fact } from "../model/fact.ts";
import type { ConfigChange } from "../model/gateway-config.ts";
import type { Commit } from "../store/commit.ts";
import type { RevisionEntry } from "../store/tables.ts";
import { EntryCodec, type EntryMark } from "./entry.ts";
import { FleetError, type FleetIdentity, type PostgresSource } from "./postgres-source.ts";
import { meaningOf } from "./postgres-words.ts";
import { SourceUnreachable } from "./source.ts";

/** This node's database. */
export interface JoiningStore {
  isEmpty(): boolean;
  mark(): EntryMark | null;
  fleetId(): string | null;
  setFleetId(id: string): void;
  commit(write: Commit): void;
}

export interface JoinOptions {
  readonly source: PostgresSource;
  readonly store: JoiningStore;
  /** Id of the secret key of this node. */
  readonly keyId: string;
  /** Derives the key that signs entries. */
  readonly signingKey: string;
  readonly node: string;
  readonly log: Log;
}

/** What the first node brings. */
export interface Founding {
  readonly revision: number;
  readonly change: ConfigChange;
  readonly entry: RevisionEntry;
  readonly facts: readonly Fact[];
}

export interface Membership {
  readonly source: PostgresSource;
  readonly codec: EntryCodec;
  /** Makes the configuration of this node that of the fleet; null: the fleet has one already. */
  readonly found: ((founding: Founding) => Promise<EntryMark>) | null;
}

/**
 * Called before the configuration is loaded: a node that joins gets the one of the fleet. Throws a FleetError, which says what to
 * do, when this node cannot be a part of it.
 */
export async function join(options: JoinOptions): Promise<Membership> {
  const { source, store, keyId, signingKey, log } = options;
  const known = store.fleetId();
  let identity: FleetIdentity;
  try {
    await source.open();
    identity = await source.identify({ fleetId: known ?? Bun.randomUUIDv7(), keyId });
  } catch (error) {
    if (!(error instanceof SourceUnreachable)) throw error;
    const meaning = meaningOf(error);
    if (known === null)
      throw new FleetError(
        `--store: the database cannot be ${meaning === null ? "reached" : "used"}, and this node has no configuration of its fleet yet; ${meaning ?? "check its address, and that it runs"}`,
      );
    log.warn("the database of the fleet does not answer: this node starts with what it has", {
      ...(meaning === null ? {} : { reason: meaning }),
    });
    return { source, codec: new EntryCodec(known, signingKey), found: null };
  }
  if (identity.keyId !== keyId)
    throw new FleetError(
      `--store: the secret key of this node (${keyId}) is not the one of its fleet (${identity.keyId}); give all nodes the same SLUICE_SECRET_KEY or secret.key file`,
    );
  if (known !== null && known !== identity.fleetId)
    throw new FleetError(
      "--store: this data directory belongs to another fleet; name that fleet's database, or start with an empty data directory",
    );
  const codec = new EntryCodec(identity.fleetId, signingKey);
  store.setFleetId(identity.fleetId);
  if (store.mark() !== null) return { source, codec, found: null };
  const [first] = await source.after(0);
  if (first === undefined)
    return { source, codec, found: (founding) => found(founding, options, codec) };
  if (!store.isEmpty())
    throw new FleetError(
      "--store: this data directory has a configuration that is not the one of the fleet; export it if you need it, and start with an empty data directory",
    );
  const { changed, facts } = codec.decode(first);
  if (changed === null || first.position !== 1)
    throw new FleetError("--store: the log of the fleet has no beginning; no node can join");
  const { revision, at, actor, summary, change, audit } = changed;
  const { position, id } = first;
  const entry = { at, actor, summary };
  store.commit({ revision, change, entry, audit, facts, mark: { position, id } });
  return { source, codec, found: null };
}

async function found(
  { revision, change, entry, facts }: Founding,
  { source, node }: JoinOptions,
  codec: EntryCodec,
): Promise<EntryMark> {
  const mark = { position: 1, id: Bun.randomUUIDv7() };
  const changed = { revision, ...entry, by: local, change, audit: [] };
  if (await source.append(codec.encode(mark, node, { changed, facts }))) return mark;
  throw new FleetError("--store: another node has founded the fleet meanwhile; start again");
}
