// All that a node stores as one entry, for nodes that join; and what of the log that makes superfluous.
import type { FleetDuty } from "../control/fleet-view.ts";
import { local } from "../control/principal.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { EntryMark, Fact } from "../model/fact.ts";
import { statKinds } from "../model/rollup.ts";
import { RETENTION } from "../observe/stats/rollups.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Log } from "../log.ts";
import { type GatewayConfig, wholeOf } from "../model/gateway-config.ts";
import type { Entry, EntryCodec } from "./entry.ts";
import type { PostgresSource } from "./postgres-source.ts";

/** This node's database. */
export interface StoredNode {
  load(): { readonly config: GatewayConfig; readonly revision: number };
  facts(): readonly Fact[];
  mark(): EntryMark | null;
}

/** What an entry says that makes a state that of all nodes, also of those with another history. */
export interface Decision {
  readonly revision: number;
  readonly summary: string;
}

/** What this node stores, as the entry `mark`. */
export function wholeEntry(
  {
    store,
    codec,
    node,
  }: { readonly store: StoredNode; readonly codec: EntryCodec; readonly node: string },
  mark: EntryMark,
  decision: Decision | null = null,
): Entry {
  const { config, revision } = store.load();
  const at = new Date().toISOString();
  const changed = {
    revision: decision?.revision ?? revision,
    at,
    actor: "fleet",
    summary: decision?.summary ?? "join the fleet",
    by: local,
    change: wholeOf(config),
    audit: decision === null ? [] : [decidedBy(node, { ...decision, at })],
  };
  return codec.encode(mark, node, {
    kind: "whole",
    changed,
    facts: store.facts(),
    previous: null,
    isDecided: decision !== null,
  });
}

/** A person on the machine of a node. */
const decidedBy = (
  node: string,
  { at, revision, summary }: Decision & { readonly at: string },
): AuditEntry => ({
  at,
  actor: "local",
  method: "local",
  address: "",
  action: "adopt",
  kind: "fleet",
  object_id: node,
  object_name: null,
  result: "ok",
  revision,
  detail: { summary },
});

/** The last entries always stay. */
export const KEPT_ENTRIES = 1000;

export interface PruneOptions {
  readonly source: Pick<
    PostgresSource,
    "wholePosition" | "writeWhole" | "prune" | "pruneRollups" | "idAt"
  >;
  readonly codec: EntryCodec;
  readonly store: StoredNode;
  /** Name of this node. */
  readonly node: string;
  /** The last entries always stay. */
  readonly keep: number;
  /** Entries stay that a node lacks which was seen within this time. Milliseconds. */
  readonly absentMs: () => number;
  readonly log: Log;
}

/**
 * Removes what no node needs. Work of one node, but several at the same time do no harm. Returns whether entries from before the
 * last rotation of the secret key stay, because a node still needs them.
 */
export async function prune(options: PruneOptions): Promise<boolean> {
  const { source, store, keep, absentMs, log } = options;
  const newest = await source.wholePosition();
  // After the query: what is loaded must be the state of the mark.
  const mark = store.mark();
  if (mark === null) return false;
  // Nodes that join cannot read one that is signed with a former key.
  const isUnreadable = newest.whole < newest.key && newest.key <= mark.position;
  if (isUnreadable || mark.position - newest.whole >= keep) {
    const entry = wholeEntry(options, mark);
    await source.writeWhole(entry);
    log.info("the state of the fleet was written for nodes that join", {
      position: mark.position,
      bytes: entry.body.byteLength,
    });
  }
  await source.prune({ keep, absentMs: absentMs() });
  const isUnfinished = newest.key > 0 && (await source.idAt(newest.key)) !== null;
  await source.pruneRollups(RETENTION, statKinds);
  return isUnfinished;
}

/** Removes what `next` does not have. */
export function forgotten(before: readonly Fact[], next: readonly Fact[]): Fact[] {
  const sessions = new Set<string>();
  const users = new Set<string>();
  const overridden = new Set<string>();
  const claims = new Map<string, Set<string>>();
  let hasRoot = false;
  for (const fact of next) {
    if (fact.kind === "local_ca") hasRoot = true;
    if (fact.kind === "session_began") sessions.add(fact.session.id);
    if (fact.kind === "second_factor") users.add(fact.user_id);
    if (fact.kind === "health_override") overridden.add(fact.target_id);
    if (fact.kind === "discovery_claims")
      claims.set(fact.source, new Set(fact.claims.map(({ kind, name }) => `${kind} ${name}`)));
  }
  return before.flatMap((fact): Fact[] => {
    if (fact.kind === "session_began" && !sessions.has(fact.session.id))
      return [{ kind: "sessions_ended", ids: [fact.session.id] }];
    if (fact.kind === "second_factor" && !users.has(fact.user_id))
      return [{ kind: "second_factor", user_id: fact.user_id, record: null }];
    if (fact.kind === "health_override" && !overridden.has(fact.target_id))
      return [{ ...fact, override: null }];
    if (fact.kind === "discovery_claims") {
      const kept = claims.get(fact.source);
      const released = fact.claims.flatMap(({ kind, name }) =>
        kept?.has(`${kind} ${name}`) === true ? [] : [{ kind, name }],
      );
      return released.length === 0 ? [] : [{ ...fact, claims: [], released }];
    }
    if (fact.kind === "local_ca" && !hasRoot) return [{ ...fact, root: null }];
    return [];
  });
}

/** Time for the other nodes to follow a rotation of the secret key. */
const SOON_MS = 2000;

/** Does it at most once in `everyMs`, and only on the node with the duty. */
export function pruneEvery(
  everyMs: number,
  {
    duty,
    box,
    ...options
  }: PruneOptions & {
    readonly duty: Pick<FleetDuty, "isOurs">;
    readonly box: Pick<SecretBox, "onReplaced">;
  },
): () => void {
  let last = performance.now();
  // Who has a former key can read the present one in the entry that brought it.
  const soon = () => {
    last = Math.min(last, performance.now() - everyMs + SOON_MS);
  };
  box.onReplaced(soon);
  return () => {
    if (performance.now() - last < everyMs) return;
    last = performance.now();
    if (!duty.isOurs) return;
    prune(options).then(
      (isUnfinished) => {
        if (isUnfinished) soon();
      },
      (error: unknown) => options.log.warn("the log of the fleet could not be pruned", { error }),
    );
  };
}
