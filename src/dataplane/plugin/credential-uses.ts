// Which credentials were used and have not been told yet; knows neither requests nor who is told.

/** One that is used all the time is told again after this; people read these times by the minute. */
const TELL_AGAIN_MS = 60_000;

/** With many clients, telling of each use would cost more than finding the credential. */
export class CredentialUses {
  #told = new Set<string>();
  #untold: string[] = [];
  #since: number;

  /** `now` in milliseconds of any clock that does not go back. */
  constructor(now: number) {
    this.#since = now;
  }

  note(id: string): void {
    if (this.#told.has(id)) return;
    this.#told.add(id);
    this.#untold.push(id);
  }

  /** Those that were used since the last time, without those that were told less than a minute ago. */
  take(now: number): readonly string[] {
    const taken = this.#untold;
    if (taken.length > 0) this.#untold = [];
    if (now - this.#since < TELL_AGAIN_MS) return taken;
    this.#since = now;
    if (this.#told.size > 0) this.#told = new Set();
    return taken;
  }
}
