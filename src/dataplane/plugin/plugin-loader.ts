// Creates plugin instances when the configuration changes and closes removed ones; knows no request.
import { hkdfSync } from "node:crypto";
import type { Issue } from "../../model/error.ts";
import { finish, type Pace } from "../../pace.ts";
import type { InstanceView } from "../../pdk/context.ts";
import type { PluginSource } from "../../pdk/catalogue.ts";
import type { AnyPlugin, PluginHandlers } from "../../pdk/definition.ts";
import type { Callout, KitDialer, Counters, LogDirectories, PluginKit } from "../../pdk/kit.ts";
import { FEED_QUESTION } from "../../snapshot/message.ts";
import type { CollectionChange, PluginPlan } from "../../snapshot/snapshot.ts";
import { openCache } from "../../shared-memory/cache/open.ts";
import type { WorkerCounters } from "../../shared-counters/worker-counters.ts";
import type { Problem } from "../../snapshot/problem.ts";
import type { LogLine } from "../data-plane.ts";
import { failingHandlers, guardHandlers } from "./guarded-handlers.ts";
import { located, running } from "./running-plugin.ts";
import { pluginRuntime, type PluginRuntime, PluginSet } from "./plugin-set.ts";

/** How long a handler of a plugin from a directory may wait, unless its definition says otherwise. */
const DEFAULT_TIMEOUT_MS = 30_000;

export interface PluginLoaderOptions {
  readonly worker: number;
  readonly workers: number;
  /** As in `StartCommand`. */
  readonly thread: number;
  readonly plugins: PluginSource;
  /** The keys of instances are derived from it. */
  readonly pluginKey: string;
  /** As in `StartCommand`. */
  readonly maxCreateMs: number | null;
  /** `persist`: counts survive a restart. */
  readonly countersOf: (instanceId: string, persist: boolean) => Counters;
  /** Null: there are none. */
  readonly sharedCounters: WorkerCounters | null;
  readonly callout: Callout;
  readonly dialer: KitDialer;
  readonly logDirectories: LogDirectories | null;
  readonly log: LogLine;
  /** The cell of this worker that holds the number of the plugin that runs. */
  readonly running: Float64Array;
  /** A plugin of this type has dropped so many records. */
  readonly dropped: (plugin: string, count: number) => void;
  readonly used: (credentialId: string) => void;
}

/** The key from which an instance has derived its own; null: it has none. */
interface Derived {
  from: string | null;
}

export class PluginLoader {
  readonly #options: PluginLoaderOptions;

  #key: string;
  /** Of instances that have derived keys: from which one. */
  readonly #keys = new WeakMap<PluginRuntime, Derived>();

  constructor(options: PluginLoaderOptions) {
    this.#options = options;
    this.#key = options.pluginKey;
  }

  /** Keys of instances are derived from this one from now on. */
  useKey(key: string): void {
    this.#key = key;
    this.#options.sharedCounters?.useKey(key);
  }

  /** The next set in the making; instances that do not change go on with what they remember. */
  edit(before: PluginSet): PluginEdit {
    const isOutdated = (runtime: PluginRuntime) => {
      const key = this.#keys.get(runtime)?.from ?? this.#key;
      return key !== this.#key;
    };
    return new PluginEdit(before, { make: (plan) => this.#make(plan), isOutdated });
  }

  async #make(plan: PluginPlan): Promise<PluginRuntime> {
    const definition = await this.#definitionOf(plan);
    await this.#options.sharedCounters?.tried;
    const derived: Derived = { from: null };
    const kit = this.#kitOf(plan, derived);
    const before = process.threadCpuUsage();
    const handlers = await (plan.code === undefined
      ? definition.create(plan.config as never, kit)
      : this.#createGuarded(plan, definition, kit));
    const runtime = pluginRuntime(plan, definition, handlers);
    this.#keys.set(runtime, derived);
    const problem = plan.code === undefined ? this.#costProblem(before) : null;
    if (problem === null) return runtime;
    await this.#close(runtime);
    throw new RefusedConfig([{ path: "", message: `plugin ${nameOf(plan)}: ${problem}` }]);
  }

  /** Why every worker would stand still for too long while it creates an instance. */
  #costProblem(before: NodeJS.CpuUsage): string | null {
    const { maxCreateMs } = this.#options;
    const { user, system } = process.threadCpuUsage(before);
    const usedMs = Math.round((user + system) / 1000);
    if (maxCreateMs === null || usedMs <= maxCreateMs) return null;
    return `create takes ${usedMs} ms of processor time, in which a worker serves no request; at most ${maxCreateMs}: make the configuration smaller`;
  }

  async #definitionOf({ name, code }: PluginPlan): Promise<AnyPlugin> {
    const definition = await this.#options.plugins.get(name, code);
    if (definition === undefined) throw new Error("there is no such plugin");
    return definition;
  }

  /** The main thread must not run code from a directory: what a built-in plugin checks there is checked here. */
  async #createGuarded(
    plan: PluginPlan,
    definition: AnyPlugin,
    kit: PluginKit,
  ): Promise<PluginHandlers> {
    const { number = 0, disabled = null } = plan.code ?? {};
    if (disabled !== null) return failingHandlers(definition.phases, disabled);
    const { running: cell, log } = this.#options;
    const as = { number, running: cell };
    const config = plan.config as never;
    const problems = running(as, "check", () => [
      ...(definition.check?.(config) ?? []),
      ...(definition.longCheck === undefined ? [] : finish(definition.longCheck(config))),
    ]);
    if (problems.length > 0) throw new RefusedConfig(problems);
    const created = running(as, "create", () => definition.create(config, kit));
    const handlers =
      created instanceof Promise
        ? await created.catch((error: unknown) => Promise.reject(located(error, "create")))
        : created;
    return guardHandlers(handlers, {
      ...as,
      timeoutMs: definition.handlerTimeoutMs ?? DEFAULT_TIMEOUT_MS,
      failed: ({ message }) =>
        log("warn", "a plugin failed", { plugin: plan.name, instance: plan.id, error: message }),
    });
  }

  #kitOf(plan: PluginPlan, derived: Derived): PluginKit {
    const { id, name: plugin, label, scope, config, cache, cacheDirectory = null, feed } = plan;
    const { worker, workers, thread, countersOf, sharedCounters } = this.#options;
    const { callout, dialer, logDirectories, log, used, dropped } = this.#options;
    const key = this.#key;
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
      openCache:
        cache === undefined ? null : (use) => openCache(cache, { worker: thread - 1, ...use }),
      cacheDirectory,
      shared: sharedCounters?.forInstance(id) ?? null,
      callout,
      dialer,
      followFeed: feed === undefined ? null : (onMessage) => followChannel(feed, onMessage),
      logDirectories,
      used,
      dropped: (count) => dropped(plugin, count),
      deriveKey: (purpose) => {
        derived.from = key;
        return new Uint8Array(hkdfSync("sha256", key, id, `plugin ${plugin} ${purpose}`, 32));
      },
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

/** A configuration that the plugin itself refuses. */
class RefusedConfig extends Error {
  readonly problems: readonly { readonly path: string; readonly message: string }[];

  constructor(problems: RefusedConfig["problems"]) {
    super("the configuration is refused");
    this.problems = problems;
  }
}

interface PluginEditParts {
  readonly make: (plan: PluginPlan) => Promise<PluginRuntime>;
  /** Whether it has keys that are not valid any more. */
  readonly isOutdated: (runtime: PluginRuntime) => boolean;
}

/** A set that is not in service yet. */
export class PluginEdit {
  readonly #before: PluginSet;
  readonly #parts: PluginEditParts;
  #all: Map<string, PluginRuntime> | null = null;
  /** Made for this set only: to be closed when it does not come into service. */
  readonly made: PluginRuntime[] = [];
  /** Why instances could not be made. */
  readonly issues: (Issue | Problem)[] = [];

  constructor(before: PluginSet, parts: PluginEditParts) {
    this.#before = before;
    this.#parts = parts;
  }

  /** Creates the instances again that have derived their keys from a former one. */
  async renew(pace: Pace): Promise<void> {
    const upserts: PluginPlan[] = [];
    for (const runtime of (this.#all ?? this.#before.all).values())
      if (this.#parts.isOutdated(runtime)) upserts.push(runtime.plan);
    await this.apply({ upserts, removals: [] }, pace);
  }

  async apply({ upserts, removals }: CollectionChange<PluginPlan>, pace: Pace): Promise<void> {
    if (upserts.length + removals.length === 0) return;
    this.#all ??= new Map(this.#before.all);
    const all = this.#all;
    for (const id of removals) all.delete(id);
    for (const plan of upserts) {
      try {
        const runtime = await this.#parts.make(plan);
        this.made.push(runtime);
        all.set(plan.id, runtime);
      } catch (error) {
        this.issues.push(...issuesOf(plan, error));
      }
      if (pace.isDue()) await pace.rest();
    }
  }

  /** The set; the same as before when nothing changes. */
  finish(): PluginSet {
    return this.#all === null ? this.#before : new PluginSet(this.#all);
  }
}

function issuesOf({ id, name, label }: PluginPlan, error: unknown): readonly (Issue | Problem)[] {
  if (error instanceof RefusedConfig)
    return error.problems.map(({ path, message }) => ({
      collection: "plugins",
      id,
      path: path === "" ? "config" : `config.${path}`,
      message,
      status: 400,
    }));
  const { message } = error as Error;
  return [{ path: "", message: `plugin ${nameOf({ name, label })}: ${message}`, status: 400 }];
}

const nameOf = ({ name, label }: Pick<PluginPlan, "name" | "label">) =>
  label === null ? name : `${name} "${label}"`;

/** The supervisor sends the last message again when a worker asks for it. */
function followChannel(name: string, onMessage: (message: unknown) => void): () => void {
  const channel = new BroadcastChannel(name);
  channel.addEventListener("message", ({ data }) => {
    if (data !== FEED_QUESTION) onMessage(data);
  });
  channel.postMessage(FEED_QUESTION);
  return () => channel.close();
}
