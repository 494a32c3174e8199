// A log file to which several workers write whole lines, and which one of them rotates when it is full; knows no format.
import { constants } from "node:fs";
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  stat,
  unlink,
} from "node:fs/promises";
import { basename, dirname, extname, isAbsolute, join, relative, sep } from "node:path";
import type { Counters, LogDirectories } from "../../pdk/kit.ts";
import { type Sink, SinkError } from "./queue.ts";

export interface FileSinkOptions {
  readonly path: string;
  readonly rotateSize: number;
  readonly keep: number;
  readonly directories: LogDirectories | null;
  /** Index of the worker, for unique names of rotated files. */
  readonly worker: number;
  /** Only one worker at a time rotates the file. */
  readonly counters: () => Counters;
}

/**
 * Appends only, and never follows a link. Without O_NONBLOCK, opening a named pipe would wait for a reader without limit.
 */
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK;

/** How often the sink checks whether the file is still the one at the path. */
const LOOK_MS = 100;

/** An open file and its identity. */
interface Opened {
  readonly handle: FileHandle;
  readonly inode: number;
  readonly device: number;
}

export class FileSink implements Sink<Uint8Array> {
  readonly isStream = true;
  readonly #options: FileSinkOptions;
  /** Directory below which the file must be. */
  readonly #root: string;
  readonly #path: string;
  #file: Opened | null = null;
  /** Time of the last check of the path, and the file's size then plus the bytes written since. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  #size = 0;

  private constructor(options: FileSinkOptions, root: string) {
    this.#options = options;
    this.#root = root;
    this.#path = isAbsolute(options.path) ? options.path : join(root, options.path);
  }

  /** Throws an Error with a message for the user when the path is not allowed, or the file cannot be opened. */
  static async open(options: FileSinkOptions): Promise<FileSink> {
    const { path, directories } = options;
    if (directories === null) throw new Error("log files are disabled on this gateway");
    const root = isAbsolute(path) ? directories.absolute : directories.directory;
    if (root === null)
      throw new Error(`the log file ${path} is not below the data directory: start with --log-dir`);
    const sink = new FileSink(options, root);
    if (!isBelow(sink.#path, root))
      throw new Error(`the log file ${path} is not below the directory of --log-dir`);
    try {
      sink.#file = await sink.#open();
    } catch (error) {
      throw new Error(`cannot open the log file ${path}: ${wordsOf(error)}`, { cause: error });
    }
    return sink;
  }

  async send(bytes: Uint8Array): Promise<void> {
    try {
      const file = await this.#current(bytes.length);
      let written = 0;
      // One call per batch unless the disk is full, because a single append is atomic.
      while (written < bytes.length) {
        const { bytesWritten } = await file.handle.write(bytes, written);
        written += bytesWritten;
      }
    } catch (error) {
      throw new SinkError(`cannot write the log file: ${wordsOf(error)}`);
    }
  }

  close(): void {
    void this.#file?.handle.close().catch(() => {});
    this.#file = null;
  }

  /** The file at the path, with room for so many bytes. */
  async #current(bytes: number): Promise<Opened> {
    let file = this.#file ?? (await this.#reopened());
    this.#size += bytes;
    const now = performance.now();
    if (now - this.#lookedAt < LOOK_MS && this.#size <= this.#options.rotateSize) return file;
    this.#lookedAt = now;
    let present = await stat(this.#path).catch(() => null);
    // Another worker, or logrotate, has moved it.
    if (present === null || present.ino !== file.inode || present.dev !== file.device) {
      file = await this.#reopened();
      present = await file.handle.stat();
    }
    this.#size = present.size + bytes;
    if (present.size > 0 && this.#size > this.#options.rotateSize) {
      await this.#rotate(bytes);
      file = await this.#reopened();
      this.#size = (await file.handle.stat()).size + bytes;
    }
    return file;
  }

  async #reopened(): Promise<Opened> {
    this.close();
    this.#file = await this.#open();
    return this.#file;
  }

  async #open(): Promise<Opened> {
    const folder = dirname(this.#path);
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const root = await realpath(this.#root);
    // A link in the path must not escape the root, neither when creating directories nor when writing.
    if (!isWithin(await realpath(await nearestFolder(folder)), root)) throw new Error(ESCAPES);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (!isWithin(await realpath(folder), root)) throw new Error(ESCAPES);
    const handle = await open(this.#path, FLAGS, 0o600);
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw new Error("it is not a file");
      if (found.nlink > 1) throw new Error("it has a hard link");
      // The real path of the open file, in case of a swap after the check (TOCTOU).
      const real = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => null);
      if (real !== null && !isBelow(real, root)) throw new Error(ESCAPES);
      return { handle, inode: found.ino, device: found.dev };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /**
   * Safe even if two workers rotate at once: a rotated file gets a unique name, and a worker that still has it open writes to
   * it until its next check.
   */
  async #rotate(bytes: number): Promise<void> {
    const counters = this.#options.counters();
    const key = `rotation ${this.#path}`;
    if (!counters.enter(key, 1)) return;
    try {
      // Another worker may have rotated between the check and the lock.
      const { size } = await stat(this.#path);
      if (size === 0 || size + bytes <= this.#options.rotateSize) return;
      await rename(this.#path, await this.#freeName());
      await this.#prune();
    } catch (error) {
      // Another program has moved it meanwhile.
      if ((error as { readonly code?: string }).code !== "ENOENT") throw error;
    } finally {
      counters.leave(key);
    }
  }

  async #freeName(): Promise<string> {
    const { folder, stem, extension } = this.#parts();
    const time = new Date().toISOString().replaceAll(/[-:.Z]/g, "");
    for (let at = 0; ; at++) {
      const name = `${stem}-${time}-${this.#options.worker}${at === 0 ? "" : `.${at}`}${extension}`;
      const path = join(folder, name);
      if ((await lstat(path).catch(() => null)) === null) return path;
    }
  }

  #parts() {
    const extension = extname(this.#path);
    return {
      folder: dirname(this.#path),
      stem: basename(this.#path, extension),
      extension,
    };
  }

  /** Deletes the oldest rotated files: names begin with the time. */
  async #prune(): Promise<void> {
    const { folder, stem, extension } = this.#parts();
    const isOurs = (name: string) =>
      name.startsWith(`${stem}-`) &&
      name.endsWith(extension) &&
      /^\d{8}T\d{9}-\d+(?:\.\d+)?$/.test(
        name.slice(stem.length + 1, name.length - extension.length),
      );
    const names = (await readdir(folder)).filter(isOurs).sort();
    for (const name of names.slice(0, Math.max(0, names.length - this.#options.keep)))
      await unlink(join(folder, name)).catch(() => {});
  }
}

const ESCAPES = "a link in its path leads outside of the directory";

const isWithin = (path: string, root: string) => path === root || isBelow(path, root);

function isBelow(path: string, root: string): boolean {
  const inside = relative(root, path);
  return inside !== "" && inside !== ".." && !inside.startsWith(`..${sep}`) && !isAbsolute(inside);
}

/** The directory itself, or its nearest existing parent. */
async function nearestFolder(folder: string): Promise<string> {
  const isThere = (await lstat(folder).catch(() => null)) !== null;
  return isThere || dirname(folder) === folder ? folder : await nearestFolder(dirname(folder));
}

const words: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "no space left",
  EDQUOT: "no space left",
  ELOOP: "it is a link",
  ENXIO: "it is not a file",
  EISDIR: "it is a directory",
  ENOTDIR: "a directory of its path is a file",
  ENOENT: "there is no such directory",
};

function wordsOf(error: unknown): string {
  const { code, message } = error as { readonly code?: string; readonly message?: string };
  return (code === undefined ? message : (words[code] ?? code)) ?? "it failed";
}
