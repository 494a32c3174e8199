// Where public keys come from and when they are fetched again; knows no token.
import type { PluginKit } from "../../pdk/kit.ts";
import { KeySet } from "./key-set.ts";

export interface KeySource {
  /** What is known; fetched when nothing is or when it is old. Null: there never were any keys. */
  keys(): KeySet | null | Promise<KeySet | null>;
  /** Others than these, if there are any and another attempt may be made. */
  newer(known: KeySet): KeySet | null | Promise<KeySet | null>;
}

/** Keys that are written down in the configuration. */
export const fixedKeys = (keys: KeySet | null): KeySource => ({
  keys: () => keys,
  newer: () => null,
});

const TIMEOUT_MS = 5000;
const MAX_BYTES = 262_144;
const DISCOVERY_PATH = "/.well-known/openid-configuration";

export interface RemoteKeysOptions {
  readonly kit: PluginKit;
  /** Gives the document with the keys. Throws an Error in words. */
  readonly fetch: () => Promise<unknown>;
  readonly ttlMs: number;
  readonly minIntervalMs: number;
  /** Milliseconds; default `performance.now`. */
  readonly now?: () => number;
}

/** Keys of somebody else. When they cannot be fetched, the last ones go on. */
export class RemoteKeys implements KeySource {
  readonly #options: RemoteKeysOptions;
  readonly #now: () => number;
  #keys: KeySet | null = null;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #underWay: Promise<KeySet | null> | null = null;

  constructor(options: RemoteKeysOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  keys(): KeySet | null | Promise<KeySet | null> {
    const now = this.#now();
    if (this.#keys !== null && now - this.#fetchedAt < this.#options.ttlMs) return this.#keys;
    const attempt = this.#attempt(now);
    // With an issuer that is down, nobody waits for the next attempt as long as there are keys.
    if (attempt === null || (this.#keys !== null && this.#hasFailed)) return this.#keys;
    return attempt;
  }

  async newer(known: KeySet): Promise<KeySet | null> {
    if (this.#keys !== known) return this.#keys;
    const keys = await this.#attempt(this.#now());
    return keys === known ? null : keys;
  }

  /** The fetching that is under way, or a new one; null when it is too early for that. */
  #attempt(now: number): Promise<KeySet | null> | null {
    if (this.#underWay !== null) return this.#underWay;
    if (now - this.#triedAt < this.#options.minIntervalMs) return null;
    this.#triedAt = now;
    this.#underWay = this.#refresh().finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  async #refresh(): Promise<KeySet | null> {
    const { kit, fetch } = this.#options;
    try {
      const keys = KeySet.read(await fetch());
      if (keys === null) throw new Error("the answer holds no key that can be used");
      this.#keys = keys;
      this.#fetchedAt = this.#now();
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      kit.log("warn", "the keys for tokens cannot be fetched", {
        error: (error as Error).message,
        has_older_keys: this.#keys !== null,
      });
    }
    return this.#keys;
  }
}

async function fetchJson(kit: PluginKit, url: string): Promise<unknown> {
  const { status, body } = await kit.callout({
    url,
    headers: { accept: "application/json" },
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_BYTES,
  });
  if (status !== 200) throw new Error(`the answer has the status ${status}`);
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    // What the runtime says of it quotes the answer.
    throw new Error("the answer is not JSON");
  }
}

/** The set of keys at an address. */
export const keysAt = (kit: PluginKit, url: string) => () => fetchJson(kit, url);

/** The set of keys that an issuer says are its own (OpenID Connect Discovery 1.0 section 4). */
export const keysOfIssuer = (kit: PluginKit, issuer: string) => async (): Promise<unknown> => {
  const document = await fetchJson(kit, issuer.replace(/\/$/, "") + DISCOVERY_PATH);
  const { issuer: said, jwks_uri: address } = (document ?? {}) as Readonly<Record<string, unknown>>;
  // Section 4.3: or one issuer could speak for another.
  if (said !== issuer) throw new Error("the document of the issuer is of another one");
  if (typeof address !== "string") throw new Error("the document of the issuer names no keys");
  return await fetchJson(kit, address);
};
