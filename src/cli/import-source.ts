// Opens the set-up of another program for the command `import`: a file, an archive, or a folder.
import { readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { readRegular, TrustError } from "../control/trusted-file.ts";
import type { SourceFiles } from "../import/nginx/tree.ts";
import type { FindFile, FoundFile } from "../import/npm/tables.ts";
import type { ImportChoice } from "../import/programs.ts";
import type { SourceTree } from "../import/set-up/tree.ts";
import type { adaptCaddyfile } from "./adapt-caddyfile.ts";
import { CommandError } from "./management-client.ts";
import { sourceFilesBeside } from "./source-files.ts";
import { sourceFolder } from "./source-folder.ts";

export interface OpenedSetUp {
  readonly from: ImportChoice;
  readonly source: Uint8Array | SourceTree;
  /** Absent: the program has no files beside it. */
  readonly findFile?: FindFile;
  /** Files that the named one includes; null: none. */
  readonly files?: SourceFiles | null;
  /** The file of a folder that is meant. */
  readonly mainFile?: string;
}

export interface OpeningOptions {
  /** Folder that the program's container has as /etc/letsencrypt; null: beside the database. */
  readonly letsencrypt: string | null;
  /** For Caddy, which converts a Caddyfile. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** By its name: an export of Sluice is none. */
export const isArchive = (path: string): boolean => /\.(?:zip|tar|tar\.gz|tgz)$/i.test(path);

/** Throws a CommandError for a folder without a configuration. */
export async function openSetUp(
  choice: ImportChoice,
  path: string,
  { letsencrypt, env }: OpeningOptions,
): Promise<OpenedSetUp> {
  if (path === "-") {
    const given = bytesOf("/dev/stdin");
    return { from: choice, source: choice === "caddy" ? await adapted(path, given, env) : given };
  }
  const tree = isFolder(path) ? sourceFolder(path) : null;
  // Loaded only when it is asked for.
  const setUp = await import("../import/set-up/set-up.ts");
  const from = choice === "auto" && tree !== null ? setUp.programOf(tree) : choice;
  switch (from) {
    case "npm":
      return isArchive(path)
        ? { from, source: bytesOf(path) }
        : { from, ...openDatabase(path, letsencrypt) };
    case "caddy": {
      const file = tree === null ? path : join(path, setUp.mainFile(from, tree));
      return { from, source: await adapted(file, bytesOf(file), env) };
    }
    case "nginx": {
      const main = tree === null ? path : setUp.nginxFile(tree);
      if (main === null && tree !== null) return { from, source: tree };
      const file = tree === null ? path : join(path, main ?? "");
      return { from, source: bytesOf(file), files: sourceFilesBeside(file) };
    }
    case "compose":
      if (tree !== null || isArchive(path)) return { from, source: tree ?? bytesOf(path) };
      return { from, source: sourceFolder(dirname(path)), mainFile: basename(path) };
    default:
      return { from, source: tree ?? bytesOf(path) };
  }
}

/** Loaded only when it is asked for. */
const adapted = async (...given: Parameters<typeof adaptCaddyfile>): Promise<Uint8Array> =>
  (await import("./adapt-caddyfile.ts")).adaptCaddyfile(...given);

const DATABASE = "database.sqlite";
const MAX_DATABASE_BYTES = 1_073_741_824;

function openDatabase(
  path: string,
  letsencrypt: string | null,
): Pick<OpenedSetUp, "source" | "findFile"> {
  const file = databaseIn(path);
  const data = dirname(file);
  const volumes = letsencrypt === null ? volumesBeside(data) : [letsencrypt];
  return {
    source: readRegular(file, MAX_DATABASE_BYTES),
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
