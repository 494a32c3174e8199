// The health of one target, put together from what people, checks and the traffic say; knows no request.
import type { TargetBoard } from "./target-board.ts";

export type HealthState = "unknown" | "healthy" | "unhealthy";

export interface Health {
  readonly state: HealthState;
  /** Milliseconds since the Unix epoch; null: it never changed. */
  readonly since: number | null;
  /** What went wrong last, in words; null: nothing did. */
  readonly lastError: string | null;
  /** Who decided: a person, an active check, the traffic, or nobody yet. */
  readonly by: "override" | "active" | "passive" | null;
}

const [HEALTHY, UNHEALTHY] = [1, 2] as const;

/** A target and its service on the board. */
export interface TargetRows {
  readonly target: number;
  readonly service: number;
}

/** Whether traffic should avoid the target. `time` is the board's. */
export function isUnhealthy(board: TargetBoard, row: number, time: number): boolean {
  const override = overrideOf(board, row, time);
  if (override !== 0) return override === UNHEALTHY;
  return board.get(row, "check") === UNHEALTHY || board.get(row, "ejected_until") > time;
}

/** What a person said and still holds: 0 nothing, 1 healthy, 2 unhealthy. */
function overrideOf(board: TargetBoard, row: number, time: number): number {
  const override = board.get(row, "override");
  if (override === 0) return 0;
  const until = board.get(row, "override_until");
  return until !== 0 && until <= time ? 0 : override;
}

/** When the state will change by itself, in the board's time; infinity: not. */
export function nextTurn(board: TargetBoard, row: number, time: number): number {
  const times = [board.get(row, "ejected_until"), board.get(row, "override_until")];
  return Math.min(...times.filter((until) => until > time), Number.POSITIVE_INFINITY);
}

/** Everything that is known, for people. `now` in milliseconds since the Unix epoch. */
export function readHealth(board: TargetBoard, row: number, now: number): Health {
  const time = board.time(now);
  const override = overrideOf(board, row, time);
  const check = board.get(row, "check");
  const ejectedUntil = board.get(row, "ejected_until");
  const since = Math.max(board.get(row, "since"), ejectedUntil <= time ? ejectedUntil : 0);
  const common = {
    since: since === 0 ? null : board.date(since),
    lastError: failureText(board.get(row, "error")),
  };
  if (override !== 0)
    return { ...common, state: override === HEALTHY ? "healthy" : "unhealthy", by: "override" };
  if (ejectedUntil > time) return { ...common, state: "unhealthy", by: "passive" };
  if (check !== 0)
    return { ...common, state: check === HEALTHY ? "healthy" : "unhealthy", by: "active" };
  if (board.get(row, "outcome") === HEALTHY) return { ...common, state: "healthy", by: "passive" };
  return { ...common, state: "unknown", by: null };
}

/** What a person says about a target: holds until `until`, null for ever; `auto` takes it back. */
export function override(
  board: TargetBoard,
  rows: TargetRows,
  order: {
    readonly state: "healthy" | "unhealthy" | "auto";
    readonly until: number | null;
    readonly now: number;
  },
): void {
  const { target } = rows;
  board.set(target, "override_until", order.until === null ? 0 : board.time(order.until));
  board.set(
    target,
    "override",
    order.state === "auto" ? 0 : order.state === "healthy" ? HEALTHY : UNHEALTHY,
  );
  if (order.state === "auto") {
    // Asked to decide anew: what is remembered against the target goes too.
    for (const word of ["ejected_until", "failures", "ejections"] as const)
      board.set(target, word, 0);
  }
  noteChange(board, rows, order.now);
}

/** Writes down that the state of a target has changed, so that every worker looks again. */
export function noteChange(board: TargetBoard, rows: TargetRows, now: number): void {
  board.set(rows.target, "since", board.time(now));
  board.add(rows.service, "version", 1);
}

/** Failures by number: these, and 1000 more than a status that the target answered with. */
const failureTexts = [
  "",
  "the target's name could not be resolved",
  "the target refused the connection",
  "the target did not accept the connection in time",
  "the target's certificate is not valid",
  "the TLS handshake with the target failed",
  "the target closed the connection without an answer",
  "the target closed the connection in the middle of the answer",
  "the target did not answer in time",
  "the target stopped sending",
  "the target stopped reading",
  "the answer was not valid HTTP",
  "the answer lacks the expected text",
  "the check could not be sent",
] as const;
export type FailureText = Exclude<(typeof failureTexts)[number], "">;

export function failureCode(failure: FailureText | { readonly status: number }): number {
  return typeof failure === "string" ? failureTexts.indexOf(failure) : 1000 + failure.status;
}

function failureText(code: number): string | null {
  if (code === 0) return null;
  if (code >= 1000) return `the target answered with status ${code - 1000}`;
  return failureTexts[code] ?? null;
}
