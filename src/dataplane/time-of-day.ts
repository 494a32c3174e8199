// Converts `performance.now()` to the time of day; knows no request.

/** The system clock may be set while the gateway runs, and drifts. */
const COMPARED_MS = 1000;

let offset = performance.timeOrigin;
let comparedAt = Number.NEGATIVE_INFINITY;

/** Milliseconds since the Unix epoch at `at`; `now` is the current `performance.now()`. Cheaper than Date.now() each time. */
export function timeOfDay(at: number, now: number): number {
  if (now - comparedAt > COMPARED_MS) {
    comparedAt = now;
    offset = Date.now() - now;
  }
  return at + offset;
}
