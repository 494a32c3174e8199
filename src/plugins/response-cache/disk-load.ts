// Moves the files of an earlier process into a new store; knows no request.
import { existsSync, readFileSync, renameSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import type { CacheDirectory } from "../../pdk/kit.ts";
import { epochOf, fileName, readRecord } from "./disk-file.ts";
import { remainingOf } from "./cached-responses.ts";
import { headOf, type Store, type StoredHead } from "./store.ts";

/** Longest work in one turn of the event loop. */
const SLICE_MS = 2;
/** While another process may still write. */
const POLL_MS = 500;

export interface LoadOptions {
  readonly directory: CacheDirectory;
  readonly store: Store;
  /** Of an instance that is closed meanwhile. */
  readonly signal: AbortSignal;
}

/**
 * Resolves to the number of stored responses. A file that is not stored is removed, and with the first failure all that are left:
 * the store could not invalidate what it does not know.
 */
export async function loadFiles({ directory, store, signal }: LoadOptions): Promise<number> {
  const { previous, path } = directory;
  if (previous === null || !existsSync(previous.path)) return 0;
  while (previous.isInUse && !existsSync(`${previous.path}/closed`)) {
    if (signal.aborted) return 0;
    await Bun.sleep(POLL_MS);
  }
  const oldest = oldestEpochIn(previous.path);
  // Newer ones replace older ones of the same request.
  const names = (await readdir(previous.path)).sort();
  let stored = 0;
  let until = performance.now() + SLICE_MS;
  for (const name of names) {
    if (signal.aborted) return stored;
    const epoch = epochOf(name);
    if (
      epoch !== null &&
      epoch >= oldest &&
      loadFile({ from: previous.path, to: path, name }, store)
    )
      stored++;
    if (performance.now() < until) continue;
    await new Promise(setImmediate);
    until = performance.now() + SLICE_MS;
  }
  await rm(previous.path, { recursive: true, force: true });
  return stored;
}

/** The epoch from which files may be loaded; infinity: none. */
function oldestEpochIn(directory: string): number {
  try {
    const text = readFileSync(`${directory}/epoch`, "utf8");
    return /^\d{1,16}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

function loadFile(
  { from, to, name }: { readonly from: string; readonly to: string; readonly name: string },
  store: Store,
): boolean {
  const found = readRecord(`${from}/${name}`);
  if (found === null) return false;
  const { record, bodyLength, bytes } = found;
  const head = headNow(headOf(record.head), record.storedAt);
  if (head === null) return false;
  // Whatever this process has invalidated since its start concerns all files of earlier ones.
  const next = fileName(0);
  try {
    renameSync(`${from}/${name}`, `${to}/${next}`);
  } catch {
    return false;
  }
  return store.put(head, { name: next, length: bodyLength, bytes }, { old: null, epoch: 0 });
}

/** Null: its age is unknown, or it is of no use any more. */
function headNow(head: StoredHead, storedAt: number): StoredHead | null {
  const now = performance.now();
  const elapsed = Date.now() - storedAt;
  // The clock was set back since.
  if (!(elapsed > -1000)) return null;
  const aged = { ...head, storedAt: now - Math.max(0, elapsed) };
  const { staleIfErrorMs, staleWhileRevalidateMs } = head.freshness;
  const isStale =
    -remainingOf({ ...aged, isSoftPurged: false }, now) >
    Math.max(staleIfErrorMs, staleWhileRevalidateMs);
  const canBeValidated = head.etag !== null || head.lastModified !== null;
  return isStale && !canBeValidated ? null : aged;
}
