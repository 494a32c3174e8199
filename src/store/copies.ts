// Finds copies of the database in the data directory; opens none of them.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Where the installer and the docs put copies. */
const FOLDER = "backups";

/** Path of the newest copy; null: there is none. */
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
    // Only adds detail to another error, and must not fail itself.
    return null;
  }
}
