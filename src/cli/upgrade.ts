// The command `upgrade`: has the gateway that serves a data directory replaced by another process; knows nothing of how.
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

/** The gateway serves on: the new process did not serve, or another one is on its way. Or it was killed meanwhile. */
const FAILED = 1;
/** Nothing was tried: nobody serves, or whoever does cannot be replaced. */
const IMPOSSIBLE = 3;

const MAX_DRAIN_SECONDS = 86_400;

const flags: readonly Flag[] = [
  dataDirFlag,
  {
    name: "executable",
    value: "PATH",
    description: "The program that is to serve",
    fallback: "the one that runs this command",
  },
  {
    name: "drain",
    value: "SECONDS",
    description: "How long WebSockets, streams and downloads of the old process may go on",
    fallback: String(DEFAULT_DRAIN_SECONDS),
  },
];

export const upgradeCommand: Command = {
  name: "upgrade",
  summary: "Have the gateway replaced by a new process, without a dropped connection",
  details:
    "The gateway that serves the data directory starts the program with its own flags and environment, and gives way once\n" +
    "that one serves: it accepts no more, and ends when what it has begun has ended. If the new process does not serve\n" +
    "within 60 seconds, the old one goes on as before, and the reason is on standard error with exit code 1.\n" +
    "Exit code 3: nothing was tried, because no gateway serves the directory, or one that has to be restarted instead.\n" +
    "To be run on the machine of the gateway, by the user who owns the data directory, or root.",
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

/** Where the files of a compiled executable seem to be. */
const BUNDLED = "/$bunfs/";

function decodeProgram(path: string | undefined): string[] {
  if (path === undefined)
    return Bun.main.startsWith(BUNDLED) ? [process.execPath] : [process.execPath, Bun.main];
  const program = resolve(path);
  try {
    if (!statSync(program).isFile()) throw new UsageError(`--executable: ${program} is no file`);
    accessSync(program, constants.X_OK);
    return [program];
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--executable: ${program} cannot be run`);
  }
}

function decodeDrain(text = String(DEFAULT_DRAIN_SECONDS)): number {
  const seconds = Number(text);
  if (/^\d+$/.test(text) && seconds <= MAX_DRAIN_SECONDS) return seconds;
  throw new UsageError(
    `--drain: must be a whole number of seconds up to ${MAX_DRAIN_SECONDS}, not "${text}"`,
  );
}
