// Restarts the executable once, in the same process, with the settings that the JavaScript engine reads only at its start.
import { readFileSync, readlinkSync } from "node:fs";

/**
 * Bytes that a thread allocates at most between two collections of new objects; requests alone cause one earlier (garbage.ts). The
 * engine's own value grows with the heap, in which it counts the memory that all threads share: a very large import would leave
 * hundreds of megabytes of garbage. Figures: docs/decisions/0016-what-bun-costs.md.
 */
const NURSERY_BYTES = 33_554_432;
const VARIABLE = "BUN_JSC_gcMaxHeapSize";

/** From source the modules would be read twice. */
const isExecutable = import.meta.path.startsWith("/$bunfs/");

if (isExecutable && process.argv.includes("serve") && !process.env[VARIABLE]) restart();

/** Returns only when it fails; then the program continues with the settings of the engine. */
function restart(): void {
  try {
    const words = readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(0, -1);
    const environment = { ...process.env, [VARIABLE]: String(NURSERY_BYTES) };
    process.execve?.(readlinkSync("/proc/self/exe"), words, environment);
  } catch {
    // No /proc, or an executable that was replaced meanwhile: the settings only make the program faster.
  }
}
