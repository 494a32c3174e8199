// The command `export`: writes the configuration of a running gateway to a file or standard output; knows no object.
import { lstatSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import {
  CommandError,
  managementClient,
  managementFlags,
  reportingErrors,
} from "./management-client.ts";
import { passphraseFlag, passphraseHeaders, passphraseOf } from "./passphrase.ts";
import { UsageError } from "./usage-error.ts";

const flags: readonly Flag[] = [
  ...managementFlags,
  { name: "format", value: "FORMAT", description: "yaml or json", fallback: "yaml" },
  { name: "output", value: "FILE", description: "File to write", fallback: "standard output" },
  {
    name: "secrets",
    value: null,
    description: "Everything, secrets, users and tokens among it, encrypted under a passphrase",
  },
  passphraseFlag,
];

export const exportCommand: Command = {
  name: "export",
  summary: "Write the configuration of a running gateway as one document",
  details:
    "Without --secrets, users and tokens are left out and secrets are masked: the document is for a repository. With\n" +
    "--secrets it is encrypted as a whole and restores the gateway; whoever has lost the passphrase has lost it.",
  flags,
  run(argv, { env, print }) {
    const given = parseFlags(flags, argv, env);
    const format = given.get("format") ?? "yaml";
    if (format !== "yaml" && format !== "json")
      throw new UsageError(`--format: must be yaml or json, not "${format}"`);
    return reportingErrors(async () => {
      const secrets = given.has("secrets");
      const text = await managementClient(
        given,
        env,
      )({
        method: "GET",
        path: `/export?format=${format}&secrets=${secrets ? 1 : 0}`,
        headers: secrets ? passphraseHeaders(passphraseOf(given, env)) : {},
      });
      const output = given.get("output");
      if (output === undefined) print(text);
      else write(output, text);
      return 0;
    });
  },
};

/** Whole or not at all, and for the owner only, whatever mode the file had that was there. */
function write(path: string, text: string): void {
  const unfinished = `${path}.${process.pid}.part`;
  try {
    // What is no file, such as a pipe or a link, is written to as it is.
    if (lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) {
      writeFileSync(path, text);
      return;
    }
    try {
      writeFileSync(unfinished, text, { mode: 0o600, flag: "wx" });
      renameSync(unfinished, path);
    } catch (error) {
      rmSync(unfinished, { force: true });
      throw error;
    }
  } catch (error) {
    throw new CommandError(`${path}: ${(error as Error).message}`, { cause: error });
  }
}
