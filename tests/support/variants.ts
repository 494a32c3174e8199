// The forms in which the program is tested end to end: from source and as the compiled executable.
import { existsSync } from "node:fs";
import { resolve } from "node:path";

export interface Variant {
  readonly name: string;
  /** For `startGateway` and `runCommand`; empty: the sources. */
  readonly binary: string;
}

export const executable = resolve(import.meta.dir, "../../dist/sluice");

export const variants: readonly Variant[] = [
  { name: "from source", binary: "" },
  { name: "as the executable", binary: executable },
];

/** A test that quietly left out the executable would prove nothing about what people run. */
export function requireExecutable(): void {
  if (!existsSync(executable))
    throw new Error(`${executable} is missing; run \`make build\` first`);
}
