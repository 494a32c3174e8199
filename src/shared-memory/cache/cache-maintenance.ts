// What the main thread does with a cache that all workers share: purges, sweeps, repairs, figures; knows no request.
import { Pace } from "../../pace.ts";
import { Entries } from "./entries.ts";
import type { CacheMemory } from "./cache-memory.ts";
import { counters, fields, WORKER_FLOATS, workerFloats, words } from "./memory.ts";
import { matches, pathOf, type Rule, type RuleKind } from "./rules.ts";
import { repair } from "./repair.ts";

/** What to remove, as the purge of the API names it. */
export type CachePurge =
  { readonly by: "all" } | { readonly by: "key" | "prefix" | "tag"; readonly value: string };

export interface CacheCounts {
  readonly entries: number;
  /** Of blocks. */
  readonly bytes: number;
  readonly maxBytes: number;
  readonly fileBytes: number;
  readonly maxFileBytes: number;
  /** Since the creation, as are the following ones. */
  readonly stored: number;
  /** Records not stored: too large, outdated, or the store was busy. */
  readonly refused: number;
  readonly evictions: number;
}

/** Blocks looked at, or entries removed, before the lock is released. */
const AT_ONCE = 64;
const LOCK_PATIENCE_MS = 1;
const SLICE_MS = 2;

export interface CacheMaintenanceOptions {
  /** An entry with a file is gone: the bytes of its head. */
  readonly onFileRemoved?: (head: Uint8Array) => void;
}

export class CacheMaintenance {
  readonly #memory: CacheMemory;
  readonly #entries: Entries;
  readonly #onFileRemoved: (head: Uint8Array) => void;
  /** Removed or marked entries, by epoch of the rule or floor. */
  readonly #concerned = new Map<number, number>();
  #sweeping: Promise<void> | null = null;
  #isClosed = false;

  constructor(memory: CacheMemory, { onFileRemoved = () => {} }: CacheMaintenanceOptions = {}) {
    this.#memory = memory;
    this.#entries = new Entries(memory, { thread: memory.workers + 1 });
    this.#onFileRemoved = onFileRemoved;
    void this.#watch();
  }

  /** As of `CacheStore`. */
  get epoch(): number {
    return this.#entries.rules.epoch;
  }

  /**
   * Ends the watch for rules of workers, and takes the lock for ever: requests of an earlier version may still use the memory, and
   * without epochs and entries it must not store what they have fetched. Then the memory can be freed. A holder that has ended is
   * replaced by `forgetWorker`.
   */
  async close(): Promise<void> {
    const { lock, rules } = this.#entries;
    const pace = new Pace();
    while (!lock.retire(words.lock)) await pace.rest();
    this.#isClosed = true;
    rules.clear();
  }

  /**
   * Removes responses, or makes them stale (`soft`), in all workers, and refuses those whose fetch began before; it holds from the
   * first turn on and resolves to their number when all are swept.
   */
  async purge(which: CachePurge, { soft }: { readonly soft: boolean }): Promise<number> {
    if (which.by === "all")
      return soft ? await this.#purgeByRule("all", "", true) : await this.#purgeAll();
    const { by, value } = which;
    if (by !== "key") return await this.#purgeByRule(by, value, soft);
    if (value.startsWith("/")) return await this.#purgeByRule("path", value, soft);
    // Without the host in the key, resources have no host.
    return (
      (await this.#purgeResource(value, soft)) + (await this.#purgeResource(pathOf(value), soft))
    );
  }

  async #purgeAll(): Promise<number> {
    const { rules } = this.#entries;
    const epoch = rules.advance();
    this.#concerned.set(epoch, 0);
    rules.raiseFloor(epoch);
    const { words: memory } = this.#entries.views;
    while (!this.#isClosed && Atomics.load(memory, words.floorPending) !== 0) await this.#sweep();
    return this.#concernedBy(epoch);
  }

  async #purgeByRule(kind: RuleKind, text: string, isSoft: boolean): Promise<number> {
    while (!this.#isClosed) {
      const rule = await this.#locked(() => this.#entries.rules.add(kind, text, isSoft));
      if (rule === null) {
        await this.#sweep();
        continue;
      }
      this.#concerned.set(rule.epoch, 0);
      const isActive = () => this.#active().some(({ epoch }) => epoch === rule.epoch);
      while (!this.#isClosed && isActive()) await this.#sweep();
      return this.#concernedBy(rule.epoch);
    }
    return 0;
  }

  async #purgeResource(resource: string, soft: boolean): Promise<number> {
    const entries = this.#entries;
    const epoch = await this.#locked(() => entries.noteInvalidation(resource));
    for (let count = 0; ;) {
      const found = await this.#locked(() => {
        const some = entries.ofResource(resource, { before: epoch, most: AT_ONCE, soft });
        for (const entry of some)
          if (soft) entries.views.set(entry, fields.soft, 1);
          else entries.remove(entry);
        return some.length;
      });
      count += found;
      if (found < AT_ONCE) return count;
    }
  }

  #concernedBy(epoch: number): number {
    const count = this.#concerned.get(epoch) ?? 0;
    this.#concerned.delete(epoch);
    return count;
  }

  #active(): readonly Rule[] {
    return this.#entries.rules.current()?.filter(({ isActive }) => isActive) ?? [];
  }

  /** Sweeps until no rule and no floor is left. */
  #sweep(): Promise<void> {
    this.#sweeping ??= this.#sweepAll().finally(() => {
      this.#sweeping = null;
    });
    return this.#sweeping;
  }

  async #sweepAll(): Promise<void> {
    const { rules, views } = this.#entries;
    const pace = new Pace({ objects: Infinity, ms: SLICE_MS });
    while (rules.mayConcernEntries && !this.#isClosed) {
      const { floor, raised } = rules.pendingFloor();
      const active = this.#active();
      // After it, no put is under way that has not seen the rules.
      await this.#locked(() => undefined);
      for (let segment = 0; segment < (views.words[words.usedSegments] ?? 0); segment++) {
        const first = views.firstBlock(segment);
        for (let n = 0; n < views.geometry.blocksPerSegment; n += AT_ONCE) {
          await this.#locked(() => this.#sweepBlocks([first + n, segment], active, floor));
          if (pace.isDue()) await pace.rest();
        }
      }
      await this.#locked(() => rules.swept(active));
      rules.floorSwept(raised);
    }
  }

  #sweepBlocks(
    [first, segment]: readonly [first: number, segment: number],
    rules: readonly Rule[],
    floor: number,
  ): void {
    const entries = this.#entries;
    const end = entries.views.firstBlock(segment) + entries.views.geometry.blocksPerSegment;
    for (let block = first; block < Math.min(end, first + AT_ONCE); block++)
      if (entries.isEntry(block)) this.#sweepEntry(block, rules, floor);
      else if (entries.isHidden(block)) entries.remove(block);
  }

  #sweepEntry(entry: number, rules: readonly Rule[], floor: number): void {
    const { views } = this.#entries;
    const epoch = views.getFloat(entry, fields.epoch);
    const newer = rules.filter((rule) => epoch < rule.epoch);
    if (epoch >= floor && newer.length === 0) return;
    const subject = this.#entries.subjectOf(entry);
    const matching = newer.filter((rule) => matches(rule, subject));
    const hard = epoch < floor ? floor : matching.find(({ isSoft }) => !isSoft)?.epoch;
    if (hard !== undefined) {
      this.#entries.remove(entry);
      this.#concern(hard);
    } else if (matching[0] !== undefined) {
      views.set(entry, fields.soft, 1);
      this.#concern(matching[0].epoch);
    }
  }

  #concern(epoch: number): void {
    const count = this.#concerned.get(epoch);
    if (count !== undefined) this.#concerned.set(epoch, count + 1);
  }

  /** Waits for the lock in turns of the event loop; a holder that has ended is replaced by `forgetWorker`. */
  async #locked<T>(work: () => T): Promise<T> {
    const { lock } = this.#entries;
    const pace = new Pace();
    while (!this.#isClosed && !lock.acquire(words.lock, LOCK_PATIENCE_MS)) await pace.rest();
    const result = work();
    // Once closed, this thread has the lock for ever.
    if (!this.#isClosed) lock.release(words.lock);
    for (const head of this.#entries.takeRemovedFiles()) this.#onFileRemoved(head);
    return result;
  }

  /** Workers add rules and raise the floor too. */
  async #watch(): Promise<void> {
    const { words: memory } = this.#entries.views;
    while (!this.#isClosed) {
      const version = Atomics.load(memory, words.ruleVersion);
      await this.#sweep();
      const { async: isAsync, value } = Atomics.waitAsync(memory, words.ruleVersion, version);
      if (isAsync) await value;
    }
  }

  /** Frees what a worker that has ended held; call it before another one gets its number. Resolves when all is repaired. */
  async forgetWorker(worker: number): Promise<void> {
    const { lock, views, blocks } = this.#entries;
    const dead = worker + 1;
    const writing = worker * WORKER_FLOATS + workerFloats.writing;
    if (lock.seize(words.lock, dead)) {
      views.workers[writing] = 0;
      await new Pace({ objects: Infinity, ms: SLICE_MS }).run(repair(this.#entries, dead));
      lock.release(words.lock);
      return;
    }
    const first = views.workers[writing] ?? 0;
    views.workers[writing] = 0;
    if (first !== 0) await this.#locked(() => blocks.freeChain(first));
  }

  counts(): CacheCounts {
    const { counters: cells, workers } = this.#entries.views;
    const { maxBytes, maxFileBytes } = this.#memory;
    const refused = Array.from(
      { length: this.#memory.workers },
      (_, worker) => workers[worker * WORKER_FLOATS + workerFloats.refused] ?? 0,
    );
    return {
      entries: cells[counters.entries] ?? 0,
      bytes: cells[counters.bytes] ?? 0,
      maxBytes,
      fileBytes: cells[counters.fileBytes] ?? 0,
      maxFileBytes,
      stored: cells[counters.stored] ?? 0,
      refused: refused.reduce((sum, count) => sum + count, 0),
      evictions: cells[counters.evictions] ?? 0,
    };
  }
}
