// The history of the configuration: who changed what when, restoring any stored revision, undoing one; knows no HTTP.
import { decodeRecord } from "../../model/records.ts";
import type { PartialChange, RevisionHead, RevisionRow } from "../../store/revisions.ts";
import { finish, type Steps } from "../../pace.ts";
import { ApiError } from "../../model/error.ts";
import type { Identity } from "../../model/fields.ts";
import {
  type CollectionName,
  collectionNames,
  type GatewayConfig,
  mapCollections,
  type ResourceOf,
  type SingletonOf,
  singletonNames,
} from "../../model/gateway-config.ts";
import { completed } from "../../model/undo.ts";
import { findReferences } from "../../model/secret-reference.ts";
import { adminParts, isWrittenByAdmins } from "../../control/admin-parts.ts";
import type { Changes } from "../../control/change.ts";
import { HIDDEN_SUMMARY } from "../../control/config-event.ts";
import type { Draft } from "../../control/draft.ts";
import { includesRole, type Principal } from "../../control/principal.ts";
import {
  differenceSteps,
  type ObjectDifference,
  objectDifferences,
} from "../../control/differences.ts";
import { labelOf } from "../../control/reference.ts";
import type { Imported, ImportOptions } from "./transfer.ts";

/** Storage of the history. */
export interface RevisionStore {
  /** All stored revisions, oldest first. */
  heads(): readonly RevisionHead[];
  /** Null when it is not stored. */
  get(revision: number): RevisionRow | null;
  /** Numbers of revisions that changed one of these parts. */
  touching(parts: readonly string[]): ReadonlySet<number>;
  /** Those after `revision`, newest first. */
  after(revision: number): Iterable<RevisionRow>;
}

export interface RevisionView {
  readonly number: number;
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  readonly summary: string;
}

export interface RevisionDetail extends RevisionView {
  /** Why this client cannot undo it; null: it can. */
  readonly undo_problem: string | null;
  readonly changes: readonly ObjectDifference[];
}

/**
 * Parts that a restore does not change: it must restore neither a deleted admin nor a revoked token, and must not lock users
 * out. Secrets of the current single sign-on stay as well.
 */
const EXCLUDED_FROM_RESTORE = ["users", "tokens", "sso"] as const;
const isExcluded = (name: string) => (EXCLUDED_FROM_RESTORE as readonly string[]).includes(name);

type Undoing = Pick<ImportOptions, "dryRun"> & { readonly by: Principal };

/** Objects of an earlier revision; null for those that did not exist. */
type Past = Map<CollectionName, Map<string, Identity | null>>;

export class Revisions {
  readonly #changes: Changes;
  readonly #store: RevisionStore;

  constructor(changes: Changes, store: RevisionStore) {
    this.#changes = changes;
    this.#store = store;
  }

  /** All stored revisions, oldest first. */
  list({ role }: Pick<Principal, "role">): readonly RevisionView[] {
    const hidden = includesRole(role, "admin") ? new Set() : this.#store.touching(adminParts);
    return this.#store.heads().map((head) => viewOf(head, hidden.has(head.revision)));
  }

  /** A revision with its changes; throws a 404 when it is not stored. */
  get(number: number, by: Principal): RevisionDetail {
    const row = this.#existing(number);
    const isAdmin = includesRole(by.role, "admin");
    const isHidden = !isAdmin && adminParts.some((part) => row.change[part] !== undefined);
    const changed = {
      before: this.#partOf(row.undo ?? {}),
      after: this.#partOf(row.change),
      change: completed(row.change),
    };
    return {
      ...viewOf(row, isHidden),
      undo_problem: this.#undoProblem(row, by),
      changes: objectDifferences(changed, { withAdminParts: isAdmin }),
    };
  }

  /** Why `undo` would refuse it; null: it would not. */
  #undoProblem(row: RevisionRow, by: Principal): string | null {
    if (!includesRole(by.role, "editor")) return "the role editor is required";
    try {
      requireUndoable(row, by);
      finish(requireUntouched(this.#changes.config, row));
      return null;
    } catch (error) {
      if (error instanceof ApiError) return error.message;
      throw error;
    }
  }

  /** Restores the state after revision `number`, as a new revision. */
  async restore(
    number: number,
    { by, dryRun, force }: Pick<ImportOptions, "dryRun" | "force"> & { readonly by: Principal },
  ): Promise<Imported> {
    const { value, ...served } = await this.#changes.run({
      by,
      dryRun,
      force: force === true,
      mutate: async (draft, pace) => {
        this.#existing(number);
        const { past, singletons } = this.#pastOf(number);
        for (const [name, objects] of past) await pace.run(restoreSteps(draft, name, objects));
        for (const name of singletonNames) {
          const old = singletons[name];
          if (old === undefined || Bun.deepEquals(old, draft.base[name])) continue;
          draft.putSingleton(name, old as never);
        }
        draft.summary = `restore revision ${number}`;
        const changed = { before: draft.base, after: draft.config, change: draft.change() };
        return await pace.run(differenceSteps(changed, { withAdminParts: true }));
      },
    });
    return { changes: value, ...served };
  }

  /**
   * Reverts the change of one revision, as a new revision; other changes stay. Throws a 409 when another change has changed the
   * same objects since, and a 403 for a change of another user.
   */
  async undo(number: number, { by, dryRun }: Undoing): Promise<Imported> {
    const { value, ...served } = await this.#changes.run({
      by,
      dryRun,
      mutate: async (draft, pace) => {
        const row = this.#existing(number);
        const { change } = row;
        const undo = requireUndoable(row, by);
        await pace.run(requireUntouched(draft.base, row));
        const past: Past = new Map();
        revert(undo, past);
        for (const [name, objects] of past) await pace.run(restoreSteps(draft, name, objects));
        const { settings } = undo;
        if (change.settings && settings)
          draft.putSingleton("settings", decodeSingleton("settings", settings) as never);
        draft.summary = `undo revision ${number}: ${row.summary}`;
        const changed = { before: draft.base, after: draft.config, change: draft.change() };
        return await pace.run(differenceSteps(changed, { withAdminParts: true }));
      },
    });
    return { changes: value, ...served };
  }

  #existing(number: number): RevisionRow {
    const row = this.#store.get(number);
    if (row === null) throw new ApiError(404, `revision ${number} does not exist or is not kept`);
    return row;
  }

  /** Reverts from the current revision, one at a time. */
  #pastOf(number: number): {
    readonly past: Past;
    readonly singletons: Partial<SingletonOf>;
  } {
    const past: Past = new Map();
    const singletons: Record<string, unknown> = {};
    for (const { undo } of this.#store.after(number)) {
      if (undo === null)
        throw new ApiError(
          409,
          `revision ${number} cannot be restored: later revisions are no longer stored`,
        );
      revert(undo, past);
      for (const name of singletonNames)
        if (!isExcluded(name) && undo[name]) singletons[name] = decodeSingleton(name, undo[name]);
    }
    return { past, singletons: singletons as Partial<SingletonOf> };
  }

  /** A configuration with the objects of a change; the rest is the current one, which gives the names of other objects. */
  #partOf(change: PartialChange): GatewayConfig {
    const { config } = this.#changes;
    const collections = mapCollections(
      (name) => new Map((change[name]?.upserts ?? []).map((object) => [object.id, object])),
    ) as unknown as Pick<GatewayConfig, CollectionName>;
    const settings = change.settings ?? config.settings;
    return { ...config, ...collections, settings, sso: change.sso ?? config.sso };
  }
}

const viewOf = (
  { revision: number, at, actor, summary }: RevisionHead,
  isHidden: boolean,
): RevisionView => ({ number, at, actor, summary: isHidden ? HIDDEN_SUMMARY : summary });

/** What reverts it; throws a 409 or 403. */
function requireUndoable({ revision, actor, change, undo }: RevisionRow, by: Principal) {
  const parts = Object.keys(change);
  const kept = parts.find(isExcluded);
  if (kept !== undefined)
    throw new ApiError(409, `revision ${revision} cannot be undone: it changed ${kept}`);
  if (actor !== by.actor)
    throw new ApiError(403, `revision ${revision} is a change of ${actor}: only they may undo it`);
  const isAdmin = includesRole(by.role, "admin");
  if (!isAdmin && parts.some(isWrittenByAdmins))
    throw new ApiError(403, "the role admin is required");
  if (undo === null) throw new ApiError(409, `revision ${revision} cannot be undone`);
  return undo;
}

/** Throws a 409 when an object is no longer as the revision left it. */
function* requireUntouched(config: GatewayConfig, { revision, change }: RevisionRow): Steps<void> {
  const refuse = (what: string) =>
    new ApiError(
      409,
      `revision ${revision} cannot be undone: ${what} has changed since; see the later revisions`,
    );
  for (const name of collectionNames) {
    const objects: ReadonlyMap<string, Identity> = config[name];
    const { upserts, removals } = change[name] ?? { upserts: [], removals: [] };
    for (const object of upserts) {
      if (!Bun.deepEquals(decodeObject(name, object), objects.get(object.id)))
        throw refuse(labelOf(config, { collection: name, id: object.id }));
      yield;
    }
    const back = removals.find((id) => objects.has(id));
    if (back !== undefined) throw refuse(labelOf(config, { collection: name, id: back }));
  }
  const { settings } = change;
  if (settings && !Bun.deepEquals(decodeSingleton("settings", settings), config.settings))
    throw refuse("settings");
}

function revert(undo: PartialChange, past: Past): void {
  for (const name of collectionNames) {
    const part = undo[name];
    if (part === undefined || isExcluded(name)) continue;
    const objects = past.get(name) ?? new Map<string, Identity | null>();
    past.set(name, objects);
    for (const object of part.upserts) objects.set(object.id, object);
    for (const id of part.removals) objects.set(id, null);
  }
}

function* restoreSteps(
  draft: Draft,
  name: CollectionName,
  objects: ReadonlyMap<string, Identity | null>,
): Steps<void> {
  for (const [id, object] of objects) {
    const now: Identity | undefined = draft.base[name].get(id);
    // Its source decides what becomes of it.
    if ((now ?? object)?.managed_by !== undefined) continue;
    if (object !== null) restoreObject(draft, name, object);
    else if (!isNeeded(draft, name, id)) draft.remove(name, id);
    yield;
  }
  draft.sortByAge(name);
}

function restoreObject(draft: Draft, name: CollectionName, object: Identity): void {
  const next = decodeObject(name, object);
  if (!Bun.deepEquals(next, draft.base[name].get(next.id))) draft.put(name, next);
}

/** A newer or older version of the gateway may have written it. */
function decodeObject(name: CollectionName, object: Identity): ResourceOf[CollectionName] {
  const { id, created_at, updated_at, ...document } = object;
  const fields = decodeRecord[name](document);
  return { id, ...fields, created_at, updated_at } as ResourceOf[CollectionName];
}

/** Whether single sign-on, which a restore does not change, refers to the secret. */
function isNeeded(draft: Draft, name: CollectionName, id: string): boolean {
  if (name !== "secrets") return false;
  const secret = draft.base.secrets.get(id);
  return findReferences(draft.base.sso).some((reference) => reference.name === secret?.name);
}

function decodeSingleton(name: (typeof singletonNames)[number], value: object): unknown {
  const { updated_at, ...document } = value as { readonly updated_at: string };
  return { ...decodeRecord[name](document), updated_at };
}
