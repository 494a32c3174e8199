// The command `backup`: a consistent copy of the database, also while a gateway serves it; knows no table.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { backUp, type BackupReport } from "../store/backup.ts";
import { StoreError } from "../store/error.ts";
import { secretKeyPath } from "../store/secret-key.ts";
import { stepsOf } from "./progress.ts";
import { writeProblem } from "../model/file-problem.ts";
import type { Command } from "./command.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { takeOperand } from "./operands.ts";
import { outputFlag, resultPrinter } from "./output.ts";
import { dataDirFlag } from "./serve.ts";

const flags: readonly Flag[] = [
  dataDirFlag,
  { name: "force", value: null, description: "Replace an existing FILE" },
  outputFlag,
];

export const backupCommand: Command = {
  name: "backup",
  summary: "Copy the database to a file, also while the gateway runs",
  usage: "FILE",
  details:
    "FILE is one consistent state, with every change that completed before the command began: configuration, users,\n" +
    "tokens, history, audit log, statistics. Its mode is 600. It does not hold the key of the secrets; store the key\n" +
    "separately: without it the encrypted values cannot be read. To restore, put FILE as sluice.db and the key as\n" +
    "secret.key into an empty directory and serve it.",
  flags,
  run(argv, { env, print }) {
    const { operand, rest } = takeOperand(flags, argv, "FILE");
    const given = parseFlags(flags, rest, env);
    const show = resultPrinter(given, print);
    const dataDir = resolve(given.get("data-dir") ?? "./data");
    const target = resolve(operand);
    try {
      const said = stepsOf();
      const report = backUp({
        dataDir,
        target,
        overwrite: given.has("force"),
        onStep: (step) => said(`${target}: ${step}`),
      });
      const { revision, bytes, keyIds } = report;
      show(
        { file: target, revision, bytes, key_ids: keyIds },
        `${target} holds revision ${revision}, ${bytes} bytes.\n${aboutKey(dataDir, report)}\n`,
      );
      return Promise.resolve(0);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      const isOfFile = error.cause instanceof Error && "syscall" in error.cause;
      const why = isOfFile ? `backup to ${target}: ${writeProblem(error.cause)}` : error.message;
      process.stderr.write(`sluice: ${why}\n`);
      return Promise.resolve(1);
    }
  },
};

/** The key that is not in the copy and is required to read it. */
function aboutKey(dataDir: string, { keyIds }: BackupReport): string {
  if (keyIds.length === 0)
    return "It holds no encrypted values, and not the secret.key of the data directory.";
  const path = secretKeyPath(dataDir);
  const source = existsSync(path) ? `is ${path}` : "is the one in SLUICE_SECRET_KEY of the gateway";
  return (
    `It does not hold the key: the encrypted values need the key ${keyIds.join(", ")}, which ${source}. ` +
    "Store a copy of the key separately from this file."
  );
}
