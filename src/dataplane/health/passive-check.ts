// Learns from the traffic which targets work, and takes those that do not out for a while; knows no request.
import type { Service } from "../../model/service.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import {
  type FailureText,
  failureCode,
  isUnhealthy,
  noteChange,
  outcomes,
} from "../../shared-memory/target-health.ts";

/** One service's targets on the board, those that take traffic. */
export interface CheckedRows {
  readonly service: number;
  readonly targets: readonly number[];
}

export class PassiveCheck {
  readonly #policy: Service["health"]["passive"];
  readonly #board: TargetBoard;
  readonly #rows: () => CheckedRows;
  readonly #statuses: ReadonlySet<number>;

  /** `rows`: asked for only when something has changed, because a version that is not served has none. */
  constructor(policy: Service["health"]["passive"], board: TargetBoard, rows: () => CheckedRows) {
    this.#policy = policy;
    this.#board = board;
    this.#rows = rows;
    this.#statuses = new Set(policy.enabled ? policy.statuses : []);
  }

  /** The head of an answer has arrived. Writes only when that says something new, because all workers read the same words. */
  answered(row: number, status: number): void {
    if (this.#statuses.has(status)) {
      this.failed(row, { status });
      return;
    }
    const board = this.#board;
    if (board.get(row, "failures") !== 0) board.set(row, "failures", 0);
    const before = board.get(row, "outcome");
    if (before === outcomes.works) return;
    board.set(row, "outcome", outcomes.works);
    const now = Date.now();
    // Single failures may come with every few requests: workers need not look again for them.
    if (before === outcomes.failed) this.#changedSince(row, now);
    else this.#note(row, now);
  }

  /** The target failed a request. */
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
    // Who has worked for as long as the longest ejection begins anew.
    const isFresh = before === 0 || time - before > longest * 10;
    const ejections = isFresh ? 1 : board.get(row, "ejections") + 1;
    const until = time + Math.min(longest, base * ejections) * 10;
    if (!board.swap(row, "ejected_until", { from: before, to: until })) return;
    if (!this.#mayEject(time)) {
      // Counted after the fact: two workers that eject two targets at once both see two, and both take theirs back.
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

  /** Without active checks a single request decides about the state. */
  #changedSince(row: number, now: number): void {
    if (this.#board.get(row, "check") === 0) this.#board.set(row, "since", this.#board.time(now));
  }

  /** Makes readers look again. Without active checks the target has been failing since the first of its failures. */
  #noteFailing(row: number, now: number): void {
    if (this.#board.get(row, "check") !== 0) return this.#note(row, now);
    this.#board.add(this.#rows().service, "version", 1);
  }

  /** Never the last one, and no more than the share, though one of several may always go. */
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
