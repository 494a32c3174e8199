// Decides for a node whose fleet's database lacks changes that the node has: which of the two is right. No gateway may run here.
import { differenceOf } from "../model/undo.ts";
import type { EntryMark } from "../model/fact.ts";
import type { Commit } from "../store/commit.ts";
import type { EntryCodec } from "./entry.ts";
import { beginningOf, oldestOf } from "./join.ts";
import type { PostgresSource } from "./postgres-source.ts";
import { forgotten, type StoredNode, wholeEntry } from "./whole.ts";

/** This node's database. */
export interface AdoptingStore extends StoredNode {
  setMark(mark: EntryMark): void;
  replace(commit: Commit): void;
}

export interface AdoptOptions {
  readonly source: PostgresSource;
  readonly store: AdoptingStore;
  readonly codec: EntryCodec;
  readonly node: string;
}

/** Throws away what this node has, and takes what the fleet has. Later entries follow at the next start. */
export async function adoptFromStore({ source, store, codec }: AdoptOptions): Promise<EntryMark> {
  const entry = await oldestOf(source);
  const beginning = beginningOf(entry, codec);
  const change = differenceOf(store.load().config, beginning.change);
  const facts = beginning.facts ?? [];
  store.replace({ ...beginning, change, facts: [...forgotten(store.facts(), facts), ...facts] });
  return entry;
}

/** Makes what this node has the configuration of the fleet. The log begins with it anew, so that all others load it whole. */
export async function adoptThisNode(options: AdoptOptions): Promise<EntryMark> {
  const { source, store } = options;
  const { head } = await source.after(Number.MAX_SAFE_INTEGER);
  const own = store.mark()?.position ?? 0;
  const mark = { position: Math.max(head, own) + 1, id: Bun.randomUUIDv7() };
  await source.replaceLog(wholeEntry(options, mark));
  store.setMark(mark);
  return mark;
}
