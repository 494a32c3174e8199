// The C library of the system, under whichever of its names it is there; knows none of its functions.
import { dlopen, type FFIFunction } from "bun:ffi";

const LIBRARIES = ["libc.so.6", `libc.musl-${process.arch === "x64" ? "x86_64" : "aarch64"}.so.1`];

/** Functions of the library of Linux; null where it is not to be had. */
export function openLibc<Functions extends Record<string, FFIFunction>>(functions: Functions) {
  if (process.platform !== "linux") return null;
  for (const name of LIBRARIES)
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // Another system has another one.
    }
  return null;
}
