// Polls a CA until a condition holds, at the pace of its Retry-After; knows no order.
import type { CaClient } from "./ca-client.ts";
import { AcmeFailure } from "./failure.ts";

export interface PollOptions<T> {
  readonly isDone: (value: T) => boolean;
  /** The awaited condition, for errors. */
  readonly what: string;
  readonly ca: Pick<CaClient, "retryAfterMs" | "host">;
  readonly signal: AbortSignal;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;
const DEADLINE_MS = 300_000;
const LONGEST_WISH_MS = 60_000;

/** Throws an AcmeFailure after five minutes: the order stays open for the next attempt. */
export async function poll<T>(read: () => Promise<T>, options: PollOptions<T>): Promise<T> {
  const { isDone, what, ca, signal } = options;
  const end = performance.now() + DEADLINE_MS;
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    const value = await read();
    if (isDone(value)) return value;
    const wishMs = Math.min(ca.retryAfterMs ?? 0, LONGEST_WISH_MS);
    if (performance.now() > end)
      throw new AcmeFailure(`${ca.host}: waited too long for ${what}`, {
        type: "unreachable",
      });
    await pause(Math.max(pauseMs, wishMs), signal);
    pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS);
  }
}

/** Rejects with the signal's reason after an abort. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const abort = () => reject(signal.reason);
  const timer = setTimeout(resolve, ms);
  // A pending poll must not delay the exit.
  timer.unref();
  signal.addEventListener("abort", abort, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  });
}
