// The shared memory of the response cache, as threads pass it to one another; knows no layout.

/** What a worker needs to open the cache; can be passed to any thread. */
export interface CacheMemory {
  readonly maxBytes: number;
  readonly workers: number;
  /** Bytes of files that entries may have in all; 0: none. */
  readonly maxFileBytes: number;
  /** First the control data and indexes, then blocks. */
  readonly arena: readonly SharedArrayBuffer[];
  readonly flights: SharedArrayBuffer;
}
