// Copies of larger bodies: what is remembered, for how long, and how much of it.
import { expect, test } from "bun:test";
import { BodyCopies } from "../../../src/shared-memory/cache/body-copies.ts";

const MIB = 1_048_576;

/** Offers the body of a block as often as a cache does that finds no copy. */
function request(copies: BodyCopies, block: number, bytes: number, sequence = 2): boolean {
  const known = copies.get(block, sequence);
  if (known === null) copies.offer(block, sequence, new Uint8Array(bytes));
  return known !== null;
}

test("a body is copied at the second request in 10 seconds", () => {
  let now = 100_000;
  const copies = new BodyCopies(() => now);
  const requested = (seconds: number) => {
    now += seconds * 1000;
    return request(copies, 7, 20_000);
  };
  expect([requested(0), requested(10), requested(9.9), requested(3600)]).toEqual([
    false,
    false,
    false,
    true,
  ]);
  expect(copies.byteLength).toBe(20_000);
});

test("a body above 1 MiB is not copied", () => {
  const copies = new BodyCopies();
  const requests = (block: number, bytes: number) =>
    [1, 2, 3].map(() => request(copies, block, bytes));
  expect(requests(1, MIB)).toEqual([false, false, true]);
  expect(requests(2, MIB + 1)).toEqual([false, false, false]);
  expect(copies.byteLength).toBe(MIB);
});

test("copies have 16 MiB in all, of which the least recently used make room", () => {
  const copies = new BodyCopies();
  const twice = (block: number, bytes: number) =>
    void [request(copies, block, bytes), request(copies, block, bytes)];
  for (let block = 1; block <= 16; block++) twice(block, MIB);
  expect(copies.byteLength).toBe(16 * MIB);
  expect(copies.get(1, 2)).not.toBeNull();
  twice(17, 1);
  expect(copies.byteLength).toBe(15 * MIB + 1);
  expect([1, 2, 3, 16, 17].filter((block) => copies.get(block, 2) === null)).toEqual([2]);
  twice(18, MIB);
  expect(copies.byteLength).toBe(15 * MIB + 1);
  expect(copies.get(4, 2)).toBeNull();
});

test("a copy of another state of its block is gone", () => {
  const copies = new BodyCopies();
  for (const sequence of [2, 2, 2]) request(copies, 1, 50_000, sequence);
  expect(copies.get(1, 4)).toBeNull();
  expect(copies.byteLength).toBe(0);
  expect(copies.get(1, 2)).toBeNull();
});
