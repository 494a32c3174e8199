// Decides for a fleet whose database lacks changes that nodes have: which state all nodes take. Changes no node: they follow.
import type { EntryMark } from "../model/fact.ts";
import type { EntryCodec } from "./entry.ts";
import { enter, type JoiningStore } from "./join.ts";
import { isSigned } from "./node-row.ts";
import { FleetError } from "./postgres-connection.ts";
import type { PostgresSource } from "./postgres-source.ts";
import type { FleetNode } from "./source.ts";
import { type StoredNode, wholeEntry } from "./whole.ts";

/** How far the database and the nodes are. */
export interface Situation {
  /** The last entry of the log. */
  readonly head: number;
  /** Those whose rows are signed. */
  readonly nodes: readonly FleetNode[];
}

export async function situationOf(source: PostgresSource, codec: EntryCodec): Promise<Situation> {
  const { head } = await source.after(Number.MAX_SAFE_INTEGER);
  const nodes = await source.nodes();
  return { head, nodes: nodes.filter((node) => isSigned(codec, node)) };
}

/**
 * Writes the state that the database holds into an empty store. Throws a FleetError unless that is all of it: a decision for a
 * part would lose the rest.
 */
export async function readDatabase(
  source: PostgresSource,
  store: JoiningStore,
  { codec, head }: { readonly codec: EntryCodec; readonly head: number },
): Promise<void> {
  await enter({ source, store }, codec);
  if ((store.mark()?.position ?? 0) < head)
    throw new FleetError(
      "the log of the fleet cannot be read up to its end; run this with the newest version of the nodes",
    );
}

export interface DecideOptions {
  readonly source: PostgresSource;
  /** Holds the state that all nodes take. */
  readonly store: StoredNode;
  readonly codec: EntryCodec;
  /** Who decides. */
  readonly node: string;
  readonly summary: string;
}

/**
 * Makes a state that of the fleet, as the only entry of its log, behind all that any node has. Throws a FleetError when the log has
 * gone on since the situation was read.
 */
export async function decide(
  { summary, ...options }: DecideOptions,
  { head, nodes }: Situation,
): Promise<EntryMark> {
  const { source, store } = options;
  const own = store.mark()?.position ?? 0;
  const last = Math.max(head, own, ...nodes.map(({ stored }) => stored));
  const mark = { position: last + 1, id: Bun.randomUUIDv7() };
  // No entry makes more than one revision: a later one than any node has, unless the log went on after a loss.
  const revision = store.load().revision + last - own + 1;
  if (!(await source.replaceLog(wholeEntry(options, mark, { revision, summary }), head)))
    throw new FleetError(
      "the log of the fleet has gone on meanwhile; nothing was changed: run the command again",
    );
  return mark;
}
