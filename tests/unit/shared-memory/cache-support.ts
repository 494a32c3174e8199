// Records whose content follows from their key, and a checker of a cache's whole memory; for the tests of the shared cache.
import type { CacheRecord } from "../../../src/pdk/cache-store.ts";
import { Entries } from "../../../src/shared-memory/cache/entries.ts";
import type { CacheMemory } from "../../../src/shared-memory/cache/cache-memory.ts";
import {
  counters,
  fields,
  QUEUE_WORDS,
  queueWords,
  states,
  words,
} from "../../../src/shared-memory/cache/memory.ts";
import {
  SharedCache,
  type SharedCacheOptions,
} from "../../../src/shared-memory/cache/shared-cache.ts";

/** What the tests store as a head. */
export interface TestHead {
  readonly key: string;
  readonly variant: string;
  readonly version: number;
}

const text = new TextEncoder();
const decode = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as TestHead;

/** A body that shows every byte of another version or key. */
export function bodyOf(key: string, version: number, length: number): Uint8Array {
  const body = new Uint8Array(length);
  let seed = Bun.hash.crc32(`${key} ${version}`);
  for (let at = 0; at < length; at++) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    body[at] = seed >>> 24;
  }
  return body;
}

interface RecordOptions extends Partial<Omit<CacheRecord, "key">> {
  readonly length?: number;
  readonly version?: number;
}

/** By default current, without tags, and a resource `h/KEY`. */
export function recordOf(cache: { epoch: number }, key: string, options: RecordOptions = {}) {
  const { length = 100, version = 0, variant = "", ...rest } = options;
  return {
    key,
    variant,
    resource: `h/${key}`,
    tags: [],
    head: text.encode(JSON.stringify({ key, variant, version })),
    body: bodyOf(key, version, length),
    epoch: cache.epoch,
    ...rest,
  } satisfies CacheRecord;
}

export function openCache(
  memory: CacheMemory,
  options: Partial<SharedCacheOptions<TestHead>> = {},
): SharedCache<TestHead> {
  return new SharedCache(memory, { worker: 0, decode, ...options });
}

export const has = (cache: SharedCache<TestHead>, key: string): boolean =>
  cache.find(key, () => true) !== null;

/** What is wrong with an entry that was found; null: nothing. */
export function faultOf(cache: SharedCache<TestHead>, key: string): string | null {
  const found = cache.find(key, () => true);
  const body = found?.body();
  if (!found || !body) return null;
  if (found.head.key !== key) return `${key} has the head of ${found.head.key}`;
  const wanted = bodyOf(key, found.head.version, found.bodyLength);
  return Buffer.compare(body, wanted) === 0 ? null : `${key} has a torn body`;
}

/**
 * Checks all of a cache that no thread is changing: each block is free or part of one entry, indexes and queues have each entry
 * once, counters are exact. Throws on the first fault; returns the entries' keys.
 */
export function checkCache(memory: CacheMemory): string[] {
  const entries = new Entries(memory, { thread: memory.workers + 1 });
  const { views, blocks, index } = entries;
  const fail = (what: string) => {
    throw new Error(what);
  };
  if (views.words[words.lock] !== 0) fail("the lock is held");
  const uses = new Map<number, string>();
  const use = (block: number, by: string) => {
    if (uses.has(block)) fail(`block ${block} is ${uses.get(block)} and ${by}`);
    uses.set(block, by);
  };
  const free = listFree(entries, use);
  const found: number[] = [];
  let [bytes, fileBytes, all] = [0, 0, 0];
  const segments = views.words[words.usedSegments] ?? 0;
  const freeSegments = new Set<number>();
  for (
    let at = views.words[words.freeSegment] ?? 0;
    at !== 0;
    at = views.segments[(at - 1) * 4 + 2]!
  ) {
    if (freeSegments.has(at)) fail("free segments form a circle");
    freeSegments.add(at);
  }
  for (let segment = 0; segment < segments; segment++) {
    const cls = blocks.classOf(segment);
    if ((cls === -1) !== freeSegments.has(segment + 1)) fail(`segment ${segment} is lost`);
    const count = cls === -1 ? 0 : blocks.count(cls);
    all += count;
    let used = 0;
    for (let n = 0; n < count; n++) {
      const block = views.firstBlock(segment) + n;
      const state = views.get(block, fields.state);
      if (views.get(block, fields.owner) !== 0) fail(`block ${block} has an owner`);
      if (state !== states.free) used++;
      if (state !== states.entry) continue;
      if (!entries.isEntry(block)) fail(`block ${block} is hidden`);
      found.push(block);
      fileBytes += views.getFloat(block, fields.fileBytes);
      for (let part = block; part !== 0; part = views.get(part, fields.chain)) {
        use(part, `part of ${block}`);
        bytes += blocks.capacity(part);
      }
    }
    if (cls !== -1 && views.segments[segment * 4 + 1] !== used)
      fail(`segment ${segment} has a wrong count`);
    if (cls !== -1 && used === 0) fail(`segment ${segment} is unused and has a class`);
  }
  if (uses.size !== all) fail(`${all} blocks, of which ${uses.size} are free or used`);
  if (free + found.length > all) fail("too many blocks");
  const figures = { entries: found.length, bytes, fileBytes };
  for (const [name, value] of Object.entries(figures)) {
    const counted = views.counters[counters[name as keyof typeof figures]];
    if (counted !== value) fail(`${name} is ${counted} instead of ${value}`);
  }
  const sorted = JSON.stringify(found);
  if (JSON.stringify(inQueues(entries).toSorted((a, b) => a - b)) !== sorted) fail("queues differ");
  const linked = (buckets: Int32Array, next: number) =>
    [...buckets.keys()].flatMap((bucket) => {
      const chain: number[] = [];
      for (let entry = buckets[bucket]!; entry !== 0; entry = views.get(entry, next)) {
        if (chain.push(entry) > all) fail("a chain is a circle");
      }
      return chain;
    });
  for (const [buckets, next] of [
    [views.keys, fields.keyNext],
    [views.resources, fields.resourceNext],
  ] as const)
    if (JSON.stringify(linked(buckets, next).toSorted((a, b) => a - b)) !== sorted)
      fail("an index differs");
  for (const entry of found) {
    const { key, resource } = entries.prefixOf(entry);
    index.hash(key);
    if (views.get(entry, fields.hashLow) !== index.low) fail(`${key} has a wrong hash`);
    if (views.get(entry, fields.resourceHash) !== index.hashOf(resource))
      fail(`${key} has a wrong resource`);
  }
  return found.map((entry) => entries.prefixOf(entry).key);
}

function listFree({ views }: Entries, use: (block: number, by: string) => void): number {
  let count = 0;
  for (const cls of views.geometry.classes.keys())
    for (
      let block = views.queues[cls * QUEUE_WORDS + queueWords.free]!;
      block !== 0;
      block = views.get(block, fields.older)
    ) {
      use(block, `free in class ${cls}`);
      count++;
    }
  return count;
}

function inQueues({ views }: Entries): number[] {
  const all: number[] = [];
  for (let queue = 0; queue <= views.geometry.classes.length; queue++) {
    let entry = views.queues[queue * QUEUE_WORDS + queueWords.oldest]!;
    for (; entry !== 0; entry = views.get(entry, fields.newer)) all.push(entry);
  }
  return all;
}
