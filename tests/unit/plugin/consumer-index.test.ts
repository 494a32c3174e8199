// Consumers in shared memory against a plain map: random changes, committed or rolled back, with readers of many versions.
import { expect, test } from "bun:test";
import { ConsumerIndex } from "../../../src/dataplane/plugin/consumer-index.ts";
import {
  decodeCredential,
  encodeCredential,
  shownFor,
} from "../../../src/snapshot/consumer-records.ts";
import type { ConsumerPlan, CredentialPlan } from "../../../src/snapshot/snapshot.ts";
import { ConsumerStore } from "../../../src/supervisor/consumer-store.ts";
import { noCredential } from "../../support/data-plane.ts";
import { Random, seedOfRun } from "../../support/random.ts";

interface Model {
  readonly consumers: ReadonlyMap<string, ConsumerPlan>;
  readonly credentials: ReadonlyMap<string, CredentialPlan>;
}

const POOL = 60;

const hashOf = (index: number): string => Bun.SHA256.hash(`key ${index}`, "hex");

const changeOf = <T>(upserts: readonly T[], removals: readonly string[] = []) => ({
  size: upserts.length,
  upserts,
  removals,
});

/** A change of a few, in which names pass from one to another but belong to one at a time. */
function nextModel(before: Model, random: Random): Model {
  const consumers = new Map(before.consumers);
  const credentials = new Map(before.credentials);
  for (let step = random.between(1, 8); step > 0; step--) {
    const id = `c${random.between(0, POOL)}`;
    if (random.chance(0.3)) consumers.delete(id);
    else {
      const username = `user ${random.between(0, POOL)} ü`;
      for (const other of consumers.values())
        if (other.username === username) consumers.delete(other.id);
      const customId = random.chance(0.5) ? `custom of ${id}` : null;
      consumers.set(id, { id, username, customId, groups: random.chance(0.5) ? ["a", "b"] : [] });
    }
    const place = random.between(0, POOL);
    const key = `k${place}`;
    if (random.chance(0.3)) credentials.delete(key);
    else credentials.set(key, credentialOf(place, id, random));
  }
  return { consumers, credentials };
}

function credentialOf(place: number, consumerId: string, random: Random): CredentialPlan {
  const id = `k${place}`;
  if (place % 3 !== 0)
    return {
      ...noCredential,
      id,
      consumerId,
      type: random.pick(["basic", "jwt", "hmac"]),
      identifier: id,
      secret: random.chance(0.5) ? "ein Schlüssel" : null,
      algorithm: "HS256",
    };
  const generation = random.between(0, 4);
  return {
    ...noCredential,
    id,
    consumerId,
    type: "key",
    hash: hashOf(place * 10 + generation),
    previous:
      generation === 0
        ? null
        : { hash: hashOf(place * 10 + generation - 1), secret: null, until: 5 },
  };
}

const differenceOf = <T>(before: ReadonlyMap<string, T>, after: ReadonlyMap<string, T>) =>
  changeOf(
    [...after].filter(([id, plan]) => before.get(id) !== plan).map(([, plan]) => plan),
    [...before.keys()].filter((id) => !after.has(id)),
  );

/** Compares both for every possible lookup. */
function compare(index: ConsumerIndex, { consumers, credentials }: Model): void {
  const all = [...consumers.values()];
  for (let place = 0; place < POOL; place++) {
    const id = `c${place}`;
    expect(index.byId(id)).toEqual(consumers.get(id) ?? null);
    const username = `user ${place} ü`;
    const named = all.find((consumer) => consumer.username === username);
    expect(index.byUsername(username)).toEqual(named ?? null);
    const customId = `custom of ${id}`;
    const custom = all.find((consumer) => consumer.customId === customId);
    expect(index.byCustomId(customId)).toEqual(custom ?? null);
    const shown = [`k${place}`, ...[0, 1, 2, 3].map((each) => hashOf(place * 10 + each))];
    for (const type of ["key", "basic", "jwt", "hmac"] as const)
      for (const each of shown) {
        const plan = [...credentials.values()].find(
          (credential) => credential.type === type && shownFor(credential).includes(each),
        );
        const consumer = consumers.get(plan?.consumerId ?? "");
        const view = plan === undefined || consumer === undefined ? null : { ...plan, consumer };
        expect(index.credential(type, each)).toEqual(view);
      }
  }
}

test("equals a plain map in every version, while later ones are written, committed or rolled back", () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  const store = new ConsumerStore();
  let model: Model = { consumers: new Map(), credentials: new Map() };
  let live = ConsumerIndex.empty;
  const epochs = new Set<number>();
  const old: { index: ConsumerIndex; model: Model }[] = [];
  try {
    for (let round = 0; round < 1_000; round++) {
      const next = nextModel(model, random);
      const table = store.change({
        consumers: differenceOf(model.consumers, next.consumers),
        credentials: differenceOf(model.credentials, next.credentials),
      });
      const prepared = live.at(table);
      if (round % 100 === 0) compare(live, model);
      // A worker that starts meanwhile reads the committed version.
      if (round % 100 === 50) compare(ConsumerIndex.empty.at(store.table), model);
      if (random.chance(0.3)) {
        store.rollback();
        if (round % 20 === 0) compare(ConsumerIndex.empty.at(store.table), model);
        continue;
      }
      if (round % 50 === 1) compare(prepared, next);
      store.commit();
      epochs.add(store.table.epoch);
      [model, live] = [next, prepared];
      if (random.chance(0.02)) old.push({ index: ConsumerIndex.empty.at(store.table), model });
      if (old.length > 10) old.shift();
      if (round % 100 === 99) for (const version of old) compare(version.index, version.model);
    }
    compare(live, model);
    compare(ConsumerIndex.empty.at(store.table), model);
    expect(epochs.size).toBeGreaterThan(3);
  } catch (error) {
    throw new Error(`seed ${seed}`, { cause: error });
  }
});

const alice: ConsumerPlan = { id: "1", username: "alice", customId: null, groups: [] };
const key: CredentialPlan = {
  ...noCredential,
  id: "2",
  consumerId: "1",
  type: "key",
  hash: hashOf(1),
};

function storeOf(consumers: readonly ConsumerPlan[], credentials: readonly CredentialPlan[]) {
  const store = new ConsumerStore();
  store.change({ consumers: changeOf(consumers), credentials: changeOf(credentials) });
  store.commit();
  return store;
}

test("an unchanged consumer is the same object in the next version", () => {
  const store = storeOf([alice], [key]);
  const first = ConsumerIndex.empty.at(store.table);
  const view = first.credential("key", hashOf(1));
  const bob = { ...alice, id: "3", username: "bob" };
  const second = first.at(store.change({ consumers: changeOf([bob]), credentials: changeOf([]) }));
  store.commit();
  expect(second.credential("key", hashOf(1))).toBe(view);
  const renamed = { ...alice, username: "alicia" };
  const third = second.at(
    store.change({ consumers: changeOf([renamed]), credentials: changeOf([]) }),
  );
  expect(third.credential("key", hashOf(1))?.consumer.username).toBe("alicia");
  expect(second.credential("key", hashOf(1))?.consumer.username).toBe("alice");
});

test("finds each of many with colliding hashes, and no other", () => {
  const many = Array.from({ length: 30_000 }, (_, index) => ({
    ...alice,
    id: `id ${index}`,
    username: `u${index}`,
  }));
  const store = storeOf(many, []);
  const index = ConsumerIndex.empty.at(store.table);
  for (const consumer of many) {
    expect(index.byUsername(consumer.username)?.id).toBe(consumer.id);
    expect(index.byUsername(`${consumer.username}x`)).toBeNull();
  }
});

test("every field of a credential comes back", () => {
  const full: CredentialPlan = {
    id: "1",
    consumerId: "2",
    type: "jwt",
    name: "näme",
    identifier: "issuer",
    algorithm: "RS256",
    publicKey: "-----BEGIN",
    expiresAt: 12,
    hash: "h",
    secret: "s\u0000\u{1f600}",
    previous: { hash: null, secret: "before", until: 3 },
  };
  for (const plan of [full, { ...full, previous: null }, { ...full, ...noCredential }, key])
    expect(decodeCredential(encodeCredential(plan))).toEqual(plan);
});

test("thirty thousand changes of one consumer take no more memory than a few", () => {
  const store = storeOf([alice], [key]);
  for (let round = 0; round < 30_000; round++) {
    const groups = [`${round}`];
    store.change({ consumers: changeOf([{ ...alice, groups }]), credentials: changeOf([]) });
    if (round % 3 === 0) store.rollback();
    else store.commit();
  }
  expect(store.table.buffer!.byteLength).toBeLessThan(200_000);
  const index = ConsumerIndex.empty.at(store.table);
  expect(index.byUsername("alice")?.groups).toEqual(["29999"]);
});
