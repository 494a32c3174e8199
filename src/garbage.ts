// Collects the garbage of its own thread once enough of it has piled up; knows nothing of what it was made for.
import { fullGC, heapSize } from "bun:jsc";

const LOOK_MS = 1000;
/** So much more than was left by the last collection is worth another one: the larger of the two. Buffers make it no longer. */
const LEAST_GROWTH_BYTES = 8_388_608;
const LEAST_GROWTH = 0.25;
/** A collection stops the thread: it may cost a thousandth of the time, but where memory grows there is one in a minute. */
const SHARE_OF_TIME = 0.001;
const SHORTEST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 60_000;

/** The heap of a thread. */
export interface Heap {
  /** Bytes that were found in use by collections, and memory outside of the heap that objects in it hold. */
  readonly size: () => number;
  /** The part of it that is buffers, those that threads share among them. */
  readonly buffers: () => number;
  /** Frees all that nobody holds, and returns when that is done. */
  readonly collect: () => void;
}

const ownHeap: Heap = {
  size: heapSize,
  buffers: () => process.memoryUsage().arrayBuffers,
  collect: fullGC,
};

/**
 * The engine looks at what has been there for a while only when the heap has become two to three times as large, and it
 * counts memory that threads share as a part of each heap. So a gateway that is configured all day would hold hundreds of
 * megabytes that nobody needs. `Bun.gc(false)` only looks at what is new.
 */
export class GarbageWatch {
  readonly #heap: Heap;
  readonly #now: () => number;
  /** What the last collection left. */
  #left: number;
  #leastGrowth = LEAST_GROWTH_BYTES;
  #collectedAt: number;
  #pauseMs = SHORTEST_PAUSE_MS;

  constructor(heap: Heap = ownHeap, now: () => number = () => performance.now()) {
    this.#heap = heap;
    this.#now = now;
    this.#left = heap.size();
    this.#collectedAt = now();
  }

  /** Collects when it is worth it. */
  look(): void {
    const size = this.#heap.size();
    // The engine has collected on its own.
    this.#left = Math.min(this.#left, size);
    if (size - this.#left < this.#leastGrowth) return;
    const began = this.#now();
    if (began - this.#collectedAt < this.#pauseMs) return;
    this.#heap.collect();
    this.#collectedAt = this.#now();
    const pauseMs = (this.#collectedAt - began) / SHARE_OF_TIME;
    this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, pauseMs));
    this.#left = this.#heap.size();
    const objects = this.#left - this.#heap.buffers();
    this.#leastGrowth = Math.max(LEAST_GROWTH_BYTES, objects * LEAST_GROWTH);
  }
}

/** Watches the heap of this thread for as long as it lives. */
export function watchGarbage(): void {
  const watch = new GarbageWatch();
  setInterval(() => watch.look(), LOOK_MS).unref();
}
