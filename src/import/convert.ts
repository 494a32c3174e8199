// Converts the configuration of another program to a configuration file to import; one folder per program.
import { ApiError } from "../model/error.ts";
import type { ParseJson } from "./transfer/source.ts";
import { convertCaddy } from "./caddy/caddy.ts";
import { convertCompose, convertComposeProjects } from "./compose/compose.ts";
import { convertHaproxy } from "./haproxy/haproxy.ts";
import { convertKong, convertKongFiles } from "./kong/kong.ts";
import { convertNginx } from "./nginx/nginx.ts";
import type { SourceFiles } from "./nginx/tree.ts";
import type { FindFile, OpenTables } from "./npm/tables.ts";
import { convertNpm } from "./npm/npm.ts";
import { convertTraefikFile, convertTraefikFiles } from "./traefik/files.ts";
import { unpacked } from "./set-up/archive.ts";
import { bytesIn, mainFile, nginxSetUp, npmFiles, programOf } from "./set-up/set-up.ts";
import { type SourceTree, treeOf } from "./set-up/tree.ts";
import { Output, type OutputOptions } from "./output.ts";
import { type ImportChoice, type ImportSource, MAX_SOURCE_BYTES } from "./programs.ts";
import { Report, type ReportEntry } from "./report.ts";
import { dropInvalid } from "./drop-invalid.ts";
import { type HostResult, hostResults } from "./host-results.ts";

export interface Conversion {
  /** The configuration file to import. */
  readonly document: unknown;
  /** The result for every object of the source, what was not imported first. */
  readonly report: readonly ReportEntry[];
  /** The result for every host. */
  readonly hosts: readonly HostResult[];
}

/** Functions that other rooms provide, and choices of the user. */
export interface ConversionContext extends OutputOptions {
  readonly parseJson: ParseJson;
  /** Reads a database from memory. */
  readonly openTables: OpenTables;
  /** Files beside the source, such as included ones; null or absent: the source is alone. */
  readonly files?: SourceFiles | null;
  /** Reads files beside the source. Default: there are none. */
  readonly findFile?: FindFile;
  /** Path of the only file of a folder that is meant, which may name others. Absent: all of them. */
  readonly mainFile?: string;
}

/** `source`: a file, an archive, or the files of a folder. Throws a 400 for an invalid source. */
export async function convert(
  choice: ImportChoice,
  source: Uint8Array | SourceTree,
  context: ConversionContext,
): Promise<Conversion> {
  if (source instanceof Uint8Array && source.byteLength > MAX_SOURCE_BYTES)
    throw new ApiError(413, `the configuration is larger than ${MAX_SOURCE_BYTES} bytes`);
  const tree = source instanceof Uint8Array ? unpacked(source) : source;
  if (choice === "auto" && tree === null)
    throw new ApiError(400, "from: must name the program: `auto` needs a folder or an archive");
  const from = choice === "auto" ? programOf(tree ?? treeOf(new Map())) : choice;
  const report = new Report();
  const output = new Output(from, report, context);
  if (tree === null) await convertFile(from, source as Uint8Array, { output, context });
  else await convertTree(from, tree, { output, context });
  const document = dropInvalid(output);
  const entries = report.finish();
  return { document, report: entries, hosts: hostResults(document, output, entries) };
}

interface Converting {
  readonly output: Output;
  readonly context: ConversionContext;
}

async function convertFile(
  from: ImportSource,
  bytes: Uint8Array,
  { output, context }: Converting,
): Promise<void> {
  switch (from) {
    case "kong":
      return await convertKong(bytes, output, context);
    case "caddy":
      return await convertCaddy(bytes, output, context);
    case "npm":
      return await convertNpm(bytes, output, context);
    case "nginx":
      return await convertNginx(bytes, output, context);
    case "traefik":
      return await convertTraefikFile(bytes, output, context);
    case "compose":
      return await convertCompose(bytes, output, context);
    case "haproxy":
      return await convertHaproxy(bytes, output);
    default:
      return from satisfies never;
  }
}

/** Several files together: what one of them protects in another one stays protected. */
async function convertTree(
  from: ImportSource,
  tree: SourceTree,
  { output, context }: Converting,
): Promise<void> {
  switch (from) {
    case "kong":
      return await convertKongFiles(tree, output, context);
    case "npm": {
      const database = mainFile(from, tree);
      const findFile = npmFiles(tree, database);
      return await convertNpm(bytesIn(tree, database), output, { ...context, findFile });
    }
    case "nginx": {
      const { bytes, files } = nginxSetUp(tree);
      return await convertNginx(bytes, output, { files });
    }
    case "traefik":
      return await convertTraefikFiles(tree, output, context);
    case "compose":
      return await convertComposeProjects(tree, output, context);
    case "caddy":
    case "haproxy":
      return await convertFile(from, bytesIn(tree, mainFile(from, tree)), { output, context });
    default:
      return from satisfies never;
  }
}
