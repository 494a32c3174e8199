// Entries in shared memory as the holder of the lock sees them: room, publication, removal, eviction; knows no head and no body.
import { Locks } from "../locks.ts";
import { Blocks } from "./blocks.ts";
import { PrefixReader } from "./entry-bytes.ts";
import { Queues } from "./eviction.ts";
import { Index, type TextHash } from "./index.ts";
import type { CacheMemory } from "./cache-memory.ts";
import { counters, fields, longs, states, Views } from "./memory.ts";
import { type RuleSubject, Rules } from "./rules.ts";

/** Entries of one key. */
const MAX_VARIANTS = 64;
/** Tries to make room for one block. */
const MAX_TRIES = 8;
/** Evictions between comparisons of ages; each compares all classes. */
const AGES_EVERY = 8;
/** Files to evict for one. */
const MAX_EVICTED_FILES = 256;

export interface EntriesOptions {
  /** From 1. */
  readonly thread: number;
  /** For tests: called at each step of a change. */
  readonly at?: ((step: string) => void) | undefined;
  /** For tests. */
  readonly hash?: TextHash | undefined;
}

/** All methods need the lock, but those that say otherwise. */
export class Entries {
  readonly views: Views;
  readonly rules: Rules;
  readonly blocks: Blocks;
  readonly queues: Queues;
  readonly index: Index;
  /** Its only lock is `words.lock`. */
  readonly lock: Locks;
  readonly thread: number;
  readonly at: (step: string) => void;
  readonly #maxFileBytes: number;
  /** Heads of removed entries with files. */
  #removedFiles: Uint8Array[] = [];
  #sinceAges = 0;

  constructor(memory: CacheMemory, { thread, at, hash = Bun.hash.wyhash }: EntriesOptions) {
    this.views = new Views(memory);
    this.rules = new Rules(this.views);
    this.blocks = new Blocks(this.views);
    this.queues = new Queues(this.views);
    this.index = new Index(this.views, this.views.longs[longs.salt] ?? 0n, hash);
    this.lock = new Locks(this.views.words, thread);
    this.thread = thread;
    this.at = at ?? (() => {});
    this.#maxFileBytes = memory.maxFileBytes;
  }

  /** Heads of removed entries that had files. Needs no lock. */
  takeRemovedFiles(): readonly Uint8Array[] {
    if (this.#removedFiles.length === 0) return [];
    const files = this.#removedFiles;
    this.#removedFiles = [];
    return files;
  }

  /** Whether there is something to read. Needs no lock. */
  isEntry(block: number): boolean {
    return (
      this.views.get(block, fields.state) === states.entry &&
      (this.views.get(block, fields.sequence) & 1) === 0
    );
  }

  /** Whether it waits for its removal. Exact with the lock. */
  isHidden(block: number): boolean {
    return (
      this.views.get(block, fields.state) === states.entry &&
      (this.views.get(block, fields.sequence) & 1) === 1
    );
  }

  /** Bytes of the files that may be stored. Needs no lock. */
  get maxFileBytes(): number {
    return this.#maxFileBytes;
  }

  prefixOf(entry: number): PrefixReader {
    const bytes = Buffer.allocUnsafe(this.views.get(entry, fields.prefix));
    this.blocks.read(entry, 0, bytes);
    return new PrefixReader(bytes);
  }

  subjectOf(entry: number): RuleSubject {
    const { resource, tags } = this.prefixOf(entry);
    return { resource, tags };
  }

  /** A block of the class, owned by this thread; 0: no room. */
  takeBlock(cls: number): number {
    for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
      const block = this.blocks.take(cls, this.thread);
      if (block !== 0) return block;
      if (!this.blocks.assign(cls) && !this.#makeRoom(cls)) return 0;
    }
    return 0;
  }

  /**
   * Evicts in the class, or the segment with the oldest entry of another class: ages are in stores, and a class whose next victim
   * is twice as old as the own one has more than its share.
   */
  #makeRoom(cls: number): boolean {
    const own = this.queues.age(cls);
    if (own.victim === 0 || ++this.#sinceAges >= AGES_EVERY) {
      this.#sinceAges = 0;
      const other = this.#oldest(cls);
      if (other.age > 2 * own.age && this.#clearSegment(this.views.segmentOf(other.victim)))
        return true;
    }
    const victim = this.queues.next(cls);
    if (victim !== 0) this.#evict(victim);
    return victim !== 0;
  }

  /** The oldest next victim of the other queues. */
  #oldest(cls: number): { readonly victim: number; readonly age: number } {
    let oldest = { victim: 0, age: -2 };
    for (let queue = 0; queue <= this.#fileQueue; queue++) {
      const next = this.queues.age(queue);
      if (queue !== cls && next.victim !== 0 && next.age > oldest.age) oldest = next;
    }
    return oldest;
  }

  /** False: a thread is just writing there. */
  #clearSegment(segment: number): boolean {
    const first = this.views.firstBlock(segment);
    const count = this.blocks.count(this.blocks.classOf(segment));
    for (let block = first; block < first + count; block++)
      if (this.views.get(block, fields.state) === states.writing) return false;
    for (let block = first; block < first + count; block++) {
      const state = this.views.get(block, fields.state);
      if (state === states.entry) this.#evict(block);
      else if (state === states.part) this.#evict(this.views.get(block, fields.head));
    }
    return true;
  }

  #evict(entry: number): void {
    this.#count(counters.evictions, 1);
    this.remove(entry);
  }

  /** Evicts entries with files until there is room for another one. */
  makeFileRoom(bytes: number): boolean {
    for (let evicted = 0; evicted < MAX_EVICTED_FILES; evicted++) {
      if ((this.views.counters[counters.fileBytes] ?? 0) + bytes <= this.#maxFileBytes) return true;
      const victim = this.queues.next(this.#fileQueue);
      if (victim === 0) return false;
      this.#evict(victim);
    }
    return false;
  }

  get #fileQueue(): number {
    return this.views.geometry.classes.length;
  }

  #queueOf(entry: number): number {
    if (this.views.getFloat(entry, fields.fileBytes) > 0) return this.#fileQueue;
    return this.blocks.classOf(this.views.segmentOf(entry));
  }

  /** Makes a chain that this thread has written an entry that all threads find, in place of others, which it removes. */
  publish(first: number, replaced: ReadonlySet<number>): void {
    const { views } = this;
    this.at("publish");
    views.set(first, fields.state, states.entry);
    for (let part = views.get(first, fields.chain); part !== 0;) {
      views.set(part, fields.head, first);
      views.set(part, fields.state, states.part);
      part = views.get(part, fields.chain);
    }
    this.at("linking");
    this.add(first);
    this.at("linked");
    this.#count(counters.stored, 1);
    // Side by side: lookups find one or the other, and a thread that ends here leaves none of them twice.
    for (const entry of replaced) this.hide(entry);
    views.store(first, fields.sequence, views.get(first, fields.sequence) + 1);
    this.at("readable");
    for (const entry of replaced) this.remove(entry);
    for (let block = first; block !== 0; block = views.get(block, fields.chain))
      views.set(block, fields.owner, 0);
  }

  /** Links an entry and counts it. */
  add(entry: number): void {
    this.index.link(entry);
    this.at("indexed");
    this.queues.add(this.#queueOf(entry), entry);
    this.#countEntry(entry, 1);
  }

  remove(entry: number): void {
    this.hide(entry);
    this.at("hidden");
    if (this.views.getFloat(entry, fields.fileBytes) > 0)
      this.#removedFiles.push(this.prefixOf(entry).head);
    this.index.unlink(entry);
    this.at("unindexed");
    this.queues.remove(this.#queueOf(entry), entry);
    this.at("unqueued");
    this.#countEntry(entry, -1);
    this.blocks.freeChain(entry);
    this.at("freed");
  }

  /** From now on no thread finds it. */
  hide(entry: number): void {
    const sequence = this.views.get(entry, fields.sequence);
    if ((sequence & 1) === 0) this.views.store(entry, fields.sequence, sequence + 1);
  }

  /** Another entry has the file now. */
  detachFile(entry: number): void {
    this.queues.remove(this.#queueOf(entry), entry);
    this.#count(counters.fileBytes, -this.views.getFloat(entry, fields.fileBytes));
    this.views.setFloat(entry, fields.fileBytes, 0);
    this.queues.add(this.#queueOf(entry), entry);
  }

  /** The entry of the same key and variant; 0: none, and there is room for another variant. */
  makeVariantRoom(key: string, variant: string): number {
    const { views, index } = this;
    index.hash(key);
    const { low, high } = index;
    const variants: number[] = [];
    for (let entry = index.firstOfKey(low); entry !== 0; entry = views.get(entry, fields.keyNext)) {
      if (views.get(entry, fields.hashLow) !== low || views.get(entry, fields.hashHigh) !== high)
        continue;
      const prefix = this.prefixOf(entry);
      if (prefix.key !== key) continue;
      if (prefix.variant === variant) return entry;
      variants.push(entry);
    }
    if (variants.length < MAX_VARIANTS) return 0;
    // The oldest one without a hit, so that clients with unusual headers cannot displace popular ones.
    const isUnvisited = (entry: number) => views.get(entry, fields.visited) === 0;
    const victim = variants.findLast(isUnvisited) ?? variants.at(-1) ?? 0;
    if (!isUnvisited(victim)) for (const each of variants) views.set(each, fields.visited, 0);
    this.#evict(victim);
    return 0;
  }

  /** Entries of the resource from before an epoch, at most so many; `soft`: only those that are not purged softly. */
  ofResource(
    resource: string,
    {
      before,
      most,
      soft,
    }: { readonly before: number; readonly most: number; readonly soft: boolean },
  ): readonly number[] {
    const { views, index } = this;
    const hash = index.hashOf(resource);
    const found: number[] = [];
    let entry = index.firstOfResource(hash);
    for (; entry !== 0 && found.length < most; entry = views.get(entry, fields.resourceNext)) {
      if (views.get(entry, fields.resourceHash) !== hash) continue;
      if (views.getFloat(entry, fields.epoch) >= before) continue;
      if (soft && views.get(entry, fields.soft) !== 0) continue;
      if (this.prefixOf(entry).resource === resource) found.push(entry);
    }
    return found;
  }

  /** Refuses fetches of the resource that have begun before; returns the new epoch. */
  noteInvalidation(resource: string): number {
    const epoch = this.rules.advance();
    this.views.invalidated[this.index.bucketOf(this.index.hashOf(resource))] = epoch;
    return epoch;
  }

  #countEntry(entry: number, sign: 1 | -1): void {
    let bytes = 0;
    for (let block = entry; block !== 0; block = this.views.get(block, fields.chain))
      bytes += this.blocks.capacity(block);
    this.#count(counters.entries, sign);
    this.#count(counters.bytes, sign * bytes);
    this.#count(counters.fileBytes, sign * this.views.getFloat(entry, fields.fileBytes));
  }

  #count(counter: number, by: number): void {
    const cells = this.views.counters;
    cells[counter] = (cells[counter] ?? 0) + by;
  }
}
