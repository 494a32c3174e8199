// A thread that stores a response in a cache of several threads, or finds one, and replies with its age in milliseconds.
import { openCache } from "../../../src/shared-memory/cache/open.ts";
import type { CacheMemory } from "../../../src/shared-memory/cache/cache-memory.ts";
import { ageOf } from "../../../src/plugins/response-cache/cached-responses.ts";
import { decodeHead, Store } from "../../../src/plugins/response-cache/store.ts";

declare const self: Worker;

const freshness = {
  ...{ ageMs: 0, lifetimeMs: 60_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 },
  mustRevalidate: false,
};

self.onmessage = ({ data }: MessageEvent<{ memory: CacheMemory; worker: number }>) => {
  const { memory, worker } = data;
  const store = new Store(openCache(memory, { worker, decode: decodeHead }));
  if (worker === 0) {
    const head = {
      ...{ key: "k", resource: "a.test/", status: 200, headers: new Headers(), freshness },
      ...{ etag: null, lastModified: null, variesOn: [], tags: [], storedAt: performance.now() },
    };
    store.put(head, new Uint8Array(1), { old: null, epoch: store.epoch });
  }
  const stored = store.find("k", () => null);
  self.postMessage(stored === null ? null : ageOf(stored, performance.now()));
};
