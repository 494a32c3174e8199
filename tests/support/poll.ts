// Waits for something to become true, with a deadline; tests never sleep for a fixed time.

/** Calls `check` until it returns something truthy and returns that; past the deadline it throws the last failure. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { deadlineMs = 60_000, intervalMs = 10 }: { deadlineMs?: number; intervalMs?: number } = {},
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
