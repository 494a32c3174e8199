// The retry budget of a service over all workers: a share of its requests, and a few retries a second besides.
import type { TargetBoard } from "./target-board.ts";

/** Units per token, so that a percentage of one can be deposited. */
const TOKEN = 100;
/** Capacity of the budget, and its initial value. */
const MAX_TOKENS = 100;
/** Deposited every tenth of a second, so that a service with little traffic can retry. */
const TOKENS_PER_TICK = 1;

/** Deposits `percent` of a token for one request. Needless where `spent` is not above 0. */
export function deposit(board: TargetBoard, service: number, percent: number): void {
  if (board.get(service, "spent") > 0) board.add(service, "spent", -percent);
}

/** Withdraws one token; false: the budget is exhausted. `percent` 0 allows no retries. */
export function withdraw(
  board: TargetBoard,
  service: number,
  { percent, now }: { readonly percent: number; readonly now: number },
): boolean {
  if (percent === 0) return false;
  const time = board.time(now);
  const last = board.get(service, "spent_at");
  if (time > last && board.swap(service, "spent_at", { from: last, to: time })) {
    const paid = Math.min(MAX_TOKENS, (time - last) * TOKENS_PER_TICK) * TOKEN;
    // Subtracted, not stored, so that withdrawals of other workers are not lost.
    board.add(service, "spent", -Math.min(paid, Math.max(0, board.get(service, "spent"))));
  }
  if (board.add(service, "spent", TOKEN) + TOKEN <= MAX_TOKENS * TOKEN) return true;
  board.add(service, "spent", -TOKEN);
  return false;
}
