// The header block that a client sends again and again, with what it means: programs ask for the same many times; knows no frame.
import type { BlockPlace } from "../../http2/peer-frames.ts";
import { markOf } from "../../../http/repeated-bytes.ts";
import type { Http2Head } from "./request-head.ts";

/** Of a block: most fields are in the table. */
const MAX_BYTES = 512;

const NONE = Buffer.alloc(0);

/** One block of one connection. Valid while the table, to which it refers, is the same. */
export class RepeatedBlock {
  #mark = 0;
  #version = -1;
  #bytes: Buffer = NONE;
  #isLast = false;
  #head: Http2Head | null = null;

  /** `version`: of the table, before the block; `isLast`: no body follows. Null: it is another block. */
  find({ bytes, start, end }: BlockPlace, version: number, isLast: boolean): Http2Head | null {
    const known = this.#bytes;
    const isAsBefore = version === this.#version && isLast === this.#isLast;
    if (this.#head === null || end - start !== known.length || !isAsBefore) return null;
    return known.compare(bytes, start, end) === 0 ? this.#head : null;
  }

  clear(): void {
    this.#mark = 0;
    this.#bytes = NONE;
    this.#head = null;
  }

  /** `head`: of a valid request whose block has left the table as it was. The second one with a mark is kept. */
  keep(
    { bytes, start, end }: BlockPlace,
    version: number,
    { head, isLast }: { readonly head: Http2Head; readonly isLast: boolean },
  ): void {
    if (end - start > MAX_BYTES) return;
    const mark = markOf(bytes, start, end);
    if (mark === this.#mark) {
      head.fields.isShared = true;
      this.#isLast = isLast;
      this.#version = version;
      this.#bytes = Buffer.from(bytes.subarray(start, end));
      this.#head = head;
    }
    this.#mark = mark;
  }
}
