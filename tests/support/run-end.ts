// What test files share until the last one of their process has ended; knows nothing of what it ends.

/** Called after the last test of the process; null outside of `bun test`, where each caller ends its own. */
export const runEnd: { callbacks: (() => unknown)[] | null } = { callbacks: null };
