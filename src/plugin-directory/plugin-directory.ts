// The plugins of a directory: loads them at the start, follows their files, and replaces them by changes; runs no code of them.
import { dirname } from "node:path";
import type { Clock } from "../clock.ts";
import type { AuditSink } from "../control/audit-entry.ts";
import type { Changes } from "../control/change.ts";
import { local } from "../control/principal.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import type { Plugin } from "../model/plugin.ts";
import type { AnyPlugin } from "../pdk/definition.ts";
import type { PluginCode } from "../pdk/plugin-code.ts";
import { PluginError, problem } from "./bundle.ts";
import { definitionFrom } from "./definition.ts";
import { findPlugins, marksOf, type PluginFile } from "./files.ts";
import { type Known, type PluginDirectoryView, unread, viewOf } from "./known.ts";
import { readPlugin } from "./reader-thread.ts";
import { ReloadCount, type ReloadLimit } from "./reload-count.ts";
import { requireApart, trustedPath } from "./trust.ts";

/** Polls, because file notifications miss files that are replaced behind links, as Kubernetes does. */
const INTERVAL_MS = 500;

/** How often a worker may block in a plugin before the gateway disables it. */
const BLOCKED_ONCE_MORE = 2;

/** Status of changes that are paused. */
const PAUSED = 409;

export interface PluginDirectoryOptions {
  /** `--plugins-dir`, which precedes the setting; null: absent. */
  readonly directory: string | null;
  /** Where the gateway itself writes: a directory of the setting must not be in there. Default: nowhere. */
  readonly written?: readonly string[];
  /** Entry of the thread that reads plugins. */
  readonly url: URL;
  /** All plugins: has the built-in ones, and gets those of the directory. */
  readonly catalogue: Map<string, AnyPlugin>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Attached {
  readonly changes: Changes;
  readonly audit: AuditSink;
  readonly observation: { countPlugin(name: string): void };
  readonly renewWorkers: ReloadLimit["renewWorkers"];
}

export class PluginDirectory {
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

  /**
   * Loads all plugins of `--plugins-dir` into the catalogue; one that cannot be loaded is in `view`. Throws when the directory is
   * not trusted.
   */
  static async open(options: PluginDirectoryOptions): Promise<PluginDirectory> {
    const plugins = new PluginDirectory(options);
    await plugins.#load();
    return plugins;
  }

  /** Loads those of the stored setting at the start. A directory that cannot be used is a problem in `view`. */
  async openStored(setting: string | null): Promise<void> {
    this.#setting = setting;
    if (this.#options.directory === null)
      await this.#load().catch((error: unknown) => this.#report([(error as Error).message]));
  }

  async #load(): Promise<void> {
    const files = this.#find();
    await Promise.all(files.map((file) => this.#read(this.#knownFor(file), file)));
  }

  /** Null: there is none. */
  get #directory(): string | null {
    return this.#options.directory ?? this.#setting;
  }

  /** The plugins that there are. Throws when the directory is not trusted. */
  #find(): readonly PluginFile[] {
    const directory = this.#directory;
    if (directory === null) {
      this.#report([]);
      return [];
    }
    const real = trustedPath(directory);
    // An admin of the API must not make code of what the API writes.
    if (this.#options.directory === null) requireApart(real, this.#options.written ?? []);
    const { files, problems } = findPlugins(directory);
    this.#report(problems);
    return files;
  }

  /** From now on plugins are replaced by changes. */
  attach(attached: Attached): void {
    this.#attached = attached;
    attached.changes.onServed(({ change, after }) => {
      const { plugins_directory: setting } = after.settings;
      if (setting !== this.#setting) {
        this.#setting = setting;
        void this.look(true);
      }
      // A refused file may fit the changed instances.
      if (change.plugins.upserts.length + change.plugins.removals.length === 0) return;
      for (const known of this.#known.values())
        if (known.problem?.phase === "serve") known.readMark = "";
    });
  }

  /** Follows the files. */
  start(): void {
    for (const known of this.#known.values()) if (known.definition !== null) this.#record(known);
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
    if (known === undefined || known.definition === null) return;
    known.blocked++;
    const { name: plugin, blocked } = known;
    this.#options.log.error("a plugin has blocked a worker, which is replaced", {
      plugin,
      blocked,
    });
    if (blocked >= BLOCKED_ONCE_MORE) void this.look();
  }

  view(): PluginDirectoryView {
    const plugins = [...this.#known.values()].map(viewOf);
    return {
      directory: this.#directory,
      source: this.#options.directory === null ? "setting" : "flag",
      reloads: plugins.reduce((sum, { reloads }) => sum + reloads, 0),
      reloads_since_replacement: this.#reloads.since,
      worker_replacements: this.#reloads.renewals,
      plugins: plugins.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
      problems: this.#problems,
    };
  }

  /** For the status, which everyone may read: without names. */
  warnings(): readonly string[] {
    const { plugins, problems } = this.view();
    const failing = plugins.filter(({ problem }) => problem !== null).length + problems.length;
    return failing === 0 ? [] : [`${failing} of the plugins directory not served: see Plugins`];
  }

  #knownFor({ name, file }: PluginFile): Known {
    const known = this.#known.get(name) ?? unread(name, ++this.#numbers);
    this.#known.set(name, known);
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
    const files = this.#find();
    for (const file of files) {
      const known = this.#knownFor(file);
      const mark = `${file.mark}\n${marksOf(known.inputs)}`;
      const isStable = isNow || mark === known.seenMark;
      known.seenMark = mark;
      known.isRemoved = false;
      // A node of a fleet that cannot go on may wait for this file.
      const isPossible = closed === null || !this.#isUsed(file.name);
      if (mark !== known.readMark && isStable && isPossible) await this.#read(known, file);
    }
    const names = new Set(files.map(({ name }) => name));
    for (const known of closed === null ? [...this.#known.values()] : []) {
      if (!names.has(known.name)) await this.#remove(known);
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
      this.#attached?.changes.requireOpen(local);
      return null;
    } catch (error) {
      return error instanceof ApiError ? error.status : 500;
    }
  }

  /** Reads and serves a file; keeps what is served when it cannot be. */
  async #read(known: Known, { name, entry, mark }: PluginFile): Promise<void> {
    const { url } = this.#options;
    const directory = this.#directory ?? dirname(entry);
    const { number } = known;
    try {
      if (this.#builtIn.has(name))
        throw new PluginError(problem("definition", `the gateway has a plugin "${name}" already`));
      const { hash, text, definition, inputs } = await readPlugin(url, { directory, entry, name });
      known.inputs = inputs;
      const code: PluginCode = { hash, text, number, disabled: null };
      const served = known.definition?.code;
      if (served?.hash !== hash || served.disabled !== null)
        await this.#serve(known, definitionFrom(definition, code));
      known.problem = null;
    } catch (error) {
      this.#refuse(known, error);
    }
    known.readMark = `${mark}\n${marksOf(known.inputs)}`;
    known.seenMark = known.readMark;
  }

  #refuse(known: Known, error: unknown): void {
    const found =
      error instanceof PluginError ? error.problem : problem("serve", (error as Error).message);
    const { phase, message, line } = found;
    known.problem = { ...found, file: found.file ?? known.file };
    this.#options.log.warn("a plugin of the directory is not served", {
      plugin: known.name,
      file: known.problem.file,
      line,
      phase,
      problem: message,
      still_served: known.definition?.code?.hash ?? null,
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
      if (known.definition !== null) {
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
    if (definition?.code === undefined || definition.code.disabled !== null) return;
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
      if (known.isRemoved) return;
      known.isRemoved = true;
      known.readMark = "";
      this.#refuse(
        known,
        new Error("the file is gone; the plugin is served while instances use it"),
      );
      return;
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

  /** All workers create the instances of the plugin again, or none does, and the plugin stays as it is. */
  async #replace(name: string, next: AnyPlugin | null, summary: string): Promise<void> {
    const { catalogue, log } = this.#options;
    const before = catalogue.get(name) ?? null;
    const put = (definition: AnyPlugin | null) =>
      void (definition === null ? catalogue.delete(name) : catalogue.set(name, definition));
    const { changes } = this.#attached ?? {};
    if (changes === undefined || this.#closedWith() !== null) return put(next);
    let first: Plugin | undefined;
    try {
      await changes.run({
        by: local,
        dryRun: false,
        mutate(draft) {
          // Inside the lock: no other change is compiled with it before this one is prepared.
          put(next);
          draft.summary = summary;
          const used = [...draft.config.plugins.values()].filter((each) => each.name === name);
          const renewed = used.map((each) => ({ ...each, updated_at: draft.stamp() }));
          for (const plugin of renewed) draft.put("plugins", plugin);
          [first] = renewed;
        },
      });
    } catch (error) {
      const isStored = first !== undefined && changes.config.plugins.get(first.id) === first;
      if (!isStored) {
        put(before);
        throw error;
      }
      log.warn("not all workers serve a plugin yet", { plugin: name, error });
    }
  }

  /** Hashes of what is served are in the audit log, and so in its events. */
  #record({ name, file, definition, reloads }: Known): void {
    const { hash = null, disabled = null } = definition?.code ?? {};
    const action = hash === null ? "unload" : disabled === null ? "load" : "disable";
    this.#options.log.info(`plugin of the directory: ${action}`, { plugin: name, file, hash });
    this.#attached?.audit.record({
      actor: local.actor,
      method: local.method,
      address: "",
      action,
      kind: "plugin_file",
      object_id: null,
      object_name: name,
      result: "ok",
      revision: null,
      detail: { file, sha256: hash, reloads },
    });
  }
}
