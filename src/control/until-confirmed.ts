// Repeats a command to all workers until each of them has confirmed it; knows no command.

/** A worker that hangs is replaced within seconds. */
const PAUSE_MS = 500;

/** Resolves to what `send` resolves to at last; never rejects. `failed` is called with each failure. */
export async function untilConfirmed<T>(
  send: () => Promise<T>,
  failed: (error: unknown) => void,
): Promise<T> {
  for (;;) {
    try {
      return await send();
    } catch (error) {
      failed(error);
      await Bun.sleep(PAUSE_MS);
    }
  }
}
