// The data directory as the operating system sees it: modes, the lock, a newer database, a full disk.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { migrations } from "../../../src/store/migration-list.ts";
import { migrate } from "../../../src/store/migrations.ts";
import { needs } from "../../support/needs.ts";
import {
  commitOf,
  firstCommit,
  openStore,
  serviceOf,
  temporaryDirectory,
  upsert,
} from "./fixture.ts";

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe("files", () => {
  test("are readable by their owner only, whatever the umask", () => {
    const umask = process.umask(0);
    try {
      using dir = temporaryDirectory();
      const dataDir = join(dir.path, "new", "data");
      using fixture = openStore(dataDir);
      fixture.store.commit(firstCommit);
      expect(modeOf(dataDir)).toBe("700");
      const files = [...new Bun.Glob("*").scanSync(dataDir)].sort();
      expect(files).toEqual(
        expect.arrayContaining(["sluice.db", "sluice.db-shm", "sluice.db-wal", "sluice.lock"]),
      );
      for (const name of files) expect([name, modeOf(join(dataDir, name))]).toEqual([name, "600"]);
    } finally {
      process.umask(umask);
    }
  });

  test("that others could read get modes 700 and 600, and the log says so", () => {
    using dir = temporaryDirectory();
    openStore(dir.path)[Symbol.dispose]();
    chmodSync(dir.path, 0o755);
    chmodSync(join(dir.path, "sluice.db"), 0o644);
    using fixture = openStore(dir.path);
    expect([modeOf(dir.path), modeOf(join(dir.path, "sluice.db"))]).toEqual(["700", "600"]);
    expect(fixture.log.filter(({ level }) => level === "warn").map(({ was }) => was)).toEqual([
      "755",
      "644",
    ]);
  });

  test("of other programs keep the mode of their directory", () => {
    using dir = temporaryDirectory();
    chmodSync(dir.path, 0o755);
    writeFileSync(join(dir.path, "notes.txt"), "");
    using fixture = openStore(dir.path);
    expect(modeOf(dir.path)).toBe("755");
    expect(fixture.log.map(({ level }) => level)).toEqual(["warn"]);
  });

  test("a directory that cannot be created is reported with its path", () => {
    using dir = temporaryDirectory();
    const path = join(dir.path, "file");
    writeFileSync(path, "");
    expect(() => openStore(path)).toThrow(`data directory ${path}: `);
  });
});

describe("the lock", () => {
  test("rejects a second store and names the process that holds it", () => {
    using dir = temporaryDirectory();
    using _ = openStore(dir.path);
    expect(() => openStore(dir.path)).toThrow(
      `data directory ${dir.path} is in use by another sluice (process ${process.pid})`,
    );
  });

  test("works between processes, and ends with kill -9", async () => {
    using dir = temporaryDirectory();
    const script = `
      import { openStore } from ${JSON.stringify(join(import.meta.dir, "fixture.ts"))};
      // Held by the timer: a store that nobody holds is collected, and its lock with it.
      const held = openStore(${JSON.stringify(dir.path)});
      console.log("open");
      setInterval(() => held.store.isEmpty(), 1000);`;
    const holder = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    await holder.stdout.getReader().read();
    expect(() => openStore(dir.path)).toThrow(`(process ${holder.pid})`);
    holder.kill("SIGKILL");
    await holder.exited;
    using fixture = openStore(dir.path);
    fixture.store.commit(firstCommit);
    expect(readFileSync(join(dir.path, "sluice.pid"), "utf8")).toBe(`${process.pid}\n`);
  });

  test("can be released for another store, and reacquired when that one has changed nothing", () => {
    using dir = temporaryDirectory();
    using first = openStore(dir.path);
    first.store.commit(firstCommit);
    first.store.letGo();
    {
      using second = openStore(dir.path);
      expect(second.store.load().revision).toBe(1);
      expect(() => first.store.reclaim(1)).toThrow("is in use by another sluice");
    }
    expect(first.store.reclaim(1)).toBeNull();
    expect(() => openStore(dir.path)).toThrow("is in use by another sluice");
  });

  test.each([
    { why: "its schema is newer", sql: "PRAGMA user_version = 999", problem: "newer schema" },
    { why: "it has other revisions", sql: "DELETE FROM revisions", problem: "another process" },
  ])("is reacquired read-only, with the reason, when $why", (left) => {
    using dir = temporaryDirectory();
    using first = openStore(dir.path);
    first.store.commit(firstCommit);
    first.store.letGo();
    const other = new Database(join(dir.path, "sluice.db"));
    other.run(left.sql);
    other.close();
    expect(first.store.reclaim(1)).toContain(left.problem);
  });
});

describe("a database", () => {
  test("of a newer program is rejected and left unchanged", () => {
    using dir = temporaryDirectory();
    openStore(dir.path)[Symbol.dispose]();
    const path = join(dir.path, "sluice.db");
    const newer = migrations.length + 1;
    const database = new Database(path);
    database.run(`PRAGMA user_version = ${newer}`);
    database.close();
    const before = readFileSync(path);
    expect(() => openStore(dir.path)).toThrow(
      `the database has schema version ${newer}, this program knows versions up to ${migrations.length}`,
    );
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("that is not SQLite is rejected", () => {
    using dir = temporaryDirectory();
    writeFileSync(join(dir.path, "sluice.db"), "this is no database at all, however long it is");
    expect(() => openStore(dir.path)).toThrow(`database in ${dir.path}: file is not a database`);
  });

  test("of an older program gets all missing steps or none", () => {
    using database = new Database(":memory:");
    migrate(database, ["CREATE TABLE a (x)"]);
    const broken = ["CREATE TABLE a (x)", "CREATE TABLE b (x)", "CREATE TABLE b (x)"];
    expect(() => migrate(database, broken)).toThrow("already exists");
    const tables = () =>
      database.query<{ name: string }, []>("SELECT name FROM sqlite_master ORDER BY name").all();
    expect(tables()).toEqual([{ name: "a" }]);
    expect(migrate(database, ["CREATE TABLE a (x)", "CREATE TABLE b (x)"])).toBe(1);
    expect(tables()).toEqual([{ name: "a" }, { name: "b" }]);
  });
});

test("every migration that drizzle-kit wrote is applied, in its order", async () => {
  const folder = join(import.meta.dir, "../../../drizzle");
  const journal = await Bun.file(join(folder, "meta/_journal.json")).json();
  const files = journal.entries.map(({ tag }: { tag: string }) => join(folder, `${tag}.sql`));
  const texts = await Promise.all(files.map((file: string) => Bun.file(file).text()));
  expect(migrations).toEqual(texts);
});

// Only root may mount a file system that is small enough to be filled.
needs("mount").test(
  "a full disk fails the commit with a clear error and leaves the store consistent",
  async () => {
    using dir = temporaryDirectory();
    const disk = join(dir.path, "disk");
    mkdirSync(disk);
    expect(await run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk)).toBe(0);
    try {
      using fixture = openStore(join(disk, "data"));
      fixture.store.commit(firstCommit);
      const before = fixture.store.load();
      writeFileSync(join(disk, "ballast"), new Uint8Array(600_000));
      const many = Array.from({ length: 500 }, (_, index) => serviceOf(`service ${index}`));
      expect(() => fixture.store.commit(commitOf(2, { services: upsert(...many) }))).toThrow(
        "the database could not be written: the disk is full; nothing was changed",
      );
      expect(fixture.store.load()).toEqual(before);
      writeFileSync(join(disk, "ballast"), "");
      fixture.store.commit(commitOf(2, { services: upsert(serviceOf("shop")) }));
      expect(fixture.store.load().revision).toBe(2);
    } finally {
      // Lazily: SQLite keeps the file open until its statements are collected.
      await run("umount", "--lazy", disk);
    }
  },
);

async function run(...command: string[]): Promise<number> {
  return await Bun.spawn(command, { stdout: "ignore", stderr: "ignore" }).exited;
}
