// What a socket has read, as text and in parts; knows no protocol.

declare global {
  interface Buffer {
    /** In Node and Bun, without a type. `toString("latin1", …)` costs 0.2 microseconds more. `end`: at most `length`. */
    latin1Slice(start: number, end: number): string;
  }
}

/** A view of what Bun's sockets have read costs 0.5 microseconds, because it gives the bytes an ArrayBuffer: a short copy costs 0.02. */
const COPIED_BELOW = 4096;

/** The bytes from `start` to `end`: all of them themselves, short parts as a copy. */
export function partOf(bytes: Buffer, start: number, end: number = bytes.length): Buffer {
  const size = end - start;
  if (size === bytes.length) return bytes;
  if (size >= COPIED_BELOW) return bytes.subarray(start, end);
  const copy = Buffer.allocUnsafe(size);
  bytes.copy(copy, 0, start, end);
  return copy;
}
