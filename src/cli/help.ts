// The help texts, built from the descriptions of commands; knows no command by name but its own.
import { suggestion } from "../model/suggestion.ts";
import type { Command } from "./command.ts";
import { environmentName } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

/** The command `help` for the other commands. */
export function createHelp(others: readonly Command[]): Command {
  const help: Command = {
    name: "help",
    summary: "Show this list, or the help of one command",
    usage: "[COMMAND]",
    flags: [],
    run([word], { print }) {
      print(word === undefined ? overview([...others, help]) : helpOf(find(word)));
      return Promise.resolve(0);
    },
  };
  const find = (word: string) => findCommand([...others, help], word);
  return help;
}

/** Throws a UsageError when there is no such command. */
export function findCommand(commands: readonly Command[], word: string): Command {
  const found = commands.find((command) => command.name === word);
  if (found !== undefined) return found;
  const names = commands.map((command) => command.name);
  throw new UsageError(`unknown command "${word}"${suggestion(word, names)}`);
}

export function helpOf(command: Command): string {
  const words = ["sluice", command.name];
  if (command.flags.length > 0) words.push("[FLAGS]");
  if (command.usage !== undefined) words.push(command.usage);
  const lines = [`${command.summary}.`, "", `Usage: ${words.join(" ")}`];
  if (command.details !== undefined) lines.push("", command.details);
  if (command.flags.length > 0) {
    lines.push("", "Flags, each also as an environment variable:");
    for (const flag of command.flags) {
      const name = flag.value === null ? `--${flag.name}` : `--${flag.name} ${flag.value}`;
      const fallback = flag.fallback === undefined ? "" : ` (default: ${flag.fallback})`;
      lines.push(`  ${name}`, `      ${flag.description}${fallback}`);
      lines.push(`      ${environmentName(flag.name)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const rows = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    "Sluice, a self-hosted HTTP and TCP gateway, configured at run time.",
    "",
    "Usage: sluice COMMAND [FLAGS]",
    "",
    ...rows,
    "",
    "Help of a command: sluice help COMMAND",
    "",
  ].join("\n");
}
