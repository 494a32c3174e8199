// The command `import`: brings a document, or what another program is configured with, into a running gateway; knows no object.
import { readFileSync } from "node:fs";
import { convert, type ImportSource, importSources } from "../control/import/convert.ts";
import { ApiError } from "../model/error.ts";
import type { Command } from "./command.ts";
import { describeChanges, type DocumentFile, readDocument, sendDocument } from "./document-file.ts";
import { type Flag, parseFlags } from "./flags.ts";
import {
  CommandError,
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
    description: "merge adds and updates; replace also deletes what the document does not hold",
    fallback: "merge",
  },
  { name: "dry-run", value: null, description: "Check everything and show it, change nothing" },
  {
    name: "from",
    value: "PROGRAM",
    description: `Read the configuration of another program: ${importSources.join(", ")}`,
  },
  passphraseFlag,
];

export const importCommand: Command = {
  name: "import",
  summary: "Bring a document into a running gateway, all of it or nothing",
  usage: "FILE",
  details:
    "FILE is what export wrote, as YAML or JSON, plain or encrypted; - is standard input. It is checked as a whole and\n" +
    "comes into service as one change, which can be taken back with the revision before it.",
  flags,
  run(argv, { env, print }) {
    const { operand: path, rest } = takeOperand(flags, argv, "FILE");
    const given = parseFlags(flags, rest, env);
    const mode = given.get("mode") ?? "merge";
    if (mode !== "merge" && mode !== "replace")
      throw new UsageError(`--mode: must be merge or replace, not "${mode}"`);
    const from = decodeSource(given.get("from"));
    return reportingErrors(async () => {
      const file = from === null ? readDocument(path) : await converted(from, path);
      const changes = await sendDocument(managementClient(given, env), file, {
        mode,
        dryRun: given.has("dry-run"),
        headers: passphraseHeaders(passphraseOf(given, env)),
      });
      print(describeChanges(changes));
      return 0;
    });
  },
};

function decodeSource(text: string | undefined): ImportSource | null {
  if (text === undefined) return null;
  const source = importSources.find((word) => word === text);
  if (source !== undefined) return source;
  throw new UsageError(`--from: must be one of ${importSources.join(", ")}, not "${text}"`);
}

async function converted(from: ImportSource, path: string): Promise<DocumentFile> {
  try {
    const { document, report } = await convert(from, new Uint8Array(readFileSync(path)));
    for (const line of report) process.stderr.write(`not carried over: ${line}\n`);
    return { text: JSON.stringify(document), type: "json" };
  } catch (error) {
    const isExplained = error instanceof ApiError || (error as NodeJS.ErrnoException).code;
    if (!isExplained) throw error;
    throw new CommandError(`${path}: ${(error as Error).message}`, { cause: error });
  }
}
