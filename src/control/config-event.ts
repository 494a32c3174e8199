// The event of a served configuration change; knows no subscriber.
import { isAdminPart } from "./admin-parts.ts";
import { actionOn, type Touched, touchedBy } from "./audit-entry.ts";
import type { ChangeEvent } from "./change-contract.ts";

export interface ConfigEvent {
  readonly revision: number;
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  /** `create service "web"`. */
  readonly summary: string;
  /** Written and deleted objects. */
  readonly changes: readonly {
    readonly action: string;
    readonly kind: string;
    readonly id: string | null;
    readonly name: string | null;
  }[];
  /** Number of changes that are not listed. */
  readonly more: number;
}

/** A longer list does not help a person, and a program has to read everything again anyway. */
const MAX_LISTED = 500;

/** Summary of a change of parts that the reader may not see. */
export const HIDDEN_SUMMARY = "change management access";

/** The event for admins, and the one for other roles; identical when nothing has to be hidden. */
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
