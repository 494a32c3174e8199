// References and ownership between objects, and their labels in messages; one table for all collections.
import { ApiError, type Issue } from "../model/error.ts";
import type { Identity } from "../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  definitionOf,
  type GatewayConfig,
  largeFactsOf,
  type Reference as Field,
  type SingletonName,
} from "../model/gateway-config.ts";
import { findBy } from "../model/layered-map.ts";
import type { IndexOf } from "../model/rows.ts";
import { idsAt } from "../model/resource.ts";
import { referencesOf } from "../model/secret-reference.ts";
import type { Problem } from "../snapshot/problem.ts";
import type { Draft } from "./draft.ts";

/** One object of a configuration. */
export interface Reference {
  readonly collection: CollectionName;
  readonly id: string;
}

/** A referring object; the id of a singleton is empty. */
export interface Referrer {
  readonly collection: CollectionName | SingletonName;
  readonly id: string;
}

const singletonLabels: Readonly<Record<SingletonName, string>> = {
  settings: "the settings",
  sso: "single sign-on",
};

export const isSingleton = (name: CollectionName | SingletonName): name is SingletonName =>
  Object.hasOwn(singletonLabels, name);

/** `route "shop"`, `target "10.0.0.1:80"`; the id for an object without a name. */
export function labelOf(config: GatewayConfig, { collection, id }: Referrer): string {
  if (isSingleton(collection)) return singletonLabels[collection];
  return definitionOf(collection).labelOf(config[collection].get(id), id);
}

/** Objects that belong to the object and are deleted with it. */
export function ownedBy(config: GatewayConfig, { collection, id }: Reference): Reference[] {
  const owned = collectionNames.flatMap((name) => {
    const fields = definitionOf(name).references.filter((field) => field.isOwner);
    return objectsReferring(config, name, { fields, collection, id });
  });
  const object = config[collection].get(id);
  const parts = object === undefined ? [] : (definitionOf(collection).owns?.of(object) ?? []);
  return [
    ...owned,
    ...(parts as Reference[]).filter((part) => config[part.collection].has(part.id)),
  ];
}

/** Objects that use the object and so prevent its deletion. */
export function referrersOf(config: GatewayConfig, object: Reference): Referrer[] {
  if (object.collection === "secrets")
    return secretReferrersOf(config, config.secrets.get(object.id)?.name);
  return collectionNames.flatMap((name) => {
    const { references, mentions } = definitionOf(name);
    const fields = references.filter((field) => !field.isOwner);
    return objectsReferring(config, name, { fields, mentions, ...object });
  });
}

/** The objects of a collection that refer to another object. */
function objectsReferring(
  config: GatewayConfig,
  name: CollectionName,
  to: Reference & {
    readonly fields: readonly Field[];
    readonly mentions?: ((object: Identity, other: Reference) => boolean) | undefined;
  },
): Reference[] {
  const { collection, id, mentions } = to;
  const fields = to.fields.filter((field) => field.to === collection);
  if (fields.length === 0 && mentions === undefined) return [];
  const objects: ReadonlyMap<string, Identity> = config[name];
  const index = largeFactsOf(name)?.ownerIndex as IndexOf<Identity> | undefined;
  const found =
    index === undefined
      ? [...objects.values()].filter(
          (object) =>
            fields.some((field) => idsAt(field, object).some((each) => each.id === id)) ||
            mentions?.(object, { collection, id }) === true,
        )
      : findBy(objects, index, { value: id });
  return found.map((object) => ({ collection: name, id: object.id }));
}

/** Each object that refers to the secret, once. */
function secretReferrersOf(config: GatewayConfig, name: string | undefined): Referrer[] {
  const references = referencesOf(config).filter((reference) => reference.name === name);
  const referrers = references.map(({ collection, id }) => ({ collection, id }));
  return [...new Map(referrers.map((each) => [`${each.collection} ${each.id}`, each])).values()];
}

/** The first reason why a version cannot be served. */
export function refusalOf([first]: readonly (Problem | Issue)[], draft: Draft): ApiError {
  if (first === undefined) return new ApiError(400, "the configuration is invalid");
  return new ApiError(first.status, describeProblem(first, draft));
}

/** `path: message` with paths of the client's document; names an object that the client did not send. */
export function describeProblem(problem: Problem | Issue, draft: Draft): string {
  const tail = problem.path === "" ? problem.message : `${problem.path}: ${problem.message}`;
  if (!("collection" in problem)) return tail;
  const isOnly = isSingleton(problem.collection);
  const path = draft.pathOf(isOnly ? problem.collection : problem.id) ?? (isOnly ? "" : null);
  if (path === null) {
    const { collection, id } = problem as Reference;
    // The name of a deleted object is only in the base configuration.
    const named = draft.config[collection].has(id) ? draft.config : draft.base;
    return `${labelOf(named, { collection, id })}: ${tail}`;
  }
  if (path === "") return tail;
  return problem.path === "" ? `${path}: ${tail}` : `${path}.${tail}`;
}
