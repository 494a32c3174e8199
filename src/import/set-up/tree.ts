// The files of a set-up of another program, by their paths in a folder, an archive or a request; knows no program and no format.
import { posix } from "node:path";
import { ApiError } from "../../model/error.ts";

export interface SourceTree {
  /** Paths of all files, relative to its root with `/` between names, sorted. Throws a 413 for too many. */
  paths(): readonly string[];
  /** Whether there is a folder with this path, also an empty one. */
  hasFolder(path: string): boolean;
  /** Null: it is not there, or cannot be read. Throws a 413 for a file that is too large. */
  read(path: string): Uint8Array | null;
}

export interface TreeLimits {
  /** Files and folders. */
  readonly entries: number;
  /** Bytes of all files together, unpacked. */
  readonly bytes: number;
  /** Names in one path. */
  readonly depth: number;
}

export const TREE_LIMITS: TreeLimits = { entries: 10_000, bytes: 67_108_864, depth: 16 };

/** Files in memory, and folders that may be empty. */
export function treeOf(
  files: ReadonlyMap<string, Uint8Array>,
  folders: ReadonlySet<string> = new Set(),
): SourceTree {
  const paths = [...files.keys()].toSorted();
  return {
    paths: () => paths,
    hasFolder: (folder) =>
      folder === "" || folders.has(folder) || paths.some((path) => path.startsWith(`${folder}/`)),
    read: (path) => files.get(path) ?? null,
  };
}

/** Adds files to a tree in memory; throws a 400 or 413 for a path that leads out of it, or beyond the limits. */
export class TreeBuilder {
  readonly #files = new Map<string, Uint8Array>();
  readonly #folders = new Set<string>();
  readonly #limits: TreeLimits;
  #entries = 0;
  #left: number;

  constructor(limits: TreeLimits = TREE_LIMITS) {
    this.#limits = limits;
    this.#left = limits.bytes;
  }

  /** Bytes that further files may have. */
  get left(): number {
    return this.#left;
  }

  /** Counts an entry and returns its path. */
  enter(name: string): string {
    if (++this.#entries > this.#limits.entries)
      throw new ApiError(413, `the archive has more than ${this.#limits.entries} entries`);
    const steps = name.replace(/\/+$/, "").split("/");
    const inner = steps.filter((step) => step !== "." && step !== "");
    const isOutside =
      name.startsWith("/") || /[\\\0]/.test(name) || inner.includes("..") || /^[a-z]:/i.test(name);
    if (isOutside) throw new ApiError(400, `${shown(name)}: the path leads out of the archive`);
    if (inner.length > this.#limits.depth)
      throw new ApiError(413, `${shown(name)}: is deeper than ${this.#limits.depth} folders`);
    return inner.join("/");
  }

  addFolder(path: string): void {
    this.#folders.add(path);
  }

  add(path: string, bytes: Uint8Array): void {
    if (path === "") return;
    if (bytes.byteLength > this.#left) throw this.tooLarge();
    if (this.#files.has(path)) throw new ApiError(400, `${shown(path)}: is twice in the archive`);
    this.#left -= bytes.byteLength;
    this.#files.set(path, bytes);
  }

  tooLarge(): ApiError {
    return new ApiError(413, `the files are larger than ${this.#limits.bytes} bytes together`);
  }

  finish(): SourceTree {
    if (this.#files.size === 0) throw new ApiError(400, "the archive has no files");
    return treeOf(this.#files, this.#folders);
  }
}

/** A name of an archive in a message: it may hold anything. */
export const shown = (name: string): string =>
  JSON.stringify(name.length > 120 ? `${name.slice(0, 120)}...` : name);

/** The text of a file; null: it is not there, or is no text. */
export function textIn(tree: SourceTree, path: string): string | null {
  const bytes = tree.read(path);
  if (bytes === null) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** The path of `relative` as a file in `folder` names it; null: it leads out of the tree. */
export function joined(folder: string, relative: string): string | null {
  const path = posix.normalize(posix.join(folder, relative)).replace(/\/$/, "");
  if (relative.startsWith("/") || path === ".." || path.startsWith("../")) return null;
  return path === "." ? "" : path;
}

export const folderOf = (path: string): string => {
  const folder = posix.dirname(path);
  return folder === "." ? "" : folder;
};

/** Files below a folder, also those of folders in it. */
export const filesBelow = (tree: SourceTree, folder: string): readonly string[] =>
  tree.paths().filter((path) => folder === "" || path.startsWith(`${folder}/`));

/** The first path, nearest to the root, that the test accepts. */
export const nearest = (tree: SourceTree, test: (path: string) => boolean): string | null =>
  tree
    .paths()
    .filter(test)
    .toSorted((a, b) => a.split("/").length - b.split("/").length)[0] ?? null;
