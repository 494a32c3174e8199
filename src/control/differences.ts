// The changes of each object, field by field, secrets masked, for a preview; changes nothing.
import {
  type CollectionName,
  collectionNames,
  type ConfigChange,
  type GatewayConfig,
  singletonNames,
} from "../model/gateway-config.ts";
import { finish, type Steps } from "../pace.ts";
import { isAdminPart, type Part } from "./admin-parts.ts";
import { type Difference, fieldChanges } from "./audit-detail.ts";
import { kindOf } from "./audit-entry.ts";
import { labelOf } from "./reference.ts";

export interface ObjectDifference {
  readonly action: "create" | "update" | "delete";
  /** `route`, `settings`. */
  readonly kind: string;
  /** Null for a singleton. */
  readonly id: string | null;
  readonly name: string | null;
  readonly diff: readonly Difference[];
}

export interface Changed {
  readonly before: GatewayConfig;
  readonly after: GatewayConfig;
  readonly change: ConfigChange;
}

/** With more objects than these, created and deleted ones have no fields: the list would be too long to read. */
const MAX_WHOLE = 500;

/** One entry for each object that a change writes or deletes; times alone make no entry. */
export const objectDifferences = (
  ...task: Parameters<typeof differenceSteps>
): ObjectDifference[] => finish(differenceSteps(...task));

/** The same in steps. */
export function* differenceSteps(
  changed: Changed,
  { withAdminParts }: { readonly withAdminParts: boolean },
): Steps<ObjectDifference[]> {
  const { before, after, change } = changed;
  const mayShow = (part: Part) => withAdminParts || !isAdminPart(part);
  const touched = collectionNames.filter(mayShow).flatMap((name) => {
    const { upserts, removals } = change[name];
    return [...upserts.map(({ id }) => id), ...removals].map((id) => ({ name, id }));
  });
  const isWhole = touched.length <= MAX_WHOLE;
  const entries: ObjectDifference[] = [];
  for (const { name, id } of touched) {
    entries.push(describe(changed, { name, id, isWhole }));
    yield;
  }
  const singles = singletonNames
    .filter((name) => mayShow(name) && change[name] !== null)
    .map((name): ObjectDifference => ({
      action: "update",
      kind: kindOf(name),
      id: null,
      name: null,
      diff: fieldChanges(before[name], after[name]),
    }));
  return [...entries, ...singles].filter(
    ({ action, diff }) => action !== "update" || diff.length > 0,
  );
}

function describe(
  { before, after }: Changed,
  object: { readonly name: CollectionName; readonly id: string; readonly isWhole: boolean },
): ObjectDifference {
  const { name: collection, id, isWhole } = object;
  const [old, now] = [before[collection].get(id), after[collection].get(id)];
  const label = labelOf(now === undefined ? before : after, { collection, id });
  const action = now === undefined ? "delete" : old === undefined ? "create" : "update";
  return {
    action,
    kind: kindOf(collection),
    id,
    name: /"(.*)"$/s.exec(label)?.[1] ?? null,
    diff: isWhole || action === "update" ? fieldChanges(old ?? null, now ?? null) : [],
  };
}
