// The files of one cache instance in one worker; knows no store and no request.
import { readdir } from "node:fs/promises";
import { renameSync, unlink } from "node:fs";
import { DiskBody } from "./disk-body.ts";
import { epochOf, type FileRecord, GONE, TEMPORARY } from "./disk-file.ts";
import { DiskWriter, rewriteRecord, type WriteLimits, type WrittenFile } from "./disk-writer.ts";

/** Bytes that one worker holds for a slow disk. */
const MAX_PENDING_BYTES = 33_554_432;
/** Of a body that is in memory, to be written before the next one. */
const SLICE_BYTES = 1_048_576;
const WARN_EVERY_MS = 60_000;

export interface DiskOptions {
  /** Of this instance alone; it exists. */
  readonly directory: string;
  readonly worker: number;
  /** All workers write at most so many bytes of incomplete files together. */
  readonly maxIncomplete: number;
  readonly workers: number;
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

export class Disk {
  readonly #options: DiskOptions;
  readonly #limits: WriteLimits;
  readonly #closed = new AbortController();
  /** The first files may be written before those of an earlier thread are removed. */
  readonly #thread = crypto.randomUUID();
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(options: DiskOptions) {
    this.#options = options;
    this.#limits = {
      pending: 0,
      maxPending: MAX_PENDING_BYTES,
      incomplete: 0,
      maxIncomplete: Math.ceil(options.maxIncomplete / options.workers),
    };
    void this.#removeTemporary();
  }

  /** Aborted when the instance is closed. */
  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  /** Responses that are still received may be stored, but a directory that is gone is no problem any more. */
  close(): void {
    this.#closed.abort();
  }

  writer(): DiskWriter {
    const { directory, worker } = this.#options;
    return new DiskWriter({
      directory,
      worker,
      thread: this.#thread,
      limits: this.#limits,
      onProblem: (problem) => this.#warn(problem),
    });
  }

  /** Null: it could not be written. */
  async write(body: Uint8Array, record: FileRecord, epoch: number): Promise<WrittenFile | null> {
    const writer = this.writer();
    for (let at = 0; at < body.byteLength; at += SLICE_BYTES) {
      if (!writer.write(body.subarray(at, at + SLICE_BYTES))) return null;
      await writer.ready();
    }
    return await writer.finish(record, epoch);
  }

  /** As `DiskBody.open`. */
  open(name: string, bodyLength: number): Promise<DiskBody | "busy" | null> {
    return DiskBody.open(this.#pathOf(name), bodyLength);
  }

  /** Keeps a new head for the next start. */
  async rewrite(name: string, record: FileRecord, bodyLength: number): Promise<void> {
    if (epochOf(name) === null) return;
    // The old record would allow more than the service allows now.
    if (!(await rewriteRecord(this.#pathOf(name), record, bodyLength))) this.remove(name);
  }

  remove(name: string): void {
    removeFile(this.#pathOf(name));
  }

  #pathOf(name: string): string {
    return `${this.#options.directory}/${name}`;
  }

  /** Those that an earlier thread in the place of this one has left. */
  async #removeTemporary(): Promise<void> {
    const { directory, worker } = this.#options;
    const end = `.${worker}${TEMPORARY}`;
    const names = await readdir(directory).catch(() => []);
    for (const name of names)
      if (name.endsWith(end) && !name.startsWith(this.#thread))
        unlink(`${directory}/${name}`, () => {});
  }

  #warn(problem: string): void {
    const now = performance.now();
    if (this.signal.aborted || now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    const { directory } = this.#options;
    this.#options.warn("responses cannot be stored on the disk", { problem, directory });
  }
}

/**
 * Removes a file. It loses its name before this returns, so that neither another thread nor the next start finds it; its blocks,
 * which take the disk a quarter of a second for a gigabyte, are freed in the background.
 */
export function removeFile(path: string): void {
  try {
    renameSync(path, path + GONE);
    unlink(path + GONE, () => {});
  } catch {
    unlink(path, () => {});
  }
}
