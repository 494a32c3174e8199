// The commands `diff` and `apply`: compare a configuration file with a running gateway, and apply it; know no object.
import { outputFlag, resultPrinter } from "./output.ts";
import { withProgress } from "./progress.ts";
import type { Command } from "./command.ts";
import { describeChanges, readDocument, sendDocument } from "./document-file.ts";
import { type Flag, parseFlags } from "./flags.ts";
import {
  forceFlag,
  managementClient,
  managementFlags,
  reportingErrors,
} from "./management-client.ts";
import { takeOperand } from "./operands.ts";
import { passphraseFlag, passphraseHeaders, passphraseOf } from "./passphrase.ts";

const shared: readonly Flag[] = [
  ...managementFlags,
  {
    name: "prune",
    value: null,
    description:
      "Delete objects that the lists in the file do not hold; lists that it lacks stay unchanged",
  },
  forceFlag,
  passphraseFlag,
  outputFlag,
];

const diffFlags: readonly Flag[] = [
  ...shared,
  { name: "exit-code", value: null, description: "Exit with code 1 when there are differences" },
];

export const diffCommand: Command = {
  name: "diff",
  summary: "Show what apply would change in a running gateway",
  usage: "FILE",
  details:
    "Validates the file as apply would, and changes nothing. FILE may be - for standard input.",
  flags: diffFlags,
  run: (argv, context) => send(diffFlags, { argv, dryRun: true }, context),
};

export const applyCommand: Command = {
  name: "apply",
  summary: "Apply a configuration file to a running gateway, atomically",
  usage: "FILE",
  details: "Applying the same file again changes nothing. FILE may be - for standard input.",
  flags: shared,
  run: (argv, context) => send(shared, { argv, dryRun: false }, context),
};

function send(
  flags: readonly Flag[],
  { argv, dryRun }: { readonly argv: readonly string[]; readonly dryRun: boolean },
  { env, print }: Parameters<Command["run"]>[1],
): Promise<number> {
  const { operand: path, rest } = takeOperand(flags, argv, "FILE");
  const given = parseFlags(flags, rest, env);
  const show = resultPrinter(given, print);
  return reportingErrors(async () => {
    const sent = sendDocument(managementClient(given, env), readDocument(path), {
      mode: given.has("prune") ? "replace" : "merge",
      dryRun,
      force: given.has("force"),
      headers: passphraseHeaders(passphraseOf(given, env)),
    });
    const work = dryRun ? "compares" : "applies";
    const { changes } = await withProgress(`the gateway ${work} ${path}`, sent);
    show({ changes }, describeChanges(changes));
    return dryRun && given.has("exit-code") && changes.length > 0 ? 1 : 0;
  });
}
