// Returns the pages of program code that only the start needed to the system, on Linux; knows nothing of what the program does.
import { FFIType } from "bun:ffi";
import { readFileSync, readlinkSync } from "node:fs";
import { openLibc } from "../system/libc.ts";

/** By then the start is over. */
const AFTER_MS = 1_000;

const MADV_DONTNEED = 4;

/** First line of an executable file mapping in proc_pid_smaps(5). */
const CODE = /^([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ \d+ +(.+)$/;
/** Private pages, which the file cannot restore: a debugger has written to them. */
const CHANGED = /^Anonymous: +([1-9]\d*) kB$/m;
const BEGINS = /^(?=[0-9a-f]+-[0-9a-f]+ )/m;

/** Does not delay the end of the process. */
export function giveBackProgramLater(): void {
  setTimeout(giveBackProgram, AFTER_MS).unref();
}

/**
 * Half of the resident memory of a gateway without traffic is code that ran once, at the start: 20 to 30 MB. The system would
 * hold it until memory is short, and count it as the gateway's. Pages that are needed again are read from the page cache: a few
 * milliseconds in all. Returns the bytes of the mapping; 0: nothing was done, which is no failure.
 *
 * @public A test calls it in a process of its own.
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
    // No /proc, or an unknown format.
    return 0;
  }
}

/** The mapping of the executable's code; null: not found, or modified in memory. */
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
