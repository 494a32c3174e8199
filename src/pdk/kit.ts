// What the gateway provides to a plugin instance beside requests; interfaces only.
import type { Socket } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import type { CacheStore } from "./cache-store.ts";
import type { InstanceView } from "./context.ts";

/** A count in windows of time that all workers share. */
export interface WindowCount {
  /** In the present window, including the present call. */
  readonly current: number;
  /** In the window before. */
  readonly previous: number;
  /** Milliseconds since the present window began. */
  readonly elapsedMs: number;
}

/** A cost to add to a window. */
export interface WindowCost {
  readonly cost: number;
  readonly windowMs: number;
}

export interface WindowDemand extends WindowCost {
  /** Limit of the window, including the cost. */
  readonly max: number;
  /** Whether the previous window counts too, weighted by the part of it that a sliding window covers. */
  readonly isSliding: boolean;
}

/** The result of a demand, and the counts after it. */
export interface Admission extends WindowCount {
  readonly isAdmitted: boolean;
  /** Names the window, for `revoke`. */
  readonly window: number;
}

/**
 * Numbers by key, in memory that all workers share: exact over all of them, lost when the gateway stops. Each instance has
 * its own keys. When the memory is full, the least recently used keys are evicted.
 */
export interface Counters {
  /** The clock of windows, buckets and values, in milliseconds since 1970. */
  now(): number;
  /** Adds to a count in windows of `windowMs`, which begin at multiples of it; an amount of 0 only reads. */
  add(key: string, amount: number, windowMs: number): WindowCount;
  /** Adds the cost if the limit allows it, atomically. A cost of 0 only reads. */
  admit(key: string, demand: WindowDemand): Admission;
  /** Subtracts an admitted cost from its window. */
  revoke(key: string, admission: Pick<Admission, "window">, cost: WindowCost): void;
  /**
   * Takes `cost` from a token bucket of `capacity` that gains `perSecond`. `wait`: milliseconds until it holds that much, 0
   * when it was taken. A negative cost returns tokens.
   */
  take(
    key: string,
    bucket: { readonly capacity: number; readonly perSecond: number; readonly cost: number },
  ): { readonly remaining: number; readonly wait: number };
  /** Increments a count of concurrent users; false at `max`. Every true needs a `leave`. */
  enter(key: string, max: number): boolean;
  leave(key: string): void;
  /** The number of concurrent users. */
  inside(key: string): number;
  /** A number that was stored with `replace`; 0 when there is none. */
  value(key: string): number;
  /** Compare and set; false when the value is not `expected`. It expires after `keepMs`. */
  replace(
    key: string,
    change: { readonly expected: number; readonly next: number; readonly keepMs: number },
  ): boolean;
  /** Takes `cost` units from a stock; null when it holds less, or has expired. A cost of 0 only reads. */
  spend(key: string, cost: number): Stock | null;
  /** Adds units to a stock; those that it still holds expire at the earlier time. */
  store(key: string, stock: Stock): void;
}

/** Units that this node has taken from a limit of all nodes, for requests to come. */
export interface Stock {
  /** Whole; at most 4 million. */
  readonly units: number;
  /** What was left of the limit for all nodes when the units were taken; whole. */
  readonly rest: number;
  /** When the units expire, on the clock of `Counters.now`. */
  readonly untilMs: number;
}

/** A limit over all nodes. */
export interface SharedDemand {
  readonly key: string;
  readonly algorithm: "sliding" | "fixed" | "token_bucket";
  /** Of a window, or of the bucket. */
  readonly capacity: number;
  readonly windowMs: number;
  /** Refill rate of a bucket. */
  readonly perSecond: number;
  /** Units of one request. */
  readonly cost: number;
  /** Units of all requests that wait; at least `cost`. */
  readonly waiting: number;
  /** Units to take beyond that for later requests, if the limit has room for all nodes; at least `waiting`. */
  readonly want: number;
}

/** The state of a limit after a demand. */
export interface SharedCount extends WindowCount {
  /** Units taken, a multiple of the cost; 0: refused, or not asked for. */
  readonly taken: number;
  /** What a bucket holds; 0 for windows. */
  readonly level: number;
}

/**
 * Counts over all nodes, on the server of `--counters`. Every method returns null while that server is away, and a promise of null
 * when it goes away meanwhile: a call takes at most 60 ms. Each instance has its own keys, which the server sees as hashes.
 */
export interface SharedCounters {
  /** Number of nodes that share the limits; at least 1. */
  readonly nodes: number;
  /** `take`: the units of all limits, or of none; `look`: nothing; `add`: the cost, whatever the limit. */
  count(
    how: "take" | "look" | "add",
    demands: readonly SharedDemand[],
  ): Promise<readonly SharedCount[] | null> | null;
  /** True for the first call with this key on any node within `keepMs`. */
  once(key: string, keepMs: number): Promise<boolean | null> | null;
  /** Whether `once` was called with this key on any node. */
  isKnown(key: string): Promise<boolean | null> | null;
  /** Reports a decision that was made without the server, for the metrics. */
  noteFallback(): void;
}

export interface CalloutRequest {
  /** Absolute, http or https. */
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string | null;
  /** For everything until the last byte. */
  readonly timeoutMs: number;
  /** A longer response is an error; default 1 MiB. */
  readonly maxBytes?: number;
}

export interface CalloutResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/**
 * One HTTP request to another server: bounded in number, time and size, on keep-alive connections, without following
 * redirects. The gateway rejects requests to itself. Throws an Error with a message for people when there is no response.
 */
export type Callout = (request: CalloutRequest) => Promise<CalloutResponse>;

/** Connections to other servers. Refuses destinations as for callouts: a name is decided by the addresses that it has. */
export interface KitDialer {
  /** Throws for an address that is refused; the socket emits an error for a name. */
  connect(to: ServerAddress): Socket;
  connectTls(options: ConnectionOptions & ServerAddress): TLSSocket;
  /** At least one. Rejects with the reason. */
  addressesOf(server: ServerAddress): Promise<readonly string[]>;
}

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** Where plugins may write log files, as absolute paths of directories. */
export interface LogDirectories {
  /** Base of relative paths; created when needed. */
  readonly directory: string;
  /** Absolute paths must be below this one (`--log-dir`); null: none may be used. */
  readonly absolute: string | null;
}

export type CacheOpener = <Head>(use: {
  /** The head of a record, as this thread reads it. */
  readonly decode: (bytes: Uint8Array) => Head;
  /** This thread has removed an entry with a file (`CacheRecord.file`). */
  readonly onFileRemoved?: (head: Head) => void;
}) => CacheStore<Head>;

/** The files of a store, which no other store uses. Absolute paths, mode 0700. */
export interface CacheDirectory {
  readonly path: string;
  /** Of the last process with the same settings: files may be moved from there. Null: there is none. */
  readonly previous: {
    readonly path: string;
    /** That process may still run: it is not to be used before it has a file `closed`. */
    readonly isInUse: boolean;
  } | null;
}

/**
 * Calls back with what the feed of the instance has published last, and with everything that it publishes from then on. Returns the
 * function that ends it.
 */
export type FollowFeed = (onMessage: (message: unknown) => void) => () => void;

/** What the main thread provides to a feed. */
export interface FeedKit {
  readonly callout: Callout;
  readonly log: PluginKit["log"];
  /** Sends a message to all workers; those that follow the feed later get the last one. */
  publish(message: unknown): void;
  /** Stores numbers in the counters of all instances that share the feed, for their metrics. */
  report(values: Readonly<Record<string, number>>): void;
}

/** A running feed. */
export interface Feed<Config> {
  /** The configurations of the instances that share it: called at its begin and when they change. */
  configure(configs: readonly Config[]): void;
  close(): void;
}

export interface PluginKit {
  readonly instance: InstanceView;
  /** Index of the worker, from 0. */
  readonly worker: number;
  /** How many workers there are. */
  readonly workers: number;
  readonly counters: Counters;
  /** Opens the store of an instance with `cache` in its definition; null: the machine has no memory for it. */
  readonly openCache: CacheOpener | null;
  /** Null: its store has no files (`CacheUse.size`), or the gateway no data directory. */
  readonly cacheDirectory: CacheDirectory | null;
  /** Null without `--counters`. */
  readonly shared: SharedCounters | null;
  readonly callout: Callout;
  readonly dialer: KitDialer;
  /** Null: the plugin has no feed. */
  readonly followFeed: FollowFeed | null;
  /** 32 bytes, the same in all workers and after a restart, different for each instance and purpose. */
  deriveKey(purpose: string): Uint8Array;
  readonly log: (
    level: "debug" | "info" | "warn" | "error",
    message: string,
    fields?: Readonly<Record<string, unknown>>,
  ) => void;
  /** Null: plugins may write no files. */
  readonly logDirectories: LogDirectories | null;
  /** Counts dropped log records. */
  dropped(count: number): void;
  /** Reports the use of a credential, which the API shows as its last use. */
  used(credentialId: string): void;
}
