// Creates the stores of plugin instances that all workers share, and purges them; knows no plugin and no thread.
import type { Log } from "../log.ts";
import type { Purge } from "../model/cache-purge.ts";
import type { AnyPlugin, CacheUse } from "../pdk/definition.ts";
import type { CacheDirectory } from "../pdk/kit.ts";
import { type CacheCounts, CacheMaintenance } from "../shared-memory/cache/cache-maintenance.ts";
import { forgetFlights } from "../shared-memory/cache/flights.ts";
import { threadsOf } from "../shared-memory/locks.ts";
import type { CacheMemory } from "../shared-memory/cache/cache-memory.ts";
import { createCacheMemory, retiredParts } from "../shared-memory/cache/memory.ts";
import type { PluginPlan } from "../snapshot/snapshot.ts";
import type { CacheDirectories } from "./cache-directories.ts";
import { returnPages } from "./shared-pages.ts";

export interface PluginCachesOptions {
  readonly workers: number;
  readonly definitionOf: (name: string) => AnyPlugin | undefined;
  readonly log: Log;
  /** Where stores may have files. Default: nowhere. */
  readonly directories?: CacheDirectories | null;
}

/** The store of one instance. */
interface PluginCache {
  readonly memory: CacheMemory;
  readonly maintenance: CacheMaintenance;
  readonly directory: CacheDirectory | null;
}

/** A store belongs to a plan: a changed instance has a new plan, and gets an empty store. */
export class PluginCaches {
  readonly #options: PluginCachesOptions;
  /** Null: the machine has no memory for it. */
  readonly #all = new Map<PluginPlan, PluginCache | null>();
  /** Of earlier versions, while a thread still has their lock. */
  readonly #retiring = new Set<PluginCache>();

  constructor(options: PluginCachesOptions) {
    this.#options = options;
  }

  /** The plan as workers get it. */
  withCache(plan: PluginPlan): PluginPlan {
    const definition = this.#options.definitionOf(plan.name);
    if (definition?.cache === undefined) return plan;
    let cache = this.#all.get(plan);
    if (cache === undefined) {
      cache = this.#create(plan, definition.cache);
      this.#all.set(plan, cache);
    }
    if (cache === null) return plan;
    const { memory, directory } = cache;
    return { ...plan, cache: memory, ...(directory === null ? {} : { cacheDirectory: directory }) };
  }

  #create(plan: PluginPlan, use: CacheUse<never>): PluginCache | null {
    const { workers, log, directories } = this.#options;
    const { bytes, fileBytes } = use.size(plan.config as never);
    try {
      const threads = threadsOf(workers);
      const memory = createCacheMemory({
        maxBytes: bytes,
        maxFileBytes: fileBytes,
        workers: threads,
      });
      const directory = fileBytes === 0 ? null : (directories?.create(plan) ?? null);
      const onFileRemoved = (head: Uint8Array) =>
        directory === null ? undefined : use.onFileRemoved?.(directory.path, head);
      return { memory, maintenance: new CacheMaintenance(memory, { onFileRemoved }), directory };
    } catch (error) {
      log.error("there is no memory for a cache: its instance stores nothing", {
        plugin: plan.name,
        instance: plan.label ?? plan.id,
        bytes,
        error,
      });
      return null;
    }
  }

  /** Returns the memory of all stores but those of these plans: no worker serves another version any more. */
  retain(plans: ReadonlyMap<string, PluginPlan>): void {
    const { directories } = this.#options;
    let hadFiles = false;
    for (const [plan, cache] of this.#all) {
      if (plans.get(plan.id) === plan) continue;
      this.#all.delete(plan);
      if (cache === null) continue;
      void this.#retire(cache);
      if (cache.directory === null) continue;
      directories?.remove(cache.directory.path);
      hadFiles = true;
    }
    if (hadFiles) this.begin(plans);
  }

  async #retire(cache: PluginCache): Promise<void> {
    this.#retiring.add(cache);
    await cache.maintenance.close();
    this.#retiring.delete(cache);
    returnPages(retiredParts(cache.memory));
  }

  /** Frees what a thread that has ended has held. */
  forgetThread(thread: number): void {
    for (const cache of [...this.#all.values(), ...this.#retiring]) {
      if (cache === null) continue;
      void cache.maintenance.forgetWorker(thread - 1);
      forgetFlights(cache.memory.flights, thread);
    }
  }

  /** `pluginId` null: all instances. Resolves to the number of purged responses; no worker serves them any more. */
  async purge(pluginId: string | null, which: Purge, { soft }: { soft: boolean }): Promise<number> {
    const { directories } = this.#options;
    let purged = 0;
    for (const [plan, cache] of this.#all) {
      if (cache === null || (pluginId !== null && plan.id !== pluginId)) continue;
      const use = this.#options.definitionOf(plan.name)?.cache;
      const named =
        which.by === "key" && use !== undefined
          ? { by: which.by, value: use.resourceOf(plan.config as never, which.value) }
          : which;
      purged += await cache.maintenance.purge(named, { soft });
      // A hard purge has removed the files.
      if (soft && cache.directory !== null)
        directories?.forgetBefore(cache.directory.path, cache.maintenance.epoch);
    }
    return purged;
  }

  /** Removes the files of all instances but these. */
  begin(plans: ReadonlyMap<string, PluginPlan>): void {
    const { definitionOf, directories } = this.#options;
    const hasFiles = ({ name, config }: PluginPlan) =>
      (definitionOf(name)?.cache?.size(config as never).fileBytes ?? 0) > 0;
    const ids = [...plans.values()].filter(hasFiles).map(({ id }) => id);
    directories?.retain(new Set(ids));
  }

  /** No thread writes files any more. */
  close(): void {
    for (const cache of this.#all.values())
      if (cache?.directory != null) this.#options.directories?.close(cache.directory.path);
  }

  /** By the id of the instance. */
  counts(): ReadonlyMap<string, CacheCounts> {
    const counts = new Map<string, CacheCounts>();
    for (const [{ id }, cache] of this.#all)
      if (cache !== null) counts.set(id, cache.maintenance.counts());
    return counts;
  }
}
