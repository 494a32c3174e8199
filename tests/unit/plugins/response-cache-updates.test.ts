// Updates of stored responses whose entry has changed since they were found.
import { expect, test } from "bun:test";
import { decodeHead, Store, type StoredHead } from "../../../src/plugins/response-cache/store.ts";
import { createCacheMemory } from "../../../src/shared-memory/cache/memory.ts";
import { openCache } from "../../../src/shared-memory/cache/open.ts";

const freshness = {
  ...{ ageMs: 0, lifetimeMs: 60_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 },
  mustRevalidate: false,
};

const headOf = (etag: string): StoredHead => ({
  ...{ key: "k", resource: "a.test/", status: 200, headers: new Headers(), freshness },
  ...{ etag, lastModified: null, variesOn: [], tags: [], storedAt: performance.now() },
});

/** Two workers, and a response that the first has found and validates. */
function start() {
  const memory = createCacheMemory({ maxBytes: 16_777_216, workers: 2 });
  const [one, two] = [0, 1].map(
    (worker) => new Store(openCache(memory, { worker, decode: decodeHead })),
  ) as [Store, Store];
  one.put(headOf("old"), new Uint8Array(1), { old: null, epoch: one.epoch });
  const stale = one.find("k", () => null)?.withOwnBody() ?? null;
  if (stale === null) throw new Error("nothing is stored");
  return { one, two, stale };
}

const tagOf = (store: Store) => store.find("k", () => null)?.etag;

test("a late 304 does not replace what another worker has stored since", () => {
  const { one, two, stale } = start();
  two.put(headOf("new"), new Uint8Array(2), { old: null, epoch: two.epoch });
  expect(one.update(stale, headOf("old"), one.epoch)).toBe(false);
  expect(tagOf(one)).toBe("new");
});

test("a 304 stores again what was evicted meanwhile", () => {
  const { one, two, stale } = start();
  const found = two.find("k", () => null);
  if (found !== null) two.remove(found);
  expect(one.update(stale, headOf("old"), one.epoch)).toBe(true);
  expect(tagOf(two)).toBe("old");
});
