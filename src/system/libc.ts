// Opens the C library of the system, glibc or musl; knows none of its functions.
import { dlopen, type FFIFunction } from "bun:ffi";

const LIBRARIES = ["libc.so.6", `libc.musl-${process.arch === "x64" ? "x86_64" : "aarch64"}.so.1`];

/** Functions of the C library; null outside Linux, or when no library can be opened. */
export function openLibc<Functions extends Record<string, FFIFunction>>(functions: Functions) {
  if (process.platform !== "linux") return null;
  for (const name of LIBRARIES)
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // Not this libc; the next name may fit.
    }
  return null;
}
