// The time of day at moments that `performance.now()` has told; knows no request.

/** Clocks are set while the gateway runs, and drift. */
const COMPARED_MS = 1000;

let offset = performance.timeOrigin;
let comparedAt = Number.NEGATIVE_INFINITY;

/** Milliseconds since the Unix epoch at the moment `at`; `now` is the present one. Asking the clock each time costs more. */
export function timeOfDay(at: number, now: number): number {
  if (now - comparedAt > COMPARED_MS) {
    comparedAt = now;
    offset = Date.now() - now;
  }
  return at + offset;
}
