// Passive health checks: ejects targets that fail requests; knows no request.
import type { Service } from "../../model/service.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import {
  type FailureText,
  failureCode,
  isUnhealthy,
  noteChange,
  outcomes,
} from "../../shared-memory/target-health.ts";

/** The rows of one service and its targets with a weight. */
export interface CheckedRows {
  readonly service: number;
  readonly targets: readonly number[];
}

export class PassiveCheck {
  readonly #policy: Service["health"]["passive"];
  readonly #board: TargetBoard;
  readonly #rows: () => CheckedRows;
  /** Those that count as a failure. */
  readonly statuses: ReadonlySet<number>;

  /** `rows`: called only on changes, because a version has no rows before it is active. */
  constructor(policy: Service["health"]["passive"], board: TargetBoard, rows: () => CheckedRows) {
    this.#policy = policy;
    this.#board = board;
    this.#rows = rows;
    this.statuses = new Set(policy.enabled ? policy.statuses : []);
  }

  /** A response head has arrived. Writes only changes, because all workers share the row's cache lines. */
  responded(row: number, status: number): void {
    if (this.statuses.has(status)) {
      this.failed(row, { status });
      return;
    }
    const board = this.#board;
    if (board.get(row, "failures") !== 0) board.set(row, "failures", 0);
    const before = board.get(row, "outcome");
    if (before === outcomes.works) return;
    board.set(row, "outcome", outcomes.works);
    const now = Date.now();
    // Single failures may be frequent: they do not make workers rebuild their balancers.
    if (before === outcomes.failed) this.#changedSince(row, now);
    else this.#note(row, now);
  }

  /** A request to the target failed. */
  failed(row: number, failure: FailureText | { readonly status: number }): void {
    const board = this.#board;
    board.set(row, "error", failureCode(failure));
    const hasReachedLimit = board.add(row, "failures", 1) + 1 >= this.#policy.consecutive_failures;
    const before = board.get(row, "outcome");
    const now = Date.now();
    if (before !== outcomes.failing)
      board.set(row, "outcome", hasReachedLimit ? outcomes.failing : outcomes.failed);
    if (before < outcomes.failed) this.#changedSince(row, now);
    if (!hasReachedLimit) return;
    if (this.#policy.enabled) this.#eject(row, now);
    if (before !== outcomes.failing) this.#noteFailing(row, now);
  }

  #eject(row: number, now: number): void {
    const board = this.#board;
    const time = board.time(now);
    const before = board.get(row, "ejected_until");
    if (before > time) return;
    const { ejection_seconds: base, max_ejection_seconds: longest } = this.#policy;
    // A target that has worked for as long as the longest ejection starts over.
    const isFresh = before === 0 || time - before > longest * 10;
    const ejections = isFresh ? 1 : board.get(row, "ejections") + 1;
    const until = time + Math.min(longest, base * ejections) * 10;
    if (!board.swap(row, "ejected_until", { from: before, to: until })) return;
    if (!this.#mayEject(time)) {
      // Checked after the swap: two workers that eject two targets at once both see two, and both undo theirs.
      board.swap(row, "ejected_until", { from: until, to: before });
      return;
    }
    board.set(row, "ejections", ejections);
    board.add(row, "ejected_total", 1);
    board.set(row, "failures", 0);
    this.#note(row, now);
  }

  #note(target: number, now: number): void {
    noteChange(this.#board, { target, service: this.#rows().service }, now);
  }

  /** Without active checks a single request changes the state. */
  #changedSince(row: number, now: number): void {
    if (this.#board.get(row, "check") === 0) this.#board.set(row, "since", this.#board.time(now));
  }

  /** Makes workers rebuild their balancers. Without active checks `since` stays at the first failure. */
  #noteFailing(row: number, now: number): void {
    if (this.#board.get(row, "check") !== 0) return this.#note(row, now);
    this.#board.add(this.#rows().service, "version", 1);
  }

  /** Never the last usable target, and at most `max_ejection_percent`, but at least one of several. */
  #mayEject(time: number): boolean {
    const { targets } = this.#rows();
    const share = Math.floor((targets.length * this.#policy.max_ejection_percent) / 100);
    const most = this.#policy.max_ejection_percent === 0 ? 0 : Math.max(1, share);
    const board = this.#board;
    let [ejected, usable] = [0, 0];
    for (const target of targets) {
      if (board.get(target, "ejected_until") > time) ejected++;
      if (!isUnhealthy(board, target, time)) usable++;
    }
    return ejected <= most && usable >= 1;
  }
}
