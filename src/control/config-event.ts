// What listeners are told about a change that every worker serves; knows no listener.
import { adminParts } from "./admin-parts.ts";
import { kindOf } from "./audit-entry.ts";
import type { ChangeEvent } from "./change.ts";

export interface ConfigEvent {
  readonly revision: number;
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  /** `create service "web"`. */
  readonly summary: string;
  /** What was written and deleted. */
  readonly changes: readonly {
    readonly action: string;
    readonly kind: string;
    readonly id: string | null;
    readonly name: string | null;
  }[];
  /** How many more there were than are listed. */
  readonly more: number;
}

/** A longer list says no more to a person, and a program has to read everything again anyway. */
const MAX_LISTED = 500;

const ADMIN_KINDS: readonly string[] = adminParts.map((part) => kindOf(part));

/** What stands for a change of parts that the reader may not see. */
export const HIDDEN_SUMMARY = "change management access";

/** The event for admins, and the one for everybody else; both the same when there is nothing to hide. */
export function configEventsOf(event: ChangeEvent): {
  readonly full: ConfigEvent;
  readonly reduced: ConfigEvent;
} {
  const { revision, at, actor, summary, audit } = event;
  const changes = audit.map(({ action, kind, object_id, object_name }) => ({
    action,
    kind,
    id: object_id,
    name: object_name,
  }));
  const listOf = (all: typeof changes) => ({
    changes: all.slice(0, MAX_LISTED),
    more: Math.max(0, all.length - MAX_LISTED),
  });
  const full = { revision, at, actor, summary, ...listOf(changes) };
  const visible = changes.filter(({ kind }) => !ADMIN_KINDS.includes(kind));
  if (visible.length === changes.length) return { full, reduced: full };
  const others = visible.length === 0 ? HIDDEN_SUMMARY : "change the configuration";
  return { full, reduced: { revision, at, actor, summary: others, ...listOf(visible) } };
}
