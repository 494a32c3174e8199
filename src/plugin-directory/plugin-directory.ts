// The plugins of a directory: loads them at the start, follows their files, and replaces them by changes; runs no code of them.
import { local } from "../control/principal.ts";
import type { PluginDirectoryView, WatchedPlugins } from "../control/watched-plugins.ts";
import { ApiError } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import type { PluginCode } from "../pdk/definition.ts";
import type { PluginPlan } from "../snapshot/snapshot.ts";
import { absentPlugin } from "./absent.ts";
import { PluginError, problem, failureOf } from "./bundle.ts";
import { definitionFrom } from "./definition.ts";
import { findPlugins, marksOf, type PluginFile } from "./files.ts";
import {
  auditEntryOf,
  directoryView,
  type Known,
  noteChanged,
  servedCode,
  unread,
  warningsOf,
} from "./known.ts";
import type { Attached, PluginDirectoryOptions } from "./options.ts";
import { readPlugin } from "./reader-thread.ts";
import { ReloadCount } from "./reload-count.ts";
import { replacePlugin } from "./replacement.ts";

/** Polls, because file notifications miss files that are replaced behind links, as Kubernetes does. */
const INTERVAL_MS = 500;

/** How often a worker may block in a plugin before the gateway disables it. */
const BLOCKED_ONCE_MORE = 2;

const GONE = "the file is gone; the plugin is served while instances use it";
const ABSENT = "there is no such file: requests that need the plugin are rejected with 503";

/** Plugins that are read at a time while the gateway starts. */
const READERS = 4;

/** Status of changes that are paused. */
const PAUSED = 409;

export class PluginDirectory implements WatchedPlugins {
  readonly #options: PluginDirectoryOptions;
  readonly #builtIn: ReadonlySet<string>;
  readonly #known = new Map<string, Known>();
  #problems: readonly string[] = [];
  #attached: Attached | null = null;
  #timer: Timer | null = null;
  #work: Promise<void> = Promise.resolve();
  #isBusy = false;
  #numbers = 0;
  readonly #reloads: ReloadCount;
  /** `settings.plugins_directory`. */
  #setting: string | null = null;

  private constructor(options: PluginDirectoryOptions) {
    this.#options = options;
    this.#builtIn = new Set(options.catalogue.keys());
    this.#reloads = new ReloadCount(options.log);
  }

  /** Loads all plugins of `--plugins-dir`; one that cannot be loaded is in `view`. Throws when the directory cannot be used. */
  static async open(options: PluginDirectoryOptions): Promise<PluginDirectory> {
    const plugins = new PluginDirectory(options);
    if (options.directory !== null) await plugins.#load(plugins.#find(options.directory));
    return plugins;
  }

  /**
   * Loads those of the stored setting at the start. A directory that cannot be used is a problem in `view`, and instances whose
   * plugin is not there reject, unless the caller `needsAll`: then the configuration cannot be compiled.
   */
  async openStored(
    { settings, plugins }: GatewayConfig,
    { needsAll }: { readonly needsAll: boolean },
  ): Promise<void> {
    this.#setting = settings.plugins_directory;
    if (this.#options.directory !== null) return;
    await this.#load(this.#findOrReport() ?? []);
    if (needsAll) return;
    const { catalogue } = this.#options;
    for (const name of new Set([...plugins.values()].map((plugin) => plugin.name))) {
      if (catalogue.has(name)) continue;
      const known = this.#knownOf(name);
      known.definition = absentPlugin(name, known.number);
      catalogue.set(name, known.definition);
      if (known.problem !== null) continue;
      known.file = name;
      this.#refuse(known, new PluginError(problem("read", ABSENT)));
    }
  }

  async #load(files: readonly PluginFile[]): Promise<void> {
    const left = [...files];
    const read = async () => {
      for (let file = left.shift(); file !== undefined; file = left.shift())
        await this.#read(this.#knownFor(file), file);
    };
    await Promise.all(Array.from({ length: READERS }, read));
  }

  /** Null: there is none. */
  get #directory(): string | null {
    return this.#options.directory ?? this.#setting;
  }

  /** Throws when the directory cannot be used. */
  #find(directory: string): readonly PluginFile[] {
    const { files, problems } = findPlugins(directory, this.#options.written);
    this.#report(problems);
    return files;
  }

  /** Null: the directory cannot be used. */
  #findOrReport(): readonly PluginFile[] | null {
    const directory = this.#directory;
    try {
      if (directory !== null) return this.#find(directory);
      this.#report([]);
      return [];
    } catch (error) {
      this.#report([(error as Error).message]);
      return null;
    }
  }

  /** From now on plugins are replaced by changes. */
  attach(attached: Attached): void {
    this.#attached = attached;
    // An entry of a fleet may need plugins of a directory that it sets itself: the node loads them, and tries it again.
    attached.changes.beforeFollowing(({ settings }) => {
      this.#setting = settings.plugins_directory;
    });
    attached.changes.onServed(({ change, before, after }) => {
      this.#setting = after.settings.plugins_directory;
      if (this.#setting !== before.settings.plugins_directory) void this.look(true);
      const { upserts, removals } = change.plugins;
      if (upserts.length + removals.length > 0)
        noteChanged(this.#known.values(), [...upserts.map(({ id }) => id), ...removals]);
    });
  }

  /** Before the workers start: these instances cannot be created, for these reasons, and reject. */
  refuseInstances(refused: Iterable<{ readonly plan: PluginPlan; readonly why: string }>): void {
    for (const { plan, why } of refused) {
      const known = this.#knownOf(plan.name);
      known.refusedInstances.add(plan.id);
      const message = `${why}: requests that need instance ${plan.label ?? plan.id} are rejected with 503`;
      this.#refuse(known, new PluginError(problem("create", message)));
    }
  }

  /** Follows the files. */
  start(): void {
    for (const known of this.#known.values()) if (servedCode(known) !== null) this.#record(known);
    this.#timer ??= setInterval(() => void this.look(), INTERVAL_MS);
  }

  /** Resolves when no change is under way. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#work;
  }

  /** Looks for changed files. `isNow`: takes them although they may still be written; else they must be unchanged since the last look. */
  look(isNow = false): Promise<void> {
    if (this.#isBusy && !isNow) return this.#work;
    this.#isBusy = true;
    this.#work = this.#work
      .then(() => this.#follow(isNow))
      .catch((error: unknown) => this.#report([(error as Error).message]))
      .finally(() => {
        this.#isBusy = false;
      });
    return this.#work;
  }

  /** A worker was replaced that hung while the plugin with this number ran. */
  noteBlocked(number: number): void {
    const known = [...this.#known.values()].find((each) => each.number === number);
    if (known === undefined || servedCode(known) === null) return;
    known.blocked++;
    const { name: plugin, blocked } = known;
    this.#options.log.error("a plugin has blocked a worker, which is replaced", {
      plugin,
      blocked,
    });
    // Also when a look is under way, which may have passed it.
    if (blocked >= BLOCKED_ONCE_MORE) void this.#work.then(() => this.look());
  }

  view(): PluginDirectoryView {
    const { since, renewals } = this.#reloads;
    return directoryView(this.#known.values(), {
      directory: this.#directory,
      source: this.#options.directory === null ? "setting" : "flag",
      reloads_since_replacement: since,
      worker_replacements: renewals,
      problems: this.#problems,
    });
  }

  warnings(): readonly string[] {
    return warningsOf(this.view());
  }

  #knownOf(name: string): Known {
    const known = this.#known.get(name) ?? unread(name, ++this.#numbers);
    this.#known.set(name, known);
    return known;
  }

  #knownFor({ name, directory, file }: PluginFile): Known {
    const known = this.#knownOf(name);
    known.directory = directory;
    known.file = file;
    return known;
  }

  #report(problems: readonly string[]): void {
    const isNew = problems.join() !== this.#problems.join();
    this.#problems = problems;
    if (!isNew) return;
    for (const problem of problems)
      this.#options.log.warn("the plugins directory has a problem", { problem });
  }

  async #follow(isNow: boolean): Promise<void> {
    const closed = this.#closedWith();
    // While changes are paused, as during an upgrade, nothing may be replaced.
    if (closed === PAUSED) return;
    const found = this.#findOrReport();
    for (const file of found ?? []) {
      const known = this.#knownFor(file);
      const mark = `${file.mark}\n${marksOf(known.inputs)}`;
      const isStable = isNow || mark === known.seenMark;
      known.seenMark = mark;
      known.isRemoved = false;
      // A node of a fleet that cannot go on may wait for this file.
      const isPossible = closed === null || !this.#isUsed(file.name);
      if (mark !== known.readMark && isStable && isPossible) await this.#read(known, file);
    }
    const names = new Set(found?.map(({ name }) => name));
    for (const known of closed === null ? [...this.#known.values()] : []) {
      // A directory that cannot be used for a while takes nothing away.
      const isGone = found !== null || known.directory !== this.#directory;
      if (isGone && !names.has(known.name)) await this.#remove(known);
      if (known.blocked >= BLOCKED_ONCE_MORE) await this.#disable(known);
    }
    if (this.#attached === null) return;
    const { changes, renewWorkers } = this.#attached;
    const most = changes.config.settings.limits.max_plugin_reloads;
    void this.#reloads.renewIfDue({ most, renewWorkers });
  }

  /** Why no change can be made now; null: one can. */
  #closedWith(): number | null {
    try {
      return this.#attached?.changes.requireOpen(local) ?? null;
    } catch (error) {
      return error instanceof ApiError ? error.status : 500;
    }
  }

  /** Reads and serves a file; keeps what is served when it cannot be. */
  async #read(known: Known, { name, directory, entry, mark }: PluginFile): Promise<void> {
    const { url, written } = this.#options;
    const { number } = known;
    const source = { directory, entry, written };
    try {
      if (this.#builtIn.has(name))
        throw new PluginError(problem("definition", `the gateway has a plugin "${name}" already`));
      const { hash, text, definition, inputs } = await readPlugin(url, { ...source, name });
      known.inputs = inputs;
      const code: PluginCode = { hash, text, number, disabled: null };
      const served = servedCode(known);
      const { refusedInstances } = known;
      if (served?.hash !== hash || served.disabled !== null || refusedInstances.size > 0)
        await this.#serve(known, definitionFrom(definition, code));
      known.problem = null;
    } catch (error) {
      this.#refuse(known, error);
    }
    known.seenMark = `${mark}\n${marksOf(known.inputs)}`;
    // Tried again once changes can be made.
    const isDelayed = known.problem?.phase === "serve" && this.#closedWith() !== null;
    known.readMark = isDelayed ? "" : known.seenMark;
  }

  #refuse(known: Known, error: unknown): void {
    const found = failureOf(error as Error);
    const { phase, message, line } = found;
    known.problem = { ...found, file: found.file ?? known.file };
    this.#options.log.warn("a plugin of the directory is not served", {
      plugin: known.name,
      file: known.problem.file,
      line,
      phase,
      problem: message,
      still_served: servedCode(known)?.hash ?? null,
    });
  }

  async #serve(known: Known, definition: AnyPlugin): Promise<void> {
    const { hash = "", disabled = null } = definition.code ?? {};
    const what = disabled === null ? "load" : "disable";
    const { name, blocked } = known;
    if (known.definition === null) this.#attached?.observation.countPlugin(name);
    try {
      await this.#replace(name, definition, `${what} plugin "${name}" (sha256 ${hash})`);
    } catch (error) {
      if (known.blocked === blocked) throw error;
      // Not by the code that is served.
      known.blocked = blocked;
      const message = "blocks the worker that prepares it, which is replaced; nothing was changed";
      throw new PluginError(problem("create", message), error);
    }
    if (disabled === null) {
      if (servedCode(known) !== null) {
        known.reloads++;
        this.#reloads.add();
      }
      known.loadedAt = new Date(this.#options.clock.now()).toISOString();
      known.blocked = 0;
    }
    known.definition = definition;
    if (this.#attached !== null) this.#record(known);
  }

  async #disable(known: Known): Promise<void> {
    const { definition, blocked } = known;
    if (definition?.code === undefined || servedCode(known)?.disabled !== null) return;
    const disabled = `the plugin is disabled, because it has blocked a worker ${blocked} times; a changed file enables it`;
    try {
      await this.#serve(known, { ...definition, code: { ...definition.code, disabled } });
      known.problem = { ...problem("run", disabled), file: known.file };
    } catch (error) {
      // Workers that restart may refuse a version for a moment: the next look tries it again.
      this.#options.log.warn("a plugin could not be disabled yet", { plugin: known.name, error });
    }
  }

  /** Forgets a plugin whose file is gone, unless an instance uses it. */
  async #remove(known: Known): Promise<void> {
    const { name } = known;
    if (known.definition !== null && this.#isUsed(name)) {
      if (known.isRemoved || servedCode(known) === null) return;
      known.isRemoved = true;
      known.readMark = "";
      return this.#refuse(known, new Error(GONE));
    }
    if (known.definition !== null) {
      await this.#replace(name, null, `remove plugin "${name}"`);
      known.definition = null;
      this.#record(known);
    }
    this.#known.delete(name);
  }

  #isUsed(name: string): boolean {
    const { config } = this.#attached?.changes ?? {};
    return [...(config?.plugins.values() ?? [])].some((plugin) => plugin.name === name);
  }

  async #replace(name: string, next: AnyPlugin | null, summary: string): Promise<void> {
    const what = { name, next, summary };
    const changes = this.#closedWith() === null ? (this.#attached?.changes ?? null) : null;
    try {
      await replacePlugin({ ...this.#options, changes }, what);
    } catch (error) {
      // A node of a fleet that cannot go on meanwhile may wait for this very plugin.
      if (this.#closedWith() === null || this.#isUsed(name)) throw error;
      await replacePlugin({ ...this.#options, changes: null }, what);
    }
  }

  /** Hashes of what is served are in the audit log, and so in its events. */
  #record(known: Known): void {
    const entry = auditEntryOf(known);
    const { action, object_name: plugin, detail } = entry;
    this.#options.log.info(`plugin of the directory: ${action}`, { plugin, ...detail });
    this.#attached?.audit.record(entry);
  }
}
