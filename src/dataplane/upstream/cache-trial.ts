// Whether a cache of what a target repeats is worth asking: where everything differs it costs more than it saves; knows no entry.

/** Entries between two evaluations of the hit rate. */
const TRIAL = 128;

/** With fewer hits than this the cache is bypassed for the next `BYPASS` entries. */
const MIN_HITS = 32;
const BYPASS = 8192;

export class CacheTrial {
  #seen = 0;
  #known = 0;
  #bypassed = 0;

  /** Whether to ask the cache for the next entry. */
  isOn(): boolean {
    if (this.#bypassed === 0) return true;
    this.#bypassed--;
    return false;
  }

  /** The cache was asked. Returns whether it is bypassed from now on, and can be emptied. */
  asked(isKnown: boolean): boolean {
    if (isKnown) this.#known++;
    if (++this.#seen < TRIAL) return false;
    const isPoor = this.#known < MIN_HITS;
    this.#seen = 0;
    this.#known = 0;
    if (isPoor) this.#bypassed = BYPASS;
    return isPoor;
  }
}
