// Blocks of size classes, cut from segments of one size, and the bytes in them; knows no index and no eviction.
import {
  BLOCK_BITS,
  BLOCK_MASK,
  fields,
  type Geometry,
  QUEUE_WORDS,
  queueWords,
  SEGMENT_WORDS,
  states,
  type Views,
  words,
} from "./memory.ts";

const segmentWords = { class: 0, used: 1, next: 2 } as const;

export class Blocks {
  readonly #views: Views;
  readonly #geometry: Geometry;

  constructor(views: Views) {
    this.#views = views;
    this.#geometry = views.geometry;
  }

  /** The smallest class for so many bytes; the largest one if none is large enough. */
  classFor(bytes: number): number {
    const { classes } = this.#geometry;
    const found = classes.findIndex((size) => size >= bytes);
    return found === -1 ? classes.length - 1 : found;
  }

  /** -1: the segment has none. */
  classOf(segment: number): number {
    return (this.#views.segments[segment * SEGMENT_WORDS + segmentWords.class] ?? 0) - 1;
  }

  /** Bytes of the block; 0: its segment has no class. */
  capacity(block: number): number {
    return this.#geometry.classes[this.classOf(this.#views.segmentOf(block))] ?? 0;
  }

  /** Blocks of a segment with this class. */
  count(cls: number): number {
    return Math.floor(this.#geometry.segmentBytes / (this.#geometry.classes[cls] ?? 1));
  }

  /** Takes a free block of the class; 0: there is none. Needs the lock, as do all methods below but `read` and `write`. */
  take(cls: number, owner: number): number {
    const { queues, segments } = this.#views;
    const at = cls * QUEUE_WORDS + queueWords.free;
    const block = queues[at] ?? 0;
    if (block === 0) return 0;
    this.#views.set(block, fields.owner, owner);
    this.#views.store(block, fields.sequence, this.#views.get(block, fields.sequence) | 1);
    this.#views.set(block, fields.state, states.writing);
    this.#views.set(block, fields.chain, 0);
    this.#unlinkFree(cls, block);
    const used = this.#views.segmentOf(block) * SEGMENT_WORDS + segmentWords.used;
    segments[used] = (segments[used] ?? 0) + 1;
    return block;
  }

  /** Frees a block that is in no list; a segment without used blocks loses its class. */
  free(block: number): void {
    const { segments } = this.#views;
    const segment = this.#views.segmentOf(block);
    const cls = this.classOf(segment);
    this.#views.set(block, fields.state, states.free);
    this.#views.set(block, fields.owner, 0);
    this.#linkFree(cls, block);
    const used = segment * SEGMENT_WORDS + segmentWords.used;
    const left = (segments[used] ?? 0) - 1;
    segments[used] = left;
    if (left > 0) return;
    const first = this.#views.firstBlock(segment);
    for (let n = 0; n < this.count(cls); n++) this.#unlinkFree(cls, first + n);
    this.giveUp(segment);
  }

  /** Frees all blocks of a chain. */
  freeChain(first: number): void {
    for (let block = first; block !== 0;) {
      const next = this.#views.get(block, fields.chain);
      this.free(block);
      block = next;
    }
  }

  /** Gives a segment to the class; false: all have one. */
  assign(cls: number): boolean {
    const { words: memory, segments, geometry } = this.#views;
    let segment = (memory[words.freeSegment] ?? 0) - 1;
    if (segment >= 0)
      memory[words.freeSegment] = segments[segment * SEGMENT_WORDS + segmentWords.next] ?? 0;
    else {
      segment = memory[words.usedSegments] ?? 0;
      if (segment >= geometry.segments) return false;
      memory[words.usedSegments] = segment + 1;
    }
    segments[segment * SEGMENT_WORDS + segmentWords.class] = cls + 1;
    segments[segment * SEGMENT_WORDS + segmentWords.used] = 0;
    const first = this.#views.firstBlock(segment);
    for (let n = this.count(cls) - 1; n >= 0; n--) this.#linkFree(cls, first + n);
    return true;
  }

  /** Takes the class of a segment whose blocks are in no list. */
  giveUp(segment: number): void {
    const { words: memory, segments } = this.#views;
    const at = segment * SEGMENT_WORDS;
    segments[at + segmentWords.class] = 0;
    segments[at + segmentWords.next] = memory[words.freeSegment] ?? 0;
    memory[words.freeSegment] = segment + 1;
  }

  /** For a repair: the number of used blocks of a segment. */
  recount(segment: number, used: number): void {
    this.#views.segments[segment * SEGMENT_WORDS + segmentWords.used] = used;
  }

  #linkFree(cls: number, block: number): void {
    const { queues } = this.#views;
    const at = cls * QUEUE_WORDS + queueWords.free;
    const next = queues[at] ?? 0;
    this.#views.set(block, fields.older, next);
    this.#views.set(block, fields.newer, 0);
    if (next !== 0) this.#views.set(next, fields.newer, block);
    queues[at] = block;
  }

  #unlinkFree(cls: number, block: number): void {
    const older = this.#views.get(block, fields.older);
    const newer = this.#views.get(block, fields.newer);
    if (older !== 0) this.#views.set(older, fields.newer, newer);
    if (newer !== 0) this.#views.set(newer, fields.older, older);
    else this.#views.queues[cls * QUEUE_WORDS + queueWords.free] = older;
  }

  /** Copies from a chain; false: it ends before. What it copies may change meanwhile: compare the sequence afterwards. */
  read(first: number, from: number, into: Uint8Array): boolean {
    return this.#copy(first, from, { into });
  }

  /** Copies into a chain that this thread owns. */
  write(first: number, from: number, source: Uint8Array): void {
    this.#copy(first, from, { source });
  }

  #copy(
    first: number,
    from: number,
    local: { readonly into: Uint8Array } | { readonly source: Uint8Array },
  ): boolean {
    const { byteLength } = "into" in local ? local.into : local.source;
    let offset = from;
    let done = 0;
    for (let block = first; done < byteLength; block = this.#views.get(block, fields.chain)) {
      const capacity = block === 0 ? 0 : this.capacity(block);
      const bytes = this.#views.bytes[(block - 1) >>> BLOCK_BITS];
      if (capacity === 0 || bytes === undefined) return false;
      const skipped = Math.min(offset, capacity);
      offset -= skipped;
      const count = Math.min(capacity - skipped, byteLength - done);
      const at = this.#position(block, capacity) + skipped;
      if (at + count > bytes.byteLength) return false;
      if ("into" in local) bytes.copy(local.into, done, at, at + count);
      else bytes.set(local.source.subarray(done, done + count), at);
      done += count;
    }
    return true;
  }

  /** Offset of a block's bytes in its buffer. */
  #position(block: number, capacity: number): number {
    const { blocksPerSegment, segmentBytes } = this.#geometry;
    const index = (block - 1) & BLOCK_MASK;
    const segment = Math.floor(index / blocksPerSegment);
    const start = this.#views.starts[(block - 1) >>> BLOCK_BITS] ?? 0;
    return start + segment * segmentBytes + (index - segment * blocksPerSegment) * capacity;
  }
}
