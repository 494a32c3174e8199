// A mark by which heads that may be equal are found; knows no protocol.

/** How many bytes decide. */
const SAMPLES = 16;

/** Of bytes all over a head from `start` to `end`: equal heads have equal marks, and most others another one. */
export function markOf(bytes: Buffer, start: number, end: number): number {
  const length = end - start;
  const step = Math.max(1, Math.floor(length / SAMPLES));
  let mark = length;
  for (let at = start + (4 % step); at < end; at += step)
    mark = (Math.imul(mark, 31) + (bytes[at] ?? 0)) | 0;
  return mark ^ (mark >>> 15);
}
