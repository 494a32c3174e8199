// The header block that a client sends again and again, with what it means: programs ask for the same many times; knows no frame.
import type { BlockPlace } from "../../http2/peer-frames.ts";
import { markOf } from "../../../http/repeated-bytes.ts";
import type { Http2Head } from "./request-head.ts";

/** Of a block: most fields are in the table. */
const MAX_BYTES = 512;

const NONE = Buffer.alloc(0);

/** What decides, beside its bytes, what a block means. */
export interface BlockContext {
  /** Of the table, before the block. */
  readonly version: number;
  /** No body follows. */
  readonly isLast: boolean;
  /** Of a header list; it changes with the listener. */
  readonly maxBytes: number;
}

/** One block of one connection. Valid while the table, to which it refers, is the same. */
export class RepeatedBlock {
  #mark = 0;
  #bytes: Buffer = NONE;
  #context: BlockContext | null = null;
  #head: Http2Head | null = null;

  /** Null: it is another block. */
  find({ bytes, start, end }: BlockPlace, context: BlockContext): Http2Head | null {
    const [known, before] = [this.#bytes, this.#context];
    if (before === null || end - start !== known.length) return null;
    const isAsBefore =
      context.version === before.version &&
      context.isLast === before.isLast &&
      context.maxBytes === before.maxBytes;
    return isAsBefore && known.compare(bytes, start, end) === 0 ? this.#head : null;
  }

  clear(): void {
    this.#mark = 0;
    this.#bytes = NONE;
    this.#context = null;
    this.#head = null;
  }

  /** `head`: of a valid request whose block has left the table as it was. The second one with a mark is kept. */
  keep({ bytes, start, end }: BlockPlace, context: BlockContext, head: Http2Head): void {
    if (end - start > MAX_BYTES) return;
    const mark = markOf(bytes, start, end);
    if (mark === this.#mark) {
      head.fields.isShared = true;
      this.#context = context;
      this.#bytes = Buffer.from(bytes.subarray(start, end));
      this.#head = head;
    }
    this.#mark = mark;
  }
}
