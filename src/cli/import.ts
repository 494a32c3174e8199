// The command `import`: imports a configuration file, of Sluice or of another program, into a running gateway; knows no object.
import { parseJson } from "../api/json-body.ts";
import { type ImportChoice, type ImportSource, importSources } from "../import/programs.ts";
import { openTables } from "../import/foreign-tables.ts";
import { groupReport, type ReportEntry } from "../import/report.ts";
import { ApiError } from "../model/error.ts";
import { importModes } from "../model/export-document.ts";
import type { PluginCatalogue } from "../snapshot/plugin-config.ts";
import type { HostResult } from "../import/host-results.ts";
import type { OutputOptions } from "../import/output.ts";
import { suggestion } from "../model/suggestion.ts";
import { outputFlag, resultPrinter } from "./output.ts";
import { withProgress } from "./progress.ts";
import { fileProblem } from "../model/file-problem.ts";
import type { Command, CommandContext } from "./command.ts";
import {
  countChanges,
  describeChanges,
  type DocumentFile,
  readDocument,
  sendDocument,
} from "./document-file.ts";
import { type Flag, parseFlags } from "./flags.ts";
import {
  CommandError,
  forceFlag,
  managementClient,
  managementFlags,
  reportingErrors,
} from "./management-client.ts";
import { isArchive, isFolder, openSetUp } from "./import-source.ts";
import { takeOperand } from "./operands.ts";
import { passphraseFlag, passphraseHeaders, passphraseOf } from "./passphrase.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  ...managementFlags,
  {
    name: "mode",
    value: "MODE",
    description: "merge adds and updates; replace also deletes objects that the file does not hold",
    choices: importModes,
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
    choices: importSources,
  },
  {
    name: "details",
    value: null,
    description:
      "With another program's configuration: print the result of every object, not a line for each host",
  },
  {
    name: "agree-acme-terms",
    value: null,
    description:
      "With --from: you agree to the terms of the CAs that the imported ACME accounts use",
  },
  {
    name: "letsencrypt",
    value: "DIR",
    description:
      "With --from npm: the folder that its container has as /etc/letsencrypt; default: letsencrypt beside the data folder",
  },
  forceFlag,
  passphraseFlag,
  outputFlag,
];

/** `plugins`: all plugins of the gateway. */
export const createImport = (plugins: PluginCatalogue): Command => ({
  name: "import",
  summary: "Import a configuration file into a running gateway, atomically",
  usage: "FILE|DIR",
  details:
    "FILE is an export, YAML or JSON, plain or encrypted; - is standard input. The gateway validates it as a whole and\n" +
    "applies it as one change, which restoring the previous revision reverts. DIR, or an archive (zip, tar, tar.gz), is\n" +
    "the whole set-up of another program: its files are read together. Without --from, the files say which program it\n" +
    "is. With --from caddy it may also be a Caddyfile: the `caddy` on the PATH then converts it to JSON. With --from\n" +
    "npm, DIR is the data folder of Nginx Proxy Manager: its certificates are read from there.",
  flags,
  run(argv, { env, print }) {
    const { operand: path, rest } = takeOperand(flags, argv, "FILE");
    const given = parseFlags(flags, rest, env);
    const mode = given.get("mode") ?? "merge";
    if (mode !== "merge" && mode !== "replace")
      throw new UsageError(
        `--mode: must be merge or replace, not "${mode}"${suggestion(mode, ["merge", "replace"])}`,
      );
    const from = decodeSource(given.get("from"));
    const show = resultPrinter(given, print);
    const sending = {
      mode,
      dryRun: given.has("dry-run"),
      force: given.has("force"),
      headers: passphraseHeaders(passphraseOf(given, env)),
    } as const;
    return reportingErrors(async () => {
      const call = managementClient(given, env);
      const isSetUp = from === null && (isFolder(path) || isArchive(path));
      if (from === null && !isSetUp) {
        const file = readDocument(path);
        const sent = sendDocument(call, file, sending);
        const { changes } = await withProgress(`the gateway imports ${path}`, sent);
        show({ changes }, describeChanges(changes));
        return 0;
      }
      const convert = converted(from ?? "auto", path, {
        plugins,
        agreesTerms: given.has("agree-acme-terms"),
        letsencrypt: given.get("letsencrypt") ?? null,
        env,
      });
      const { file, report, hosts } = await withProgress(`${path} is converted`, convert);
      try {
        const sent = sendDocument(call, file, { ...sending, isConverted: true });
        const answer = await withProgress(`the gateway imports ${path}`, sent);
        const all = [...report, ...answer.report];
        const isLong = given.has("details");
        const changes = isLong ? describeChanges(answer.changes) : countChanges(answer.changes);
        const own = isLong ? describeReport(all) : describeHosts(hosts, all);
        show({ hosts, report: all, changes: answer.changes }, `${own}${changes}`);
      } catch (error) {
        // What the file lacks may be the reason.
        show({ hosts, report }, describeReport(report));
        throw error;
      }
      return 0;
    });
  },
});

function decodeSource(text: string | undefined): ImportSource | null {
  if (text === undefined) return null;
  const source = importSources.find((word) => word === text);
  if (source !== undefined) return source;
  throw new UsageError(
    `--from: must be one of ${importSources.join(", ")}, not "${text}"${suggestion(text, importSources)}`,
  );
}

interface Converting extends OutputOptions {
  readonly letsencrypt: string | null;
  readonly env: CommandContext["env"];
}

interface ConvertedFile {
  readonly file: DocumentFile;
  readonly report: readonly ReportEntry[];
  readonly hosts: readonly HostResult[];
}

async function converted(
  choice: ImportChoice,
  path: string,
  { letsencrypt, env, ...options }: Converting,
): Promise<ConvertedFile> {
  try {
    const opened = await openSetUp(choice, path, { letsencrypt, env });
    const { from, source, ...files } = opened;
    const context = { ...options, ...files, parseJson, openTables };
    // Loaded only when it is asked for.
    const { convert } = await import("../import/convert.ts");
    const { document, report, hosts } = await convert(from, source, context);
    return { file: { text: JSON.stringify(document), type: "json" }, report, hosts };
  } catch (error) {
    const isExplained = error instanceof ApiError || (error as NodeJS.ErrnoException).code;
    if (!isExplained) throw error;
    throw new CommandError(`${path}: ${fileProblem(error)}`, { cause: error });
  }
}

const SIGNS = {
  closed: "closed",
  partly_closed: "partly closed",
  changed: "changed",
  imported: "imported",
} as const;

/** A line for each host, and one for each other kind of result. */
function describeHosts(hosts: readonly HostResult[], report: readonly ReportEntry[]): string {
  const width = Math.max(0, ...hosts.map(({ host }) => host.length));
  const lines = hosts.map(({ host, state, routes, closed, why }) => {
    const count = state === "partly_closed" ? ` (${closed} of ${routes} routes)` : "";
    const reason = why === null ? "" : `: ${printable(why)}`;
    return `${printable(host).padEnd(width)}  ${SIGNS[state]}${count}${reason}`;
  });
  const count = (level: string) => report.filter((entry) => entry.level === level).length;
  const rest = `${count("omitted")} not imported, ${count("changed")} imported with differences: --details lists them`;
  return `${[...lines, rest].join("\n")}\n`;
}

const headings = {
  omitted: "Not imported:",
  changed: "Imported with differences:",
  imported: "Imported:",
} as const;

/** Under a heading for each level, a line for each object, or one for each cause with its objects below. Names come from a file
 * that may hold anything. */
function describeReport(report: readonly ReportEntry[]): string {
  const groups = groupReport(report);
  const lines = Object.entries(headings).flatMap(([level, heading]) => {
    const texts = groups
      .filter((group) => group.level === level)
      .flatMap(({ why, what: [first = "", ...others] }) =>
        others.length === 0
          ? [`  ${printable(first)}: ${printable(why)}`]
          : [`  ${printable(why)}:`, ...[first, ...others].map((one) => `    ${printable(one)}`)],
      );
    return texts.length === 0 ? [] : [heading, ...texts, ""];
  });
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

const printable = (text: string) => text.replaceAll(/\p{C}/gu, " ");
