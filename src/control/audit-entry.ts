// An entry of the audit log; knows no table.
import {
  type CollectionName,
  collectionNames,
  type ConfigChange,
  type GatewayConfig,
  type SingletonName,
  singletonNames,
} from "../model/gateway-config.ts";
import type { Actor } from "./principal.ts";
import { bounded, detailOf, masked } from "./audit-detail.ts";
import { labelOf } from "./reference.ts";

export interface AuditEntry {
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  /** Authentication method of the actor; `none` for an unknown one. */
  readonly method: Actor["method"] | "none";
  readonly address: string;
  /** `create`, `update`, `delete`, `login`, `logout` and so on. */
  readonly action: string;
  /** `user`, `route`, `session` and so on. */
  readonly kind: string;
  readonly object_id: string | null;
  readonly object_name: string | null;
  readonly result: "ok" | "refused" | "failed";
  /** The revision of the change; null without a change of the configuration. */
  readonly revision: number | null;
  /** For a change: the object before and after it, secrets masked, and for an update the differences. */
  readonly detail: unknown;
}

/** Records actions that change no configuration: logins, rejected requests and the like. */
export interface AuditSink {
  record(entry: Omit<AuditEntry, "at">): void;
}

/** A change with the configurations before and after it. */
interface Changed {
  readonly before: GatewayConfig;
  readonly after: GatewayConfig;
  readonly change: ConfigChange;
}

/** One entry for each object that a change wrote or deleted. */
export function auditOf(
  changed: Changed,
  by: Actor,
  { at, revision }: { readonly at: string; readonly revision: number },
): AuditEntry[] {
  const { actor, method, address } = by;
  const base = { at, actor, method, address, result: "ok", revision } as const;
  const entries: AuditEntry[] = [];
  for (const name of collectionNames) {
    const { upserts, removals } = changed.change[name];
    for (const id of [...upserts.map((object) => object.id), ...removals])
      entries.push({ ...base, ...describe(changed, name, id) });
  }
  for (const name of singletonNames)
    if (changed.change[name] !== null)
      entries.push({
        ...base,
        action: "update",
        kind: name,
        object_id: null,
        object_name: null,
        detail: detailOf(changed.before[name], changed.after[name]),
      });
  return entries;
}

/** The word for one object of a part of the configuration: `stream_route`, `settings`. */
export const kindOf = (part: CollectionName | SingletonName): string =>
  (collectionNames as readonly string[]).includes(part) ? part.slice(0, -1) : part;

function describe({ before, after }: Changed, collection: CollectionName, id: string) {
  const [old, now] = [before[collection].get(id), after[collection].get(id)];
  const label = labelOf(now === undefined ? before : after, { collection, id });
  return {
    action: now === undefined ? "delete" : old === undefined ? "create" : "update",
    kind: kindOf(collection),
    object_id: id,
    object_name: /"(.*)"$/s.exec(label)?.[1] ?? null,
    detail: detailOf(old ?? null, now ?? null),
  };
}

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
