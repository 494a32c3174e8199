// Prints what a reader of one file has to know, with types: `make reading-set FILE=src/control/change.ts`.
import { readingSet } from "../tests/architecture/reading-set.ts";
import { readSources } from "../tests/architecture/sources.ts";

const [file = "", how = ""] = process.argv.slice(2);
const { files, lines, rooms } = readingSet(readSources(), file.replace(/^(?:\.\/)?src\//, ""));

console.log(`${file}: ${files.size} files, ${lines} lines, types included`);
for (const [room, count] of rooms) console.log(`${String(count).padStart(7)}  ${room}`);
// Why each is in it.
if (how === "files")
  for (const [path, by] of files) console.log(`${path}${by === null ? "" : `  by ${by}`}`);
