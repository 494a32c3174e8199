// Ports that stay free while a program is restarted: none of those that the system hands out to connections.

/** Linux hands out ports from 32768 on, other systems from 49152 on. */
const FIRST = 10_000;
const BEHIND_LAST = 32_000;

/** A port of 127.0.0.1 that nobody listens on. */
export function quietPort(): number {
  while (true) {
    const port = FIRST + Math.floor(Math.random() * (BEHIND_LAST - FIRST));
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch {
      // Taken: another one.
    }
  }
}
