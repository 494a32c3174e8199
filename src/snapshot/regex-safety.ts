// Decides whether a regular expression may run on client input; knows nothing of its use.
import type { Diagnostics } from "recheck";
import { ApiError } from "../model/error.ts";
import { findRecheck } from "./recheck.ts";

/** Processor time for the new expressions of one piece of work, such as a change or the conversion of a file. */
export const REGEX_BUDGET_MS = 60_000;

export const TOO_EXPENSIVE =
  `is one too many: the checks of new regular expressions take more than ${REGEX_BUDGET_MS / 1000} s of processor time. ` +
  "Simplify them, import less at once, or send it again, which goes on from here";

const MAX_LENGTH = 1024;
const TIMEOUT_MS = 2000;
/** On a busy machine the same work takes many times as long: a safe expression must pass there as well. */
const LONGEST_TIMEOUT_MS = 10_000;
/** Processor time; a check needs a tenth of it. */
const ENOUGH_MS = 1000;
const MAX_CACHED = 8192;

/** Verdicts by source, the oldest first: a check takes 5 to 600 ms, and one change validates every route again. */
const verdicts = new Map<string, string | null>();

/** A text in either case, as redirects have by the hundreds: it repeats nothing, and a check of each would take seconds together. */
const LITERAL = /^\^?(?:[\w\-/~%@]|\\\.|\[[A-Za-z]{2}\])*(?:\(\?:%0A\)\?)?\$?$/;

/** What checks in this thread may still cost. */
const spending = { leftMs: Number.POSITIVE_INFINITY };

/** Checks of this thread throw a 400 when they have taken so much processor time together. */
export function limitChecks(ms: number): void {
  spending.leftMs = ms;
}

const cpuSince = (before: NodeJS.CpuUsage): number => {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
};

/** The result of a check. */
export interface RegexVerdict {
  /** Worded to follow a field name; null: none. */
  readonly problem: string | null;
  /** False: it depends on the load of the machine and is not cached. */
  readonly isFinal: boolean;
  /** Processor time that the check has taken. */
  readonly cpuMs: number;
}

/**
 * Null when the expression is valid and cannot backtrack for long; otherwise the problem with the attack string, worded to
 * follow a field name. Rejects an expression that cannot be checked in 2 s, or 10 s on a busy machine. Runs when a resource is
 * written, never while traffic is served, and not in the main thread of a gateway: `RegexChecker` asks a thread.
 */
export const regexProblem = (source: string): string | null => {
  const known = knownProblem(source);
  return known === undefined ? checkRegex(source).problem : known;
};

/** The same without a check; undefined: it needs one. */
export function knownProblem(source: string): string | null | undefined {
  if (source.length > MAX_LENGTH) return `must not be longer than ${MAX_LENGTH} characters`;
  return LITERAL.test(source) ? null : verdicts.get(source);
}

/** All verdicts, for another thread. */
export const allVerdicts = (): readonly (readonly [string, string | null])[] => [...verdicts];

/** Stores the verdict of another thread. */
export function learn(source: string, { problem, isFinal }: Omit<RegexVerdict, "cpuMs">): void {
  if (!isFinal || verdicts.has(source)) return;
  const [oldest] = verdicts.keys();
  if (verdicts.size >= MAX_CACHED && oldest !== undefined) verdicts.delete(oldest);
  verdicts.set(source, problem);
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
  if (cpuSince(before) >= ENOUGH_MS) return result;
  return checkSync(source, "", { ...PARTS, timeout: LONGEST_TIMEOUT_MS });
}

/** Checks the expression in this thread. */
export function checkRegex(source: string): RegexVerdict {
  const known = knownProblem(source);
  if (known !== undefined) return { problem: known, isFinal: true, cpuMs: 0 };
  if (spending.leftMs <= 0)
    throw new ApiError(400, `the regular expression ${source.slice(0, 100)} ${TOO_EXPENSIVE}`);
  const before = process.threadCpuUsage();
  const found = check(source);
  const cpuMs = cpuSince(before);
  spending.leftMs -= cpuMs;
  learn(source, found);
  return { ...found, cpuMs };
}

function check(source: string): Omit<RegexVerdict, "cpuMs"> {
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
