// Fuzzing of one property per target with random inputs, the same for a long run and for the short one.
import fc from "fast-check";

export interface Run {
  readonly cases: number;
  readonly seed: number;
}

export interface Failure {
  readonly seed: number;
  /** Cases that passed before. */
  readonly passed: number;
  /** The smallest input that fails, as an expression. */
  readonly input: string;
  readonly error: string;
}

export interface FuzzTarget {
  /** Also the name of its file in targets/. */
  readonly name: string;
  /** Its share of a thousand cases of a full run: slower targets get fewer. */
  readonly share: number;
  /** Null: nothing was found. */
  readonly run: (run: Run) => Promise<Failure | null>;
  /** Runs one input, such as the one that a failure names. Throws on failure. */
  readonly check: (input: never) => void | Promise<void>;
}

interface Definition<T> {
  readonly name: string;
  readonly share: number;
  readonly inputs: fc.Arbitrary<T>;
  /** Throws when the property does not hold. */
  readonly check: (input: T) => void | Promise<void>;
}

/** The input as the target's property sees it: a throw is a failure. */
export function defineTarget<T>({ name, share, inputs, check }: Definition<T>): FuzzTarget {
  return { name, share, check: check as FuzzTarget["check"], run };

  async function run({ cases, seed }: Run): Promise<Failure | null> {
    const property = fc.asyncProperty(inputs, async (input) => await check(input));
    const result = await fc.check(property, { numRuns: cases, seed });
    if (!result.failed) return null;
    const error = result.errorInstance;
    return {
      seed: result.seed,
      passed: result.numRuns - 1,
      input: written(result.counterexample?.[0]),
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    };
  }
}

/** As an expression of plain characters, so that it survives being copied. */
const written = (input: unknown): string =>
  fc
    .stringify(input)
    .replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** A test that fails as the run did, for the tests of the fixed code. */
export const testOf = (target: FuzzTarget, { seed, input }: Failure): string =>
  `import { test } from "bun:test";
import { target } from "../../fuzz/targets/${target.name}.ts";

test("${target.name}: what seed ${seed} found", async () => {
  await target.check(${input} as never);
});
`;

/** Fails with both values when they differ. */
export function mustEqual(found: unknown, wanted: unknown, what: string): void {
  if (Bun.deepEquals(found, wanted)) return;
  throw new Error(`${what}: ${fc.stringify(found)} instead of ${fc.stringify(wanted)}`);
}

/** Fails when it does not hold. */
export function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}
