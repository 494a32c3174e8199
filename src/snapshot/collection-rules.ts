// Rules that hold for every collection: names are unique and no ids, what is referred to exists, and those of its definition.
import { type Identity, UUID_PATTERN } from "../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type GatewayConfig,
  largeFactsOf,
} from "../model/gateway-config.ts";
import { findBy, LayeredMap } from "../model/layered-map.ts";
import type { FieldChecks } from "../model/object-rules.ts";
import type { IndexOf } from "../model/rows.ts";
import { idsAt } from "../model/resource.ts";
import { suggestedName } from "../model/suggestion.ts";
import type { Steps } from "../pace.ts";
import type { Candidate } from "./candidate.ts";
import type { ProblemList } from "./problem.ts";

export function* checkCollections(
  candidate: Candidate,
  checks: FieldChecks,
  list: ProblemList,
): Steps<void> {
  for (const name of collectionNames) {
    yield* checkReferences(name, candidate, list);
    yield* checkNames(name, candidate, list);
    const { rules } = definitionOf(name);
    if (rules === undefined) continue;
    for (const object of candidate.difference[name].upserts) {
      rules(object, checks, list.of(name, object.id));
      yield;
    }
  }
}

/** Unique names: only new names are compared, with all others of the collection. */
function* checkNames(
  collection: CollectionName,
  { config, previous, difference }: Candidate,
  list: ProblemList,
): Steps<void> {
  const { nameField, columns, word, takenText } = definitionOf(collection);
  if (nameField === null) return;
  // One function for each collection, because an index is found by it.
  const nameOf = columns[nameField]?.of as IndexOf<Identity>;
  const before: ReadonlyMap<string, Identity> | undefined = previous?.[collection];
  const wanted = new Map<string, string>();
  for (const object of difference[collection].upserts) {
    yield;
    const name = nameOf(object);
    if (name === null) continue;
    if (UUID_PATTERN.test(name))
      list.of(collection, object.id)(nameField, "must not look like an id");
    const old = before?.get(object.id);
    if (old === undefined || nameOf(old) !== name) wanted.set(name, object.id);
  }
  if (wanted.size === 0) return;
  const report = (name: string, id: string) =>
    list.of(collection, id)(nameField, takenText ?? `${word} "${name}" exists already`, 409);
  const objects: ReadonlyMap<string, Identity> = config[collection];
  if (objects instanceof LayeredMap) {
    for (const [name, id] of wanted)
      if (findBy(objects, nameOf, { value: name, except: id }).length > 0) report(name, id);
    return;
  }
  for (const object of objects.values()) {
    const name = nameOf(object);
    const claimant = name === null ? undefined : wanted.get(name);
    if (name !== null && claimant !== undefined && claimant !== object.id) report(name, claimant);
  }
}

/** A name that is none of an object stays in the place of the id. */
function missingText(config: GatewayConfig, to: CollectionName, id: string): string {
  const { word, nameField } = definitionOf(to);
  if (id === "" || nameField === null || UUID_PATTERN.test(id)) return `${word} does not exist`;
  const nameOf = (object: object) => (object as Readonly<Record<string, unknown>>)[nameField];
  return `${word} "${id}" does not exist${suggestedName(id, config[to], nameOf)}`;
}

/** Unchanged objects may refer to deleted ones. */
function* checkReferences(
  collection: CollectionName,
  { config, difference }: Candidate,
  list: ProblemList,
): Steps<void> {
  const { references } = definitionOf(collection);
  const removed = new Set(references.flatMap(({ to }) => difference[to].removals));
  const missing = (to: CollectionName, id = "") => missingText(config, to, id);
  const index = largeFactsOf(collection)?.ownerIndex as IndexOf<Identity> | undefined;
  const all: ReadonlyMap<string, Identity> = config[collection];
  const isAll = removed.size > 0 && index === undefined;
  for (const object of isAll ? all.values() : difference[collection].upserts) {
    for (const field of references)
      for (const { path, id } of idsAt(field, object))
        if (!config[field.to].has(id)) list.of(collection, object.id)(path, missing(field.to, id));
    yield;
  }
  if (index === undefined) return;
  const owner = references.find(({ isOwner }) => isOwner);
  for (const value of removed)
    for (const { id } of findBy(all, index, { value }))
      if (owner !== undefined) list.of(collection, id)(owner.path, missing(owner.to));
}
