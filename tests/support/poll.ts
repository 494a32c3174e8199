// Waits for something to become true, with a deadline; tests never sleep for a fixed time.

/** For what never comes: a busy machine takes many times as long as a quiet one, and waits no longer than it needs. */
export const DEADLINE_MS = 120_000;

/** Calls `check` until it returns something truthy and returns that; past the deadline it throws the last failure. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { deadlineMs = DEADLINE_MS, intervalMs = 10 }: { deadlineMs?: number; intervalMs?: number } = {},
): Promise<NonNullable<T>> {
  const end = performance.now() + deadlineMs;
  let last: unknown;
  while (true) {
    try {
      const value = await check();
      if (value) return value as NonNullable<T>;
      last = new Error(`still ${String(value)} after ${deadlineMs} ms`);
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) throw last;
    await Bun.sleep(intervalMs);
  }
}
