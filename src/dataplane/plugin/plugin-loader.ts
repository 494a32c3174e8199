// Creates plugin instances when the configuration changes and closes removed ones; knows no request.
import { hkdfSync } from "node:crypto";
import type { Issue } from "../../model/error.ts";
import type { InstanceView } from "../../pdk/context.ts";
import type { PluginSource } from "../../pdk/catalogue.ts";
import type { PluginHandlers } from "../../pdk/definition.ts";
import type { Callout, Counters, LogDirectories, PluginKit } from "../../pdk/kit.ts";
import type { CollectionChange, PluginPlan } from "../../snapshot/snapshot.ts";
import type { LogLine } from "../data-plane.ts";
import { pluginRuntime, type PluginRuntime, PluginSet } from "./plugin-set.ts";

export interface PluginLoaderOptions {
  readonly worker: number;
  readonly workers: number;
  readonly plugins: PluginSource;
  /** The keys of instances are derived from it. */
  readonly pluginKey: string;
  /** `persist`: counts survive a restart. */
  readonly countersOf: (instanceId: string, persist: boolean) => Counters;
  readonly callout: Callout;
  readonly logDirectories: LogDirectories | null;
  readonly log: LogLine;
  /** A plugin of this type has dropped so many records. */
  readonly dropped: (plugin: string, count: number) => void;
  readonly used: (credentialId: string) => void;
}

/** A set that is not in service yet, with the instances created for it. */
export interface LoadedPlugins {
  readonly set: PluginSet;
  readonly issues: readonly Issue[];
  readonly made: readonly PluginRuntime[];
}

export class PluginLoader {
  readonly #options: PluginLoaderOptions;

  constructor(options: PluginLoaderOptions) {
    this.#options = options;
  }

  /** The next set; unchanged instances keep their state. */
  async load(before: PluginSet, change: CollectionChange<PluginPlan>): Promise<LoadedPlugins> {
    if (change.upserts.length + change.removals.length === 0)
      return { set: before, issues: [], made: [] };
    const all = new Map(before.all);
    for (const id of change.removals) all.delete(id);
    const made: PluginRuntime[] = [];
    const issues: Issue[] = [];
    for (const plan of change.upserts) {
      try {
        const runtime = await this.#make(plan);
        made.push(runtime);
        all.set(plan.id, runtime);
      } catch (error) {
        const { message } = error as Error;
        issues.push({ path: "", message: `plugin ${nameOf(plan)}: ${message}`, status: 400 });
      }
    }
    return { set: new PluginSet(all), issues, made };
  }

  async #make(plan: PluginPlan): Promise<PluginRuntime> {
    const definition = await this.#options.plugins.get(plan.name);
    if (definition === undefined) throw new Error("there is no such plugin");
    const handlers = await definition.create(plan.config as never, this.#kitOf(plan));
    return pluginRuntime(plan, definition, handlers);
  }

  #kitOf({ id, name: plugin, label, scope, config }: PluginPlan): PluginKit {
    const { worker, workers, pluginKey, countersOf, callout, logDirectories, log, used, dropped } =
      this.#options;
    const instance: InstanceView = { id, plugin, label, scope };
    let counters: Counters | null = null;
    return {
      instance,
      worker,
      workers,
      get counters() {
        counters ??= countersOf(id, config["persist"] === true);
        return counters;
      },
      callout,
      logDirectories,
      used,
      dropped: (count) => dropped(plugin, count),
      deriveKey: (purpose) =>
        new Uint8Array(hkdfSync("sha256", pluginKey, id, `plugin ${plugin} ${purpose}`, 32)),
      log: (level, message, fields = {}) =>
        log(level, message, { plugin, instance: label ?? id, ...fields }),
    };
  }

  /** Closes the instances that `after` no longer has; resolves when all are closed. Never rejects. */
  async retire(before: Iterable<PluginRuntime>, after: PluginSet): Promise<void> {
    const gone = [...before].filter((runtime) => after.all.get(runtime.plan.id) !== runtime);
    await Promise.all(gone.map((runtime) => this.#close(runtime)));
  }

  async #close({ plan, handlers }: PluginRuntime): Promise<void> {
    try {
      await (handlers as PluginHandlers).close?.();
    } catch (error) {
      this.#options.log("warn", "a plugin could not be closed", {
        plugin: plan.name,
        error: (error as Error).message,
      });
    }
  }
}

const nameOf = ({ name, label }: PluginPlan) => (label === null ? name : `${name} "${label}"`);
