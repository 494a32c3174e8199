// Cuts a change into pieces that a worker can take without keeping its clients waiting; knows no worker.
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

/** How many objects and ids a piece holds. */
export const sizeOf = (piece: SnapshotPiece): number =>
  collections.reduce(
    (size, name) => size + piece[name].upserts.length + piece[name].removals.length,
    0,
  );

/** The pieces that come before `last`, which holds the rest and everything that is no collection. A small change has none. */
export function cut(change: SnapshotChange): {
  readonly pieces: Iterable<SnapshotPiece>;
  readonly last: SnapshotChange;
} {
  if (sizeOf(change) <= PIECE_OBJECTS) return { pieces: [], last: change };
  return { pieces: piecesOf(change), last: { ...change, ...emptyPiece } };
}

/**
 * Each is made when it is asked for: together they are as large as the change. Only the first one says where the routes are: to
 * take over memory that is shared costs a thread milliseconds.
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
