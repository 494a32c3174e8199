// Writes stored responses to the store of all workers and reads them; knows no request and no freshness rule.
import type { CacheEntry, CacheStore } from "../../pdk/cache-store.ts";
import type { Disk } from "./disk.ts";
import type { DiskBody } from "./disk-body.ts";
import type { FileRecord } from "./disk-file.ts";
import type { Freshness } from "./freshness.ts";
import type { FillRequest } from "./storing.ts";

/** A stored response without its body. Plain data but for `headers`. */
export interface StoredHead {
  readonly key: string;
  /** `host/path?query`, as in purges and unsafe requests. */
  readonly resource: string;
  readonly status: number;
  /** Without headers that are set for each response. */
  readonly headers: Headers;
  readonly etag: string | null;
  readonly lastModified: string | null;
  /** Request headers of Vary, with the values of its request. */
  readonly variesOn: readonly (readonly [name: string, value: string | null])[];
  readonly tags: readonly string[];
  readonly freshness: Freshness;
  /** Milliseconds of `performance.now()`, which counts in each thread from its own start; records have it since 1970. */
  readonly storedAt: number;
  /** That has the body; absent: the store has it. */
  readonly file?: StoredFile;
}

/** A body in a file. */
interface StoredFile {
  readonly name: string;
  /** Bytes of the body. */
  readonly length: number;
}

/** What is stored with a head: bytes, or a file with its size on the disk. */
export type Content = Uint8Array | (StoredFile & { readonly bytes: number });

/** A stored response: its head as this thread has decoded it, and the entry in which a lookup has found it last. */
export class Stored implements StoredHead {
  readonly key: string;
  readonly resource: string;
  readonly status: number;
  readonly headers: Headers;
  readonly etag: string | null;
  readonly lastModified: string | null;
  readonly variesOn: StoredHead["variesOn"];
  readonly tags: readonly string[];
  readonly freshness: Freshness;
  readonly storedAt: number;
  readonly file?: StoredFile;
  /** Set by lookups: the store reuses decoded heads. */
  entry: CacheEntry<Stored> | null = null;
  #ownBody: Uint8Array | DiskBody | null = null;

  constructor(head: StoredHead) {
    this.key = head.key;
    this.resource = head.resource;
    this.status = head.status;
    this.headers = head.headers;
    this.etag = head.etag;
    this.lastModified = head.lastModified;
    this.variesOn = head.variesOn;
    this.tags = head.tags;
    this.freshness = head.freshness;
    this.storedAt = head.storedAt;
    if (head.file !== undefined) this.file = head.file;
  }

  /** Bytes. */
  get bodyLength(): number {
    return this.#ownBody?.byteLength ?? this.file?.length ?? this.entry?.bodyLength ?? 0;
  }

  /** A soft purge has made it stale. */
  get isSoftPurged(): boolean {
    return this.entry?.isSoftPurged ?? false;
  }

  /** Null: the response has been replaced or removed since, or its file is not open (`withBody`). */
  body(): Uint8Array | DiskBody | null {
    if (this.#ownBody !== null || this.file !== undefined) return this.#ownBody;
    return this.entry?.body() ?? null;
  }

  /** The same with a copy of its body, for a fetch that may have to serve it: the store may remove the response meanwhile. */
  withOwnBody(): Stored | null {
    const body = this.body();
    return body === null ? null : this.withBody(body);
  }

  withBody(body: Uint8Array | DiskBody): Stored {
    const own = new Stored(this);
    own.entry = this.entry;
    own.#ownBody = body;
    return own;
  }

  #fileOf() {
    return this.file === undefined ? {} : { file: this.file };
  }

  /** The same body with another head. */
  withHead(head: StoredHead): Stored {
    const next = new Stored({ ...head, ...this.#fileOf() });
    next.entry = this.entry;
    next.#ownBody = this.body();
    return next;
  }
}

export class Store {
  readonly #cache: CacheStore<Stored>;
  readonly #disk: Disk | null;

  constructor(cache: CacheStore<Stored>, disk: Disk | null = null) {
    this.#cache = cache;
    this.#disk = disk;
  }

  /** To be noted before a request goes upstream whose response may be stored. */
  get epoch(): number {
    return this.#cache.epoch;
  }

  /** Names of the request headers in Vary of the key. */
  varyNames(key: string): readonly string[] {
    const head = this.#cache.find(key, () => true)?.head;
    return head?.variesOn.map(([name]) => name) ?? [];
  }

  /** The variant for a request with these headers. */
  find(key: string, fieldOf: (name: string) => string | null): Stored | null {
    const entry = this.#cache.find(key, isVariantFor, fieldOf);
    if (entry === null) return null;
    const { head } = entry;
    head.entry = entry;
    return head;
  }

  /** Whether a lookup still finds the same as before, which other workers may have changed. */
  isUnchanged(
    found: Stored | null,
    { key, fieldOf }: { key: string; fieldOf: (name: string) => string | null },
  ): boolean {
    return this.find(key, fieldOf)?.storedAt === found?.storedAt;
  }

  /** Whether an invalidation of the resource came after the request; `put` also considers tags. */
  isOutdated({ cacheKey, epoch }: FillRequest): boolean {
    return this.#cache.isOutdated({ resource: cacheKey.resource, tags: [] }, epoch);
  }

  /**
   * Stores a response in the place of the one with its variant and of `old`, which may be of another; false: not stored, and a file is
   * removed. `epoch`: from before the request.
   */
  put(
    head: StoredHead,
    content: Content,
    { old, epoch }: { readonly old: Stored | null; readonly epoch: number },
  ): boolean {
    if (old !== null && variantOf(old) !== variantOf(head)) this.remove(old);
    if (content instanceof Uint8Array)
      return this.#cache.put({ ...recordOf(head), body: content, epoch });
    const { name, length, bytes } = content;
    const record = recordOf({ ...head, file: { name, length } });
    const isStored = this.#cache.put({ ...record, body: NO_BYTES, file: { bytes }, epoch });
    if (!isStored) this.#disk?.remove(name);
    return isStored;
  }

  /** Replaces everything but the body; false: not stored. */
  update(old: Stored, next: StoredHead, epoch: number): boolean {
    const { entry, file } = old;
    const record = recordOf(file === undefined ? next : { ...next, file });
    const isUpdated = entry !== null && this.#cache.update(entry, { ...record, epoch });
    if (file !== undefined) {
      if (isUpdated) void this.#disk?.rewrite(file.name, fileRecordOf(next), file.length);
      return isUpdated;
    }
    if (isUpdated) return true;
    const body = old.body();
    // It was evicted meanwhile; or another fetch has replaced it, by what is newer than its body.
    const isReplaced = this.#cache.find(next.key, (head) => variantOf(head) === variantOf(next));
    if (isReplaced !== null || !(body instanceof Uint8Array)) return false;
    return this.put(next, body, { old, epoch });
  }

  /** False when it was removed already. */
  remove(stored: Stored): boolean {
    const { entry } = stored;
    return entry !== null && this.#cache.remove(entry);
  }

  /** Removes all responses of the resource, for all clients. */
  invalidate(resource: string): number {
    return this.#cache.invalidate(resource);
  }
}

function isVariantFor({ variesOn }: StoredHead, fieldOf: (name: string) => string | null): boolean {
  for (const [name, value] of variesOn) if (fieldOf(name) !== value) return false;
  return true;
}

const variantOf = ({ variesOn }: StoredHead) => JSON.stringify(variesOn);

const NO_BYTES = new Uint8Array(0);
const encoder = new TextEncoder();
const decoder = new TextDecoder();

function recordOf(head: StoredHead) {
  const { key, resource, tags } = head;
  const storedAt = performance.timeOrigin + head.storedAt;
  const text = JSON.stringify({ ...head, headers: [...head.headers], storedAt });
  return { key, resource, tags, variant: variantOf(head), head: encoder.encode(text) };
}

/** What the file of a body says of the response. */
export const fileRecordOf = (head: StoredHead): FileRecord => ({
  ...recordOf(head),
  // Not the clock of this process, which does not follow changes of the time of day.
  storedAt: Date.now() - (performance.now() - head.storedAt),
});

/** The inverse, in the thread that looks it up. */
export const decodeHead = (bytes: Uint8Array): Stored => new Stored(headOf(bytes));

export function headOf(bytes: Uint8Array): StoredHead {
  const { headers, ...head } = JSON.parse(decoder.decode(bytes)) as Omit<StoredHead, "headers"> & {
    readonly headers: [string, string][];
  };
  const storedAt = head.storedAt - performance.timeOrigin;
  return { ...head, headers: new Headers(headers), storedAt };
}
