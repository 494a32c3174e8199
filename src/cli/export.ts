// The command `export`: writes the configuration of a running gateway to a file or standard output; knows no object.
import { suggestion } from "../model/suggestion.ts";
import { lstatSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { writeProblem } from "../model/file-problem.ts";
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
  {
    name: "format",
    value: "FORMAT",
    description: "yaml or json",
    choices: ["yaml", "json"],
    fallback: "yaml",
  },
  { name: "output", value: "FILE", description: "File to write", fallback: "standard output" },
  {
    name: "minimal",
    value: null,
    description: "Without defaults, times and ids, for a repository; not with --secrets",
  },
  {
    name: "secrets",
    value: null,
    description:
      "Export everything including secrets, users and tokens, encrypted with a passphrase",
  },
  passphraseFlag,
];

export const exportCommand: Command = {
  name: "export",
  summary: "Export the configuration of a running gateway to one file",
  details:
    "Without --secrets, the file has no users and tokens, and secrets are masked: it is fit for a repository. With\n" +
    "--secrets it is encrypted as a whole and restores the gateway. Without the passphrase it cannot be recovered.",
  flags,
  run(argv, { env, print }) {
    const given = parseFlags(flags, argv, env);
    const format = given.get("format") ?? "yaml";
    if (format !== "yaml" && format !== "json")
      throw new UsageError(
        `--format: must be yaml or json, not "${format}"${suggestion(format, ["yaml", "json"])}`,
      );
    const secrets = given.has("secrets");
    const minimal = given.has("minimal");
    if (secrets && minimal) throw new UsageError("--minimal: is not valid with --secrets");
    return reportingErrors(async () => {
      const text = await managementClient(
        given,
        env,
      )({
        method: "GET",
        path: `/export?format=${format}&secrets=${secrets ? 1 : 0}${minimal ? "&minimal=1" : ""}`,
        headers: secrets ? passphraseHeaders(passphraseOf(given, env)) : {},
      });
      const output = given.get("output");
      if (output === undefined) print(text);
      else write(output, text);
      return 0;
    });
  },
};

/** Atomically, and with mode 600, whatever mode an existing file had. */
function write(path: string, text: string): void {
  const unfinished = `${path}.${process.pid}.part`;
  try {
    // Pipes, links and devices are written to directly.
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
    throw new CommandError(`${path}: ${writeProblem(error)}`, { cause: error });
  }
}
