// A change in pieces equals the whole change, and no piece exceeds the limit.
import { expect, test } from "bun:test";
import { cut, PIECE_OBJECTS, sizeOf } from "../../../src/snapshot/pieces.ts";
import type { SnapshotChange, SnapshotPiece } from "../../../src/snapshot/snapshot.ts";

const nothing = { upserts: [], removals: [] };
const table = { records: { epoch: 1, version: 1, buffer: new SharedArrayBuffer(8) }, defaults: {} };

function changeOf(parts: Partial<SnapshotPiece>): SnapshotChange {
  return {
    base: 1,
    revision: 2,
    consumers: null,
    settings: null,
    routeTable: table,
    services: nothing,
    routes: nothing,
    listeners: nothing,
    certificates: nothing,
    streamRoutes: nothing,
    plugins: nothing,
    ...parts,
  };
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const ids = (count: number) => numbers(count).map((index) => `id-${index}`);

test("a small change is not split", () => {
  const change = changeOf({ routes: { upserts: numbers(400), removals: ids(100) } });
  const { pieces, last } = cut(change);
  expect([...pieces]).toEqual([]);
  expect(last).toBe(change);
});

test("a large change is split into pieces of at most 500 objects and ids", () => {
  const services = numbers(1_201).map((index) => ({ id: `s-${index}` })) as never;
  const change = changeOf({
    routes: { upserts: numbers(100_000), removals: ids(501) },
    services: { upserts: services, removals: [] },
  });
  const { pieces, last } = cut(change);
  const all = [...pieces];
  expect(Math.max(...all.map(sizeOf))).toBe(PIECE_OBJECTS);
  expect(PIECE_OBJECTS).toBe(500);
  expect(all).toHaveLength(3 + 2 + 200);
  expect(all.flatMap(({ routes }) => routes.upserts)).toEqual(numbers(100_000));
  expect(all.flatMap(({ routes }) => routes.removals)).toEqual(ids(501));
  expect(all.flatMap(({ services: part }) => part.upserts)).toEqual(services);
  // The memory of the routes is sent once, before the first of them.
  expect(all.map(({ routeTable }) => routeTable)).toEqual([table, ...all.slice(1).map(() => null)]);
  expect([sizeOf(last), last.routeTable]).toEqual([0, null]);
  expect([last.base, last.revision]).toEqual([1, 2]);
});
