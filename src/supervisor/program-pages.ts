// Gives pages of the program back that only its start needed, on Linux; knows nothing of what the program does.
import { FFIType } from "bun:ffi";
import { readFileSync, readlinkSync } from "node:fs";
import { openLibc } from "./libc.ts";

/** When the start and what follows it at once are over. */
const AFTER_MS = 1_000;

const MADV_DONTNEED = 4;

/** A mapping of code in a file, as proc_pid_smaps(5) begins its entry. */
const CODE = /^([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ \d+ +(.+)$/;
/** Pages of it that are no longer those of the file: a debugger has written there. */
const CHANGED = /^Anonymous: +([1-9]\d*) kB$/m;
const BEGINS = /^(?=[0-9a-f]+-[0-9a-f]+ )/m;

/** Does so a moment from now; the process may end before. */
export function giveBackProgramLater(): void {
  setTimeout(giveBackProgram, AFTER_MS).unref();
}

/**
 * Half of what a gateway without traffic has resident is code of the program that ran once, at its start: 20 to 30 MB. The
 * system would keep it until memory is short, and count it as the gateway's all the time. What is needed again comes back
 * from the file, which the system still has in its cache: a few milliseconds in all. Returns the bytes of the mapping;
 * 0: nothing was done, which is no failure.
 */
export function giveBackProgram(): number {
  try {
    const found = codeOfProgram();
    if (found === null) return 0;
    const { u64, i32 } = FFIType;
    const libc = openLibc({ madvise: { args: [u64, u64, i32], returns: i32 } });
    const { start, bytes } = found;
    return libc?.madvise(start, bytes, MADV_DONTNEED) === 0 ? Number(bytes) : 0;
  } catch {
    // No /proc, or another form of it.
    return 0;
  }
}

/** Where the code of the executable is; null: it was not found, or is not that of the file. */
function codeOfProgram(): { readonly start: bigint; readonly bytes: bigint } | null {
  if (process.platform !== "linux") return null;
  const program = readlinkSync("/proc/self/exe");
  for (const entry of readFileSync("/proc/self/smaps", "utf8").split(BEGINS)) {
    const [, from, to, path] = CODE.exec(entry.slice(0, entry.indexOf("\n"))) ?? [];
    if (path !== program || CHANGED.test(entry)) continue;
    const start = BigInt(`0x${from}`);
    return { start, bytes: BigInt(`0x${to}`) - start };
  }
  return null;
}
