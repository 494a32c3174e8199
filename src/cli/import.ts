// The command `import`: imports a configuration file, of Sluice or of another program, into a running gateway; knows no object.
import { readFileSync } from "node:fs";
import { parseJson } from "../api/json-body.ts";
import { type ImportSource, importSources } from "../import/programs.ts";
import { openTables } from "../import/foreign-tables.ts";
import type { ReportEntry } from "../import/report.ts";
import { ApiError } from "../model/error.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { adaptCaddyfile } from "./adapt-caddyfile.ts";
import type { Command, CommandContext } from "./command.ts";
import { describeChanges, type DocumentFile, readDocument, sendDocument } from "./document-file.ts";
import { type Flag, parseFlags } from "./flags.ts";
import {
  CommandError,
  forceFlag,
  managementClient,
  managementFlags,
  reportingErrors,
} from "./management-client.ts";
import { takeOperand } from "./operands.ts";
import { passphraseFlag, passphraseHeaders, passphraseOf } from "./passphrase.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  ...managementFlags,
  {
    name: "mode",
    value: "MODE",
    description: "merge adds and updates; replace also deletes objects that the file does not hold",
    fallback: "merge",
  },
  {
    name: "dry-run",
    value: null,
    description: "Validate the import and show the changes without making them",
  },
  {
    name: "from",
    value: "PROGRAM",
    description: `Read the configuration of another program: ${importSources.join(", ")}`,
  },
  forceFlag,
  passphraseFlag,
];

/** `plugins`: all plugins of the gateway. */
export const createImport = (plugins: PluginCatalogue): Command => ({
  name: "import",
  summary: "Import a configuration file into a running gateway, atomically",
  usage: "FILE",
  details:
    "FILE is an export, YAML or JSON, plain or encrypted; - is standard input. The gateway validates it as a whole and\n" +
    "applies it as one change, which restoring the previous revision reverts. With --from caddy it may also be a\n" +
    "Caddyfile: the `caddy` on the PATH then converts it to JSON.",
  flags,
  run(argv, { env, print }) {
    const { operand: path, rest } = takeOperand(flags, argv, "FILE");
    const given = parseFlags(flags, rest, env);
    const mode = given.get("mode") ?? "merge";
    if (mode !== "merge" && mode !== "replace")
      throw new UsageError(`--mode: must be merge or replace, not "${mode}"`);
    const from = decodeSource(given.get("from"));
    return reportingErrors(async () => {
      const file =
        from === null ? readDocument(path) : await converted(from, path, { plugins, print, env });
      const changes = await sendDocument(managementClient(given, env), file, {
        mode,
        dryRun: given.has("dry-run"),
        force: given.has("force"),
        headers: passphraseHeaders(passphraseOf(given, env)),
      });
      print(describeChanges(changes));
      return 0;
    });
  },
});

function decodeSource(text: string | undefined): ImportSource | null {
  if (text === undefined) return null;
  const source = importSources.find((word) => word === text);
  if (source !== undefined) return source;
  throw new UsageError(`--from: must be one of ${importSources.join(", ")}, not "${text}"`);
}

interface Converting {
  readonly plugins: PluginCatalogue;
  readonly print: (text: string) => void;
  readonly env: CommandContext["env"];
}

async function converted(
  from: ImportSource,
  path: string,
  { plugins, print, env }: Converting,
): Promise<DocumentFile> {
  try {
    const given = new Uint8Array(readFileSync(path === "-" ? "/dev/stdin" : path));
    const bytes = from === "caddy" ? await adapted(path, given, env) : given;
    const context = { plugins, parseJson, openTables };
    // Loaded only when it is asked for.
    const { convert } = await import("../import/convert.ts");
    const { document, report } = await convert(from, bytes, context);
    print(describeReport(report));
    return { text: JSON.stringify(document), type: "json" };
  } catch (error) {
    const isExplained = error instanceof ApiError || (error as NodeJS.ErrnoException).code;
    if (!isExplained) throw error;
    throw new CommandError(`${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** Loaded only when it is asked for. */
const adapted = async (...given: Parameters<typeof adaptCaddyfile>): Promise<Uint8Array> =>
  (await import("./adapt-caddyfile.ts")).adaptCaddyfile(...given);

const headings = {
  omitted: "Not imported:",
  changed: "Imported with differences:",
  imported: "Imported:",
} as const;

/** Under a heading for each level, a line for each entry. Names come from a file that may hold anything. */
function describeReport(report: readonly ReportEntry[]): string {
  const lines = Object.entries(headings).flatMap(([level, heading]) => {
    const entries = report.filter((entry) => entry.level === level);
    const texts = entries.map(({ what, why }) => `  ${printable(what)}: ${printable(why)}`);
    return texts.length === 0 ? [] : [heading, ...texts, ""];
  });
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

const printable = (text: string) => text.replaceAll(/\p{C}/gu, " ");
