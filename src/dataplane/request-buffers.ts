// Request bodies that are read whole before they are sent: in memory, longer ones in files without a name; knows no request.
import {
  close,
  closeSync,
  constants,
  openSync,
  read,
  statfsSync,
  unlinkSync,
  write,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BufferBudget } from "./buffer-budget.ts";
import type { BodySource } from "./client-body.ts";
import { BodyProblem, failures } from "./error.ts";

const readFile = promisify(read);
const writeFile = promisify(write);

/** In memory, and written to a file at once. */
const MEMORY_BYTES = 262_144;
const READ_BYTES = 65_536;
const FIRST_BYTES = 16_384;
const NO_BYTES = Buffer.alloc(0);
const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const OWNER_ONLY = 0o600;

/** What other files of the gateway need: a share of the disk, but no more than this. */
const RESERVE_SHARE = 0.05;
const MAX_RESERVE_BYTES = 268_435_456;

export interface RequestBuffersOptions {
  /** Null: none, so that only short bodies can be buffered. */
  readonly directory: string | null;
  readonly budget: BufferBudget;
}

/** Those of one worker. */
export class RequestBuffers {
  readonly #options: RequestBuffersOptions;
  /** Bytes of all files. */
  #held = 0;
  #limit = 0;

  constructor(options: RequestBuffersOptions) {
    this.#options = options;
  }

  /** `limit`: bytes that all files may have. */
  setLimit(limit: number): void {
    this.#limit = limit;
  }

  /** Call `free` at its end. */
  create(): RequestBuffer {
    return new RequestBuffer(this, this.#options.budget);
  }

  /** The descriptor of a new file, which disappears with it. */
  open(): number {
    const { directory } = this.#options;
    if (directory === null) throw noSpace("there is no directory for it");
    const path = join(directory, `.request-body-${Bun.randomUUIDv7()}`);
    try {
      const file = openSync(path, FLAGS, OWNER_ONLY);
      try {
        unlinkSync(path);
      } catch (error) {
        closeSync(file);
        throw error;
      }
      return file;
    } catch (error) {
      throw noSpace(error);
    }
  }

  /** Throws where the disk, or the share of buffers in it, is full. */
  reserve(bytes: number): void {
    if (this.#held + bytes > this.#limit)
      throw noSpace("limits.request_buffer_disk_bytes is used up");
    const { bavail, blocks, bsize } = statfsSync(this.#options.directory ?? "/");
    const reserve = Math.min(blocks * bsize * RESERVE_SHARE, MAX_RESERVE_BYTES);
    if (bavail * bsize - bytes < reserve) throw noSpace("the disk is full");
    this.#held += bytes;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }
}

const noSpace = (cause: unknown): BodyProblem =>
  new BodyProblem(failures.noStorage(cause instanceof Error ? cause : new Error(String(cause))));

/** One body. */
export class RequestBuffer {
  readonly #all: RequestBuffers;
  readonly #budget: BufferBudget;
  /** Bytes of `budget`; 0: it had none. */
  readonly #reserved: number;
  /** What the file does not have. Copies, because a piece of a byte may hold the memory of many. */
  #block = Buffer.allocUnsafeSlow(FIRST_BYTES);
  #filled = 0;
  #file: number | null = null;
  #written = 0;
  /** The last use of the file: it is closed behind it. */
  #use: Promise<unknown> = Promise.resolve();
  #isFree = false;

  constructor(all: RequestBuffers, budget: BufferBudget) {
    this.#all = all;
    this.#budget = budget;
    this.#reserved = budget.reserve(MEMORY_BYTES) ? MEMORY_BYTES : 0;
  }

  /** Copies the piece; rejects with a BodyProblem where there is no room. */
  async add(piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.byteLength;) {
      if (this.#filled === this.#block.byteLength) await this.#makeRoom();
      const part = piece.subarray(at, at + this.#block.byteLength - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.byteLength;
      at += part.byteLength;
    }
  }

  /** The body is complete: the bytes of a short one; null: it is in the file. */
  async finish(): Promise<Uint8Array | null> {
    if (this.#file === null) return this.#block.subarray(0, this.#filled);
    await this.#flush();
    this.#block = NO_BYTES;
    return null;
  }

  async #makeRoom(): Promise<void> {
    const { byteLength } = this.#block;
    if (byteLength >= (this.#reserved || READ_BYTES)) return await this.#flush();
    const larger = Buffer.allocUnsafeSlow(byteLength * 2);
    larger.set(this.#block);
    this.#block = larger;
  }

  async #flush(): Promise<void> {
    // The request has ended while its body was written: it must open no other file.
    if (this.#isFree) throw new BodyProblem(failures.clientGone);
    const bytes = this.#block.subarray(0, this.#filled);
    this.#filled = 0;
    this.#all.reserve(bytes.byteLength);
    const from = this.#written;
    this.#written += bytes.byteLength;
    const file = this.#file ?? this.#all.open();
    this.#file = file;
    const writing = writeAll(file, bytes, from);
    this.#use = writing;
    await writing;
  }

  /** The whole body from the file, any number of times. */
  reader(): BodySource {
    let at = 0;
    return {
      read: async () => {
        const file = this.#file;
        if (file === null || at >= this.#written) return { done: true };
        const block = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, this.#written - at));
        const reading = readFile(file, block, 0, block.byteLength, at);
        this.#use = reading;
        const { bytesRead } = await reading;
        if (bytesRead === 0) throw noSpace("its file is shorter than what was written");
        at += bytesRead;
        return { done: false, value: block.subarray(0, bytesRead) };
      },
      cancel: async () => {},
    };
  }

  free(): void {
    if (this.#isFree) return;
    this.#isFree = true;
    this.#budget.release(this.#reserved);
    const file = this.#file;
    this.#file = null;
    const end = () => {
      this.#all.release(this.#written);
      if (file !== null) close(file, () => {});
    };
    this.#use.then(end, end);
  }
}

async function writeAll(file: number, bytes: Buffer, from: number): Promise<void> {
  try {
    for (let at = 0; at < bytes.byteLength;) {
      const { bytesWritten } = await writeFile(file, bytes, at, bytes.byteLength - at, from + at);
      at += bytesWritten;
    }
  } catch (error) {
    throw noSpace(error);
  }
}
