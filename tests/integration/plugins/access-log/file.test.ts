// Files of access-log: where they may be, who may read them, how they are put aside, and what happens when they cannot be written.
import { afterEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cleanupsOf } from "../../../support/cleanups.ts";
import { pluginScene, type PluginScene } from "../../../support/plugin-scene.ts";
import { eventually } from "../../../support/poll.ts";
import { type LogFolder, logFolder, quick } from "./log-scene.ts";

const undo = cleanupsOf(afterEach);

function newFolder(elsewhere: string | null = null): LogFolder {
  const folder = logFolder(elsewhere);
  undo.push(() => folder.remove());
  return folder;
}

async function newScene(
  folder: LogFolder | null,
  config: Record<string, unknown>,
): Promise<PluginScene> {
  const scene = await pluginScene({
    ...(folder === null ? {} : { logDirectories: folder.directories }),
    plugins: [{ name: "access-log", config: { queue: quick, ...config } }],
  });
  undo.push(() => scene.stop());
  return scene;
}

const file = (own: Record<string, unknown>) => ({ sinks: [{ file: own }] });

test("by default it is access.log, which other users cannot read", async () => {
  const folder = newFolder();
  const scene = await newScene(folder, {});
  await scene.get("/x");
  await folder.receives(1);
  expect(statSync(join(folder.directory, "access.log")).mode & 0o777).toBe(0o600);
  expect(statSync(folder.directory).mode & 0o777).toBe(0o700);
});

test("subdirectories are created on demand, and two instances may share a file", async () => {
  const folder = newFolder();
  const scene = await newScene(folder, file({ path: "a/b/c.log" }));
  await scene.apply({
    plugins: [
      {
        name: "access-log",
        label: "other",
        config: { queue: quick, ...file({ path: "./a//b/c.log", format: "clf" }) },
      },
    ],
  });
  await scene.get("/x");
  await folder.receives(2, "a/b/c.log");
});

describe("a file outside the allowed directory is refused", () => {
  const refused = (folder: LogFolder | null, path: string) =>
    newScene(folder, file({ path })).then(
      () => "served",
      (error: Error) => error.message,
    );

  test("an absolute path without --log-dir, and one beside it", async () => {
    expect(await refused(newFolder(), "/tmp/x.log")).toContain("start with --log-dir");
    const elsewhere = newFolder().directory;
    expect(await refused(newFolder(elsewhere), "/tmp/x.log")).toContain("not below the directory");
    expect(await refused(newFolder(elsewhere), `${elsewhere}-more/x.log`)).toContain("not below");
    expect(await refused(newFolder(elsewhere), `${elsewhere}/../x.log`)).toContain("not below");
    expect(await refused(newFolder(elsewhere), `${elsewhere}/ok/x.log`)).toBe("served");
    expect(existsSync(`${elsewhere}/ok/x.log`)).toBe(true);
  });

  test("where file logs are disabled", async () => {
    expect(await refused(null, "x.log")).toContain("log files are disabled");
  });

  test("links, to files and in the path, hard links, and other file types", async () => {
    const folder = newFolder();
    const outside = newFolder();
    mkdirSync(folder.directory, { recursive: true });
    mkdirSync(outside.directory, { recursive: true });
    const at = (name: string) => join(folder.directory, name);
    writeFileSync(join(outside.directory, "passwd"), "root");
    symlinkSync(join(outside.directory, "passwd"), at("link.log"));
    symlinkSync(join(outside.directory, "not-there"), at("dangling.log"));
    symlinkSync(outside.directory, at("folder"));
    linkSync(join(outside.directory, "passwd"), at("hard.log"));
    mkdirSync(at("is-a-folder"));
    Bun.spawnSync(["mkfifo", at("pipe.log")]);
    for (const path of [
      "link.log",
      "dangling.log",
      "folder/x.log",
      "folder/deeper/x.log",
      "hard.log",
      "is-a-folder",
      "pipe.log",
      "hard.log/x.log",
    ])
      expect(`${path}: ${await refused(folder, path)}`).toContain("cannot open the log file");
    expect(readdirSync(outside.directory)).toEqual(["passwd"]);
    expect(statSync(join(outside.directory, "passwd")).size).toBe(4);
  });
});

describe("a file that is full", () => {
  test("is rotated, and the oldest beyond keep are deleted", async () => {
    const folder = newFolder();
    const scene = await newScene(folder, {
      ...file({ path: "r.log", rotate_size: 1024, keep: 2 }),
      queue: { ...quick, max_batch_size: 1 },
    });
    for (let at = 0; at < 20; at++) {
      await scene.get(`/x${at}`);
      // One by one, or all of them would come in one piece.
      await eventually(() => folder.lines("r.log").some((line) => line.includes(`"/x${at}"`)));
    }
    const names = folder.names().filter((name) => name !== "r.log");
    expect(names.length).toBe(2);
    for (const name of names) {
      expect(name).toMatch(/^r-\d{8}T\d{9}-0(\.\d+)?\.log$/);
      expect(statSync(join(folder.directory, name)).mode & 0o777).toBe(0o600);
    }
    expect(statSync(join(folder.directory, "r.log")).size).toBeLessThanOrEqual(1024);
  });

  test("leaves other files with similar names", async () => {
    const folder = newFolder();
    mkdirSync(folder.directory, { recursive: true });
    const own = ["r-notes.log", "r.log.bak", "rr-20200101T000000000-0.log"];
    for (const name of own) writeFileSync(join(folder.directory, name), "mine");
    const scene = await newScene(folder, file({ path: "r.log", rotate_size: 1024, keep: 1 }));
    for (let at = 0; at < 40; at++) await scene.get(`/x${at}`);
    await eventually(() => folder.lines("r.log").some((line) => line.includes('"/x39"')));
    for (const name of own) expect(folder.names()).toContain(name);
  });
});

test.each([
  ["renamed", (path: string) => renameSync(path, `${path}.1`)],
  ["deleted", (path: string) => rmSync(path)],
])("a file that another program has %s is created again", async (_, change) => {
  const folder = newFolder();
  const scene = await newScene(folder, {});
  await scene.get("/one");
  await folder.receives(1);
  change(join(folder.directory, "access.log"));
  // It is looked for now and then, not at each line.
  await eventually(async () => {
    await scene.get("/two");
    return folder.lines().length > 0;
  });
  expect(folder.lines()[0]).toContain('"/two"');
});

test("requests are served while it cannot be written, and queued lines are written afterwards", async () => {
  const folder = newFolder();
  const scene = await newScene(folder, {});
  rmSync(folder.directory, { recursive: true });
  writeFileSync(folder.directory, "a file where the folder was");
  for (let at = 0; at < 5; at++) expect((await scene.get(`/x${at}`)).status).toBe(200);
  rmSync(folder.directory);
  await folder.receives(5);
});

test("queued lines are written at the end", async () => {
  const folder = newFolder();
  const scene = await newScene(folder, { queue: { max_coalescing_delay: 3600 } });
  await scene.get("/x");
  await scene.plane.drain(0);
  await folder.receives(1);
});
