// Pending sign-ins in memory; knows no provider and no user.
import { createHash } from "node:crypto";
import type { Clock } from "../../clock.ts";

/** Time limit for the user at the provider. */
export const PENDING_SECONDS = 600;
const MAX_PENDING = 1000;

/** State between the start of a sign-in and its callback. */
export interface PendingSignIn {
  readonly nonce: string;
  readonly codeVerifier: string;
  /** Local path of the final redirect. */
  readonly redirect: string;
  /** The redirect_uri of the authorization request; the code exchange must repeat it. */
  readonly redirectUri: string;
  readonly issuer: string;
  readonly clientId: string;
}

interface Entry extends PendingSignIn {
  readonly browserHash: string;
  readonly expiresAt: number;
}

/** Each can be used once, by the browser that started it, before it expires; beyond the limit, the oldest are dropped. */
export class PendingSignIns {
  readonly #clock: Clock;
  readonly #max: number;
  /** By state, in the order of their start, which is also that of their expiry. */
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock, max = MAX_PENDING) {
    this.#clock = clock;
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** `browser`: the secret in the browser's cookie. */
  add(state: string, browser: string, signIn: PendingSignIn): void {
    this.#dropExpired();
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < this.#max) break;
      this.#entries.delete(oldest);
    }
    const expiresAt = this.#clock.now() + PENDING_SECONDS * 1000;
    this.#entries.set(state, { ...signIn, browserHash: hash(browser), expiresAt });
  }

  /** Null for a state that is unknown, used, expired or from another browser. Consumes the state in every case. */
  take(state: string, browser: string | null): PendingSignIn | null {
    const entry = this.#entries.get(state);
    this.#entries.delete(state);
    if (entry === undefined || entry.expiresAt <= this.#clock.now()) return null;
    return browser !== null && hash(browser) === entry.browserHash ? entry : null;
  }

  #dropExpired(): void {
    for (const [state, { expiresAt }] of this.#entries) {
      if (expiresAt > this.#clock.now()) break;
      this.#entries.delete(state);
    }
  }
}

/** Comparing hashes prevents timing attacks on the secret. */
const hash = (text: string) => createHash("sha256").update(text).digest("base64url");
