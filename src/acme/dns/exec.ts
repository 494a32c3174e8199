// TXT records through a local program that is allowed on the command line; no shell, no environment.
import { type ChildProcess, spawn } from "node:child_process";
import { Type as t } from "@sinclair/typebox";
import { defineDnsProvider, settings } from "./definition.ts";
import { DnsError } from "./failure.ts";
import type { TxtRecord } from "./provider.ts";

export default defineDnsProvider({
  type: "exec",
  title: "Local program",
  help: "Start the gateway with --dns-exec and the path of the program. The gateway runs it with `present` or `cleanup`, the name of the record with a final dot, and its text.",
  config: settings({
    program: t.String({
      maxLength: 4096,
      pattern: "^/[^\\x00-\\x1f]+$",
      errorMessage: "must be an absolute path",
      description: "Path of the program, exactly as given to --dns-exec",
    }),
    arguments: t.Array(t.String({ maxLength: 1024, pattern: "^[^\\x00]*$" }), {
      maxItems: 20,
      default: [],
      description: "Arguments before present or cleanup",
    }),
    timeout: t.Integer({
      minimum: 1,
      maximum: 600,
      default: 60,
      description: "Seconds after which the gateway kills the program",
    }),
  }),
  example: { program: "/usr/local/bin/update-dns" },
  create(config, { programs, signal }) {
    const run = async (verb: string, { fqdn, value }: TxtRecord) => {
      if (!programs.includes(config.program))
        throw new DnsError(
          `${config.program} is not allowed: start the gateway with --dns-exec ${config.program}`,
        );
      await runProgram([...config.arguments, verb, `${fqdn}.`, value], { ...config, signal });
    };
    return {
      present: (record) => run("present", record),
      cleanUp: (record) => run("cleanup", record),
    };
  },
});

interface Run {
  readonly program: string;
  /** Seconds. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
}

/** Its output is discarded: it could contain secrets, and is unlimited. */
async function runProgram(args: readonly string[], run: Run): Promise<void> {
  const { program, timeout, signal } = run;
  signal?.throwIfAborted();
  const child = spawn(program, args, {
    cwd: "/",
    env: {},
    stdio: "ignore",
    // A separate process group, to kill its child processes too.
    detached: true,
  });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    endGroup(child);
  }, timeout * 1000);
  const abort = () => endGroup(child);
  signal?.addEventListener("abort", abort, { once: true });
  try {
    const outcome = await outcomeOf(child);
    signal?.throwIfAborted();
    if (isLate) throw new DnsError(`${program} did not exit within ${timeout} s and was killed`);
    if (outcome !== "0") throw new DnsError(`${program} exited with ${outcome}`);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

const outcomeOf = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    child.once("error", (error: NodeJS.ErrnoException) =>
      reject(new DnsError(`${child.spawnfile} cannot be run (${error.code ?? "unknown reason"})`)),
    );
    child.once("exit", (code, signal) => resolve(signal ?? (code === 0 ? "0" : `code ${code}`)));
  });

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process has exited already.
  }
}
