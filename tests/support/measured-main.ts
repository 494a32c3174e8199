// The gateway, with the longest piece of work of its main thread: processor time, because wall time on a busy machine says nothing.
import { appendFileSync } from "node:fs";

const file = process.env["SLUICE_TEST_HELD_FILE"] ?? "";
/** Shorter pieces are of no interest, and writing about them is work, too. */
const LONG_MS = 20;
let before = process.threadCpuUsage();

setInterval(() => {
  const { user, system } = process.threadCpuUsage(before);
  if (user + system > LONG_MS * 1000) appendFileSync(file, `${(user + system) / 1000}\n`);
  before = process.threadCpuUsage();
}, 5);

await import("../../src/main.ts");
