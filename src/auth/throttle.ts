// Rate limit for failed sign-ins, by address and by account; knows no password.
import { createHmac } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Log } from "../log.ts";
import { ApiError } from "../model/error.ts";
import type { LoginFailure } from "../model/fact.ts";
import { emailKey } from "../model/user.ts";
import { readIpv6 } from "../net/address.ts";

/** Failures within the window after which attempts are rejected. */
export const MAX_FAILURES = 10;
export const WINDOW_MS = 300_000;

/** Maximum number of addresses and accounts; drops the oldest failures. */
const MAX_KEYS = 20_000;

/** Stores failures of this node and of others, so that a restart does not forget them. */
export interface LoginFailureStore {
  /** Those after `since`, the oldest first. */
  load(since: number): readonly LoginFailure[];
  /** Stores failures, and deletes all before `since`. */
  add(failures: readonly LoginFailure[], since: number): void;
}

/** One attempt that counts as a failure until it is withdrawn. */
export interface Attempt {
  /** It did not fail. */
  withdraw(): void;
  /** It failed: it also counts on other nodes. */
  failed(): void;
}

export class LoginThrottle {
  readonly #clock: Clock;
  readonly #maxKeys: number;
  /** Times of failures, oldest first; keys in the order of their last failure. */
  readonly #failures = new Map<string, readonly number[]>();
  readonly #keyOf: (text: string) => string;
  readonly #listeners: ((failures: readonly LoginFailure[]) => void)[] = [];
  #store: (failures: readonly LoginFailure[]) => void = () => {};

  /** `keyOf` converts an address or account to the key of its failures, which other nodes see. */
  constructor(clock: Clock, maxKeys = MAX_KEYS, keyOf = (text: string) => text) {
    this.#clock = clock;
    this.#maxKeys = maxKeys;
    this.#keyOf = keyOf;
  }

  /** Calls `listener` for each attempt that has failed, with its keys. */
  onFailed(listener: (failures: readonly LoginFailure[]) => void): void {
    this.#listeners.push(listener);
  }

  /** Calls `listener` for all failures from now on, also for those of other nodes. */
  onCounted(listener: (failures: readonly LoginFailure[]) => void): void {
    this.#store = listener;
  }

  /** Counts failures that another node has seen, or that were stored. */
  observe(failures: readonly LoginFailure[]): void {
    if (failures.length > 0) this.#store(failures);
    const now = this.#clock.now();
    // The clock of the other node may be ahead.
    for (const { key, at } of failures) this.#add(key, Math.min(at, now));
  }

  /** Number of tracked addresses and accounts. */
  get size(): number {
    return this.#failures.size;
  }

  /**
   * Counts an attempt before it is made, so that concurrent ones cannot bypass the limit. Throws a 429 when there were too
   * many; a rejected attempt does not count, or repeated ones would block the account forever.
   */
  begin(address: string, account: string): Attempt {
    this.admit(address, account);
    const at = this.#clock.now();
    const keys = this.#keysOf(address, account);
    for (const key of keys) this.#add(key, at);
    return {
      withdraw: () => {
        for (const key of keys.splice(0)) this.#remove(key, at);
      },
      failed: () => {
        const failures = keys.splice(0).map((key) => ({ key, at }));
        for (const listener of [this.#store, ...this.#listeners]) listener(failures);
      },
    };
  }

  /** Throws a 429 while there were too many failures from the address or for the account. */
  admit(address: string, account: string): void {
    const now = this.#clock.now();
    const waits = this.#keysOf(address, account).map((key) => {
      const recent = this.#recent(key, now);
      const [oldest] = recent.slice(-MAX_FAILURES);
      return recent.length < MAX_FAILURES ? 0 : (oldest ?? now) + WINDOW_MS - now;
    });
    const wait = Math.max(...waits);
    if (wait <= 0) return;
    throw new ApiError(429, "too many failed sign-ins; try again later", {
      headers: { "retry-after": String(Math.ceil(wait / 1000)) },
    });
  }

  /** Accounts by the input, existing or not: otherwise the limit would reveal which exist. */
  #keysOf(address: string, account: string): string[] {
    const texts = [`address ${networkOf(address)}`, `account ${emailKey(account.trim())}`];
    return texts.map(this.#keyOf);
  }

  #add(key: string, at: number): void {
    const times = [...this.#recent(key, this.#clock.now()), at];
    // Those of other nodes arrive later.
    times.sort((a, b) => a - b);
    this.#failures.delete(key);
    this.#failures.set(key, times.slice(-MAX_FAILURES));
    for (const oldest of this.#failures.keys()) {
      if (this.#failures.size <= this.#maxKeys) break;
      this.#failures.delete(oldest);
    }
  }

  #remove(key: string, at: number): void {
    const times = this.#failures.get(key);
    const index = times?.lastIndexOf(at) ?? -1;
    if (times === undefined || index < 0) return;
    if (times.length === 1) this.#failures.delete(key);
    else this.#failures.set(key, times.toSpliced(index, 1));
  }

  #recent(key: string, now: number): readonly number[] {
    const times = this.#failures.get(key) ?? [];
    // A clock that was set back must not block longer than the window.
    return times.filter((at) => at > now - WINDOW_MS && at <= now);
  }
}

/** A client with one IPv6 address has 2^64 of them. */
function networkOf(address: string): string {
  const groups = new Uint16Array(8);
  if (!address.includes(":") || !readIpv6(address, groups)) return address;
  if (groups.subarray(0, 5).every((group) => group === 0)) return address;
  return groups.subarray(0, 4).join(":");
}

export interface ThrottleOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly box: Pick<SecretBox, "derive">;
  /** Absent: a restart forgets failures. */
  readonly loginFailureStore?: LoginFailureStore;
}

/** Other nodes and the database see the keys: an account may be a password in the wrong field. */
export function createThrottle({
  clock,
  box,
  log,
  loginFailureStore,
}: ThrottleOptions): LoginThrottle {
  const keyOf = (text: string) =>
    createHmac("sha256", box.derive("login throttle")).update(text).digest("base64url");
  const throttle = new LoginThrottle(clock, undefined, keyOf);
  if (loginFailureStore === undefined) return throttle;
  const attempt = (work: () => void) => {
    try {
      work();
    } catch (error) {
      log.warn("failed sign-ins cannot be stored: a restart forgets them", { error });
    }
  };
  attempt(() => throttle.observe(loginFailureStore.load(clock.now() - WINDOW_MS)));
  throttle.onCounted((failures) =>
    attempt(() => loginFailureStore.add(failures, clock.now() - WINDOW_MS)),
  );
  return throttle;
}
