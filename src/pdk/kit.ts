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

/**
 * Numbers by key, in memory that all workers share: exact over all of them, lost when the gateway stops. Keys are told apart
 * by instance. When the memory is full, the keys that were idle longest are forgotten.
 */
export interface Counters {
  /** Adds to a count in windows of `windowMs`, which begin at multiples of it; 0 only reads. */
  add(key: string, amount: number, windowMs: number): WindowCount;
  /**
   * Takes `cost` from a bucket that holds at most `capacity` and gains `perSecond`. `wait`: milliseconds until that much is
   * there, 0 when it was taken.
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

export interface PluginKit {
  readonly instance: InstanceView;
  /** Index of the worker, from 0. */
  readonly worker: number;
  readonly counters: Counters;
  readonly callout: Callout;
  /** 32 bytes, the same in all workers and after a restart, another for each instance and purpose. */
  deriveKey(purpose: string): Uint8Array;
  readonly log: (
    level: "debug" | "info" | "warn" | "error",
    message: string,
    fields?: Readonly<Record<string, unknown>>,
  ) => void;
  /** A credential was used; told to people now and then. */
  used(credentialId: string): void;
}
