// Reads a folder with the set-up of another program, for the command `import`; knows no program.
import { readdirSync, realpathSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { readRegular, TrustError } from "../control/trusted-file.ts";
import { type SourceTree, TREE_LIMITS, type TreeLimits } from "../import/set-up/tree.ts";
import { CommandError } from "./management-client.ts";

/** Folders that never hold a configuration. */
const SKIPPED = new Set([".git", "node_modules"]);

/** The folder as it is; a link that leads out of it is not followed, as if it were not there. */
export function sourceFolder(root: string, limits: TreeLimits = TREE_LIMITS): SourceTree {
  const real = realpathSync(root);
  const isWithin = (path: string) => path === real || path.startsWith(join(real, sep));
  const located = (path: string): string | null => {
    const found = realPathOf(join(real, path));
    return found !== null && isWithin(found) ? found : null;
  };
  let left = limits.bytes;
  let known: readonly string[] | null = null;
  return {
    paths: () => (known ??= walked(real, { root, limits, located })),
    hasFolder: (path) => {
      const found = located(path);
      return found !== null && statSync(found).isDirectory() && entriesOf(found) !== null;
    },
    read(path) {
      const found = located(path);
      if (found === null || !statSync(found).isFile()) return null;
      try {
        const bytes = readRegular(found, Math.max(left, 1));
        left -= bytes.byteLength;
        return bytes;
      } catch (error) {
        if (error instanceof TrustError) throw new CommandError(error.message, { cause: error });
        throw error;
      }
    },
  };
}

interface Walk {
  readonly root: string;
  readonly limits: TreeLimits;
  readonly located: (path: string) => string | null;
}

function walked(real: string, { root, limits, located }: Walk): readonly string[] {
  const found: string[] = [];
  let entries = 0;
  const walk = (folder: string, depth: number): void => {
    for (const entry of entriesOf(folder) ?? []) {
      if (++entries > limits.entries)
        throw new CommandError(
          `${root}: the folder has more than ${limits.entries} entries: name the folder of the configuration`,
        );
      const path = relative(real, join(folder, entry.name)).replaceAll(sep, "/");
      const target = located(path);
      if (target === null || SKIPPED.has(entry.name)) continue;
      const kind = statSync(target);
      if (kind.isFile()) found.push(path);
      // Deeper folders hold data, and a link to a folder above would lead there without an end.
      else if (kind.isDirectory() && depth < limits.depth)
        walk(join(folder, entry.name), depth + 1);
    }
  };
  walk(real, 1);
  return found.toSorted();
}

/** Null: this user may not read the folder, which then is not there, such as data of another program. */
function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") return null;
    throw error;
  }
}

function realPathOf(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
