// Which release is built: its version, commit and time, from package.json and git; builds nothing.
import { resolve } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import type { Release } from "./bill-of-materials.ts";
import { run } from "./targets.ts";

const root = resolve(import.meta.dir, "../..");

/** Throws when a tag of the commit names another version than package.json. */
export async function describeRelease(): Promise<Release> {
  const bunVersion = manifest.packageManager.replace("bun@", "");
  if (Bun.version !== bunVersion)
    throw new Error(`Bun ${bunVersion} is wanted, and this is ${Bun.version}: make setup`);
  const git = (...words: string[]) =>
    run(["git", ...words], { cwd: root }).then((text) => text.trim());
  const { version } = manifest;
  try {
    const isChanged = (await git("status", "--porcelain", "--untracked-files=no")) !== "";
    const tags = (await git("tag", "--points-at", "HEAD")).split("\n");
    const tag = tags.find((name) => /^v\d/.test(name));
    if (tag !== undefined && tag !== `v${version}`)
      throw new Error(`the commit is tagged ${tag}, but package.json says ${version}`);
    return {
      version,
      bunVersion,
      commit: `${await git("rev-parse", "HEAD")}${isChanged ? "-changed" : ""}`,
      committedAt: await git("log", "-1", "--format=%cI"),
    };
  } catch (error) {
    if (!String(error).includes("not a git repository")) throw error;
    return { version, bunVersion, commit: null, committedAt: "1970-01-01T00:00:00Z" };
  }
}
