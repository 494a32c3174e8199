// The command `upgrade`: replaces the running gateway of a data directory with a new process; knows no steps of it.
import { accessSync, constants, statSync } from "node:fs";
import { resolve } from "node:path";
import { ApiError } from "../model/error.ts";
import { StoreError } from "../store/error.ts";
import type { Command } from "./command.ts";
import { askGateway, GatewayGoneError } from "./control-socket.ts";
import { type Flag, parseFlags } from "./flags.ts";
import { DEFAULT_DRAIN_SECONDS } from "./replacement.ts";
import { dataDirFlag } from "./serve.ts";
import { UsageError } from "./usage-error.ts";

/** The old process continues: the new one did not serve, or another upgrade is in progress. Or it was killed meanwhile. */
const FAILED = 1;
/** No attempt: no gateway runs, or it cannot be upgraded. */
const IMPOSSIBLE = 3;

const MAX_DRAIN_SECONDS = 86_400;

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "executable",
    value: "PATH",
    description: "The new program",
    fallback: "the program of this command",
  },
  {
    name: "drain",
    value: "SECONDS",
    description: "Drain time for WebSockets, streams and downloads of the old process",
    fallback: String(DEFAULT_DRAIN_SECONDS),
  },
];

export const upgradeCommand: Command = {
  name: "upgrade",
  summary: "Replace the running gateway with a new process, without a dropped connection",
  details:
    "The running gateway starts the program with its own flags and environment. Once the new process serves, the old one\n" +
    "accepts no more connections, drains and exits. If the new process does not serve\n" +
    "within 60 seconds, the old one continues, and the reason is on standard error with exit code 1.\n" +
    "Exit code 3: no attempt, because no gateway serves the directory, or it must be restarted instead.\n" +
    "Run it on the machine of the gateway, as the user who owns the data directory, or root.",
  flags,
  async run(argv, { env, print }) {
    const given = parseFlags(flags, argv, env);
    const dataDir = resolve(given.get("data-dir") ?? "./data");
    const input = {
      argv: decodeProgram(given.get("executable")),
      drain_seconds: decodeDrain(given.get("drain")),
    };
    try {
      const answer = await askGateway(dataDir, "replace", input);
      if (answer === null) throw new StoreError(`no gateway serves ${dataDir}`);
      print(`Process ${answer.pid} serves now, version ${answer.version}.\n`);
      return 0;
    } catch (error) {
      if (!(error instanceof StoreError || error instanceof ApiError)) throw error;
      process.stderr.write(`sluice: ${error.message}\n`);
      if (error instanceof GatewayGoneError) return FAILED;
      return error instanceof ApiError && error.status === 409 ? FAILED : IMPOSSIBLE;
    }
  },
};

/** Virtual directory of the files in a compiled executable. */
const BUNDLED = "/$bunfs/";

function decodeProgram(path: string | undefined): string[] {
  if (path === undefined)
    return Bun.main.startsWith(BUNDLED) ? [process.execPath] : [process.execPath, Bun.main];
  const program = resolve(path);
  try {
    if (!statSync(program).isFile()) throw new UsageError(`--executable: ${program} is not a file`);
    accessSync(program, constants.X_OK);
    return [program];
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--executable: ${program} is not executable`);
  }
}

function decodeDrain(text = String(DEFAULT_DRAIN_SECONDS)): number {
  const seconds = Number(text);
  if (/^\d+$/.test(text) && seconds <= MAX_DRAIN_SECONDS) return seconds;
  throw new UsageError(
    `--drain: must be a whole number of seconds up to ${MAX_DRAIN_SECONDS}, not "${text}"`,
  );
}
