// Starts programs on one core and reads their processor time and memory from /proc; knows nothing of proxies.
import { readdirSync, readFileSync } from "node:fs";

import type { Subprocess } from "bun";
import { outputOf } from "../support/child-output.ts";

export const PROXY_CORE = 0;
export const LOAD_CORE = 1;

const MICROSECONDS_PER_TICK =
  1_000_000 / Number(Bun.spawnSync(["getconf", "CLK_TCK"]).stdout.toString().trim() || 100);

export interface StartOptions {
  readonly command: readonly string[];
  /** The one core it may use; undefined lets it use all. */
  readonly core: number | undefined;
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface RunningProgram {
  readonly pid: number;
  readonly hasExited: () => boolean;
  readonly stop: () => Promise<void>;
}

/** Prefixes a command so that all its threads stay on one core, if one is named. */
export function pinned(core: number | undefined, command: readonly string[]): string[] {
  return core === undefined ? [...command] : ["taskset", "-c", String(core), ...command];
}

/** Starts a program that goes on running; what it prints goes to the log file. */
export function startProgram(options: StartOptions): RunningProgram {
  const child: Subprocess = Bun.spawn(pinned(options.core, options.command), {
    env: { ...process.env, ...options.env },
    stdin: "ignore",
    stdout: Bun.file(options.logFile),
    stderr: Bun.file(options.logFile),
  });
  return {
    pid: child.pid,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    stop: () => stopChild(child),
  };
}

async function stopChild(child: Subprocess): Promise<void> {
  child.kill("SIGTERM");
  const killer = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await child.exited;
  clearTimeout(killer);
}

/** Runs a program to its end on one core and returns what it printed. */
export async function runProgram(
  core: number | undefined,
  command: readonly string[],
): Promise<string> {
  const child = Bun.spawn(pinned(core, command), {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const { code, stdout, stderr } = await outputOf(child);
  if (code !== 0) throw new Error(`${command[0]} failed: ${stderr.trim() || stdout.trim()}`);
  return stdout;
}

/** User and system time, in microseconds, of all threads of a process and its descendants since their start. */
export function processorTimeUs(pid: number): number {
  const ticks = sumOfStat(pid, (fields) => Number(fields[11] ?? 0) + Number(fields[12] ?? 0));
  return ticks * MICROSECONDS_PER_TICK;
}

/** Minor page faults of all threads of a process and its descendants since their start: pages that the system handed out. */
export const minorFaults = (pid: number): number =>
  sumOfStat(pid, (fields) => Number(fields[7] ?? 0));

/** `fields` are those of proc_pid_stat(5) from the third on. */
function sumOfStat(pid: number, pick: (fields: readonly string[]) => number): number {
  let sum = 0;
  for (const member of processTree(pid)) {
    // The name in brackets may itself hold spaces: count fields from behind its last bracket.
    const stat = readProc(`${member}/stat`);
    sum += pick(stat.slice(stat.lastIndexOf(")") + 2).split(" "));
  }
  return sum;
}

/** Resident memory of a process and its descendants, in bytes; a page that two of them share counts twice. */
export function residentBytes(pid: number): number {
  let kilobytes = 0;
  for (const member of processTree(pid)) {
    kilobytes += Number(/^VmRSS:\s+(\d+) kB/m.exec(readProc(`${member}/status`))?.[1] ?? 0);
  }
  return kilobytes * 1024;
}

function processTree(pid: number): number[] {
  const members = [pid];
  for (let index = 0; index < members.length; index += 1) {
    const member = members[index]!;
    for (const thread of listProc(`${member}/task`)) {
      const children = readProc(`${member}/task/${thread}/children`).trim();
      if (children !== "") members.push(...children.split(" ").map(Number));
    }
  }
  return members;
}

// A process may end between two reads: then there is no more data.
function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, "utf8");
  } catch {
    return "";
  }
}

function listProc(path: string): string[] {
  try {
    return readdirSync(`/proc/${path}`);
  } catch {
    return [];
  }
}

/** Polls until the check returns a value other than undefined; throws at the deadline. */
export async function waitFor<T>(
  what: string,
  timeoutMs: number,
  check: () => Promise<T | undefined>,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  while (performance.now() < deadline) {
    try {
      const value = await check();
      if (value !== undefined) return value;
    } catch (error) {
      lastError = error;
    }
    await Bun.sleep(5);
  }
  throw new Error(`${what} did not happen within ${timeoutMs} ms`, { cause: lastError });
}

/** A free port of 127.0.0.1. */
export function freePort(): number {
  for (;;) {
    const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { port } = server;
    server.stop(true);
    if (givenPorts.has(port)) continue;
    givenPorts.add(port);
    return port;
  }
}

/** The system may offer a port again before the program that it was meant for listens. */
const givenPorts = new Set<number>();
