// How many retries a service may make: a share of all its requests and a few a second besides, over all workers.
import type { TargetBoard } from "./target-board.ts";

/** A token is worth this much, so that a percentage of one can be paid in. */
const TOKEN = 100;
/** Tokens that can be saved up, and that a service begins with. */
const MOST_TOKENS = 100;
/** Paid in whatever the traffic, so that a quiet service can retry at all: one in a tenth of a second. */
const TOKENS_PER_TICK = 1;

/** Pays in for one request: `percent` of a token. */
export function deposit(board: TargetBoard, service: number, percent: number): void {
  if (board.get(service, "spent") > 0) board.add(service, "spent", -percent);
}

/** Takes one token; false when there is none: no retry. `percent` 0 allows none at all. */
export function withdraw(
  board: TargetBoard,
  service: number,
  { percent, now }: { readonly percent: number; readonly now: number },
): boolean {
  if (percent === 0) return false;
  const time = board.time(now);
  const last = board.get(service, "spent_at");
  if (time > last && board.swap(service, "spent_at", { from: last, to: time })) {
    const paid = Math.min(MOST_TOKENS, (time - last) * TOKENS_PER_TICK) * TOKEN;
    // Taken off, not written: what other workers spend meanwhile must not be lost.
    board.add(service, "spent", -Math.min(paid, Math.max(0, board.get(service, "spent"))));
  }
  if (board.add(service, "spent", TOKEN) + TOKEN <= MOST_TOKENS * TOKEN) return true;
  board.add(service, "spent", -TOKEN);
  return false;
}
