// Fetches and caches public keys; knows no token.
import type { PluginKit } from "../../pdk/kit.ts";
import { KeySet } from "./key-set.ts";

export interface KeySource {
  /** The known keys, fetched when there are none or when they are old. Null: there never were any. */
  keys(): KeySet | null | Promise<KeySet | null>;
  /** Fetches newer keys than these, unless it is too early. */
  newer(known: KeySet): KeySet | null | Promise<KeySet | null>;
}

/** Keys of the configuration. */
export const fixedKeys = (keys: KeySet | null): KeySource => ({
  keys: () => keys,
  newer: () => null,
});

const TIMEOUT_MS = 5000;
const MAX_BYTES = 262_144;
const DISCOVERY_PATH = "/.well-known/openid-configuration";

export interface RemoteKeysOptions {
  readonly kit: PluginKit;
  /** Fetches the key set. Throws an Error with a message for the log. */
  readonly fetch: () => Promise<unknown>;
  readonly ttlMs: number;
  readonly minIntervalMs: number;
  /** Milliseconds; default `performance.now`. */
  readonly now?: () => number;
}

/** Keys from a server. When a fetch fails, the previous keys stay in use. */
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
    // Requests do not wait for the next attempt while there are keys.
    if (attempt === null || (this.#keys !== null && this.#hasFailed)) return this.#keys;
    return attempt;
  }

  async newer(known: KeySet): Promise<KeySet | null> {
    if (this.#keys !== known) return this.#keys;
    const keys = await this.#attempt(this.#now());
    return keys === known ? null : keys;
  }

  /** The fetch in progress, or a new one; null when it is too early. */
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
    const { kit } = this.#options;
    try {
      const keys = KeySet.read(await this.#options.fetch());
      if (keys === null) throw new Error("the response has no supported key");
      this.#keys = keys;
      this.#fetchedAt = this.#now();
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
      kit.log("warn", "cannot fetch the keys for tokens", {
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
  if (status !== 200) throw new Error(`the response has the status ${status}`);
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    // The runtime's message quotes the response.
    throw new Error("the response is not JSON");
  }
}

/** The key set at a URL. */
export const keysAt = (kit: PluginKit, url: string) => () => fetchJson(kit, url);

/** The key set that an issuer publishes (OpenID Connect Discovery 1.0 section 4). */
export const keysOfIssuer = (kit: PluginKit, issuer: string) => async (): Promise<unknown> => {
  const document = await fetchJson(kit, issuer.replace(/\/$/, "") + DISCOVERY_PATH);
  const { issuer: said, jwks_uri: address } = (document ?? {}) as Readonly<Record<string, unknown>>;
  // Section 4.3: otherwise one issuer could impersonate another.
  if (said !== issuer) throw new Error("the discovery document is of another issuer");
  if (typeof address !== "string") throw new Error("the discovery document has no jwks_uri");
  return await fetchJson(kit, address);
};
