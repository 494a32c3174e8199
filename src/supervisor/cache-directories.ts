// The directories of caches that keep files: one for each store, and what an earlier process has left; knows no file in them.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { Log } from "../log.ts";
import type { CacheDirectory } from "../pdk/kit.ts";
import type { PluginPlan } from "../snapshot/snapshot.ts";

/** Written by a process that writes nothing more: the one that takes over waits for it. */
const CLOSED_FILE = "closed";
/** Files of older epochs must not be loaded; a directory without it must not be loaded at all. */
const EPOCH_FILE = "epoch";

export interface CacheDirectoriesOptions {
  /** Has a directory for each instance, with one for each of its stores. */
  readonly root: string;
  /** Another process of this gateway may still write to its own. */
  readonly isHandedOver: boolean;
  readonly log: Log;
}

/** Before the names of directories that are being removed. */
const REMOVED = "removed-";
const NAME = /^(\d{1,15})-([0-9a-f]{1,16})$/;

export class CacheDirectories {
  readonly #options: CacheDirectoriesOptions;
  /** Instances whose first store exists: only that one adopts files of an earlier process. */
  readonly #known = new Set<string>();

  constructor(options: CacheDirectoriesOptions) {
    this.#options = options;
  }

  /**
   * Creates the directory of a new store. A store never uses that of another one: what a store does not know, it could not
   * invalidate. Null: the disk does not allow it.
   */
  create({ id, config }: PluginPlan): CacheDirectory | null {
    const { root, isHandedOver, log } = this.#options;
    const parent = `${root}/${id}`;
    try {
      mkdirSync(parent, { recursive: true, mode: 0o700 });
      const settings = Bun.hash(JSON.stringify(config)).toString(16);
      const last = lastIn(parent);
      const path = `${parent}/${(last?.number ?? 0) + 1}-${settings}`;
      mkdirSync(path, { mode: 0o700 });
      writeEpoch(path, 0);
      const isSame = last?.settings === settings && !this.#known.has(id);
      this.#known.add(id);
      const previous = last !== null && isSame ? `${parent}/${last.name}` : null;
      for (const name of readdirSync(parent))
        if (`${parent}/${name}` !== path && `${parent}/${name}` !== previous)
          this.remove(`${parent}/${name}`);
      return {
        path,
        previous: previous === null ? null : { path: previous, isInUse: isHandedOver },
      };
    } catch (error) {
      log.warn("a cache cannot use the disk, and stores in memory only", { root, error });
      return null;
    }
  }

  /** Removes the directories of all other instances. */
  retain(ids: ReadonlySet<string>): void {
    const { root } = this.#options;
    if (!existsSync(root)) return;
    for (const id of readdirSync(root)) if (!ids.has(id)) this.remove(`${root}/${id}`);
  }

  /** It loses its name at once, its files in the background. */
  remove(path: string): void {
    const { root, log } = this.#options;
    const removed = `${root}/${REMOVED}${Bun.randomUUIDv7()}`;
    const failed = (error: unknown) =>
      log.warn("a directory of a cache cannot be removed", { path, error });
    try {
      renameSync(path, removed);
      rm(removed, { recursive: true, force: true }).catch(failed);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") failed(error);
    }
  }

  /** The next start must not load files of older epochs: what a soft purge has made stale is not kept as such. */
  forgetBefore(path: string, epoch: number): void {
    try {
      writeEpoch(path, epoch);
    } catch {
      // The disk is full: the next start loads nothing.
      rmSync(`${path}/${EPOCH_FILE}`, { force: true });
    }
  }

  /** This process writes nothing more to it. */
  close(path: string): void {
    try {
      writeFileSync(`${path}/${CLOSED_FILE}`, "", { mode: 0o600 });
    } catch {
      // The directory is gone, or the disk is full: the next process does not load it.
    }
  }
}

/** As a whole or not at all. */
function writeEpoch(path: string, epoch: number): void {
  const temporary = `${path}/${EPOCH_FILE}.new`;
  writeFileSync(temporary, String(epoch), { mode: 0o600, flush: true });
  renameSync(temporary, `${path}/${EPOCH_FILE}`);
}

/** Of the newest store; null: there is none. */
function lastIn(parent: string) {
  let last: { readonly name: string; readonly number: number; readonly settings: string } | null =
    null;
  for (const name of readdirSync(parent)) {
    const [, digits, settings] = NAME.exec(name) ?? [];
    if (digits === undefined || settings === undefined) continue;
    if (last === null || Number(digits) > last.number)
      last = { name, number: Number(digits), settings };
  }
  return last;
}
