// A large change as the text that is written of it, made before the transaction that keeps everybody waiting; knows no table.
import type { Identity } from "../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  type ConfigChange,
  singletonNames,
} from "../model/gateway-config.ts";
import type { Steps } from "../pace.ts";
import { documentOf } from "./collection.ts";

/** Of a change of more objects than these. */
export const LARGE_CHANGE = 500;

export interface StagedChange {
  /** The documents of the objects that the change writes. */
  readonly documents: ReadonlyMap<Identity, string>;
  /** What the history keeps of it. */
  readonly revision: string;
}

export const isLargeChange = (change: ConfigChange): boolean =>
  collectionNames.reduce(
    (size, name) => size + change[name].upserts.length + change[name].removals.length,
    0,
  ) > LARGE_CHANGE;

/** The same text as of `JSON.stringify(toStoredChange(change, undo))`, but for the order of members. */
export function* stageSteps(change: ConfigChange, undo: ConfigChange): Steps<StagedChange> {
  const documents = new Map<Identity, string>();
  const parts = yield* partsOf(change, documents);
  const undone = yield* partsOf(undo, new Map());
  return { documents, revision: `{${[...parts, `"undo":{${undone.join(",")}}`].join(",")}}` };
}

/** Members of the stored change; what it does not touch is missing. */
function* partsOf(change: ConfigChange, documents: Map<Identity, string>): Steps<string[]> {
  const parts: string[] = [];
  for (const name of collectionNames) {
    const { upserts, removals } = change[name];
    if (upserts.length + removals.length === 0) continue;
    const objects: string[] = [];
    for (const object of upserts as readonly Identity[]) {
      const document = documentOf(object);
      documents.set(object, document);
      objects.push(withIdentity(object, document));
      yield;
    }
    parts.push(memberOf(name, `[${objects.join(",")}]`, removals));
  }
  for (const name of singletonNames)
    if (change[name] !== null) parts.push(`"${name}":${JSON.stringify(change[name])}`);
  return parts;
}

const memberOf = (name: CollectionName, upserts: string, removals: readonly string[]) =>
  `"${name}":{"upserts":${upserts},"removals":${JSON.stringify(removals)}}`;

function withIdentity({ id, created_at, updated_at }: Identity, document: string): string {
  const identity = JSON.stringify({ id, created_at, updated_at });
  return document === "{}" ? identity : `${identity.slice(0, -1)},${document.slice(1)}`;
}
