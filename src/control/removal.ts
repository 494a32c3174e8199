// Deletes an object with the objects it owns, and on request those that refer to it; knows no HTTP.
import { ApiError } from "../model/error.ts";
import type { Draft } from "./draft.ts";
import {
  isSingleton,
  labelOf,
  ownedBy,
  type Reference,
  type Referrer,
  referrersOf,
} from "./reference.ts";

const MAX_NAMES = 10;

/** Returns the labels of all other deleted objects; throws a 409 with the names of referrers. */
export function deleteWithOwned(draft: Draft, object: Reference, cascade: boolean): string[] {
  const { config } = draft;
  const found = new Map<string, Reference>([[object.id, object]]);
  // The map grows during the iteration, which also visits added entries.
  for (const reference of found.values()) {
    // A referrer that is deleted anyway does not prevent the deletion.
    const referrers = referrersOf(config, reference).filter(({ id }) => !found.has(id));
    // Singletons cannot be deleted.
    const blockers = cascade
      ? referrers.filter(({ collection }) => isSingleton(collection))
      : referrers;
    if (blockers.length > 0) {
      const labels = blockers.map((referrer) => labelOf(config, referrer));
      throw new ApiError(409, `${labelOf(config, reference)} is used by ${enumerate(labels)}`);
    }
    for (const other of [...referrers.filter(isObject), ...ownedBy(config, reference)])
      found.set(other.id, other);
  }
  const deleted = [...found.values()];
  const labels = deleted.slice(1).map((reference) => labelOf(config, reference));
  for (const { collection, id } of deleted) draft.remove(collection, id);
  return labels;
}

const isObject = (referrer: Referrer): referrer is Reference => !isSingleton(referrer.collection);

function enumerate(labels: readonly string[]): string {
  const more = labels.length - MAX_NAMES;
  const named = labels.slice(0, MAX_NAMES).join(", ");
  return more > 0 ? `${named} and ${more} more` : named;
}
