// Writes the body of a response to a file while it streams to the client; knows no store and no request.
import { close, constants, open, renameSync, unlink, writev } from "node:fs";
import { open as openHandle } from "node:fs/promises";
import { promisify } from "node:util";
import {
  BLOCK_BYTES,
  bodySpan,
  encodeRecord,
  type FileRecord,
  fileName,
  SUM_BYTES,
  sumOf,
  TEMPORARY,
} from "./disk-file.ts";

const openFile = promisify(open);
const closeFile = promisify(close);

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const OWNER_ONLY = 0o600;

/** Written at once; the system allows 1024. */
const MAX_BUFFERS = 1000;

/** Bytes of all files of one worker. */
export interface WriteLimits {
  /** Waiting for the disk: more than that are not stored. */
  pending: number;
  readonly maxPending: number;
  /** In incomplete files. */
  incomplete: number;
  readonly maxIncomplete: number;
}

/** `code` of the system, or why the gateway gave up. */
export type WriteProblem = (code: string) => void;

export interface WriterParts {
  readonly directory: string;
  /** Index of the worker, which removes the files that an earlier thread has left incomplete. */
  readonly worker: number;
  /** Tells the files of this thread from those. */
  readonly thread: string;
  readonly limits: WriteLimits;
  readonly onProblem: WriteProblem;
}

/** A complete file, with the length of its body and its size on the disk. */
export interface WrittenFile {
  readonly name: string;
  readonly length: number;
  readonly bytes: number;
}

/** One file. Nothing here throws, and nothing waits for the disk but `finish`. */
export class DiskWriter {
  readonly #parts: WriterParts;
  readonly #temporary: string;
  /** Bytes of the body. */
  length = 0;
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES + SUM_BYTES);
  #filled = 0;
  /** Waiting for the disk. */
  #queue: Buffer[] = [];
  /** Of the file, for `limits.incomplete`. */
  #bytes = 0;
  #descriptor: number | null = null;
  #writing: Promise<void> | null = null;
  #isFailed = false;
  #isRenamed = false;

  constructor(parts: WriterParts) {
    this.#parts = parts;
    const { directory, worker, thread } = parts;
    this.#temporary = `${directory}/${thread}.${Bun.randomUUIDv7()}.${worker}${TEMPORARY}`;
  }

  /** Copies the bytes. False: the file cannot be written, and nothing is left of it. */
  write(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.byteLength && !this.#isFailed;) {
      const count = Math.min(bytes.byteLength - at, BLOCK_BYTES - this.#filled);
      this.#block.set(bytes.subarray(at, at + count), this.#filled);
      this.#filled += count;
      this.length += count;
      at += count;
      if (this.#filled === BLOCK_BYTES) this.#endBlock();
    }
    return !this.#isFailed;
  }

  /** Resolves when all bytes so far are written or given up. */
  async ready(): Promise<void> {
    await this.#writing;
  }

  /**
   * Completes the file and gives it its name, in the turn in which this resolves: an invalidation finds the stored response, or the
   * caller is refused. Null: it could not be written.
   */
  async finish(record: FileRecord, epoch: number): Promise<WrittenFile | null> {
    if (this.#filled > 0) this.#endBlock();
    this.#push(encodeRecord(record, this.length));
    await this.#writing;
    const name = this.#isFailed ? null : this.#rename(epoch);
    return name === null ? null : { name, length: this.length, bytes: this.#bytes };
  }

  /** Null: it failed. */
  #rename(epoch: number): string | null {
    const name = fileName(epoch);
    try {
      renameSync(this.#temporary, `${this.#parts.directory}/${name}`);
    } catch (error) {
      this.#fail(codeOf(error));
      return null;
    }
    this.#isRenamed = true;
    this.#release();
    return name;
  }

  /** Removes what was written, unless it is complete. */
  abort(): void {
    if (this.#isFailed || this.#isRenamed) return;
    this.#isFailed = true;
    this.#release();
  }

  #endBlock(): void {
    const body = this.#block.subarray(0, this.#filled);
    this.#block.writeBigUInt64LE(sumOf(body), this.#filled);
    this.#push(this.#block.subarray(0, this.#filled + SUM_BYTES));
    this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES + SUM_BYTES);
    this.#filled = 0;
  }

  #push(buffer: Buffer): void {
    if (this.#isFailed) return;
    const { limits } = this.#parts;
    this.#queue.push(buffer);
    this.#bytes += buffer.byteLength;
    limits.pending += buffer.byteLength;
    limits.incomplete += buffer.byteLength;
    if (limits.pending > limits.maxPending) this.#fail("the disk is slower than the responses");
    else if (limits.incomplete > limits.maxIncomplete) this.#fail("too much is being written");
    else this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    try {
      this.#descriptor ??= await openFile(this.#temporary, FLAGS, OWNER_ONLY);
      while (this.#queue.length > 0 && !this.#isFailed) await this.#writeSome(this.#descriptor);
    } catch (error) {
      this.#fail(codeOf(error));
    }
    this.#writing = null;
    if (this.#isFailed || this.#isRenamed) await this.#clean();
  }

  async #writeSome(descriptor: number): Promise<void> {
    const buffers = this.#queue.splice(0, MAX_BUFFERS);
    const wanted = sizeOf(buffers);
    try {
      const written = await new Promise<number>((resolve, reject) => {
        writev(descriptor, buffers, (error, count) =>
          error === null ? resolve(count) : reject(error),
        );
      });
      // A disk that fills up takes a part.
      if (written !== wanted) this.#fail("ENOSPC");
    } finally {
      this.#parts.limits.pending -= wanted;
    }
  }

  #fail(code: string): void {
    if (this.#isFailed) return;
    this.#isFailed = true;
    this.#release();
    this.#parts.onProblem(code);
  }

  /** The file is complete or given up. */
  #release(): void {
    const { limits } = this.#parts;
    limits.pending -= sizeOf(this.#queue);
    limits.incomplete -= this.#bytes;
    this.#queue = [];
    if (this.#writing === null) void this.#clean();
  }

  async #clean(): Promise<void> {
    const descriptor = this.#descriptor;
    this.#descriptor = null;
    if (descriptor !== null) await closeFile(descriptor).catch(() => {});
    if (!this.#isRenamed) unlink(this.#temporary, () => {});
  }
}

const sizeOf = (buffers: readonly Buffer[]) =>
  buffers.reduce((sum, { byteLength }) => sum + byteLength, 0);

const codeOf = (error: unknown) =>
  (error as NodeJS.ErrnoException).code ?? (error as Error).message;

/** Replaces the record of a complete file. Resolves to false when it could not; a record that is half replaced is broken. */
export async function rewriteRecord(
  path: string,
  record: FileRecord,
  bodyLength: number,
): Promise<boolean> {
  const bytes = encodeRecord(record, bodyLength);
  const start = bodySpan(bodyLength);
  try {
    const file = await openHandle(path, constants.O_WRONLY | constants.O_NOFOLLOW);
    try {
      await file.write(bytes, 0, bytes.byteLength, start);
      await file.truncate(start + bytes.byteLength);
    } finally {
      await file.close();
    }
    return true;
  } catch {
    return false;
  }
}
