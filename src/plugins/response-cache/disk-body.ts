// Reads the body of a stored response from its file; knows no store and no request.
import { close, fstat, open, readv } from "node:fs";
import { promisify } from "node:util";
import type { BodySource } from "../../pdk/response.ts";
import { BLOCK_BYTES, bodySpan, READ_FLAGS, SUM_BYTES, sumOf } from "./disk-file.ts";

const openFile = promisify(open);
const statOf = promisify(fstat);

/** Read at once: four blocks cost two reads of one. */
const BLOCKS_PER_READ = 4;
/** Bodies up to this length are read before the head is sent, so that they have a Content-Length and are not broken. */
const WHOLE_BYTES = 1_048_576;

interface Handle {
  readonly descriptor: number;
  isReading: boolean;
  isClosed: boolean;
}

/** A part of a body in a file. It holds a descriptor until `close`, also when the file is removed meanwhile. */
export class DiskBody implements BodySource {
  readonly byteLength: number;
  readonly #handle: Handle;
  /** In the body: of the next byte, and behind the last one. */
  #at: number;
  readonly #end: number;
  readonly #bodyLength: number;
  #first: Uint8Array | null = null;

  private constructor(handle: Handle, bodyLength: number, part: { start: number; end: number }) {
    this.#handle = handle;
    this.#bodyLength = bodyLength;
    this.#at = part.start;
    this.#end = part.end;
    this.byteLength = part.end - part.start;
  }

  /** Null: the file is missing, shorter, or no file; `busy`: the process has no descriptor for it now. */
  static async open(path: string, bodyLength: number): Promise<DiskBody | "busy" | null> {
    const descriptor = await openFile(path, READ_FLAGS).catch(({ code }: NodeJS.ErrnoException) =>
      code === "EMFILE" || code === "ENFILE" || code === "ENOMEM" ? "busy" : null,
    );
    if (typeof descriptor !== "number") return descriptor;
    const handle = { descriptor, isReading: false, isClosed: false };
    const body = new DiskBody(handle, bodyLength, { start: 0, end: bodyLength });
    const stat = await statOf(descriptor).catch(() => null);
    if (stat?.isFile() === true && stat.size > bodySpan(bodyLength)) return body;
    body.close();
    return null;
  }

  /** The same as of an array; shares the descriptor. */
  subarray(start: number, end: number): DiskBody {
    return new DiskBody(this.#handle, this.#bodyLength, { start, end });
  }

  /** Reads and checks the beginning: a short body becomes bytes, and is closed. Null: it is broken, and closed. */
  async load(): Promise<Uint8Array | DiskBody | null> {
    const isWhole = this.byteLength <= WHOLE_BYTES;
    const length = isWhole ? this.byteLength : BLOCKS_PER_READ * BLOCK_BYTES;
    const first = await this.#read(length).catch(() => null);
    if (first === null || isWhole) {
      this.close();
      return first;
    }
    this.#first = first;
    return this;
  }

  async read(): Promise<Uint8Array | null> {
    const first = this.#first;
    this.#first = null;
    if (first !== null) return first;
    return this.#at === this.#end ? null : await this.#read(BLOCKS_PER_READ * BLOCK_BYTES);
  }

  close(): void {
    const handle = this.#handle;
    if (handle.isClosed) return;
    handle.isClosed = true;
    // The number of a closed descriptor may already be that of another file.
    if (!handle.isReading) closeQuietly(handle.descriptor);
  }

  /** The bytes of all blocks that the next `length` bytes touch; throws when one of them is broken. */
  async #read(length: number): Promise<Uint8Array> {
    const from = Math.floor(this.#at / BLOCK_BYTES);
    const wanted = Math.min(this.#end, this.#at + length);
    const to = Math.max(from + 1, Math.ceil(wanted / BLOCK_BYTES));
    const start = from * BLOCK_BYTES;
    const bytes = Buffer.allocUnsafeSlow(Math.min(this.#bodyLength, to * BLOCK_BYTES) - start);
    await this.#fill(bytes, start);
    const part = bytes.subarray(this.#at - start, Math.min(this.#end - start, bytes.byteLength));
    this.#at += part.byteLength;
    return part;
  }

  /** Blocks are not split: `start` is the beginning of one. */
  async #fill(bytes: Buffer, start: number): Promise<void> {
    const count = Math.ceil(bytes.byteLength / BLOCK_BYTES);
    const sums = Buffer.allocUnsafeSlow(count * SUM_BYTES);
    const blocks = Array.from({ length: count }, (_, index) => ({
      bytes: bytes.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES),
      sum: sums.subarray(index * SUM_BYTES, (index + 1) * SUM_BYTES),
    }));
    const buffers = blocks.flatMap((block) => [block.bytes, block.sum]);
    await this.#readInto(buffers, bodySpan(start));
    for (const block of blocks)
      if (sumOf(block.bytes) !== block.sum.readBigUInt64LE())
        throw new Error("a stored body has changed on the disk");
  }

  async #readInto(buffers: readonly Buffer[], position: number): Promise<void> {
    const handle = this.#handle;
    if (handle.isClosed) throw new Error("the stored body is closed");
    handle.isReading = true;
    const wanted = buffers.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const got = await new Promise<number>((resolve, reject) => {
      readv(handle.descriptor, buffers, position, (error, count) => {
        handle.isReading = false;
        if (handle.isClosed) closeQuietly(handle.descriptor);
        if (error === null) resolve(count);
        else reject(error);
      });
    });
    if (got !== wanted) throw new Error("a stored body is shorter on the disk");
  }
}

const closeQuietly = (descriptor: number) => close(descriptor, () => {});
