// Writes an imported file into a draft: checks objects by schema, encrypts secrets, removes missing objects. No HTTP.
import { decodeRecord } from "../../model/records.ts";
import { ApiError, invalid } from "../../model/error.ts";
import { DOCUMENT_FORMAT, documentMembers, type ImportMode } from "../../model/export-document.ts";
import {
  type CollectionName,
  collectionNames,
  type ResourceOf,
  type SingletonName,
  type SingletonOf,
  singletonNames,
} from "../../model/gateway-config.ts";
import { suggestion } from "../../model/suggestion.ts";
import { finish, type Steps } from "../../pace.ts";
import type { Identity } from "../../model/fields.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import { type Document, isDocument } from "../../control/body.ts";
import type { Draft } from "../../control/draft.ts";
import { ownedBy } from "../../control/reference.ts";
import type { ImportNormalizers } from "./import-normalizers.ts";
import { type Identified, identify, type IdentifyOptions, type Item } from "./identities.ts";
import { withoutLostKeys } from "./lost-keys.ts";
import { implicitObjectsOf } from "./implicit-objects.ts";
import { withPresentNames } from "./renamed-fields.ts";
import { sealSecrets } from "./secret-material.ts";
import { splitMessage } from "./source.ts";

export interface PlanOptions extends Pick<IdentifyOptions, "keepsIds"> {
  readonly mode: ImportMode;
  readonly box: SecretBox;
  /** Value of a mask without a stored value; default: the mask is rejected. */
  readonly standsFor?: string;
  /** Objects that have passed their schema and have no secret; default: none. */
  readonly decoded?: WeakSet<object>;
  /** Gets each error, and the steps go on without what it is about. Default: the first one is thrown. */
  readonly onError?: OnError;
}

/** `id`: of the object that is left out. */
export type OnError = (error: ApiError, id: string | null) => void;

/**
 * Brings `source` into the draft. Collections and objects that it does not name stay as they are. Throws the ApiError of
 * the first thing that is wrong, `routes[3].hosts[0]: ...`.
 */
export function* applySteps(
  source: unknown,
  draft: Draft,
  options: PlanOptions & { readonly normalizers?: ImportNormalizers },
): Steps<Pick<Identified, "renamed">> {
  if (!isDocument(source)) throw invalid("", "the configuration file must be an object");
  for (const problem of memberProblems(source)) fail(problem, options);
  const { document, warnings } = withPresentNames(source);
  for (const warning of warnings) draft.warn(warning);
  const { items: given, renamed } = yield* identify(document, draft.base, options);
  // A check without a gateway has no keys at all.
  const items = options.standsFor === undefined ? withoutLostKeys(given, draft.base) : given;
  // One for all: thousands of unique times would run ahead of the clock.
  const now = draft.stamp();
  for (const item of items) {
    attempt(() => writeItem(item, draft, { ...options, now }), options, item.id);
    yield;
  }
  if (options.mode === "replace") removeOthers(document, items, draft);
  yield* removeUnlisted(items, draft);
  for (const name of singletonNames)
    if (document[name] !== undefined)
      attempt(() => writeSingleton({ name, value: document[name] }, draft, options), options);
  for (const name of collectionNames) draft.sortByAge(name);
  return { renamed };
}

/** The same at once. */
export const applyDocument = (
  ...task: Parameters<typeof applySteps>
): Pick<Identified, "renamed"> => finish(applySteps(...task));

function* memberProblems(document: Document): Generator<ApiError> {
  const { format } = document;
  if (typeof format !== "number" || !Number.isInteger(format) || format < 1)
    yield invalid("format", `must be ${DOCUMENT_FORMAT}`);
  else if (format > DOCUMENT_FORMAT)
    yield invalid(
      "format",
      `${format} was written by a newer program; this one reads ${DOCUMENT_FORMAT}`,
    );
  const known: readonly string[] = [...documentMembers, ...collectionNames, ...singletonNames];
  for (const name of Object.keys(document))
    if (!known.includes(name))
      yield invalid(name, `is not a known field${suggestion(name, known)}`);
}

function fail(error: ApiError, { onError }: PlanOptions, id: string | null = null): void {
  if (onError === undefined) throw error;
  for (const each of [error, ...error.others]) onError(each, id);
}

function attempt(work: () => void, options: PlanOptions, id: string | null = null): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    fail(error, options, id);
  }
}

/** The list of targets in a service is whole. */
function* removeUnlisted(items: readonly Item[], draft: Draft): Steps<void> {
  const whole = new Set(items.filter(({ hasTargets }) => hasTargets).map(({ id }) => id));
  if (whole.size === 0) return;
  const listed = new Set(items.map(({ id }) => id));
  for (const { id, service_id: owner } of [...draft.config.targets.values()]) {
    if (whole.has(owner) && !listed.has(id)) draft.remove("targets", id);
    yield;
  }
}

function writeItem(
  item: Item,
  draft: Draft,
  options: PlanOptions & { readonly normalizers?: ImportNormalizers; readonly now: string },
): void {
  const { collection, id, path } = item;
  const old = draft.base[collection].get(id);
  draft.setPath(id, path);
  try {
    const decoded = item.isDecoded
      ? item.fields
      : (decodeRecord[collection](sealSecrets(item.fields, { ...options, old })) as Document);
    const before = old as Document | undefined;
    const fields = options.normalizers?.[collection]?.(decoded, before) ?? decoded;
    const times = timesOf(item, old, { now: options.now, isExact: options.mode === "replace" });
    if (old !== undefined && Bun.deepEquals({ ...old, ...fields }, old)) {
      // Unchanged except times: only `replace` with explicit times writes it.
      if (options.mode === "merge" || (item.updatedAt ?? null) === null) return;
      if (times.created_at === old.created_at && times.updated_at === old.updated_at) return;
    }
    draft.put(collection, { id, ...fields, ...times } as unknown as ResourceOf[CollectionName]);
  } catch (error) {
    throw inside(error, path);
  }
}

function timesOf(
  { createdAt, updatedAt }: Item,
  old: Identity | undefined,
  { now, isExact }: { readonly now: string; readonly isExact: boolean },
) {
  const given = [timeOf("created_at", createdAt), timeOf("updated_at", updatedAt)] as const;
  const [created, updated] = isExact || old === undefined ? given : [null, null];
  const created_at = created ?? old?.created_at ?? now;
  return { created_at, updated_at: updated ?? (old === undefined ? created_at : now) };
}

/** The time in canonical form, so that texts compare correctly. */
function timeOf(field: string, value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw invalid(field, "must be a time, such as 2026-01-31T12:00:00Z");
  return new Date(time).toISOString();
}

function removeOthers(document: Document, items: readonly Item[], draft: Draft): void {
  const retained = new Set([...items.map(({ id }) => id), ...implicitObjectsOf(items, draft.base)]);
  for (const name of collectionNames) {
    if (document[name] === undefined) continue;
    for (const { id, managed_by } of draft.base[name].values() as Iterable<Identity>) {
      if (retained.has(id) || managed_by !== undefined) continue;
      // Targets make no sense without their service, also when the file has no list of targets.
      for (const owned of ownedBy(draft.base, { collection: name, id }))
        if (document[owned.collection] === undefined) draft.remove(owned.collection, owned.id);
      draft.remove(name, id);
    }
  }
}

function writeSingleton<K extends SingletonName>(
  { name, value }: { readonly name: K; readonly value: unknown },
  draft: Draft,
  options: PlanOptions,
): void {
  if (!isDocument(value)) throw invalid(name, "must be an object");
  const { updated_at: updatedAt, ...given } = value;
  const old = draft.base[name];
  draft.setPath(name, name);
  try {
    const sealed = sealSecrets(given, { ...options, old });
    const fields = decodeRecord[name](sealed);
    const updated = timeOf("updated_at", updatedAt);
    const isSame = Bun.deepEquals({ ...fields, updated_at: old.updated_at }, old);
    if (isSame && (options.mode === "merge" || updated === null || updated === old.updated_at))
      return;
    const at = updated ?? draft.stamp();
    draft.putSingleton(name, { ...fields, updated_at: at } as unknown as SingletonOf[K]);
  } catch (error) {
    throw inside(error, name);
  }
}

/** The error with its path inside `parent`. */
function inside(error: unknown, parent: string): unknown {
  if (!(error instanceof ApiError)) return error;
  const { path, message } = splitMessage(error.message);
  return new ApiError(error.status, `${path === "" ? parent : `${parent}.${path}`}: ${message}`, {
    cause: error,
    others: error.others.map((other) => inside(other, parent) as ApiError),
  });
}
