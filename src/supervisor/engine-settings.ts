// Restarts the program once, in the same process, with the settings that the JavaScript engine reads only at its start.
import { FFIType, ptr } from "bun:ffi";
import { readFileSync, readlinkSync } from "node:fs";
import { openLibc } from "./libc.ts";

/**
 * Bytes that a thread allocates between two collections of young objects. The engine's own value grows with the heap, in which it
 * counts the memory that all threads share: then a worker gets new pages from the system and returns them all the time. Figures:
 * docs/decisions/0016-what-bun-costs.md.
 */
const NURSERY_BYTES = 8_388_608;
const VARIABLE = "BUN_JSC_gcMaxHeapSize";

/** Returns only when it fails; then the program continues with the settings of the engine. */
function restart(environment: Readonly<Record<string, string | undefined>>): void {
  try {
    const libc = openLibc({
      execve: { args: [FFIType.ptr, FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
    });
    const args = readFileSync("/proc/self/cmdline", "latin1").split("\0").slice(0, -1);
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value ?? ""}`);
    const path = textOf(readlinkSync("/proc/self/exe"));
    const [argv, envp] = [
      listOf(args.map((arg) => textOf(arg, "latin1"))),
      listOf(variables.map((line) => textOf(line))),
    ];
    libc?.execve(ptr(path), ptr(argv.list), ptr(envp.list));
  } catch {
    // No /proc, or no C library: the settings only make the program faster.
  }
}

const textOf = (text: string, encoding: BufferEncoding = "utf8") =>
  Buffer.from(`${text}\0`, encoding);

/** A list of pointers that ends with null; `texts` keeps what they point to. */
function listOf(texts: readonly Buffer[]) {
  return { list: new BigUint64Array([...texts.map((text) => BigInt(ptr(text))), 0n]), texts };
}

if (process.platform === "linux" && process.argv.includes("serve") && !process.env[VARIABLE])
  restart({ ...process.env, [VARIABLE]: String(NURSERY_BYTES) });
