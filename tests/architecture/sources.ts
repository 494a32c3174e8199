// The sources of Sluice as the checks of the house read them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Sources } from "./checker.ts";

/** Without declarations and tests. */
export function readSources(): Sources {
  const root = join(import.meta.dir, "../../src");
  const paths = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(root)]
    .filter((path) => !/\.(test|d)\.tsx?$/.test(path))
    .sort();
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
}
