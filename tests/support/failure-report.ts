// What a failed test prints beside its error: the gateways that ran meanwhile, their logs and last requests, and the seed.
import { AsyncLocalStorage } from "node:async_hooks";

/** Of each log. */
const LINES = 80;

/** A log has lines with whole stack traces and documents. */
const LINE_LENGTH = 2000;

/** A program under test. */
export interface Reporter {
  /** How long its log is, in a unit of its own. */
  readonly logSize: number;
  /** Its log from one size to another one, in lines. */
  logBetween(from: number, to: number): string;
  /** What it is, and in what state. */
  state(): string[];
  /** Its last requests. */
  requests(): Promise<string[]>;
}

/** One run of a test or of a hook. */
interface Run {
  readonly label: string;
  readonly begun: number;
  readonly timeoutMs: number;
  /** Length of each log when it began. */
  readonly marks: ReadonlyMap<Reporter, number>;
  endedAt: number;
  /** The report, made shortly before the timeout: at the timeout Bun kills the processes that the test started. */
  beforeTimeout: string;
}

interface Program {
  /** The test that started it; null: a hook, or the file. */
  readonly owner: Run | null;
  /** When tests stopped it. */
  stoppedAt: number;
}

const current = new AsyncLocalStorage<Run>();
const runs = new Set<Run>();
const programs = new Map<Reporter, Program>();
const seeds = new Set<number>();

/** Includes a program in the reports of tests that fail while it runs. */
export function reportWith(reporter: Reporter): void {
  programs.set(reporter, {
    owner: current.getStore() ?? null,
    stoppedAt: Number.POSITIVE_INFINITY,
  });
}

/** It is left out of the reports of tests that begin later. */
export function reportNoMore(reporter: Reporter): void {
  const program = programs.get(reporter);
  if (program !== undefined) program.stoppedAt = performance.now();
}

/** Includes the seed in the reports of this file. */
export function reportSeed(seed: number): void {
  seeds.add(seed);
}

/** A file of tests begins: what another one in this process used is no part of its reports. */
export function beginFile(): void {
  programs.clear();
  seeds.clear();
}

/** Runs a test or a hook, and prints the report before its failure. */
export function reportOn(label: string, timeoutMs: number, call: () => unknown): unknown {
  if (runs.size === 0) forgetStopped();
  const marks = new Map([...programs.keys()].map((each) => [each, each.logSize]));
  const begun = performance.now();
  const run: Run = {
    label,
    begun,
    timeoutMs,
    marks,
    endedAt: Number.POSITIVE_INFINITY,
    beforeTimeout: "",
  };
  runs.add(run);
  try {
    const result = current.run(run, call);
    if (result instanceof Promise) return settle(run, result);
    end(run);
    return result;
  } catch (error) {
    return fail(run, error);
  }
}

async function settle(run: Run, result: Promise<unknown>): Promise<unknown> {
  const prepare = async () => {
    run.beforeTimeout = await reportOf(run, `has not ended after ${sinceBegin(run)} ms`);
  };
  const timer = setTimeout(prepare, run.timeoutMs - Math.min(1000, run.timeoutMs / 5));
  timer.unref();
  try {
    return await result;
  } catch (error) {
    return await fail(run, error);
  } finally {
    clearTimeout(timer);
    end(run);
  }
}

async function fail(run: Run, error: unknown): Promise<never> {
  const text = await reportOf(run, `failed after ${sinceBegin(run)} ms`);
  // One that failed after its timeout has its report.
  if (runs.has(run)) print(text);
  end(run);
  throw error;
}

/** After each test: prints the reports of those that did not end in time, of which only Bun knows. */
export function reportTimeouts(): void {
  for (const run of runs) {
    if (sinceBegin(run) < run.timeoutMs * 0.95) continue;
    print(run.beforeTimeout);
    end(run);
  }
}

function end(run: Run): void {
  run.endedAt = performance.now();
  runs.delete(run);
}

const sinceBegin = ({ begun }: Run): number => Math.round(performance.now() - begun);

function forgetStopped(): void {
  for (const [reporter, { stoppedAt }] of programs)
    if (Number.isFinite(stoppedAt)) programs.delete(reporter);
}

/** Empty when the test used neither a gateway nor a seed. */
async function reportOf(run: Run, what: string): Promise<string> {
  const used = [...programs].filter(([, program]) => concerns(program, run));
  const parts = await Promise.all(used.map(([reporter]) => partOf(reporter, run)));
  const seed = [...seeds].map((each) => `seed ${each}: repeat with SLUICE_TEST_SEED=${each}`);
  const lines = [...parts.flat(), ...seed];
  if (lines.length === 0) return "";
  // The marks that .ci/run looks for.
  const [first, last] = [`== report: "${run.label}" ${what}`, "== end of report"];
  return [first, ...lines, last].join("\n");
}

/** Not those of tests that ran at the same time. */
const concerns = ({ owner, stoppedAt }: Program, run: Run): boolean =>
  owner === run || (stoppedAt > run.begun && (owner?.endedAt ?? 0) < run.begun);

async function partOf(reporter: Reporter, { marks }: Run): Promise<string[]> {
  const mark = marks.get(reporter) ?? 0;
  const linesOf = (text: string) => text.split("\n").filter((line) => line !== "");
  const before = linesOf(reporter.logBetween(0, mark));
  const during = linesOf(reporter.logBetween(mark, reporter.logSize));
  const begin = mark === 0 ? [] : ["(the test begins)"];
  const log = [...before.slice(-LINES), ...begin, ...during].slice(-LINES);
  const requests = await reporter.requests();
  const quoted = (line: string) => `    ${line.slice(0, LINE_LENGTH)}`;
  return [
    ...reporter.state(),
    `  log, ${log.length} of ${before.length + begin.length + during.length} lines:`,
    ...log.map(quoted),
    ...requests.map((line) => `  ${line.slice(0, LINE_LENGTH)}`),
  ];
}

function print(text: string): void {
  if (text !== "") console.error(text);
}
