// Decides whether a regular expression may run on client input; knows nothing of its use.
import type { Diagnostics } from "recheck";
import { findRecheck } from "./recheck.ts";

const MAX_LENGTH = 1024;
const TIMEOUT_MS = 2000;
/** On a busy machine the same work takes many times as long: a safe expression must pass there as well. */
const LONGEST_TIMEOUT_MS = 10_000;
/** Processor time; a check needs a tenth of it. */
const ENOUGH_MS = 1000;
const MAX_CACHED = 4096;

/** Verdicts by source: a check takes 5 to 130 ms, and one change validates every route again. */
const verdicts = new Map<string, string | null>();

/** A text in either case, as redirects have by the hundreds: it repeats nothing, and a check of each would take seconds together. */
const LITERAL = /^\^?(?:[\w\-/~%@]|\\\.|\[[A-Za-z]{2}\])*(?:\(\?:%0A\)\?)?\$?$/;

/**
 * Null when the expression is valid and cannot backtrack for long; otherwise the problem with the attack string, worded to
 * follow a field name. Rejects an expression that cannot be checked in 2 s, or 10 s on a busy machine. Runs when a resource is
 * written, never while traffic is served.
 */
export function regexProblem(source: string): string | null {
  if (source.length <= MAX_LENGTH && LITERAL.test(source)) return null;
  const known = verdicts.get(source);
  if (known !== undefined) return known;
  const { problem, isFinal } = check(source);
  if (isFinal) {
    if (verdicts.size >= MAX_CACHED) verdicts.clear();
    verdicts.set(source, problem);
  }
  return problem;
}

/**
 * The parts of a check have limits of work. Their timeouts are disabled: on a busy machine, an early timeout reports a safe
 * expression as slow.
 */
const PARTS = { seedingTimeout: null, incubationTimeout: null, attackTimeout: null } as const;

function judged(source: string): Diagnostics {
  const { checkSync } = findRecheck();
  const before = process.threadCpuUsage();
  const result = checkSync(source, "", { ...PARTS, timeout: TIMEOUT_MS });
  if (result.status !== "unknown" || result.error.kind !== "timeout") return result;
  const { user, system } = process.threadCpuUsage(before);
  if ((user + system) / 1000 >= ENOUGH_MS) return result;
  return checkSync(source, "", { ...PARTS, timeout: LONGEST_TIMEOUT_MS });
}

/** Not final: the verdict depends on the load of the machine and is not cached. */
function check(source: string): { readonly problem: string | null; readonly isFinal: boolean } {
  if (source.length > MAX_LENGTH) {
    return { problem: `must not be longer than ${MAX_LENGTH} characters`, isFinal: false };
  }
  try {
    new RegExp(source);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { problem: `must be a regular expression: ${lowerFirst(reason)}`, isFinal: true };
  }
  const result = judged(source);
  if (result.status === "safe") return { problem: null, isFinal: true };
  if (result.status === "vulnerable") {
    const { complexity, attack } = result;
    const problem = `must match in linear time, but takes ${complexity.type} time on ${attack.pattern}`;
    return { problem, isFinal: true };
  }
  return {
    problem: `could not be proven to match in linear time (${result.error.kind}): simplify it`,
    isFinal: result.error.kind !== "timeout",
  };
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}
