// Cuts a change into pieces that a worker can apply without blocking its clients; knows no worker.
import type { CollectionChange, PlanOf, SnapshotChange, SnapshotPiece } from "./snapshot.ts";

/** Objects and ids in one piece, at most. */
export const PIECE_OBJECTS = 500;

const collections = [
  "services",
  "routes",
  "listeners",
  "certificates",
  "streamRoutes",
  "plugins",
] as const satisfies readonly (keyof PlanOf)[];

const NOTHING = { upserts: [], removals: [] } as const;

const emptyPiece: SnapshotPiece = {
  services: NOTHING,
  routes: NOTHING,
  listeners: NOTHING,
  certificates: NOTHING,
  streamRoutes: NOTHING,
  plugins: NOTHING,
  routeTable: null,
};

/** Number of objects and ids in a piece. */
export const sizeOf = (piece: SnapshotPiece): number =>
  collections.reduce(
    (size, name) => size + piece[name].upserts.length + piece[name].removals.length,
    0,
  );

/** The pieces before `last`, which has the rest and everything that is not a collection. A small change has none. */
export function cut(change: SnapshotChange): {
  readonly pieces: Iterable<SnapshotPiece>;
  readonly last: SnapshotChange;
} {
  if (sizeOf(change) <= PIECE_OBJECTS) return { pieces: [], last: change };
  return { pieces: piecesOf(change), last: { ...change, ...emptyPiece } };
}

/**
 * Each is created on demand: together they are as large as the change. Only the first one has the route table: opening shared
 * memory costs a thread milliseconds.
 */
function* piecesOf(change: SnapshotPiece): Generator<SnapshotPiece> {
  let { routeTable } = change;
  for (const name of collections)
    for (const part of partsOf<unknown>(change[name])) {
      yield { ...emptyPiece, routeTable, [name]: part };
      routeTable = null;
    }
}

function* partsOf<T>({ upserts, removals }: CollectionChange<T>): Generator<CollectionChange<T>> {
  for (let at = 0; at < removals.length; at += PIECE_OBJECTS)
    yield { upserts: [], removals: removals.slice(at, at + PIECE_OBJECTS) };
  for (let at = 0; at < upserts.length; at += PIECE_OBJECTS)
    yield { upserts: upserts.slice(at, at + PIECE_OBJECTS), removals: [] };
}
