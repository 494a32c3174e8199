// The executable of an older version, built from its commit once for each machine; knows no test.
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Need } from "./needs.ts";

/** A version with fleets whose entries have format 1 only. Newer ones must work beside it. */
const COMMIT = "5ee207c8";

const root = resolve(import.meta.dir, "../..");

const hasCommit = (): boolean => {
  try {
    const words = ["git", "-C", root, "cat-file", "-e", `${COMMIT}^{commit}`];
    return Bun.spawnSync(words, { stdio: ["ignore", "ignore", "ignore"] }).exitCode === 0;
  } catch {
    return false;
  }
};

export const previousVersion: Need = {
  lacks: hasCommit() ? null : `the commit ${COMMIT}, which a shallow clone does not have`,
};

/** Path of the executable; takes a minute for the first time. */
export function previousExecutable(): string {
  const kept = join(tmpdir(), `sluice-${process.getuid?.() ?? 0}-${COMMIT}`);
  const path = join(kept, "sluice");
  if (isOurs(kept, path)) return path;
  const sources = mkdtempSync(join(tmpdir(), "sluice-previous-"));
  try {
    run("/", "bash", "-c", `git -C '${root}' archive ${COMMIT} | tar -x -C '${sources}'`);
    const isSame = (file: string) =>
      readFileSync(join(root, file), "utf8") === readFileSync(join(sources, file), "utf8");
    const hasPackages = isSame("bun.lock");
    // The same packages need not be installed again.
    if (hasPackages)
      for (const name of ["node_modules", ".bun"])
        symlinkSync(join(root, name), join(sources, name));
    run(sources, "make", ...(hasPackages ? ["-o", "node_modules/.setup-done"] : []), "build");
    mkdirSync(kept, { recursive: true, mode: 0o700 });
    // Another test may have been faster.
    renameSync(join(sources, "dist/sluice"), path);
  } finally {
    rmSync(sources, { recursive: true, force: true });
  }
  return path;
}

/** Another user could have put a program there. */
function isOurs(directory: string, path: string): boolean {
  const [above, file] = [directory, path].map((each) => statSync(each, { throwIfNoEntry: false }));
  if (above === undefined) return false;
  if (above.uid !== process.getuid?.() || (above.mode & 0o022) !== 0)
    throw new Error(`${directory} belongs to another user, or others can write to it`);
  return file !== undefined;
}

function run(cwd: string, ...command: string[]): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stdout}${stderr}`);
}
