// A response cache in memory that all workers share, as one worker uses it; knows no request, no head and no freshness.
import type { CacheEntry, CacheRecord, CacheStore } from "../../pdk/cache-store.ts";
import { BodyCopies } from "./body-copies.ts";
import { Entries } from "./entries.ts";
import { encodePrefix, MAX_PREFIX_BYTES, PrefixReader } from "./entry-bytes.ts";
import type { TextHash } from "./index.ts";
import type { CacheMemory } from "./cache-memory.ts";
import { fields, WORKER_FLOATS, workerFloats, words } from "./memory.ts";
import { ReadEntry } from "./read-entry.ts";
import type { RuleSubject } from "./rules.ts";

/**
 * Longest wait for the lock in ms. To store: work under the lock takes microseconds, but on a busy machine its holder may not run for
 * tens of milliseconds, and a response that is not stored costs the target a request for each of those that wait for it. To remove, which
 * others can complete, and to invalidate.
 */
const PATIENCE_MS = 1000;
const REMOVE_PATIENCE_MS = 2;
const INVALIDATE_PATIENCE_MS = 50;
/** Entries that a lookup passes. */
const MAX_STEPS = 256;
const MAX_RESTARTS = 3;
/** Blocks to take before the lock is released for a moment. */
const BLOCKS_AT_ONCE = 64;
/** Entries to remove before the lock is released for a moment, and by the worker itself. */
const REMOVED_AT_ONCE = 256;
const MAX_REMOVED = 4096;
/** Heads that a worker remembers, and bytes of each: at most 16 MiB as they are stored. */
const HEADS = 2048;
const MAX_REMEMBERED_BYTES = 8192;
/** Bodies beside them, at most 24 MiB: without them a hit of 1 KB costs 0.5 us more, and one of 10 KB 1 us. */
const MAX_REMEMBERED_BODY_BYTES = 12_288;

export interface SharedCacheOptions<Head> {
  /** From 0. */
  readonly worker: number;
  /** The bytes are overwritten after the call. */
  readonly decode: (bytes: Uint8Array) => Head;
  /** An entry with a file is gone, whose head this was. Called outside of all locks. */
  readonly onFileRemoved?: (head: Head) => void;
  /** For tests: called at each step of a change. */
  readonly at?: ((step: string) => void) | undefined;
  /** For tests. */
  readonly hash?: TextHash | undefined;
}

/** What a lookup searches. */
interface SearchedKey {
  readonly key: string;
  readonly low: number;
  readonly high: number;
  /** For `accepts`. */
  readonly request: unknown;
}

/**
 * Lookups take no lock: they read the block's sequence, copy, and read the sequence again. `Atomics` keep that order for the words,
 * and on x86-64 for all loads. Processors with a weaker order may still let a copy of plain bytes see a later write; a checksum
 * over the copied bytes, stored with the entry before its sequence, shows that.
 */
export class SharedCache<Head> implements Omit<CacheStore<Head>, "lead" | "follow"> {
  readonly #entries: Entries;
  readonly #decode: (bytes: Uint8Array) => Head;
  readonly #onFileRemoved: (head: Head) => void;
  readonly #read: (ReadEntry<Head> | undefined)[] = Array.from({ length: HEADS });
  /** By slot, the entry that was read last and is not remembered. */
  readonly #candidates = new Int32Array(HEADS);
  readonly #bodies = new BodyCopies();
  #scratch = Buffer.allocUnsafeSlow(MAX_REMEMBERED_BYTES);
  /** This worker's words. */
  readonly #own: number;

  constructor(memory: CacheMemory, options: SharedCacheOptions<Head>) {
    const { worker, decode, onFileRemoved = () => {}, at, hash } = options;
    this.#entries = new Entries(memory, { thread: worker + 1, at, hash });
    this.#decode = decode;
    this.#onFileRemoved = onFileRemoved;
    this.#own = worker * WORKER_FLOATS;
  }

  get epoch(): number {
    return this.#entries.rules.epoch;
  }

  find<Request>(
    key: string,
    accepts: (head: Head, request: Request) => boolean,
    request: Request,
  ): CacheEntry<Head> | null;
  find(key: string, accepts: (head: Head) => boolean): CacheEntry<Head> | null;
  find(
    key: string,
    accepts: (head: Head, request?: unknown) => boolean,
    request?: unknown,
  ): CacheEntry<Head> | null {
    const { index } = this.#entries;
    index.hash(key);
    const { low, high } = index;
    for (let attempt = 0; attempt < MAX_RESTARTS; attempt++) {
      const found = this.#search({ key, low, high, request }, accepts);
      if (found !== "moved") return found;
    }
    return null;
  }

  /** `moved`: the chain changed under the lookup. */
  #search(
    { key, low, high, request }: SearchedKey,
    accepts: (head: Head, request?: unknown) => boolean,
  ): ReadEntry<Head> | null | "moved" {
    const { views, index } = this.#entries;
    let block = index.firstOfKey(low);
    for (let step = 0; step < MAX_STEPS && block !== 0; step++) {
      const sequence = views.load(block, fields.sequence);
      if (
        (sequence & 1) === 0 &&
        views.get(block, fields.hashLow) === low &&
        views.get(block, fields.hashHigh) === high
      ) {
        const read = this.#readEntry(block, sequence, key);
        if (read !== null && accepts(read.head, request)) {
          const found = this.#found(read);
          if (found !== null) return found;
        }
      }
      const next = views.get(block, fields.keyNext);
      if (views.load(block, fields.sequence) !== sequence) return "moved";
      block = next;
    }
    return null;
  }

  /** Null: it has changed, or is of another key. */
  #readEntry(block: number, sequence: number, key: string): ReadEntry<Head> | null {
    const slot = Math.imul(block, 0x9e3779b1) >>> 21;
    const known = this.#read[slot];
    if (known?.block === block && known.sequence === sequence && known.key === key) return known;
    const bodyLength = this.#entries.views.get(block, fields.bodyLength);
    const prefix = this.#readPrefix(block, sequence);
    if (prefix === null || prefix.key !== key) return null;
    const head = this.#decode(prefix.head);
    const read = new ReadEntry(this, { block, sequence, key, head, bodyLength });
    // Only what is read twice in a row, so that entries requested once displace none.
    if (this.#candidates[slot] !== block) this.#candidates[slot] = block;
    else if (prefix.byteLength <= MAX_REMEMBERED_BYTES) this.#read[slot] = read;
    return read;
  }

  /** Valid until the next call. */
  #readPrefix(block: number, sequence: number): PrefixReader | null {
    const { views, blocks } = this.#entries;
    const length = views.get(block, fields.prefix);
    if (length > MAX_PREFIX_BYTES) return null;
    if (length > this.#scratch.byteLength) this.#scratch = Buffer.allocUnsafeSlow(length);
    const bytes = this.#scratch.subarray(0, length);
    if (!blocks.read(block, 0, bytes) || !this.#isSame(block, sequence)) return null;
    return checksumOf(bytes) === views.get(block, fields.checksum) ? new PrefixReader(bytes) : null;
  }

  #isSame(block: number, sequence: number): boolean {
    return this.#entries.views.load(block, fields.sequence) === sequence;
  }

  /** Null: a purge has removed it. */
  #found(read: ReadEntry<Head>): ReadEntry<Head> | null {
    const { views, rules } = this.#entries;
    const { block, sequence } = read;
    let isSoftPurged = views.get(block, fields.soft) !== 0;
    if (rules.mayConcernEntries) {
      const epoch = views.getFloat(block, fields.epoch);
      const prefix = this.#readPrefix(block, sequence);
      if (prefix === null) return null;
      const { resource, tags } = prefix;
      const verdict = rules.verdict({ resource, tags }, epoch);
      if (verdict === "dead") return null;
      isSoftPurged ||= verdict === "soft";
    }
    if (!this.#isSame(block, sequence)) return null;
    if (views.get(block, fields.visited) === 0) views.set(block, fields.visited, 1);
    return isSoftPurged ? read.softPurged() : read;
  }

  /** Null: it has changed since. */
  bodyOf(read: ReadEntry<Head>): Uint8Array | null {
    const { views, blocks } = this.#entries;
    const { block, sequence, bodyLength } = read;
    if (!this.#isSame(block, sequence)) return null;
    const isShort = bodyLength <= MAX_REMEMBERED_BODY_BYTES;
    const known = isShort ? read.shortBody : this.#bodies.get(block, sequence);
    if (known !== null) return known;
    const bytes = Buffer.allocUnsafe(bodyLength);
    const isComplete = blocks.read(block, views.get(block, fields.prefix), bytes);
    if (!isComplete || !this.#isSame(block, sequence)) return null;
    if (checksumOf(bytes) !== views.get(block, fields.bodyChecksum)) return null;
    if (isShort) read.shortBody = bytes;
    else this.#bodies.offer(block, sequence, bytes);
    return bytes;
  }

  put(record: CacheRecord): boolean {
    return this.#put(record, null);
  }

  #put(record: CacheRecord, replaced: ReadEntry<Head> | null): boolean {
    const isStored = this.#store(record, replaced);
    if (!isStored) {
      const { workers } = this.#entries.views;
      const at = this.#own + workerFloats.refused;
      workers[at] = (workers[at] ?? 0) + 1;
    }
    this.#reportFiles();
    return isStored;
  }

  #store(record: CacheRecord, replaced: ReadEntry<Head> | null): boolean {
    const { views, blocks, at, maxFileBytes } = this.#entries;
    const prefix = encodePrefix(record);
    if (prefix === null || (record.file?.bytes ?? 0) > maxFileBytes) return false;
    const { body } = record;
    const first = this.#allocate(record, prefix.byteLength + body.byteLength);
    if (first === 0) return false;
    at("allocated");
    blocks.write(first, 0, prefix);
    at("half-written");
    blocks.write(first, prefix.byteLength, body);
    views.set(first, fields.prefix, prefix.byteLength);
    views.set(first, fields.bodyLength, body.byteLength);
    views.set(first, fields.checksum, checksumOf(prefix));
    views.set(first, fields.bodyChecksum, checksumOf(body));
    views.setFloat(first, fields.epoch, record.epoch);
    views.set(first, fields.soft, 0);
    at("written");
    // Else the next put frees the blocks.
    if (!this.#entries.lock.acquire(words.lock, PATIENCE_MS)) return false;
    const isStored = this.#publish(first, record, replaced);
    if (!isStored) blocks.freeChain(first);
    views.workers[this.#own + workerFloats.writing] = 0;
    this.#entries.lock.release(words.lock);
    return isStored;
  }

  /** A chain of blocks that this thread owns; 0: outdated, too large, or busy. */
  #allocate(record: CacheRecord, bytes: number): number {
    const { views, blocks, lock, at } = this.#entries;
    const { classes, segments } = views.geometry;
    const cls = blocks.classFor(bytes);
    const count = Math.ceil(bytes / (classes[cls] ?? 1));
    if (count > segments * blocks.count(cls)) return 0;
    if (!lock.acquire(words.lock, PATIENCE_MS)) return 0;
    at("locked");
    this.#freeLeftOver();
    if (this.isOutdated(record, record.epoch)) {
      lock.release(words.lock);
      return 0;
    }
    let last = 0;
    for (let taken = 0; taken < count; taken++) {
      if (taken % BLOCKS_AT_ONCE === BLOCKS_AT_ONCE - 1) {
        lock.release(words.lock);
        if (!lock.acquire(words.lock, PATIENCE_MS)) return 0;
      }
      const block = this.#entries.takeBlock(cls);
      at("taken");
      if (block === 0) {
        this.#freeLeftOver();
        lock.release(words.lock);
        return 0;
      }
      if (last === 0) views.workers[this.#own + workerFloats.writing] = block;
      else views.set(last, fields.chain, block);
      last = block;
    }
    const first = views.workers[this.#own + workerFloats.writing] ?? 0;
    lock.release(words.lock);
    return first;
  }

  /** What an earlier put has taken and could not free. */
  #freeLeftOver(): void {
    const { views, blocks } = this.#entries;
    const at = this.#own + workerFloats.writing;
    blocks.freeChain(views.workers[at] ?? 0);
    views.workers[at] = 0;
  }

  #publish(first: number, record: CacheRecord, replaced: ReadEntry<Head> | null): boolean {
    const entries = this.#entries;
    const { views, index } = entries;
    const { key, variant, resource } = record;
    if (this.isOutdated(record, record.epoch)) return false;
    let fileBytes = record.file?.bytes ?? 0;
    if (replaced !== null) {
      if (!this.#isCurrent(replaced)) return false;
      // The file stays with the new entry.
      fileBytes = views.getFloat(replaced.block, fields.fileBytes);
      if (fileBytes > 0) entries.detachFile(replaced.block);
    }
    if (!entries.makeFileRoom(fileBytes)) return false;
    const same = entries.makeVariantRoom(key, variant);
    const removed = new Set(same === 0 ? [] : [same]);
    if (replaced !== null && this.#isCurrent(replaced)) removed.add(replaced.block);
    views.set(first, fields.resourceHash, index.hashOf(resource));
    index.hash(key);
    views.set(first, fields.hashLow, index.low);
    views.set(first, fields.hashHigh, index.high);
    views.setFloat(first, fields.fileBytes, fileBytes);
    // A replaced entry keeps its popularity.
    views.set(first, fields.visited, same === 0 ? 0 : views.get(same, fields.visited));
    entries.publish(first, removed);
    return true;
  }

  #isCurrent({ block, sequence }: ReadEntry<Head>): boolean {
    return this.#isSame(block, sequence) && this.#entries.isEntry(block);
  }

  update(entry: CacheEntry<Head>, next: Omit<CacheRecord, "body">): boolean {
    const body = entry.body();
    const replaced = entry instanceof ReadEntry ? entry : null;
    const isStored = body !== null && replaced !== null && this.#put({ ...next, body }, replaced);
    if (!isStored) this.remove(entry);
    return isStored;
  }

  remove(entry: CacheEntry<Head>): boolean {
    if (!(entry instanceof ReadEntry)) return false;
    const { block, sequence } = entry as ReadEntry<Head>;
    const { views, lock } = this.#entries;
    // Without the lock, so that it cannot fail; the holder of the lock removes hidden entries.
    if (!views.replace(block, fields.sequence, [sequence, sequence + 1])) return false;
    if (!lock.acquire(words.lock, REMOVE_PATIENCE_MS)) return true;
    if (this.#isSame(block, sequence + 1) && this.#entries.isHidden(block))
      this.#entries.remove(block);
    lock.release(words.lock);
    this.#reportFiles();
    return true;
  }

  invalidate(resource: string): number {
    if (!this.#lockToInvalidate()) return 0;
    const { lock, rules } = this.#entries;
    const epoch = this.#entries.noteInvalidation(resource);
    this.#entries.at("noted");
    let removed = 0;
    for (let isMore = true; isMore;) {
      const found = this.#entries.ofResource(resource, {
        before: epoch,
        most: REMOVED_AT_ONCE,
        soft: false,
      });
      for (const entry of found) this.#entries.remove(entry);
      removed += found.length;
      isMore = found.length === REMOVED_AT_ONCE;
      // The main thread sweeps the rest.
      if (isMore && removed >= MAX_REMOVED)
        isMore = rules.add("resource", resource, false) === null;
      lock.release(words.lock);
      isMore &&= this.#lockToInvalidate();
    }
    this.#reportFiles();
    return removed;
  }

  /** False: the lock stays held, so that all entries are invalid now. */
  #lockToInvalidate(): boolean {
    const { lock, rules } = this.#entries;
    const isLocked = lock.acquire(words.lock, INVALIDATE_PATIENCE_MS);
    if (!isLocked) rules.raiseFloor(rules.advance());
    return isLocked;
  }

  isOutdated(response: RuleSubject, epoch: number): boolean {
    const { rules, index } = this.#entries;
    return rules.isOutdated(response, index.bucketOf(index.hashOf(response.resource)), epoch);
  }

  #reportFiles(): void {
    for (const head of this.#entries.takeRemovedFiles()) this.#onFileRemoved(this.#decode(head));
  }
}

const checksumOf = (bytes: Uint8Array): number => Bun.hash.crc32(bytes) | 0;
