// What a socket has read, as text and in parts; knows no protocol.

declare global {
  interface Buffer {
    /** In Node and Bun, without a type. `toString("latin1", …)` costs 0.2 microseconds more. `end`: at most `length`. */
    latin1Slice(start: number, end: number): string;
    /** As `latin1Slice`; returns how many bytes were written. */
    latin1Write(text: string, at: number, length: number): number;
  }
}
