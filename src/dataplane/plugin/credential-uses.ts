// Credentials that were used and not reported yet; knows neither requests nor the receiver of the reports.

/** A credential in constant use is reported again after this; the API shows these times to the minute. */
const REPORT_INTERVAL_MS = 60_000;

/** Reporting each use would cost more than finding the credential. */
export class CredentialUses {
  #reported = new Set<string>();
  #pending: string[] = [];
  #since: number;

  /** `now` in milliseconds of any clock that does not go back. */
  constructor(now: number) {
    this.#since = now;
  }

  note(id: string): void {
    if (this.#reported.has(id)) return;
    this.#reported.add(id);
    this.#pending.push(id);
  }

  /** Credentials used since the last call, without those reported less than a minute ago. */
  take(now: number): readonly string[] {
    const pending = this.#pending;
    if (pending.length > 0) this.#pending = [];
    if (now - this.#since < REPORT_INTERVAL_MS) return pending;
    this.#since = now;
    if (this.#reported.size > 0) this.#reported = new Set();
    return pending;
  }
}
