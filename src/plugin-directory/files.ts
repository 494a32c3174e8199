// Finds the plugins in a directory, and whether their files have changed; reads none of them.
import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { NAME } from "./definition.ts";
import { requireApart, trustedPath } from "../control/trusted-file.ts";

/** A file or folder that is one plugin. */
export interface PluginFile {
  readonly name: string;
  /** In which it is. */
  readonly directory: string;
  /** Absolute path of the file with the definition. */
  readonly entry: string;
  /** The same, relative to the directory. */
  readonly file: string;
  /** Changes with its files. */
  readonly mark: string;
}

export interface FoundPlugins {
  readonly files: readonly PluginFile[];
  /** What looks like a plugin and is none, one sentence each. */
  readonly problems: readonly string[];
}

/** Bound for the whole directory: this thread looks at all of them twice a second. */
const MAX_FILES = 2000;
/** Each is read by a thread of its own, before the gateway starts to serve. */
const MAX_PLUGINS = 100;
const INDEXES = ["index.ts", "index.js"] as const;

/** Throws when the directory is not trusted, is not apart from the `written` ones, cannot be read, or has too much in it. */
export function findPlugins(directory: string, written: readonly string[]): FoundPlugins {
  requireApart(trustedPath(directory), written);
  const files = new Map<string, PluginFile>();
  const problems: string[] = [];
  const bases = readdirSync(directory).toSorted();
  const left = { directory, files: MAX_FILES };
  take(left, bases.length);
  for (const base of bases) {
    const found = pluginAt(directory, base, left);
    if (found === null) continue;
    const other = files.get(found.name);
    if (!NAME.test(found.name))
      problems.push(`${base}: the name must consist of lower-case letters, digits and hyphens`);
    else if (other !== undefined)
      problems.push(`${found.file}: the plugin "${found.name}" is ${other.file} already`);
    else files.set(found.name, found);
  }
  if (files.size > MAX_PLUGINS)
    throw new Error(
      `${directory} has more than ${MAX_PLUGINS} plugins: is it the right directory?`,
    );
  return { files: [...files.values()], problems };
}

/** Null: no plugin, such as a test beside one, or a folder with libraries. */
function pluginAt(directory: string, base: string, left: FilesLeft): PluginFile | null {
  if (/^[._]|^node_modules$/.test(base)) return null;
  const path = join(directory, base);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) {
    const index = INDEXES.find((name) => statSync(join(path, name), { throwIfNoEntry: false }));
    if (index === undefined) return null;
    const entry = join(path, index);
    return {
      name: base,
      directory,
      entry,
      file: relative(directory, entry),
      mark: marksOf(filesBelow(path, left)),
    };
  }
  const name = /^(.+)\.[jt]s$/.exec(base)?.[1];
  if (name === undefined || /\.(?:test|d)$/.test(name)) return null;
  return { name, directory, entry: path, file: base, mark: marksOf([path]) };
}

interface FilesLeft {
  readonly directory: string;
  files: number;
}

function take(left: FilesLeft, count: number): void {
  left.files -= count;
  if (left.files < 0)
    throw new Error(`${left.directory} has more than ${MAX_FILES} files: keep only plugins there`);
}

function filesBelow(folder: string, left: FilesLeft): readonly string[] {
  const files: string[] = [];
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    const entries = readdirSync(next, { withFileTypes: true });
    take(left, entries.length);
    for (const found of entries) {
      if (/^\.|^node_modules$/.test(found.name)) continue;
      const path = join(next, found.name);
      if (found.isDirectory()) folders.push(path);
      else files.push(path);
    }
  }
  return files;
}

/** Follows links, because a deployment may replace what they point to. */
export const marksOf = (paths: readonly string[]): string =>
  paths
    .map((path) => {
      const found = statSync(path, { throwIfNoEntry: false });
      return found === undefined ? path : `${path} ${found.mtimeMs} ${found.size} ${found.ino}`;
    })
    .join("\n");
