// What an instance of a plugin is given to work with beside requests; interfaces only.
import type { InstanceView } from "./context.ts";

/** A count in windows of time that all workers share. */
export interface WindowCount {
  /** In the present window, with what was added just now. */
  readonly current: number;
  /** In the window before. */
  readonly previous: number;
  /** Milliseconds since the present window began. */
  readonly elapsedMs: number;
}

/** What is asked of a count in a window. */
export interface WindowCost {
  readonly cost: number;
  readonly windowMs: number;
}

export interface WindowDemand extends WindowCost {
  /** What there may be in the window, with the cost. */
  readonly max: number;
  /** Whether the window before counts too, for the part of it that is less than a window ago. */
  readonly isSliding: boolean;
}

/** What became of a demand, and what the window holds after it. */
export interface Admission extends WindowCount {
  readonly isAdmitted: boolean;
  /** Names the window, for `revoke`. */
  readonly window: number;
}

/**
 * Numbers by key, in memory that all workers share: exact over all of them, lost when the gateway stops. Keys are told apart
 * by instance. When the memory is full, the keys that were idle longest are forgotten.
 */
export interface Counters {
  /** Milliseconds since 1970, as they go by for windows, buckets and values. */
  now(): number;
  /** Adds to a count in windows of `windowMs`, which begin at multiples of it; 0 only reads. */
  add(key: string, amount: number, windowMs: number): WindowCount;
  /** Adds the cost if there is room for it: looked at and added in one step. A cost of 0 only looks. */
  admit(key: string, demand: WindowDemand): Admission;
  /** Takes a cost that was admitted back out of its window. */
  revoke(key: string, admission: Pick<Admission, "window">, cost: WindowCost): void;
  /**
   * Takes `cost` from a bucket that holds at most `capacity` and gains `perSecond`. `wait`: milliseconds until that much is
   * there, 0 when it was taken. A negative cost puts something back.
   */
  take(
    key: string,
    bucket: { readonly capacity: number; readonly perSecond: number; readonly cost: number },
  ): { readonly remaining: number; readonly wait: number };
  /** Counts one more that is there at the same time; false when there are `max` already. Every true needs a `leave`. */
  enter(key: string, max: number): boolean;
  leave(key: string): void;
  /** How many are there. */
  inside(key: string): number;
  /** A number that was put there with `replace`; 0 when there is none. */
  value(key: string): number;
  /** Puts `next` in the place of `expected`; false when another number is there. It is forgotten after `keepMs`. */
  replace(
    key: string,
    change: { readonly expected: number; readonly next: number; readonly keepMs: number },
  ): boolean;
}

export interface CalloutRequest {
  /** Absolute, http or https. */
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string | null;
  /** For everything until the last byte. */
  readonly timeoutMs: number;
  /** A longer answer is an error; default 1 MiB. */
  readonly maxBytes?: number;
}

export interface CalloutResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/**
 * One HTTP request to somebody else: bounded in number, time and size, connections are kept, redirects are given back and
 * not followed, and the gateway itself refuses what comes from here. Throws an Error in words when there was no answer.
 */
export type Callout = (request: CalloutRequest) => Promise<CalloutResponse>;

/** Where plugins may write files, as absolute paths of folders. */
export interface LogPlaces {
  /** The gateway's own, below which relative paths are; made when it is needed. */
  readonly directory: string;
  /** Below this one, absolute paths may be; null: nowhere. */
  readonly elsewhere: string | null;
}

export interface PluginKit {
  readonly instance: InstanceView;
  /** Index of the worker, from 0. */
  readonly worker: number;
  /** How many workers there are. */
  readonly workers: number;
  readonly counters: Counters;
  readonly callout: Callout;
  /** 32 bytes, the same in all workers and after a restart, another for each instance and purpose. */
  deriveKey(purpose: string): Uint8Array;
  readonly log: (
    level: "debug" | "info" | "warn" | "error",
    message: string,
    fields?: Readonly<Record<string, unknown>>,
  ) => void;
  /** Null: this gateway writes no files for plugins. */
  readonly logPlaces: LogPlaces | null;
  /** So many records of what happened were lost, for the counters. */
  dropped(count: number): void;
  /** A credential was used; told to people now and then. */
  used(credentialId: string): void;
}
