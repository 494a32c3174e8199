// Opens the configuration of another program for the command `import`: a file, or a folder with the files that it names.
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { readRegular, TrustError } from "../control/trusted-file.ts";
import type { FindFile, FoundFile } from "../import/npm/tables.ts";
import type { ImportSource } from "../import/programs.ts";
import { CommandError } from "./management-client.ts";

export interface OpenedSource {
  readonly bytes: Uint8Array;
  /** Absent: the program has no files beside it. */
  readonly findFile?: FindFile;
}

const DATABASE = "database.sqlite";
const MAX_DATABASE_BYTES = 1_073_741_824;

/** `letsencrypt`: folder that the program's container has as /etc/letsencrypt; null: beside the database. */
export function openSource(
  from: ImportSource,
  path: string,
  letsencrypt: string | null,
): OpenedSource {
  if (path === "-") return { bytes: bytesOf("/dev/stdin") };
  if (from !== "npm") return { bytes: bytesOf(path) };
  const file = databaseIn(path);
  const data = dirname(file);
  const volumes = letsencrypt === null ? volumesBeside(data) : [letsencrypt];
  return {
    bytes: readRegular(file, MAX_DATABASE_BYTES),
    findFile: (name) => {
      if (name.startsWith("/data/")) return read([join(data, name.slice("/data/".length))]);
      const inner = name.replace(/^\/etc\/letsencrypt\//, "");
      return inner === name ? null : read(volumes.map((folder) => join(folder, inner)));
    },
  };
}

/** The container has two volumes, which are mostly siblings, or one within the other. */
const volumesBeside = (data: string): readonly string[] => [
  join(dirname(data), "letsencrypt"),
  join(data, "letsencrypt"),
];

/** The database itself, or the one in a folder: that of the data, or the one above. */
function databaseIn(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return path;
  const candidates = [join(path, DATABASE), join(path, "data", DATABASE)];
  const found = candidates.find((file) => statSync(file, { throwIfNoEntry: false }) !== undefined);
  if (found === undefined)
    throw new CommandError(`${path}: there is no ${DATABASE} in this folder`);
  return found;
}

const bytesOf = (path: string) => new Uint8Array(readFileSync(path));

function read(paths: readonly string[]): FoundFile | null {
  let problem: string | null = null;
  for (const path of paths)
    try {
      return { text: readRegular(path).toString("utf8") };
    } catch (error) {
      if (error instanceof TrustError) {
        problem = error.message;
        continue;
      }
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EACCES") problem = `${path} cannot be read: permission denied`;
      else if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
    }
  return problem === null ? null : { problem };
}
