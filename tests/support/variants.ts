// The forms in which the program is tested end to end: from source and as the compiled executable.
import { resolve } from "node:path";
import type { Need } from "./needs.ts";

export interface Variant {
  readonly name: string;
  /** For `startGateway` and `runCommand`; empty: the sources. */
  readonly binary: string;
  readonly needed: readonly Need[];
}

export const executable = resolve(import.meta.dir, "../../dist/sluice");

export const variants: readonly Variant[] = [
  { name: "from source", binary: "", needed: [] },
  { name: "as the executable", binary: executable, needed: ["executable"] },
];
