// Triggers garbage collections of its thread: full ones when the heap has grown, short ones after many requests; knows nothing of its contents.
import { edenGC, fullGC, heapSize } from "bun:jsc";

const CHECK_MS = 1000;
/** Growth since the last collection that triggers another one: the larger of the two, in bytes and as a share without buffers. */
const MIN_GROWTH_BYTES = 8_388_608;
const MIN_GROWTH = 0.25;
/** A collection stops the thread: at most this share of the time, but at least once in MAX_PAUSE_MS while memory grows. */
const MAX_TIME_SHARE = 0.001;
const MIN_PAUSE_MS = 10_000;
const MAX_PAUSE_MS = 60_000;

/** The heap of a thread. */
export interface Heap {
  /** Bytes in use after the last collection, with external memory of objects. */
  readonly size: () => number;
  /** The part in ArrayBuffers, shared ones included. */
  readonly buffers: () => number;
  /** A synchronous full collection. */
  readonly collect: () => void;
}

const ownHeap: Heap = {
  size: heapSize,
  buffers: () => process.memoryUsage().arrayBuffers,
  collect: fullGC,
};

/**
 * The engine runs a full collection only when the heap has become two to three times as large, and it
 * counts shared memory in each heap. So a gateway with many configuration changes would hold hundreds of
 * megabytes of garbage. `Bun.gc(false)` collects only new objects.
 */
export class GarbageWatch {
  readonly #heap: Heap;
  readonly #now: () => number;
  /** Size after the last collection. */
  #baseline: number;
  #minGrowth = MIN_GROWTH_BYTES;
  #collectedAt: number;
  #pauseMs = MIN_PAUSE_MS;

  constructor(heap: Heap = ownHeap, now: () => number = () => performance.now()) {
    this.#heap = heap;
    this.#now = now;
    this.#baseline = heap.size();
    this.#collectedAt = now();
  }

  /** Collects if the heap has grown enough. */
  check(): void {
    const size = this.#heap.size();
    // The engine may have collected on its own.
    this.#baseline = Math.min(this.#baseline, size);
    if (size - this.#baseline < this.#minGrowth) return;
    const began = this.#now();
    if (began - this.#collectedAt < this.#pauseMs) return;
    this.#heap.collect();
    this.#collectedAt = this.#now();
    const pauseMs = (this.#collectedAt - began) / MAX_TIME_SHARE;
    this.#pauseMs = Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, pauseMs));
    this.#baseline = this.#heap.size();
    const objects = this.#baseline - this.#heap.buffers();
    this.#minGrowth = Math.max(MIN_GROWTH_BYTES, objects * MIN_GROWTH);
  }
}

/**
 * Checks the heap of this thread periodically. `share` is this thread's number as a share of all threads: if they collected at
 * the same time after a large change, no worker would serve clients meanwhile.
 */
export function watchGarbage(share = 0): void {
  const watch = new GarbageWatch();
  const start = () => setInterval(() => watch.check(), CHECK_MS).unref();
  setTimeout(start, CHECK_MS * share).unref();
}

/**
 * Requests between two collections of new objects: about 8 MB. With collections after a number of bytes alone, short requests would
 * get new pages from the system and return them all the time when the number is large; when it is small, long bodies, whose memory
 * is released at once but counted, would cause a collection for every few of them. Figures: docs/decisions/0016-what-bun-costs.md.
 */
export const REQUESTS_PER_COLLECTION = 1500;

/** Collects new objects after a number of requests, at the end of a turn of the event loop, where few objects are in use. */
export class RequestGarbage {
  /** Since the last collection. The code that ends a request counts it, and calls `collect` at REQUESTS_PER_COLLECTION. */
  requests = 0;
  readonly #collect: () => unknown;

  constructor(collect: () => unknown = edenGC) {
    this.#collect = collect;
  }

  collect(): void {
    this.requests = 0;
    setImmediate(this.#collect);
  }
}

/** One for each thread. */
export const requestGarbage = new RequestGarbage();
