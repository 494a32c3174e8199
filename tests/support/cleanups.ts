// What tests undo after themselves, the last first.
import type { afterEach } from "bun:test";

/** A list for functions that the hook calls: `const cleanups = cleanupsOf(afterEach)`. */
export function cleanupsOf(hook: typeof afterEach): (() => unknown)[] {
  const cleanups: (() => unknown)[] = [];
  hook(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  return cleanups;
}

/** A function that adds to the list what is to be stopped: `const track = stopsIn(cleanups)`. */
export const stopsIn =
  (cleanups: (() => unknown)[]) =>
  <T extends { stop(): unknown }>(started: T): T => {
    cleanups.push(() => started.stop());
    return started;
  };
