// Deletes an object with what belongs to it, and with what refers to it if that was asked for; knows no HTTP.
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

/** Returns the labels of everything that went with the object; throws a 409 with the names when something refers to it. */
export function deleteWithOwned(draft: Draft, object: Reference, cascade: boolean): string[] {
  const { config } = draft;
  const found = new Map<string, Reference>([[object.id, object]]);
  // A map that grows while it is walked: what is added is visited too.
  for (const reference of found.values()) {
    // What goes anyway keeps nothing.
    const referrers = referrersOf(config, reference).filter(({ id }) => !found.has(id));
    // What always exists cannot go with the object.
    const keepers = cascade
      ? referrers.filter(({ collection }) => isSingleton(collection))
      : referrers;
    if (keepers.length > 0) {
      const labels = keepers.map((referrer) => labelOf(config, referrer));
      throw new ApiError(409, `${labelOf(config, reference)} is used by ${enumerate(labels)}`);
    }
    for (const other of [...referrers.filter(isObject), ...ownedBy(config, reference)])
      found.set(other.id, other);
  }
  const gone = [...found.values()];
  const labels = gone.slice(1).map((reference) => labelOf(config, reference));
  for (const { collection, id } of gone) draft.remove(collection, id);
  return labels;
}

const isObject = (referrer: Referrer): referrer is Reference => !isSingleton(referrer.collection);

function enumerate(labels: readonly string[]): string {
  const more = labels.length - MAX_NAMES;
  const named = labels.slice(0, MAX_NAMES).join(", ");
  return more > 0 ? `${named} and ${more} more` : named;
}
