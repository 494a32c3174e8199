// The memory of a cache that all threads share: its geometry, its creation, and views of it; knows no entry.
import type { CacheMemory } from "./cache-memory.ts";
import { createFlights } from "./flights.ts";

const MIN_BLOCK_BYTES = 512;
const MAX_SEGMENT_BYTES = 262_144;
/** Segments of a small cache, at least: as many as keep classes from starving each other. */
const MIN_SEGMENTS = 64;
/** Blocks of one buffer: 2^20 of at least 512 bytes are 512 MiB, below the engine's bound of 4 GiB for a buffer. */
export const BLOCK_BITS = 20;
export const BLOCK_MASK = (1 << BLOCK_BITS) - 1;
/** A block's descriptor, in 32-bit words. */
const DESCRIPTOR_WORDS = 24;
const DESCRIPTOR_BYTES = DESCRIPTOR_WORDS * 4;
const MAX_BYTES = 2 ** 40;

/** Rules of purges, and the bytes of one rule's text. */
const RULES = 64;
export const RULE_TEXT_BYTES = 8192;
const RULE_HEAD_BYTES = 32;
const RULE_BYTES = RULE_HEAD_BYTES + RULE_TEXT_BYTES;

/** Words at the beginning of the control data. */
export const words = {
  /** See `Locks`. */
  lock: 0,
  /** Rules that lookups have to test. */
  activeRules: 2,
  /** Not 0: entries older than the floor may still be there. */
  floorPending: 3,
  /** Changes with every change of a rule or of the floor. */
  ruleVersion: 4,
  /** First of the segments without a class that had one; 0: none. */
  freeSegment: 5,
  /** Segments that have had a class. */
  usedSegments: 6,
  /** Number of the last repair. */
  repair: 7,
} as const;
const WORDS = 16;
/** 64-bit integers after the words. */
export const longs = {
  epoch: 0,
  /** Entries of older epochs are gone. */
  floor: 1,
  /** Records of older epochs are refused. */
  putFloor: 2,
  salt: 3,
} as const;
const LONGS = 8;
/** 64-bit floats after the integers; changed by the holder of the lock. */
export const counters = {
  entries: 0,
  bytes: 1,
  fileBytes: 2,
  stored: 3,
  evictions: 4,
  /** Epoch of the newest rule. */
  ruleEpoch: 5,
} as const;
const COUNTERS = 8;
/** A queue of entries for eviction, in words. */
export const QUEUE_WORDS = 8;
const MAX_QUEUES = 40;
export const SEGMENT_WORDS = 4;
/** Of each thread, as 64-bit floats. */
export const WORKER_FLOATS = 8;
export const workerFloats = {
  /** First block of the entry that it is writing; 0: none. */
  writing: 0,
  /** Records not stored. */
  refused: 1,
} as const;

/** Of one queue; free blocks of its class are a list beside it. */
export const queueWords = { newest: 0, oldest: 1, hand: 2, free: 3 } as const;

/** Words of a descriptor. All of an entry are in that of its first block; `sequence`, `visited` and `soft` change in place. */
export const fields = {
  /** Odd: nothing to read here. Never goes back, so that a reader notices every change. */
  sequence: 0,
  /** Thread that writes the block, from 1. */
  owner: 1,
  hashLow: 2,
  hashHigh: 3,
  /** Next entry of the bucket of keys. */
  keyNext: 4,
  resourceNext: 5,
  resourcePrevious: 6,
  resourceHash: 7,
  /** Neighbors in the queue, or in the list of free blocks. */
  older: 8,
  newer: 9,
  visited: 10,
  soft: 11,
  state: 12,
  /** Next block of the entry. */
  chain: 13,
  /** In further blocks: the first one. */
  head: 14,
  checksum: 15,
  bodyChecksum: 16,
  bodyLength: 17,
  /** A 64-bit float, as is `fileBytes`. */
  epoch: 18,
  fileBytes: 20,
  time: 22,
  /** Bytes before the body. */
  prefix: 23,
} as const;

/** Of a block. */
export const states = { free: 0, writing: 1, entry: 2, part: 3 } as const;

export interface Geometry {
  readonly segmentBytes: number;
  readonly segments: number;
  /** Blocks of the smallest class in a segment, a power of two. */
  readonly blocksPerSegment: number;
  readonly segmentsPerBuffer: number;
  /** Block sizes in bytes, ascending, four for each power of two. */
  readonly classes: readonly number[];
  /** Of each index, a power of two. */
  readonly buckets: number;
}

const powerBelow = (value: number) => 2 ** Math.floor(Math.log2(Math.max(1, value)));
const clamp = (value: number, min: number, max: number) => Math.min(max, Math.max(min, value));

function geometryOf(maxBytes: number): Geometry {
  const segmentBytes = clamp(
    powerBelow(maxBytes / MIN_SEGMENTS),
    MIN_BLOCK_BYTES,
    MAX_SEGMENT_BYTES,
  );
  const largest = Math.max(MIN_BLOCK_BYTES, segmentBytes / 4);
  const classes: number[] = [];
  for (let size = MIN_BLOCK_BYTES; size < largest; size *= 2)
    classes.push(size, size * 1.25, size * 1.5, size * 1.75);
  classes.push(largest);
  const blocksPerSegment = segmentBytes / MIN_BLOCK_BYTES;
  return {
    segmentBytes,
    segments: Math.floor(maxBytes / segmentBytes),
    blocksPerSegment,
    segmentsPerBuffer: 2 ** BLOCK_BITS / blocksPerSegment,
    classes,
    buckets: clamp(powerBelow(maxBytes / 1024), 1024, 2 ** 26),
  };
}

interface Sizes {
  readonly maxBytes: number;
  readonly workers: number;
}

/** Offsets of the parts of the control data in bytes. */
function layoutOf({ maxBytes, workers }: Sizes) {
  const { buckets, segments } = geometryOf(maxBytes);
  let end = 0;
  const part = (bytes: number) => {
    const offset = end;
    end += Math.ceil(bytes / 64) * 64;
    return offset;
  };
  return {
    words: part(WORDS * 4),
    longs: part(LONGS * 8),
    counters: part(COUNTERS * 8),
    queues: part(MAX_QUEUES * QUEUE_WORDS * 4),
    workers: part((workers + 1) * WORKER_FLOATS * 8),
    rules: part(RULES * RULE_BYTES),
    segments: part(segments * SEGMENT_WORDS * 4),
    keys: part(buckets * 4),
    resources: part(buckets * 4),
    invalidated: part(buckets * 8),
    bytes: end,
  };
}

/**
 * `maxBytes` bounds the blocks, in which entries are; indexes, descriptors and rules take at most 25 % and 1 MiB besides. Pages cost
 * nothing until they are used. Throws a RangeError when the system refuses the memory.
 */
export function createCacheMemory(options: {
  /** 0 stores nothing; at most 1 TiB. */
  readonly maxBytes: number;
  readonly workers: number;
  /** Default 0. */
  readonly maxFileBytes?: number;
}): CacheMemory {
  const { maxBytes, workers, maxFileBytes = 0 } = options;
  if (maxBytes > MAX_BYTES) throw new RangeError(`maxBytes must be at most ${MAX_BYTES}`);
  const { segments, segmentBytes, segmentsPerBuffer, blocksPerSegment } = geometryOf(maxBytes);
  const arena = [new SharedArrayBuffer(layoutOf(options).bytes)];
  for (let rest = segments; rest > 0; rest -= segmentsPerBuffer) {
    const count = Math.min(rest, segmentsPerBuffer);
    arena.push(new SharedArrayBuffer(count * (blocksPerSegment * DESCRIPTOR_BYTES + segmentBytes)));
  }
  const memory = { maxBytes, workers, maxFileBytes, arena, flights: createFlights() };
  const views = new Views(memory);
  views.longs.set(crypto.getRandomValues(new BigUint64Array(1)), longs.salt);
  // Before the first invalidation, so that 0 is older than any fetch.
  views.longs[longs.epoch] = 1n;
  return memory;
}

/** Bytes at the beginning of the control data that threads may change without the lock: words and epochs. */
const UNLOCKED_BYTES = WORDS * 4 + LONGS * 8;

/** The parts of a retired cache that no thread changes and that need not stay: all but those words. */
export const retiredParts = ({ arena }: CacheMemory): readonly Uint8Array[] =>
  arena.map((buffer, n) => new Uint8Array(buffer, n === 0 ? UNLOCKED_BYTES : 0));

/** A rule's slot. */
export interface RuleView {
  /** See `rules.ts`. */
  readonly words: Int32Array;
  readonly epoch: Float64Array;
  readonly text: Buffer;
}

/** Views of the memory in one thread. Blocks have numbers from 1 on; 0 is none. */
export class Views {
  readonly geometry: Geometry;
  readonly words: Int32Array;
  readonly longs: BigUint64Array;
  readonly counters: Float64Array;
  readonly queues: Int32Array;
  readonly workers: Float64Array;
  readonly rules: readonly RuleView[];
  readonly segments: Int32Array;
  /** First block of each bucket. */
  readonly keys: Int32Array;
  readonly resources: Int32Array;
  /** By bucket of resources, the epoch of the last invalidation. */
  readonly invalidated: Float64Array;
  /** Descriptors, by buffer. */
  readonly descriptors: readonly Int32Array[];
  readonly floats: readonly Float64Array[];
  /** Contents, by buffer, from the first byte of the buffer on. */
  readonly bytes: readonly Buffer[];
  /** Where contents begin in each buffer. */
  readonly starts: readonly number[];

  constructor(memory: CacheMemory) {
    const [control, ...blocks] = memory.arena;
    if (control === undefined) throw new RangeError("a cache without memory");
    const geometry = geometryOf(memory.maxBytes);
    const at = layoutOf(memory);
    this.geometry = geometry;
    this.words = new Int32Array(control, at.words, WORDS);
    this.longs = new BigUint64Array(control, at.longs, LONGS);
    this.counters = new Float64Array(control, at.counters, COUNTERS);
    this.queues = new Int32Array(control, at.queues, MAX_QUEUES * QUEUE_WORDS);
    this.workers = new Float64Array(control, at.workers, (memory.workers + 1) * WORKER_FLOATS);
    this.rules = Array.from({ length: RULES }, (_, slot) => {
      const begin = at.rules + slot * RULE_BYTES;
      return {
        words: new Int32Array(control, begin, 4),
        epoch: new Float64Array(control, begin + 16, 1),
        text: Buffer.from(control, begin + RULE_HEAD_BYTES, RULE_TEXT_BYTES),
      };
    });
    this.segments = new Int32Array(control, at.segments, geometry.segments * SEGMENT_WORDS);
    this.keys = new Int32Array(control, at.keys, geometry.buckets);
    this.resources = new Int32Array(control, at.resources, geometry.buckets);
    this.invalidated = new Float64Array(control, at.invalidated, geometry.buckets);
    this.starts = blocks.map(
      ({ byteLength }) =>
        (byteLength / (geometry.segmentBytes + geometry.blocksPerSegment * DESCRIPTOR_BYTES)) *
        geometry.blocksPerSegment *
        DESCRIPTOR_BYTES,
    );
    this.descriptors = blocks.map((buffer, n) => new Int32Array(buffer, 0, this.#words(n)));
    this.floats = blocks.map((buffer, n) => new Float64Array(buffer, 0, this.#words(n) / 2));
    this.bytes = blocks.map((buffer) => Buffer.from(buffer));
  }

  #words(buffer: number): number {
    return (this.starts[buffer] ?? 0) / 4;
  }

  /** A word of a block's descriptor. */
  get(block: number, field: number): number {
    const view = this.descriptors[(block - 1) >>> BLOCK_BITS];
    return view?.[((block - 1) & BLOCK_MASK) * DESCRIPTOR_WORDS + field] ?? 0;
  }

  set(block: number, field: number, value: number): void {
    const view = this.descriptors[(block - 1) >>> BLOCK_BITS];
    if (view !== undefined) view[((block - 1) & BLOCK_MASK) * DESCRIPTOR_WORDS + field] = value;
  }

  /** With the order of `Atomics`. */
  load(block: number, field: number): number {
    const view = this.descriptors[(block - 1) >>> BLOCK_BITS];
    if (view === undefined) return 0;
    return Atomics.load(view, ((block - 1) & BLOCK_MASK) * DESCRIPTOR_WORDS + field);
  }

  store(block: number, field: number, value: number): void {
    const view = this.descriptors[(block - 1) >>> BLOCK_BITS];
    if (view !== undefined)
      Atomics.store(view, ((block - 1) & BLOCK_MASK) * DESCRIPTOR_WORDS + field, value);
  }

  /** Replaces a word; false: it was another one. */
  replace(block: number, field: number, [from, to]: readonly [from: number, to: number]): boolean {
    const view = this.descriptors[(block - 1) >>> BLOCK_BITS];
    const at = ((block - 1) & BLOCK_MASK) * DESCRIPTOR_WORDS + field;
    return view !== undefined && Atomics.compareExchange(view, at, from, to) === from;
  }

  /** A 64-bit float of a descriptor; `field` is the first of its two words. */
  getFloat(block: number, field: number): number {
    const view = this.floats[(block - 1) >>> BLOCK_BITS];
    return view?.[(((block - 1) & BLOCK_MASK) * DESCRIPTOR_WORDS + field) / 2] ?? 0;
  }

  setFloat(block: number, field: number, value: number): void {
    const view = this.floats[(block - 1) >>> BLOCK_BITS];
    if (view !== undefined)
      view[(((block - 1) & BLOCK_MASK) * DESCRIPTOR_WORDS + field) / 2] = value;
  }

  /** The segment of a block, from 0. */
  segmentOf(block: number): number {
    const { segmentsPerBuffer, blocksPerSegment } = this.geometry;
    const inBuffer = Math.floor(((block - 1) & BLOCK_MASK) / blocksPerSegment);
    return ((block - 1) >>> BLOCK_BITS) * segmentsPerBuffer + inBuffer;
  }

  /** The first block of a segment. */
  firstBlock(segment: number): number {
    const { segmentsPerBuffer, blocksPerSegment } = this.geometry;
    const buffer = Math.floor(segment / segmentsPerBuffer);
    return buffer * 2 ** BLOCK_BITS + (segment - buffer * segmentsPerBuffer) * blocksPerSegment + 1;
  }
}
