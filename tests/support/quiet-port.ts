// Ports that stay free while a program is restarted: none of those that the system hands out to connections.

/** Linux hands out ports from 32768 on, other systems from 49152 on. */
const FIRST = 10_000;
const BEHIND_LAST = 32_000;
/** `bun test --parallel` numbers its processes. Each has ports of its own: between choosing one and binding it there is time. */
const SHARES = 8;
const share = process.env["BUN_TEST_WORKER_ID"];
const width = share === undefined ? BEHIND_LAST - FIRST : (BEHIND_LAST - FIRST) / SHARES;
const first = FIRST + (Number(share ?? 0) % SHARES) * width;

/** The last ones handed out, which may be bound later, or again after a restart. */
const given: number[] = [];
const REMEMBERED = 200;

/** A free port of 127.0.0.1, or the first of `count` that follow each other. */
export function quietPort(count = 1): number {
  while (true) {
    const port = first + Math.floor(Math.random() * (width - count + 1));
    const ports = Array.from({ length: count }, (_, index) => port + index);
    if (!ports.every((each) => !given.includes(each) && isFree(each))) continue;
    given.push(...ports);
    given.splice(0, given.length - REMEMBERED);
    return port;
  }
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
    return true;
  } catch {
    return false;
  }
}
