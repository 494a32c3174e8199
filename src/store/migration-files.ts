// Reads what drizzle-kit generated. A macro: it runs when a module is compiled, and its result is in the executable.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const DIRECTORY = join(import.meta.dir, "../../drizzle");
const read = (path: string) => readFileSync(join(DIRECTORY, path), "utf8");

/** The statements of all migrations, in the order of drizzle-kit's journal. */
export function readMigrations(): string[] {
  const { entries } = JSON.parse(read("meta/_journal.json")) as { entries: { tag: string }[] };
  return entries.map(({ tag }) => read(`${tag}.sql`));
}
