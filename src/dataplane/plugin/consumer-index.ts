// Consumers and credentials of one version, found by id, name or what a client shows; knows no request.
import type { CredentialType } from "../../model/credential.ts";
import type { Consumers, ConsumerView, CredentialView } from "../../pdk/context.ts";
import type { CollectionChange, ConsumerPlan, CredentialPlan } from "../../snapshot/snapshot.ts";
import { type Edit, ShardedMap } from "../router/sharded-map.ts";

interface Maps {
  readonly byId: ShardedMap<ConsumerPlan>;
  readonly byUsername: ShardedMap<ConsumerPlan>;
  readonly byCustomId: ShardedMap<ConsumerPlan>;
  readonly credentials: ShardedMap<CredentialPlan>;
  readonly byLookup: ShardedMap<CredentialPlan>;
}

/** Views of credentials that one version remembers. */
const MAX_VIEWS = 10_000;

/** Immutable; the next version shares what did not change. */
export class ConsumerIndex implements Consumers {
  readonly #maps: Maps;
  readonly #views = new Map<string, CredentialView>();

  private constructor(maps: Maps) {
    this.#maps = maps;
  }

  static readonly empty = ConsumerIndex.#create();

  static #create(): ConsumerIndex {
    const edit: Edit = {};
    return new ConsumerIndex({
      byId: ShardedMap.empty(edit),
      byUsername: ShardedMap.empty(edit),
      byCustomId: ShardedMap.empty(edit),
      credentials: ShardedMap.empty(edit),
      byLookup: ShardedMap.empty(edit),
    });
  }

  /** The same index when nothing changed. */
  with(
    consumers: CollectionChange<ConsumerPlan>,
    credentials: CollectionChange<CredentialPlan>,
  ): ConsumerIndex {
    if (isNothing(consumers) && isNothing(credentials)) return this;
    const edit: Edit = {};
    const maps = Object.fromEntries(
      Object.entries(this.#maps).map(([name, map]) => [
        name,
        (map as ShardedMap<unknown>).editable(edit),
      ]),
    ) as unknown as Maps;
    for (const id of idsOf(consumers)) forgetConsumer(maps, id);
    for (const consumer of consumers.upserts) {
      maps.byId.set(consumer.id, consumer);
      maps.byUsername.set(consumer.username, consumer);
      if (consumer.customId !== null) maps.byCustomId.set(consumer.customId, consumer);
    }
    for (const id of idsOf(credentials)) forgetCredential(maps, id);
    for (const credential of credentials.upserts) {
      maps.credentials.set(credential.id, credential);
      for (const key of lookupsOf(credential)) maps.byLookup.set(key, credential);
    }
    return new ConsumerIndex(maps);
  }

  byId(id: string): ConsumerView | null {
    return this.#maps.byId.get(id) ?? null;
  }

  byUsername(username: string): ConsumerView | null {
    return this.#maps.byUsername.get(username) ?? null;
  }

  byCustomId(customId: string): ConsumerView | null {
    return this.#maps.byCustomId.get(customId) ?? null;
  }

  credential(type: CredentialType, key: string): CredentialView | null {
    const plan = this.#maps.byLookup.get(`${type} ${key}`);
    if (plan === undefined) return null;
    const known = this.#views.get(plan.id);
    if (known !== undefined) return known;
    const consumer = this.byId(plan.consumerId);
    // That of a consumer that is switched off counts as none.
    if (consumer === null) return null;
    const view = { ...plan, consumer };
    if (this.#views.size >= MAX_VIEWS) this.#views.clear();
    this.#views.set(plan.id, view);
    return view;
  }
}

const isNothing = ({ upserts, removals }: CollectionChange<unknown>) =>
  upserts.length + removals.length === 0;

const idsOf = ({ upserts, removals }: CollectionChange<{ readonly id: string }>) => [
  ...removals,
  ...upserts.map(({ id }) => id),
];

function forgetConsumer(maps: Maps, id: string): void {
  const old = maps.byId.get(id);
  if (old === undefined) return;
  maps.byId.delete(id);
  // Its name may belong to another one by now.
  if (maps.byUsername.get(old.username) === old) maps.byUsername.delete(old.username);
  const { customId } = old;
  if (customId !== null && maps.byCustomId.get(customId) === old) maps.byCustomId.delete(customId);
}

function forgetCredential(maps: Maps, id: string): void {
  const old = maps.credentials.get(id);
  if (old === undefined) return;
  maps.credentials.delete(id);
  for (const key of lookupsOf(old)) if (maps.byLookup.get(key) === old) maps.byLookup.delete(key);
}

/** A key is found by its hash, and by the one that it was rotated from. */
function lookupsOf({ type, identifier, hash, previous }: CredentialPlan): string[] {
  if (type !== "key") return [`${type} ${identifier ?? ""}`];
  const hashes = [hash, previous?.hash ?? null].filter((each) => each !== null);
  return hashes.map((each) => `key ${each}`);
}
