// Random bytes as networks deliver and attackers change them: edits, cuts and splits, for any format.
import fc from "fast-check";

/** One change of bytes at an offset: replaced, inserted or deleted. */
export interface Edit {
  readonly at: number;
  readonly remove: number;
  readonly insert: Uint8Array;
}

/** Offsets are thousandths of the length, so that they are valid for every input and shrink with it. */
export const edits = (most: number, inserted = fc.uint8Array({ maxLength: 3 })) =>
  fc.array(
    fc.record<Edit>({
      at: fc.integer({ min: 0, max: 1000 }),
      remove: fc.integer({ min: 0, max: 3 }),
      insert: inserted,
    }),
    { maxLength: most },
  );

export function edited(bytes: Uint8Array, changes: readonly Edit[]): Buffer {
  let now = Buffer.from(bytes);
  for (const { at, remove, insert } of changes) {
    const place = Math.floor((at * now.length) / 1000);
    now = Buffer.concat([now.subarray(0, place), insert, now.subarray(place + remove)]);
  }
  return now;
}

/** The same bytes in pieces that end at the given thousandths. */
export function inPieces(bytes: Buffer, ends: readonly number[]): Buffer[] {
  const places = ends.map((end) => Math.floor((end * bytes.length) / 1000));
  const sorted = [0, ...places.toSorted((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

export const cuts = fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 6 });

/**
 * Checks a parser on each prefix: it needs more bytes up to an offset, and from there on always returns the same. `isSame`
 * gets its first result and its result for more bytes.
 */
export function mustSettle<T>(
  bytes: Buffer,
  read: (bytes: Buffer) => T,
  needsMore: (said: T) => boolean,
): T {
  const whole = read(bytes);
  for (let length = 0; length < bytes.length; length++) {
    const said = read(bytes.subarray(0, length));
    if (needsMore(said)) continue;
    if (Bun.deepEquals(said, whole)) continue;
    throw new Error(
      `after ${length} bytes it is ${JSON.stringify(said)}, after ${bytes.length} ${JSON.stringify(whole)}`,
    );
  }
  return whole;
}
