// Copies of the database that lie in the data directory, by their files; opens none of them.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Where the installer, and the pages for people, put copies. */
const FOLDER = "backups";

/** Path of the copy that was written last; null: there is none. */
export function newestCopy(dataDir: string): string | null {
  const folder = join(dataDir, FOLDER);
  try {
    const [newest] = readdirSync(folder)
      .filter((name) => name.endsWith(".db"))
      .map((name) => join(folder, name))
      .map((path) => ({ path, at: statSync(path).mtimeMs }))
      .toSorted((a, b) => b.at - a.at);
    return newest?.path ?? null;
  } catch {
    // This only helps to say more about a failure, and must be none itself.
    return null;
  }
}
