// Files of an earlier process: which are loaded, in which order, and while that process still runs.
import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Disk } from "../../../src/plugins/response-cache/disk.ts";
import { loadFiles } from "../../../src/plugins/response-cache/disk-load.ts";
import {
  decodeHead,
  fileRecordOf,
  Store,
  type StoredHead,
} from "../../../src/plugins/response-cache/store.ts";
import { createCacheMemory } from "../../../src/shared-memory/cache/memory.ts";
import { openCache } from "../../../src/shared-memory/cache/open.ts";
import { eventually } from "../../support/poll.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A store with files, beside the directory of an earlier process. */
function start(maxFileBytes = 1e9) {
  const root = mkdtempSync(join(tmpdir(), "sluice-load-"));
  folders.push(root);
  const [path, previous] = [join(root, "2"), join(root, "1")];
  mkdirSync(path);
  mkdirSync(previous);
  writeFileSync(join(previous, "epoch"), "0");
  const options = { worker: 0, workers: 1, maxIncomplete: 1e9, warn: () => {} };
  const disk = new Disk({ ...options, directory: path });
  const memory = createCacheMemory({ maxBytes: 16_777_216, maxFileBytes, workers: 1 });
  const cache = openCache(memory, {
    worker: 0,
    decode: decodeHead,
    onFileRemoved: ({ file }) => disk.remove(file?.name ?? ""),
  });
  const store = new Store(cache, disk);
  const load = (isInUse = false) =>
    loadFiles({
      directory: { path, previous: { path: previous, isInUse } },
      store,
      signal: disk.signal,
    });
  const earlier = new Disk({ ...options, directory: previous });
  /** A file of the earlier process. */
  const write = async (key: string, change: Partial<StoredHead> = {}, epoch = 1) => {
    const file = await earlier.write(
      new Uint8Array(70_000),
      fileRecordOf(headOf(key, change)),
      epoch,
    );
    return file?.name ?? "";
  };
  return { path, previous, disk, store, load, write };
}

function headOf(key: string, change: Partial<StoredHead>): StoredHead {
  return {
    ...{ key, resource: `a.test/${key}`, status: 200, headers: new Headers({ "X-Key": key }) },
    ...{ etag: null, lastModified: null, variesOn: [], tags: [] },
    freshness: {
      ...{ ageMs: 0, lifetimeMs: 600_000, staleWhileRevalidateMs: 0, staleIfErrorMs: 0 },
      mustRevalidate: false,
    },
    storedAt: performance.now(),
    ...change,
  };
}

const ago = (seconds: number) => ({ storedAt: performance.now() - seconds * 1000 });
const find = (store: Store, key: string) => store.find(key, () => null);

test("fresh ones and those that can be validated are loaded, with their ages", async () => {
  const { store, load, write, path, previous } = start();
  const fresh = ago(300);
  await write("fresh", fresh);
  await write("expired", ago(601));
  await write("validated", { ...ago(601), etag: '"1"' });
  await write("of the future", ago(-300));
  expect(await load()).toBe(2);
  const stored = find(store, "fresh");
  // Both clocks are read, and the machine may pause between them.
  expect(Math.abs((stored?.storedAt ?? 0) - fresh.storedAt)).toBeLessThan(60_000);
  expect([stored?.bodyLength, stored?.headers.get("x-key")]).toEqual([70_000, "fresh"]);
  expect(find(store, "validated")?.etag).toBe('"1"');
  expect([find(store, "expired"), find(store, "of the future")]).toEqual([null, null]);
  expect([readdirSync(path).length, existsSync(previous)]).toEqual([2, false]);
});

test("of two files of one request the newer one stays", async () => {
  const { store, load, write, path } = start();
  await write("k", { etag: '"old"' });
  await write("k", { etag: '"new"' });
  await load();
  expect(find(store, "k")?.etag).toBe('"new"');
  await eventually(() => readdirSync(path).length === 1);
});

test("files of an epoch before the last soft purge are not loaded, nor any of a directory without epoch", async () => {
  const one = start();
  await one.write("old", {}, 4);
  await one.write("new", {}, 5);
  writeFileSync(join(one.previous, "epoch"), "5");
  expect(await one.load()).toBe(1);
  expect([find(one.store, "old"), find(one.store, "new") === null]).toEqual([null, false]);
  for (const text of [null, "", "x", "-1"]) {
    const other = start();
    await other.write("k");
    rmSync(join(other.previous, "epoch"));
    if (text !== null) writeFileSync(join(other.previous, "epoch"), text);
    expect(await other.load()).toBe(0);
    expect(existsSync(other.previous)).toBe(false);
  }
});

test("more files than may be stored leave no more than that", async () => {
  const { load, write, path } = start(200_000);
  for (let at = 0; at < 10; at++) await write(`${at}`);
  await load();
  await eventually(() => readdirSync(path).length === 2);
});

test("while the other process runs nothing is loaded, then what neither process has removed", async () => {
  const { store, load, write, previous } = start();
  const gone = await write("removed by it");
  await write("updated here");
  await write("kept");
  const loading = load(true);
  // In the turns in which it waits.
  await new Promise(setImmediate);
  expect(find(store, "kept")).toBeNull();
  await write("written late");
  rmSync(join(previous, gone));
  store.invalidate("a.test/updated here");
  writeFileSync(join(previous, "closed"), "");
  expect(await loading).toBe(2);
  expect(find(store, "kept")).not.toBeNull();
  expect(find(store, "written late")).not.toBeNull();
  expect([find(store, "updated here"), find(store, "removed by it")]).toEqual([null, null]);
});

test("a closed instance waits no longer, and leaves the files", async () => {
  const { disk, load, write, previous } = start();
  await write("k");
  const loading = load(true);
  disk.close();
  expect(await loading).toBe(0);
  expect(readdirSync(previous)).toHaveLength(2);
});

test("files of an earlier thread are removed, not those that this one has begun", async () => {
  const root = mkdtempSync(join(tmpdir(), "sluice-load-"));
  folders.push(root);
  const left = Array.from({ length: 200 }, (_, index) => join(root, `${index}.earlier.0.tmp`));
  for (const path of left) writeFileSync(path, "");
  const options = { worker: 0, workers: 1, maxIncomplete: 1e9, warn: () => {} };
  for (let count = 0; count < 20; count++) {
    const disk = new Disk({ ...options, directory: root });
    const bodies = [1, 2, 3].map(() =>
      disk.write(new Uint8Array(70_000), fileRecordOf(headOf("k", {})), 1),
    );
    expect(await Promise.all(bodies)).not.toContain(null);
  }
  await eventually(() => left.every((path) => !existsSync(path)));
});
