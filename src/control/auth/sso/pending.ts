// Sign-ins that have begun and not come back yet, in memory; knows nothing of providers or users.
import { createHash } from "node:crypto";
import type { Clock } from "../../../clock.ts";

/** How long a person may take at the provider. */
export const PENDING_SECONDS = 600;
const MAX_PENDING = 1000;

/** What must be remembered between the two ends of a sign-in. */
export interface PendingSignIn {
  readonly nonce: string;
  readonly codeVerifier: string;
  /** Local path to go to afterwards. */
  readonly redirect: string;
  /** The callback as the provider was told it; the exchange of the code must repeat it. */
  readonly redirectUri: string;
  readonly issuer: string;
  readonly clientId: string;
}

interface Entry extends PendingSignIn {
  readonly browserHash: string;
  readonly expiresAt: number;
}

/** Each can be taken once, by the browser that began it, before it expires; when there are too many the oldest go. */
export class PendingSignIns {
  readonly #clock: Clock;
  readonly #max: number;
  /** By state; in the order of their beginning, which is the order of their end as well. */
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock, max = MAX_PENDING) {
    this.#clock = clock;
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** `browser` is the secret in the browser's cookie. */
  add(state: string, browser: string, signIn: PendingSignIn): void {
    this.#dropExpired();
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < this.#max) break;
      this.#entries.delete(oldest);
    }
    const expiresAt = this.#clock.now() + PENDING_SECONDS * 1000;
    this.#entries.set(state, { ...signIn, browserHash: hash(browser), expiresAt });
  }

  /** Null for a state that is unknown, used, expired or another browser's; whichever it was, it is used now. */
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

/** Comparing hashes tells nothing about the secret through the time that it takes. */
const hash = (text: string) => createHash("sha256").update(text).digest("base64url");
