// Files of stored responses: the format, damage of every kind, the writer and its limits.
import { afterEach, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Disk } from "../../../src/plugins/response-cache/disk.ts";
import { DiskBody } from "../../../src/plugins/response-cache/disk-body.ts";
import {
  BLOCK_BYTES,
  bodySpan,
  encodeRecord,
  epochOf,
  type FileRecord,
  readRecord,
} from "../../../src/plugins/response-cache/disk-file.ts";
import { DiskWriter, type WriteLimits } from "../../../src/plugins/response-cache/disk-writer.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-disk-"));
  folders.push(folder);
  return folder;
}

const RECORD: FileRecord = {
  key: 'shop.example/"ä"\n\ud800 key',
  variant: "accept-encoding=gzip",
  resource: "shop.example/a?b",
  tags: ["one", "two"],
  head: new Uint8Array([1, 2, 3, 255]),
  storedAt: 1_700_000_000_123,
};

function bodyOf(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = (at * 31 + (at >> 9)) & 255;
  return bytes;
}

function writerIn(directory: string, limits: Partial<WriteLimits> = {}) {
  const problems: string[] = [];
  const own: WriteLimits = {
    pending: 0,
    maxPending: 1e9,
    incomplete: 0,
    maxIncomplete: 1e9,
    ...limits,
  };
  const writer = new DiskWriter({
    thread: "test",
    directory,
    worker: 0,
    limits: own,
    onProblem: (problem) => void problems.push(problem),
  });
  return { writer, problems, limits: own };
}

async function store(directory: string, body: Uint8Array, record = RECORD): Promise<string> {
  const { writer, limits } = writerIn(directory);
  for (let at = 0; at < body.byteLength; at += 10_007) writer.write(body.subarray(at, at + 10_007));
  const done = await writer.finish(record, 7);
  if (done === null) throw new Error("not written");
  expect(done.length).toBe(body.byteLength);
  expect(done.bytes).toBe(statSync(join(directory, done.name)).size);
  expect([limits.pending, limits.incomplete]).toEqual([0, 0]);
  return done.name;
}

async function readAll(body: DiskBody): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for (let piece = await body.read(); piece !== null; piece = await body.read()) pieces.push(piece);
  body.close();
  return Buffer.concat(pieces);
}

async function opened(path: string, length: number): Promise<DiskBody> {
  const body = await DiskBody.open(path, length);
  if (body === null || body === "busy") throw new Error("cannot be opened");
  return body;
}

/** Open files in this directory. */
const descriptorsIn = (folder: string) =>
  readdirSync("/proc/self/fd").filter((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`).startsWith(`${folder}/`);
    } catch {
      return false;
    }
  }).length;

const LENGTHS = [1, 100, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 10 * BLOCK_BYTES + 17];

test.each(LENGTHS)(
  "a file of %d bytes has record and body as they were written",
  async (length) => {
    const folder = newFolder();
    const body = bodyOf(length);
    const name = await store(folder, body);
    const path = join(folder, name);
    expect(readdirSync(folder)).toEqual([name]);
    expect([epochOf(name), statSync(path).mode & 0o777]).toEqual([7, 0o600]);
    const found = readRecord(path);
    expect(found).toEqual({ record: RECORD, bodyLength: length, bytes: statSync(path).size });
    expect((await readAll(await opened(path, length))).equals(body)).toBe(true);
  },
);

test("a part is that part, and closes the file of the whole", async () => {
  const folder = newFolder();
  const body = bodyOf(2_000_000);
  const path = join(folder, await store(folder, body));
  const ranges = [
    [0, 1],
    [BLOCK_BYTES - 1, BLOCK_BYTES + 1],
    [5, 1_999_999],
    [1_999_999, 2_000_000],
    [BLOCK_BYTES, 2 * BLOCK_BYTES],
    [300_000, 1_700_001],
  ] as const;
  for (const [start, end] of ranges) {
    const part = (await opened(path, body.byteLength)).subarray(start, end);
    expect(part.byteLength).toBe(end - start);
    const loaded = await part.load();
    const bytes = loaded instanceof DiskBody ? await readAll(loaded) : Buffer.from(loaded ?? []);
    expect(bytes.equals(body.subarray(start, end))).toBe(true);
    // A mebibyte and more is read piece by piece.
    expect(loaded instanceof DiskBody).toBe(end - start > 1_048_576);
  }
  await eventually(() => descriptorsIn(folder) === 0);
});

test("a file that is removed while it is read is read to its end", async () => {
  const folder = newFolder();
  const body = bodyOf(2_000_000);
  const path = join(folder, await store(folder, body));
  const file = await opened(path, body.byteLength);
  await file.read();
  unlinkSync(path);
  expect((await readAll(file)).byteLength).toBe(2_000_000 - 4 * BLOCK_BYTES);
});

test("a descriptor that is closed during a read is closed behind it, once", async () => {
  const folder = newFolder();
  const path = join(folder, await store(folder, bodyOf(2_000_000)));
  const file = await opened(path, 2_000_000);
  const reading = file.read();
  file.close();
  file.close();
  await reading;
  await eventually(() => descriptorsIn(folder) === 0);
  await expect(file.read()).rejects.toThrow("closed");
});

test("every changed byte of the record, and every cut, breaks it", async () => {
  const folder = newFolder();
  const path = join(folder, await store(folder, bodyOf(100)));
  const whole = readFileSync(path);
  const start = bodySpan(100);
  for (let at = start; at < whole.byteLength; at++) {
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    writeFileSync(path, changed);
    expect(readRecord(path)).toBeNull();
  }
  for (let length = 0; length < whole.byteLength; length++) {
    writeFileSync(path, whole.subarray(0, length));
    expect(readRecord(path)).toBeNull();
  }
  writeFileSync(path, whole);
  appendFileSync(path, "x");
  expect(readRecord(path)).toBeNull();
  writeFileSync(path, whole);
  expect(readRecord(path)).not.toBeNull();
});

test("a file of another version is not read", async () => {
  const folder = newFolder();
  const path = join(folder, "file");
  const record = encodeRecord(RECORD, 0);
  writeFileSync(path, record);
  expect(readRecord(path)?.bodyLength).toBe(0);
  const footer = record.byteLength - 40;
  record.writeUInt32LE(record.readUInt32LE(footer + 8) + 1, footer + 8);
  const end = record.byteLength - 8;
  record.writeBigUInt64LE(Bun.hash.xxHash3(record.subarray(0, end)), end);
  writeFileSync(path, record);
  expect(readRecord(path)).toBeNull();
});

test("a record longer than the first read is read whole", async () => {
  const folder = newFolder();
  const record = { ...RECORD, head: bodyOf(100_000) };
  const path = join(folder, await store(folder, bodyOf(10), record));
  expect(readRecord(path)?.record).toEqual(record);
});

test("a changed byte of the body is found before its block is passed on", async () => {
  const folder = newFolder();
  const body = bodyOf(20 * BLOCK_BYTES);
  const path = join(folder, await store(folder, body));
  const bytes = readFileSync(path);
  const at = bodySpan(9 * BLOCK_BYTES) + 5;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  const file = await opened(path, body.byteLength);
  let passed = 0;
  const read = async () => {
    for (;;) passed += (await file.read())?.byteLength ?? 0;
  };
  await expect(read()).rejects.toThrow("changed");
  expect(passed).toBe(8 * BLOCK_BYTES);
  file.close();
  // Of the part that is read before the head is sent, it is a miss.
  const part = (await opened(path, body.byteLength)).subarray(9 * BLOCK_BYTES, 10 * BLOCK_BYTES);
  expect(await part.load()).toBeNull();
  await eventually(() => descriptorsIn(folder) === 0);
});

test("a file that is cut while it is open breaks off", async () => {
  const folder = newFolder();
  const path = join(folder, await store(folder, bodyOf(2_000_000)));
  const file = await opened(path, 2_000_000);
  truncateSync(path, 1_000_000);
  await expect(readAll(file)).rejects.toThrow("shorter");
  file.close();
  expect(await DiskBody.open(path, 2_000_000)).toBeNull();
});

test("neither a link nor a pipe nor a directory in place of a file is read", async () => {
  const folder = newFolder();
  const real = join(folder, await store(folder, bodyOf(100)));
  const link = join(folder, "link");
  symlinkSync(real, link);
  const pipe = join(folder, "pipe");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  for (const path of [link, pipe, folder, join(folder, "missing")]) {
    expect(readRecord(path)).toBeNull();
    expect(await DiskBody.open(path, 100)).toBeNull();
  }
  expect(readRecord(real)).not.toBeNull();
  await eventually(() => descriptorsIn(folder) === 0);
});

test("a rewritten record replaces the old one, longer or shorter, and the body stays", async () => {
  const folder = newFolder();
  const body = bodyOf(100_000);
  const name = await store(folder, body);
  const path = join(folder, name);
  const disk = diskIn(folder);
  for (const tags of [Array.from({ length: 50 }, (_, at) => `tag-${at}`), []]) {
    await disk.rewrite(name, { ...RECORD, tags }, body.byteLength);
    expect(readRecord(path)?.record.tags).toEqual(tags);
    expect((await readAll(await opened(path, body.byteLength))).equals(body)).toBe(true);
  }
  renameSync(path, `${path}.moved`);
  await disk.rewrite(name, RECORD, body.byteLength);
  expect(existsSync(path)).toBe(false);
});

function diskIn(directory: string, worker = 0): Disk {
  return new Disk({ directory, worker, workers: 2, maxIncomplete: 1e9, warn: () => {} });
}

test("a removed file has lost its name when the call returns", async () => {
  const folder = newFolder();
  const name = await store(folder, bodyOf(100_000));
  diskIn(folder).remove(name);
  expect(readdirSync(folder).filter((each) => epochOf(each) !== null)).toEqual([]);
  await eventually(() => readdirSync(folder).length === 0);
});

test("a writer that is given up leaves nothing, at any point", async () => {
  const folder = newFolder();
  for (const count of [0, 1, 3, 40]) {
    const { writer, limits, problems } = writerIn(folder);
    for (let at = 0; at < count; at++) writer.write(bodyOf(50_000));
    writer.abort();
    writer.abort();
    expect(writer.write(bodyOf(10))).toBe(false);
    expect(await writer.finish(RECORD, 1)).toBeNull();
    await eventually(() => limits.pending === 0 && limits.incomplete === 0);
    expect(problems).toEqual([]);
  }
  await eventually(() => readdirSync(folder).length === 0 && descriptorsIn(folder) === 0);
});

test("more than the limit of waiting bytes is not stored, up to it is", async () => {
  const folder = newFolder();
  // Two blocks with their checksums, and the record.
  const room = 2 * (BLOCK_BYTES + 8);
  const fits = writerIn(folder, { maxPending: room });
  expect(fits.writer.write(bodyOf(2 * BLOCK_BYTES))).toBe(true);
  fits.writer.abort();
  const { writer, problems, limits } = writerIn(folder, { maxPending: room - 1 });
  expect(writer.write(bodyOf(2 * BLOCK_BYTES))).toBe(false);
  expect(problems).toEqual(["the disk is slower than the responses"]);
  await eventually(() => limits.pending === 0 && readdirSync(folder).length === 0);
});

test("more than the limit of incomplete bytes is not stored, up to it is", async () => {
  const folder = newFolder();
  const size = bodySpan(300_000) + encodeRecord(RECORD, 300_000).byteLength;
  const fits = writerIn(folder, { maxIncomplete: size });
  fits.writer.write(bodyOf(300_000));
  await fits.writer.ready();
  const second = new DiskWriter({
    thread: "test",
    directory: folder,
    worker: 0,
    limits: fits.limits,
    onProblem: () => {},
  });
  expect(second.write(bodyOf(BLOCK_BYTES))).toBe(false);
  expect((await fits.writer.finish(RECORD, 1))?.bytes).toBe(size);
  expect(fits.limits.incomplete).toBe(0);
  const { writer, problems } = writerIn(folder, { maxIncomplete: size - 1 });
  writer.write(bodyOf(300_000));
  expect(await writer.finish(RECORD, 1)).toBeNull();
  expect(problems).toEqual(["too much is being written"]);
});

test("a directory that is gone stores nothing, with one warning a minute, and none at the end", async () => {
  const folder = newFolder();
  const warnings: unknown[] = [];
  const directory = join(folder, "gone");
  const disk = new Disk({
    directory,
    worker: 0,
    workers: 1,
    maxIncomplete: 1e9,
    warn: (message, fields) => void warnings.push([message, fields]),
  });
  for (let at = 0; at < 5; at++) {
    const writer = disk.writer();
    writer.write(bodyOf(200_000));
    expect(await writer.finish(RECORD, 1)).toBeNull();
  }
  expect(warnings).toEqual([
    ["responses cannot be stored on the disk", { problem: "ENOENT", directory }],
  ]);
  const closed = new Disk({
    ...{ directory, worker: 0, workers: 1, maxIncomplete: 1e9 },
    warn: (message) => void warnings.push(message),
  });
  closed.close();
  expect(await closed.write(bodyOf(200_000), RECORD, 1)).toBeNull();
  expect(warnings).toHaveLength(1);
});

test("a thread removes the incomplete files of the one before in its place, not those of others", async () => {
  const folder = newFolder();
  const mine = writerIn(folder).writer;
  mine.write(bodyOf(200_000));
  await mine.ready();
  const kept = await store(folder, bodyOf(10));
  const other = new DiskWriter({
    thread: "test",
    directory: folder,
    worker: 1,
    limits: { pending: 0, maxPending: 1e9, incomplete: 0, maxIncomplete: 1e9 },
    onProblem: () => {},
  });
  other.write(bodyOf(200_000));
  await other.ready();
  expect(readdirSync(folder)).toHaveLength(3);
  diskIn(folder, 0);
  await eventually(() => readdirSync(folder).length === 2);
  expect(await other.finish(RECORD, 1)).not.toBeNull();
  expect(await mine.finish(RECORD, 1)).toBeNull();
  expect(readdirSync(folder)).toContain(kept);
});

// Only root may mount a file system that is small enough to be filled.
needs("mount").test(
  "a full disk stores nothing, leaves nothing, and stores again with space",
  async () => {
    const folder = newFolder();
    const mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder];
    expect(Bun.spawnSync(mount).exitCode).toBe(0);
    try {
      const { writer, problems } = writerIn(folder);
      for (let at = 0; at < 40; at++) writer.write(bodyOf(50_000));
      expect(await writer.finish(RECORD, 1)).toBeNull();
      expect(problems).toEqual(["ENOSPC"]);
      await eventually(() => readdirSync(folder).length === 0 && descriptorsIn(folder) === 0);
      await store(folder, bodyOf(500_000));
    } finally {
      Bun.spawnSync(["umount", "--lazy", folder]);
    }
  },
);
