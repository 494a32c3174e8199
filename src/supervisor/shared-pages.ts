// Returns the pages of shared memory that nothing uses any more to the system, on Linux; knows nothing of its contents.
import { FFIType, ptr } from "bun:ffi";
import { openLibc } from "../system/libc.ts";

const PAGE = 4096;
const MADV_DONTNEED = 4;

/**
 * The engine frees shared memory when all threads have collected their last reference, which may take minutes. From this call on, the
 * memory has zeros and takes up nothing; a thread that still writes to it takes up the pages it writes to.
 */
export function returnPages(parts: readonly Uint8Array[]): void {
  const { u64, i32 } = FFIType;
  const libc = openLibc({ madvise: { args: [u64, u64, i32], returns: i32 } });
  if (libc === null) return;
  for (const part of parts) {
    if (part.byteLength < 2 * PAGE) continue;
    const begin = ptr(part);
    const from = Math.ceil(begin / PAGE) * PAGE;
    const bytes = Math.floor((begin + part.byteLength - from) / PAGE) * PAGE;
    libc.madvise(BigInt(from), BigInt(bytes), MADV_DONTNEED);
  }
}
