// The interface of a command; knows no command.
import type { Flag } from "./flags.ts";

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Write to standard output. */
  readonly print: (text: string) => void;
}

export interface Command {
  readonly name: string;
  /** One line in the list of commands. */
  readonly summary: string;
  /** Words after the command: `[COMMAND]`. */
  readonly usage?: string;
  /** Details in its own help. */
  readonly details?: string;
  readonly flags: readonly Flag[];
  /** Resolves to the exit code: 0 success, 1 failure. A UsageError means 2. */
  run(argv: readonly string[], context: CommandContext): Promise<number>;
}
