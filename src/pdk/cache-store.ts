// A store of responses that all workers of this process share, as a plugin sees it; types only.

/** What a plugin stores. */
export interface CacheRecord {
  /** Lookups find entries by it. */
  readonly key: string;
  /** Distinguishes entries of one key. A record replaces the entry with the same key and variant. */
  readonly variant: string;
  /** `host/path?query`, or `/path?query` without a host: what invalidation and purges name. */
  readonly resource: string;
  readonly tags: readonly string[];
  /** Decoded at lookup: status, headers, freshness. */
  readonly head: Uint8Array;
  readonly body: Uint8Array;
  /** A file that has the body, which is empty then; removed with the entry. */
  readonly file?: { readonly bytes: number };
  /** `CacheStore.epoch` from before the request went upstream. */
  readonly epoch: number;
}

/** An entry as one lookup has found it. */
export interface CacheEntry<Head> {
  readonly head: Head;
  /** Bytes. */
  readonly bodyLength: number;
  /** A soft purge has made it stale. */
  readonly isSoftPurged: boolean;
  /** A copy, which hits may share: do not change it. Null: the entry has been replaced or removed since. */
  body(): Uint8Array | null;
}

/** A fetch that other requests for its key may wait for. */
export interface CacheFlight {
  /** `look`: they look up the store again, and one of them may lead; `fetch`: each of them fetches. */
  end(verdict: FlightVerdict): void;
}

export type FlightVerdict = "look" | "fetch";

/**
 * One for each instance, of a bounded size over all workers, which may change and evict entries at any time. What one worker stores,
 * removes or invalidates, all others see at once.
 */
export interface CacheStore<Head> {
  /** Number of the last invalidation. */
  readonly epoch: number;
  /** The first entry of the key that `accepts`, newest first. */
  find(key: string, accepts: (head: Head) => boolean): CacheEntry<Head> | null;
  /** The same with what `accepts` needs to know of a request, which saves a closure for each. */
  find<Request>(
    key: string,
    accepts: (head: Head, request: Request) => boolean,
    request: Request,
  ): CacheEntry<Head> | null;
  /** False: not stored, because it is too large, was invalidated since its epoch, or the store is busy or failed. */
  put(record: CacheRecord): boolean;
  /** Replaces head, variant and tags, not the body; false: not stored, and the entry is gone. */
  update(entry: CacheEntry<Head>, next: Omit<CacheRecord, "body">): boolean;
  /** False: it was gone already. */
  remove(entry: CacheEntry<Head>): boolean;
  /** Removes all entries of the resource; returns their number. Fetches that have begun before are not stored. */
  invalidate(resource: string): number;
  /** Whether an invalidation since then affects a response. */
  isOutdated(
    response: { readonly resource: string; readonly tags: readonly string[] },
    epoch: number,
  ): boolean;
  /** Begins a fetch to wait for; `epoch`: from before it. Null: another request of any worker leads already, or there is no room. */
  lead(key: string, resource: string, epoch: number): CacheFlight | null;
  /** Resolves when the fetch that leads for this key ends, or after `timeoutMs` with `fetch`; null: none leads. */
  follow(key: string, resource: string, timeoutMs: number): Promise<FlightVerdict> | null;
}
