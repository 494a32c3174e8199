// Finds and runs the command of a command line, and turns errors that need no stack trace into a sentence and an exit code; knows no
// command.
import { explainedFileError } from "../model/file-problem.ts";
import type { Command } from "./command.ts";
import { createCompletion } from "./completion.ts";
import { createHelp, findCommand, helpOf } from "./help.ts";
import { createManual } from "./manual.ts";
import { isExplained } from "./start-error.ts";
import { UsageError } from "./usage-error.ts";

const ALIASES: Readonly<Record<string, string>> = {
  "--help": "help",
  "-h": "help",
  "--version": "version",
  "-v": "version",
};

/** Resolves to the exit code: 0 success, 1 failure, 2 usage error. */
export async function runCommandLine(
  argv: readonly string[],
  others: readonly Command[],
): Promise<number> {
  const commands = withShellCommands(others);
  const [first = "help", ...words] = argv;
  // The program that reads the output may be slow, and the exit would drop what it has not read.
  let written = Promise.resolve();
  const print = (text: string) => {
    written = new Promise((resolve) => process.stdout.write(text, () => resolve()));
  };
  let about = "";
  try {
    const command = findCommand(commands, ALIASES[first] ?? first);
    about = ` ${command.name}`;
    if (words.includes("--help") || words.includes("-h")) {
      print(helpOf(command));
      return 0;
    }
    return await command.run(words, { env: process.env, print });
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`sluice: ${error.message}\nRun "sluice help${about}" for help.\n`);
      return 2;
    }
    const problem = isExplained(error) ? error.message : explainedFileError(error);
    if (problem === null) throw error;
    process.stderr.write(`sluice: ${problem}\n`);
    return 1;
  } finally {
    await written;
  }
}

/** The commands with those that are about all of them. */
function withShellCommands(others: readonly Command[]): readonly Command[] {
  const commands: Command[] = [
    ...others,
    createCompletion(() => commands),
    createManual(() => commands),
  ];
  commands.push(createHelp([...commands]));
  return commands;
}
