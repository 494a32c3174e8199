// How often a cache of what a target repeats has been of use; knows no cache.

/** Entries between two evaluations of the hit rate. */
export const TRIAL = 128;
/** With fewer hits than this the cache is bypassed for the next `BYPASS` entries. */
const MIN_HITS = 32;
const BYPASS = 8192;

/** Whether a cache of what a target repeats is worth asking. Its users count themselves: a call would cost as much as the count. */
export class HitRate {
  /** Asked for since the last evaluation, and found. */
  seen = 0;
  known = 0;
  /** Above 0: so many entries pass the cache by. */
  bypassed = 0;

  /** After `TRIAL` entries. Returns whether the cache is bypassed from now on, and can be emptied. */
  isPoor(): boolean {
    const isPoor = this.known < MIN_HITS;
    this.seen = 0;
    this.known = 0;
    if (isPoor) this.bypassed = BYPASS;
    return isPoor;
  }
}
