// What listeners are told about a change that every worker serves; knows no listener.
import { isAdminPart } from "./admin-parts.ts";
import { actionOn, type Touched, touchedBy } from "./audit-entry.ts";
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

/** What stands for a change of parts that the reader may not see. */
export const HIDDEN_SUMMARY = "change management access";

/** The event for admins, and the one for everybody else; both the same when there is nothing to hide. */
export function configEventsOf(event: ChangeEvent): {
  readonly full: ConfigEvent;
  readonly reduced: ConfigEvent;
} {
  const { revision, at, actor, summary } = event;
  const touched = touchedBy(event.change);
  const listOf = (all: readonly Touched[]) => ({
    changes: all.slice(0, MAX_LISTED).map((each) => {
      const { action, kind, object_id: id, object_name: name } = actionOn(event, each);
      return { action, kind, id, name };
    }),
    more: Math.max(0, all.length - MAX_LISTED),
  });
  const full = { revision, at, actor, summary, ...listOf(touched) };
  const visible = touched.filter(({ part }) => !isAdminPart(part));
  if (visible.length === touched.length) return { full, reduced: full };
  const others = visible.length === 0 ? HIDDEN_SUMMARY : "change the configuration";
  return { full, reduced: { revision, at, actor, summary: others, ...listOf(visible) } };
}
