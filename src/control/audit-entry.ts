// An entry of the audit log; knows no table.
import type { AuditEntry } from "../model/audit-entry.ts";
import {
  type CollectionName,
  collectionNames,
  type ConfigChange,
  type GatewayConfig,
  type SingletonName,
  singletonNames,
} from "../model/gateway-config.ts";
import type { Steps } from "../pace.ts";
import type { Actor } from "./principal.ts";
import { bounded, detailOf, masked } from "./audit-detail.ts";
import { labelOf } from "./reference.ts";

/** Records actions that change no configuration: logins, rejected requests and the like. */
export interface AuditSink {
  record(entry: Omit<AuditEntry, "at">): void;
}

/** A change with the configurations before and after it. */
export interface Changed {
  readonly before: GatewayConfig;
  readonly after: GatewayConfig;
  readonly change: ConfigChange;
}

/** One object that a change wrote or deleted; a singleton has no id. */
export interface Touched {
  readonly part: CollectionName | SingletonName;
  readonly id: string | null;
}

/** Everything that a change wrote or deleted, in the order of the collections. */
export function touchedBy(change: ConfigChange): readonly Touched[] {
  const touched: Touched[] = [];
  for (const part of collectionNames) {
    for (const { id } of change[part].upserts) touched.push({ part, id });
    for (const id of change[part].removals) touched.push({ part, id });
  }
  for (const part of singletonNames) if (change[part] !== null) touched.push({ part, id: null });
  return touched;
}

/** The action on an object of a change. */
export function actionOn({ before, after }: Changed, { part, id }: Touched) {
  if (id === null) return { action: "update", kind: part, object_id: null, object_name: null };
  const collection = part as CollectionName;
  const [isOld, isNow] = [before[collection].has(id), after[collection].has(id)];
  const label = labelOf(isNow ? after : before, { collection, id });
  return {
    action: isNow ? (isOld ? "update" : "create") : "delete",
    kind: kindOf(part),
    object_id: id,
    object_name: /"(.*)"$/s.exec(label)?.[1] ?? null,
  };
}

/**
 * One entry for each object that a change wrote or deleted; of more than `most`, the retention of the log, only the last ones.
 */
export function* auditSteps(
  changed: Changed,
  by: Actor,
  { at, revision, most }: { readonly at: string; readonly revision: number; readonly most: number },
): Steps<AuditEntry[]> {
  const { actor, method, address } = by;
  const base = { at, actor, method, address, result: "ok", revision } as const;
  const entries: AuditEntry[] = [];
  const touched = touchedBy(changed.change);
  for (const each of touched.slice(Math.max(0, touched.length - most))) {
    entries.push({ ...base, ...actionOn(changed, each), detail: detailOn(changed, each) });
    yield;
  }
  return entries;
}

function detailOn({ before, after }: Changed, { part, id }: Touched): unknown {
  if (id === null) return detailOf(before[part as SingletonName], after[part as SingletonName]);
  const collection = part as CollectionName;
  return detailOf(before[collection].get(id) ?? null, after[collection].get(id) ?? null);
}

/** The singular of a part of the configuration: `stream_route`, `settings`. */
export const kindOf = (part: CollectionName | SingletonName): string =>
  (collectionNames as readonly string[]).includes(part) ? part.slice(0, -1) : part;

const MAX_WORD_CHARACTERS = 320;
const cut = <T extends string | null>(text: T) =>
  (text === null ? null : text.slice(0, MAX_WORD_CHARACTERS)) as T;

/** A copy of limited size, because parts of some entries come from unauthenticated clients. */
export const boundedEntry = (entry: AuditEntry): AuditEntry => ({
  ...entry,
  actor: cut(entry.actor),
  object_id: cut(entry.object_id),
  object_name: cut(entry.object_name),
  detail: entry.detail === null ? null : bounded(masked(entry.detail)),
});
