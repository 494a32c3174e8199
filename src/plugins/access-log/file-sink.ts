// A log file that several workers write whole lines to, put aside by one of them when it is full; knows no format.
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
  readonly places: LogDirectories | null;
  /** Index of the worker: names of files that are put aside at one moment must differ. */
  readonly worker: number;
  /** Only one worker at a time puts the file aside. */
  readonly counters: () => Counters;
}

/**
 * Only ever appended to, and never through a link. Without O_NONBLOCK the opening of a named pipe would wait for a reader for
 * ever.
 */
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK;

/** How often it is looked whether the file is still the one at the path. */
const LOOK_MS = 100;

/** A file that was opened, and which one it is. */
interface Opened {
  readonly handle: FileHandle;
  readonly inode: number;
  readonly device: number;
}

export class FileSink implements Sink<Uint8Array> {
  readonly isStream = true;
  readonly #options: FileSinkOptions;
  /** Folder below which the file must be. */
  readonly #root: string;
  readonly #path: string;
  #file: Opened | null = null;
  /** When the path was looked at last, and how long the file was then, with what was written since. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  #size = 0;

  private constructor(options: FileSinkOptions, root: string) {
    this.#options = options;
    this.#root = root;
    this.#path = isAbsolute(options.path) ? options.path : join(root, options.path);
  }

  /** Throws in words when the file may not be where it is wanted, or cannot be opened. */
  static async open(options: FileSinkOptions): Promise<FileSink> {
    const { path, places } = options;
    if (places === null) throw new Error("this gateway writes no log files");
    const root = isAbsolute(path) ? places.elsewhere : places.directory;
    if (root === null)
      throw new Error(`the log file ${path} is not below the data directory: start with --log-dir`);
    const sink = new FileSink(options, root);
    if (!isBelow(sink.#path, root))
      throw new Error(`the log file ${path} is not below the folder of --log-dir`);
    try {
      sink.#file = await sink.#open();
    } catch (error) {
      throw new Error(`the log file ${path} cannot be used: ${wordsOf(error)}`, { cause: error });
    }
    return sink;
  }

  async send(bytes: Uint8Array): Promise<void> {
    try {
      const file = await this.#current(bytes.length);
      let written = 0;
      // Once at a time unless the disk is full: what is appended in one call stays together.
      while (written < bytes.length) {
        const { bytesWritten } = await file.handle.write(bytes, written);
        written += bytesWritten;
      }
    } catch (error) {
      throw new SinkError(`the log file cannot be written: ${wordsOf(error)}`);
    }
  }

  close(): void {
    void this.#file?.handle.close().catch(() => {});
    this.#file = null;
  }

  /** The file that is at the path now, with room for so many bytes. */
  async #current(bytes: number): Promise<Opened> {
    let file = this.#file ?? (await this.#reopened());
    this.#size += bytes;
    const now = performance.now();
    if (now - this.#lookedAt < LOOK_MS && this.#size <= this.#options.rotateSize) return file;
    this.#lookedAt = now;
    let present = await stat(this.#path).catch(() => null);
    // Another worker, or somebody's logrotate, has put it aside.
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
    // A link on the way must not lead out, neither to make folders nor to write.
    if (!isWithin(await realpath(await nearestFolder(folder)), root)) throw new Error(ESCAPES);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (!isWithin(await realpath(folder), root)) throw new Error(ESCAPES);
    const handle = await open(this.#path, FLAGS, 0o600);
    try {
      const found = await handle.stat();
      if (!found.isFile()) throw new Error("it is not a file");
      if (found.nlink > 1) throw new Error("it has another name as well");
      // Where the file really is, whatever was swapped since the path was looked at.
      const real = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => null);
      if (real !== null && !isBelow(real, root)) throw new Error(ESCAPES);
      return { handle, inode: found.ino, device: found.dev };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /**
   * Nothing is lost here even if two came this far at once: a file is only ever given a name that no other one has, and who
   * still holds it writes on into it until the next look.
   */
  async #rotate(bytes: number): Promise<void> {
    const counters = this.#options.counters();
    const key = `rotation ${this.#path}`;
    if (!counters.enter(key, 1)) return;
    try {
      // Between the look and the lock, another worker may have been here.
      const { size } = await stat(this.#path);
      if (size === 0 || size + bytes <= this.#options.rotateSize) return;
      await rename(this.#path, await this.#freeName());
      await this.#prune();
    } catch (error) {
      // Somebody else has put it aside meanwhile.
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

  /** Deletes the oldest of the files that were put aside: names begin with the time. */
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

const ESCAPES = "it is behind a link that leads elsewhere";

const isWithin = (path: string, root: string) => path === root || isBelow(path, root);

function isBelow(path: string, root: string): boolean {
  const inside = relative(root, path);
  return inside !== "" && inside !== ".." && !inside.startsWith(`..${sep}`) && !isAbsolute(inside);
}

/** The folder itself, or the first one above it that is there. */
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
  EISDIR: "it is a folder",
  ENOTDIR: "there is a file where a folder is needed",
  ENOENT: "there is no such folder",
};

function wordsOf(error: unknown): string {
  const { code, message } = error as { readonly code?: string; readonly message?: string };
  return (code === undefined ? message : (words[code] ?? code)) ?? "it failed";
}
