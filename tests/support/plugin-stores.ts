// Stores of plugin instances for data planes in the test's own process, in common for several of them.
import { createLog } from "../../src/log.ts";
import { PluginCaches } from "../../src/supervisor/plugin-caches.ts";
import type { PluginPlan } from "../../src/snapshot/snapshot.ts";
import { plugins } from "./plugins.ts";

const WORKERS = 8;

const definitionOf = (name: string) => plugins.find((plugin) => plugin.name === name);

/** Planes that are given the same instances in the same order share their stores, as workers do. */
export class PluginStores {
  readonly caches = new PluginCaches({
    workers: WORKERS,
    definitionOf,
    log: createLog({ level: "error", format: "json", sink: () => {} }),
  });
  readonly #plans = new Map<string, PluginPlan>();
  #planes = 0;

  /** The next plane's number, and the function that gives its plans their stores. */
  join(): { readonly worker: number; readonly withCache: (plan: PluginPlan) => PluginPlan } {
    const times = new Map<string, number>();
    return {
      worker: this.#planes++,
      withCache: (plan) => {
        if (definitionOf(plan.name)?.cache === undefined) return plan;
        const time = (times.get(plan.id) ?? 0) + 1;
        times.set(plan.id, time);
        const key = `${plan.id} ${time}`;
        const first = this.#plans.get(key) ?? plan;
        this.#plans.set(key, first);
        const { cache } = this.caches.withCache(first);
        return cache === undefined ? plan : { ...plan, cache };
      },
    };
  }
}
