// Folders of set-ups: their files, and what a link does not lead to.
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { sourceFolder } from "../../../src/cli/source-folder.ts";
import { TREE_LIMITS } from "../../../src/import/set-up/tree.ts";

const root = mkdtempSync(join(tmpdir(), "sluice-folder-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function folder(name: string, ...paths: readonly string[]): string {
  for (const path of paths) {
    const file = join(root, name, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, path);
  }
  return join(root, name);
}

const text = (bytes: Uint8Array | null) => bytes && new TextDecoder().decode(bytes);

test("links inside are followed, and those that lead out are not there", () => {
  folder("secret", "key");
  const path = folder("nginx", "nginx.conf", "sites-available/a", ".git/config", "empty/x");
  mkdirSync(join(path, "sites-enabled"));
  symlinkSync("../sites-available/a", join(path, "sites-enabled/a"));
  symlinkSync("../../secret/key", join(path, "sites-enabled/b"));
  symlinkSync("../../secret", join(path, "out"));
  symlinkSync("nowhere", join(path, "broken"));
  symlinkSync("../secret", join(root, "nginx-not"));
  const tree = sourceFolder(path);
  expect(tree.paths()).toEqual(["empty/x", "nginx.conf", "sites-available/a", "sites-enabled/a"]);
  expect(text(tree.read("sites-enabled/a"))).toBe("sites-available/a");
  for (const outside of ["sites-enabled/b", "out/key", "../secret/key", "broken", "empty"])
    expect(tree.read(outside)).toBe(null);
  expect([tree.hasFolder("empty"), tree.hasFolder("out"), tree.hasFolder("nginx.conf")]).toEqual([
    true,
    false,
    false,
  ]);
});

test("a link to a folder above has an end", () => {
  const path = folder("loop", "a/x");
  symlinkSync("..", join(path, "a/up"));
  const paths = sourceFolder(path, { ...TREE_LIMITS, depth: 4 }).paths();
  expect(paths).toEqual(["a/up/a/x", "a/x"]);
});

test("folders with more entries, and files with more bytes, are refused at the limit", () => {
  const path = folder("large", "a", "b", "c");
  const limited = (limits: Partial<typeof TREE_LIMITS>) =>
    sourceFolder(path, { ...TREE_LIMITS, ...limits });
  expect(limited({ entries: 3 }).paths()).toEqual(["a", "b", "c"]);
  expect(() => limited({ entries: 2 }).paths()).toThrow("more than 2 entries");
  expect(text(limited({ bytes: 1 }).read("a"))).toBe("a");
  expect(() => {
    writeFileSync(join(path, "a"), "aa");
    limited({ bytes: 1 }).read("a");
  }).toThrow("is larger than");
});
