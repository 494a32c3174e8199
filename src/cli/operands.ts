// Separates operands from flags and their values on a command line; knows no command.
import type { Flag } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

/**
 * The operand, and the rest for parseFlags, which rejects unknown flags. `name` is the operand's name in messages, `EMAIL`, or a
 * sentence that says what to name.
 */
export function takeOperand(
  known: readonly Flag[],
  argv: readonly string[],
  name: string,
): { readonly operand: string; readonly rest: readonly string[] } {
  const { operand, rest } = takeOptionalOperand(known, argv);
  if (operand === null) throw new UsageError(/^[A-Z]+$/.test(name) ? `${name} is missing` : name);
  return { operand, rest };
}

/** The same, with null when there is no operand. */
export function takeOptionalOperand(
  known: readonly Flag[],
  argv: readonly string[],
): { readonly operand: string | null; readonly rest: readonly string[] } {
  const rest: string[] = [];
  const operands: string[] = [];
  const words = [...argv];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    // A dash alone is standard input.
    if (word === "-" || !word.startsWith("-")) {
      operands.push(word);
      continue;
    }
    rest.push(word);
    const flag = known.find((candidate) => word === `--${candidate.name}`);
    // Whether the next word is the value of an unknown flag cannot be known: report the flag.
    if (flag === undefined && !word.includes("=")) return { operand: "", rest };
    const value = flag === undefined || flag.value === null ? undefined : words.shift();
    if (value !== undefined) rest.push(value);
  }
  const [operand = null, unexpected] = operands;
  if (unexpected !== undefined) throw new UsageError(`unexpected argument "${unexpected}"`);
  return { operand, rest };
}
