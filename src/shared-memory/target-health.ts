// The health of one target from overrides, active and passive checks; knows no request.
import type { TargetBoard } from "./target-board.ts";

export type HealthState = "unknown" | "healthy" | "failing" | "unhealthy";

export interface HealthOverride {
  readonly state: "healthy" | "unhealthy";
  /** Milliseconds since the Unix epoch; null: until it is removed. */
  readonly until: number | null;
}

export interface Health {
  readonly state: HealthState;
  /** Milliseconds since the Unix epoch; null: never changed. */
  readonly since: number | null;
  /** Text of the last failure; null: none. */
  readonly lastError: string | null;
  /** Source of the state; null: unknown. */
  readonly by: "override" | "active" | "passive" | null;
  /** False for `failing` below `consecutive_failures`, which is too little for an alert. */
  readonly isCertain: boolean;
  /** The override in force; null: none. */
  readonly override: HealthOverride | null;
  /** What checks and traffic say, without an override. */
  readonly observed: HealthState;
}

const [HEALTHY, UNHEALTHY] = [1, 2] as const;

/** Values of the word `outcome`. */
export const outcomes = { none: 0, works: 1, failed: 2, failing: 3 } as const;

/** A target and its service on the board. */
export interface HealthRows {
  readonly target: number;
  readonly service: number;
}

/** Whether to avoid the target. `time` is the board's. */
export function isUnhealthy(board: TargetBoard, row: number, time: number): boolean {
  const override = overrideOf(board, row, time);
  if (override !== 0) return override === UNHEALTHY;
  return board.get(row, "check") === UNHEALTHY || board.get(row, "ejected_until") > time;
}

/** Whether an override says unhealthy. */
export function isForcedUnhealthy(board: TargetBoard, row: number, time: number): boolean {
  return overrideOf(board, row, time) === UNHEALTHY;
}

/** The override in force: 0 none, 1 healthy, 2 unhealthy. */
function overrideOf(board: TargetBoard, row: number, time: number): number {
  const override = board.get(row, "override");
  if (override === 0) return 0;
  const until = board.get(row, "override_until");
  return until !== 0 && until <= time ? 0 : override;
}

/** When an ejection or override ends, in the board's time; infinity: never. */
export function nextStateChange(board: TargetBoard, row: number, time: number): number {
  const times = [board.get(row, "ejected_until"), board.get(row, "override_until")];
  return Math.min(...times.filter((until) => until > time), Number.POSITIVE_INFINITY);
}

/** For the API. `now` in milliseconds since the Unix epoch. */
export function readHealth(board: TargetBoard, row: number, now: number): Health {
  const time = board.time(now);
  const override = overrideOf(board, row, time);
  const ejected = board.get(row, "ejected_until");
  const overrideUntil = board.get(row, "override_until");
  const observed = observedAt(board, row, time);
  const since = Math.max(
    board.get(row, "since"),
    ejected <= time ? ejected : 0,
    overrideUntil <= time ? overrideUntil : 0,
  );
  const common = {
    since: since === 0 ? null : board.date(since),
    lastError: failureText(board.get(row, "error")),
    observed: observed.state,
  };
  if (override === 0) return { ...common, ...observed, override: null };
  const state = override === HEALTHY ? "healthy" : "unhealthy";
  const until = overrideUntil === 0 ? null : board.date(overrideUntil);
  return { ...common, state, by: "override", isCertain: true, override: { state, until } };
}

/** What checks and traffic say. */
function observedAt(
  board: TargetBoard,
  row: number,
  time: number,
): Pick<Health, "state" | "by" | "isCertain"> {
  const check = board.get(row, "check");
  const outcome = board.get(row, "outcome");
  const of = (state: HealthState, by: Health["by"], isCertain = true) => ({ state, by, isCertain });
  if (board.get(row, "ejected_until") > time) return of("unhealthy", "passive");
  if (check === UNHEALTHY) return of("unhealthy", "active");
  if (outcome === outcomes.failing) return of("failing", "passive");
  if (check === HEALTHY) return of("healthy", "active");
  if (outcome === outcomes.failed) return of("failing", "passive", false);
  if (outcome === outcomes.works) return of("healthy", "passive");
  return of("unknown", null);
}

/** Sets an override until `until`, null: without end; `auto` removes it. */
export function override(
  board: TargetBoard,
  rows: HealthRows,
  order: {
    readonly state: "healthy" | "unhealthy" | "auto";
    readonly until: number | null;
    readonly now: number;
  },
): void {
  const { target } = rows;
  const time = board.time(order.now);
  const wasUnhealthy = isUnhealthy(board, target, time);
  board.set(target, "override_until", order.until === null ? 0 : board.time(order.until));
  board.set(
    target,
    "override",
    order.state === "auto" ? 0 : order.state === "healthy" ? HEALTHY : UNHEALTHY,
  );
  if (order.state === "auto") {
    // `auto` also clears the failures of the traffic.
    for (const word of ["ejected_until", "failures", "ejections"] as const)
      board.set(target, word, 0);
    forgetFailure(board, target);
  }
  // A slow start, as after every recovery.
  if (wasUnhealthy && !isUnhealthy(board, target, time)) board.set(target, "started_at", time);
  noteChange(board, rows, order.now);
}

const learned = [
  "failures",
  "ejections",
  "ejected_until",
  "check",
  "check_streak",
  "error",
  "outcome",
  "latency",
] as const;

/** Forgets what checks and traffic said: there is another server behind the target now. What a person said stays. */
export function forget(board: TargetBoard, rows: HealthRows, now: number): void {
  for (const word of learned) board.set(rows.target, word, 0);
  board.set(rows.target, "started_at", board.time(now));
  noteChange(board, rows, now);
}

/** Forgets what active checks said, because nothing makes them any more. */
export function forgetChecks(board: TargetBoard, rows: HealthRows, now: number): void {
  board.set(rows.target, "check_streak", 0);
  if (board.get(rows.target, "check") === 0) return;
  board.set(rows.target, "check", 0);
  noteChange(board, rows, now);
}

/** Consecutive results that change the state. */
export interface CheckThresholds {
  readonly healthy: number;
  readonly unhealthy: number;
}

/** Records a successful check. A target in an unknown state is healthy after the first one. */
export function checkSucceeded(
  board: TargetBoard,
  rows: HealthRows,
  { thresholds, now }: { readonly thresholds: CheckThresholds; readonly now: number },
): void {
  const row = rows.target;
  const streak = Math.max(0, board.get(row, "check_streak")) + 1;
  board.set(row, "check_streak", streak);
  const check = board.get(row, "check");
  if (check === HEALTHY || (check === UNHEALTHY && streak < thresholds.healthy)) return;
  board.set(row, "check", HEALTHY);
  if (check === UNHEALTHY) board.set(row, "started_at", board.time(now));
  noteChange(board, rows, now);
}

/** Records a failed check. */
export function checkFailed(
  board: TargetBoard,
  rows: HealthRows,
  result: {
    readonly thresholds: CheckThresholds;
    readonly failure: Failure;
    readonly now: number;
  },
): void {
  const row = rows.target;
  const streak = Math.min(0, board.get(row, "check_streak")) - 1;
  board.set(row, "check_streak", streak);
  board.set(row, "error", failureCode(result.failure));
  if (board.get(row, "check") === UNHEALTHY || -streak < result.thresholds.unhealthy) return;
  board.set(row, "check", UNHEALTHY);
  noteChange(board, rows, result.now);
}

/** Whether active checks have found it unhealthy. */
export function failsChecks(board: TargetBoard, row: number): boolean {
  return board.get(row, "check") === UNHEALTHY;
}

/** Tolerance between the clocks of two threads, in tenths of a second. */
const CLOCK_SLACK = 50;

/** End of the ejection in the board's time; 0: not ejected. */
export function ejectedUntil(board: TargetBoard, row: number, time: number): number {
  const until = board.get(row, "ejected_until");
  if (until <= time) return 0;
  // A clock that was set back must not extend an ejection.
  return board.get(row, "since") - time > CLOCK_SLACK ? 0 : until;
}

/** Whether `consecutive_failures` requests in a row have failed. */
export const isFailing = (board: TargetBoard, row: number): boolean =>
  board.get(row, "outcome") === outcomes.failing;

/** Clears the outcome of failed requests only. */
function forgetFailure(board: TargetBoard, row: number): void {
  if (board.get(row, "outcome") > outcomes.works) board.set(row, "outcome", outcomes.none);
}

/** Ends `failing` early, because active checks succeed. */
export function endFailing(board: TargetBoard, rows: HealthRows, now: number): void {
  board.set(rows.target, "failures", 0);
  forgetFailure(board, rows.target);
  noteChange(board, rows, now);
}

/** Ends an ejection early. The number of ejections stays: who fails again at once is out for longer. */
export function endEjection(board: TargetBoard, rows: HealthRows, now: number): void {
  const time = board.time(now);
  const until = board.get(rows.target, "ejected_until");
  if (until <= time) return;
  if (!board.swap(rows.target, "ejected_until", { from: until, to: time })) return;
  endFailing(board, rows, now);
}

/** Writes down that the state of a target has changed, so that every worker looks again. */
export function noteChange(board: TargetBoard, rows: HealthRows, now: number): void {
  board.set(rows.target, "since", board.time(now));
  board.add(rows.service, "version", 1);
}

/** Failures by code: an index here, or 1000 plus the status of a response. */
const failureTexts = [
  "",
  "the target's name could not be resolved",
  "the target refused the connection",
  "the target did not accept the connection in time",
  "the target's certificate is not valid",
  "the TLS handshake with the target failed",
  "the target closed the connection without a response",
  "the target closed the connection in the middle of the response",
  "the target did not respond in time",
  "the target stopped sending",
  "the target stopped reading",
  "the response was not valid HTTP",
  "the response lacks the expected text",
  "the check could not be sent",
  "the target's certificate has expired",
  "the target's certificate is not valid yet",
  "the target's certificate is self-signed",
  "the target's certificate comes from an unknown CA",
  "the target's certificate is for another name",
  "the target's TLS version is too low",
  "the target does not speak TLS",
  "the target requires a client certificate",
  "the TLS settings for the target are not valid",
  "the target does not speak HTTP/2",
  "the target refused the request",
  "the target reset the request",
  "the service is not serving",
  "the target does not know the service of the check",
  "the target has no gRPC health service",
  "the gRPC health check failed",
] as const;
export type FailureText = Exclude<(typeof failureTexts)[number], "">;
/** A failure text, or the status of a response. */
export type Failure = FailureText | { readonly status: number };

export function failureCode(failure: Failure): number {
  return typeof failure === "string" ? failureTexts.indexOf(failure) : 1000 + failure.status;
}

function failureText(code: number): string | null {
  if (code === 0) return null;
  if (code >= 1000) return `the target responded with status ${code - 1000}`;
  return failureTexts[code] ?? null;
}
